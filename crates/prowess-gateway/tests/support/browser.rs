//! A real browser, driven by a test. It is gone with the test, also when that fails.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fantoccini::elements::Element;
use fantoccini::error::ErrorStatus;
use fantoccini::wd::WebDriverCompatibleCommand;
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use tempfile::TempDir;

/// How long a test waits for something that should happen; far longer than anything takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// How a browser is started that nobody looks at, and that talks with nobody but the test.
const FLAGS: [&str; 12] = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--window-size=1280,860",
    "--force-color-profile=srgb",
];

/// What every document is watched for: rules that were broken, errors, and programs that should not run.
const WATCH: &str = "
    window.__broken = [];
    addEventListener('securitypolicyviolation', (event) => window.__broken.push(`policy: ${event.violatedDirective} ${event.blockedURI}`));
    addEventListener('error', (event) => window.__broken.push(`error: ${event.message}`));
    addEventListener('unhandledrejection', (event) => window.__broken.push(`rejected: ${event.reason}`));
";

/// A browser with one empty window.
pub(crate) struct Browser {
    pub(crate) client: Client,
    driver: Driver,
}

/// The program that drives the browser. Both are in one process group, and end together.
struct Driver {
    child: Child,
    port: u16,
    profile: TempDir,
}

impl Driver {
    fn start() -> Self {
        let child = Command::new("chromedriver")
            .arg("--port=0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn();
        let mut child = child.unwrap_or_else(|error| {
            panic!("chromedriver does not start ({error}); install it with: apt-get install chromium chromium-driver")
        });
        let lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let told =
            lines.map_while(Result::ok).find_map(|line| line.split("successfully on port ").nth(1).map(str::to_owned));
        let port = told.and_then(|rest| rest.trim_end_matches('.').parse().ok());
        let profile = TempDir::with_prefix("prowess-browser-").expect("a temporary directory");
        Self { port: port.expect("chromedriver says its port"), child, profile }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // The browser is a child of the driver and would outlive it.
        let group = format!("-{}", self.child.id());
        drop(Command::new("kill").args(["-KILL", "--", &group]).status());
        drop(self.child.wait());
    }
}

/// A command of the browser's own protocol.
#[derive(Debug)]
struct Cdp(&'static str, Value);

impl WebDriverCompatibleCommand for Cdp {
    fn endpoint(&self, base: &url::Url, session: Option<&str>) -> Result<url::Url, url::ParseError> {
        base.join(&format!("session/{}/goog/cdp/execute", session.unwrap_or_default()))
    }

    fn method_and_body(&self, _url: &url::Url) -> (http::Method, Option<String>) {
        (http::Method::POST, Some(json!({"cmd": self.0, "params": self.1}).to_string()))
    }
}

impl Browser {
    /// Starts one.
    pub(crate) async fn open() -> Self {
        Self::open_with(&[]).await
    }

    /// The same, with more flags.
    pub(crate) async fn open_with(flags: &[&str]) -> Self {
        let driver = Driver::start();
        let profile = format!("--user-data-dir={}", driver.profile.path().display());
        let args: Vec<&str> = FLAGS.into_iter().chain(flags.iter().copied()).chain([profile.as_str()]).collect();
        let capabilities = json!({"goog:chromeOptions": {"args": args}}).as_object().expect("an object").clone();
        let mut connector = HttpConnector::new();
        connector.set_keepalive(Some(PATIENCE));
        let mut builder = ClientBuilder::new(connector);
        let connected = builder.capabilities(capabilities).connect(&format!("http://127.0.0.1:{}", driver.port)).await;
        let client =
            connected.unwrap_or_else(|error| panic!("the browser does not start: {error}; is chromium installed?"));
        let browser = Self { client, driver };
        browser.cdp("Page.addScriptToEvaluateOnNewDocument", json!({"source": WATCH})).await;
        browser
    }

    /// Goes to a page.
    pub(crate) async fn visit(&self, url: &str) {
        self.client.goto(url).await.expect("the page is there");
    }

    /// Asks for something that only this kind of browser knows.
    pub(crate) async fn cdp(&self, command: &'static str, params: Value) -> Value {
        self.client.issue_cmd(Cdp(command, params)).await.expect("the browser does it")
    }

    /// What an expression says on the page.
    pub(crate) async fn ask(&self, expression: &str) -> Value {
        self.client.execute(&format!("return ({expression});"), Vec::new()).await.expect("a value")
    }

    /// Waits until an expression holds on the page.
    #[track_caller]
    pub(crate) fn until<'a>(&'a self, expression: &'a str) -> impl Future<Output = ()> + 'a {
        let caller = std::panic::Location::caller();
        async move {
            let start = Instant::now();
            while self.ask(&format!("Boolean({expression})")).await != true {
                let page = self.ask("document.body.innerText").await;
                assert!(start.elapsed() < PATIENCE, "{caller}: waited in vain for {expression}\n{page}");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }

    /// The first element that fits, as soon as it is there.
    pub(crate) async fn find(&self, css: &str) -> Element {
        let found = self.client.wait().at_most(PATIENCE).for_element(Locator::Css(css)).await;
        found.unwrap_or_else(|error| panic!("no {css}: {error}"))
    }

    /// Clicks on the first element that fits. One that is replaced at that very moment is looked for again.
    pub(crate) async fn click(&self, css: &str) {
        let start = Instant::now();
        loop {
            match self.find(css).await.click().await {
                Ok(()) => return,
                Err(error) => {
                    let moved = error.is_stale_element_reference() || is(&error, &ErrorStatus::ElementClickIntercepted);
                    assert!(moved && start.elapsed() < PATIENCE, "cannot click {css}: {error}");
                }
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Types into whatever has the keyboard.
    pub(crate) async fn keys(&self, text: &str) {
        let active = self.client.active_element().await.expect("something has the keyboard");
        active.send_keys(text).await.expect("keys arrive");
    }

    /// Waits until the text of the first element that fits has `text` in it.
    pub(crate) async fn reads(&self, css: &str, text: &str) {
        // Some words are shown in capitals, which is a matter of style.
        let (css, text) = (Value::from(css), Value::from(text.to_lowercase()));
        self.until(&format!("document.querySelector({css})?.innerText.toLowerCase().includes({text})")).await;
    }

    /// Asserts that no rule was broken and nothing ran that should not.
    pub(crate) async fn is_unharmed(&self) {
        assert_eq!(self.ask("window.__broken").await, json!([]));
        assert_eq!(self.ask("window.__canary ?? null").await, Value::Null);
    }

    /// Ends it.
    pub(crate) async fn close(self) {
        // The driver ends what does not end by itself.
        drop(self.client.close().await);
        drop(self.driver);
    }
}

fn is(error: &fantoccini::error::CmdError, status: &ErrorStatus) -> bool {
    matches!(error, fantoccini::error::CmdError::Standard(told) if told.error == *status)
}

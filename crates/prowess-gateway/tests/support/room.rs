//! A gateway in an empty home, and whoever connects to it.

#![allow(dead_code, clippy::allow_attributes, reason = "each test file takes what it needs")]

use prowess_config::Env;
use prowess_gateway::client::{Client, Introduction};
use prowess_gateway::{Gateway, Options, Running};
use prowess_host::{Flags, Ground};
use prowess_testkit::Tree;

/// What its clients have to know.
pub(crate) const TOKEN: &str = "a-token-for-tests";

/// A gateway of its own, with all its files below one folder.
pub(crate) struct Room {
    pub(crate) tree: Tree,
    pub(crate) running: Running,
}

impl Room {
    /// With the files of `tree` in its home, for example `.openclaw/openclaw.json`.
    pub(crate) async fn open(tree: Tree) -> Self {
        Self::open_with(tree, Options::default()).await
    }

    /// The same, with options; the port is a free one unless they name one.
    pub(crate) async fn open_with(tree: Tree, options: Options) -> Self {
        let options = Options { port: Some(options.port.unwrap_or(0)), ..options };
        let running = Gateway::start(ground(&tree), options).await.expect("a gateway");
        Self { tree, running }
    }

    /// Where to connect.
    pub(crate) fn url(&self) -> String {
        let scheme = if self.running.fingerprint().is_some() { "wss" } else { "ws" };
        format!("{scheme}://{}", self.running.address)
    }

    /// An operator who may do everything.
    pub(crate) async fn operator(&self) -> Client {
        let operator = Introduction::operator(TOKEN).pinned(self.running.fingerprint());
        Client::connect(&self.url(), &operator).await.expect("let in")
    }
}

/// What a gateway in that home would know when it starts.
pub(crate) fn ground(tree: &Tree) -> Ground {
    let home = tree.root().to_string_lossy().into_owned();
    let path = std::env::var("PATH").unwrap_or_default();
    let env = Env::from_iter([("HOME", home.as_str()), ("PATH", &path), ("OPENCLAW_GATEWAY_TOKEN", TOKEN)]);
    Ground { flags: Flags::default(), env, cwd: tree.root().to_owned() }
}

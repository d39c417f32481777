//! Real programs that reach `web.test` with nothing but the proxy's variables. None of them can resolve the name.

use std::fs;
use std::process::Stdio;

use prowess_egress::{Outcome, Protocol, Refusal, Token};
use prowess_testkit::free_port;
use tokio::process::Command;

use crate::egress::proxy::{Proxy, lets};
use crate::egress::sites::{PACK, Site, installed, text};

const HELLO: &str = "hello from web.test\n";

#[tokio::test]
async fn curl() {
    if !installed(&["curl"]) {
        return;
    }
    let site = Site::new().await;
    site.write("large", "z".repeat(3 << 20));
    let socks = format!("socks5h://{}", site.proxy.address);
    assert_eq!(site.prints("curl", &["-sS", "https://web.test/hello"]).await, HELLO);
    assert_eq!(site.prints("curl", &["-sS", "http://web.test/hello", "http://web.test/hello"]).await, HELLO.repeat(2));
    assert_eq!(site.prints("curl", &["-sS", "-x", &socks, "https://web.test/hello"]).await, HELLO);
    assert_eq!(
        site.prints("curl", &["-sS", "-I", "-o", "/dev/null", "-w", "%{http_code}", "http://web.test/hello"]).await,
        "200"
    );
    for url in ["http://web.test/echo", "https://web.test/echo"] {
        let sizes = ["-sS", "-o", "/dev/null", "-w", "%{size_download}", "-T", "large", "-X", "POST", url];
        assert_eq!(site.prints("curl", &sizes).await, (3 << 20).to_string(), "{url}");
    }
    let records = site.all_served().await;
    let of = |protocol| records.iter().filter(|record| record.protocol == protocol).count();
    assert_eq!((of(Protocol::Connect), of(Protocol::Http), of(Protocol::Socks5)), (2, 4, 1));
}

#[tokio::test]
async fn curl_with_a_token() {
    if !installed(&["curl"]) {
        return;
    }
    let site = Site::with(Some(Token::random())).await;
    assert_eq!(site.prints("curl", &["-sS", "https://web.test/hello"]).await, HELLO);
    assert_eq!(site.prints("curl", &["-sS", "http://web.test/hello"]).await, HELLO);
    let socks = "-sS --noproxy none -x \"$ALL_PROXY\" https://web.test/hello";
    assert_eq!(site.prints("sh", &["-c", &format!("curl {socks}")]).await, HELLO);
    site.all_served().await;
}

#[tokio::test]
async fn curl_is_told_what_was_refused() {
    if !installed(&["curl"]) {
        return;
    }
    let site = Site::new().await;
    let output = site.run("curl", &["-sS", "https://evil.test/"]).await;
    assert!(String::from_utf8_lossy(&output.stderr).contains("403"), "{output:?}");
    // A redirect to a host without a rule.
    let printed = site.prints("curl", &["-sSL", "http://web.test/redirect?http://evil.test/hello"]).await;
    assert!(printed.contains("refused the connection to evil.test"), "{printed}");
    // A tunnel to an allowed host, with a certificate and a name of another.
    let fronted =
        site.run("curl", &["-sS", "--connect-to", "evil.test:443:web.test:443", "https://evil.test/hello"]).await;
    assert!(String::from_utf8_lossy(&fronted.stderr).contains("access denied"), "{fronted:?}");
    let refusals: Vec<&str> = site
        .proxy
        .close()
        .await
        .iter()
        .filter_map(|record| match &record.outcome {
            Outcome::Refused(refusal) => Some(refusal.code()),
            Outcome::Served => None,
            Outcome::Failed(reason) => panic!("{reason}"),
        })
        .collect();
    assert_eq!(refusals, ["not-allowed", "not-allowed", "server-name"]);
}

#[tokio::test]
async fn wget() {
    if !installed(&["wget"]) {
        return;
    }
    let site = Site::new().await;
    let ca = format!("--ca-certificate={}", site.path("ca.pem").display());
    assert_eq!(site.prints("wget", &["-qO-", &ca, "https://web.test/hello"]).await, HELLO);
    assert_eq!(site.prints("wget", &["-qO-", "http://web.test/hello"]).await, HELLO);
    site.all_served().await;
}

#[tokio::test]
async fn openssl() {
    if !installed(&["openssl", "sh"]) {
        return;
    }
    let site = Site::new().await;
    let script = format!(
        "printf 'GET /hello HTTP/1.0\\r\\nHost: web.test\\r\\n\\r\\n' | \
         openssl s_client -quiet -verify_return_error -CAfile ca.pem -proxy {} -connect web.test:443 -servername web.test",
        site.proxy.address
    );
    assert!(site.prints("sh", &["-c", &script]).await.ends_with(HELLO));
    site.all_served().await;
}

#[tokio::test]
async fn git_over_https() {
    if !installed(&["git", "sh"]) {
        return;
    }
    let site = Site::new().await;
    let script = "git init -q work && cd work && echo content > file && git add file && \
        git -c user.name=n -c user.email=e commit -qm first && cd .. && \
        git clone -q --bare work site/repo.git && git -C site/repo.git update-server-info";
    site.prints("sh", &["-c", script]).await;
    site.prints("git", &["clone", "-q", "https://web.test/repo.git", "copy"]).await;
    assert_eq!(fs::read_to_string(site.path("copy/file")).expect("cloned"), "content\n");
    site.all_served().await;
}

#[tokio::test]
async fn python_urllib_and_requests() {
    if !installed(&["python3"]) {
        return;
    }
    let site = Site::new().await;
    let program =
        "import sys, urllib.request as r; [print(r.urlopen(u).read().decode(), end='') for u in sys.argv[1:]]";
    let printed = site.prints("python3", &["-c", program, "https://web.test/hello", "http://web.test/hello"]).await;
    assert_eq!(printed, HELLO.repeat(2));
    if site.run("python3", &["-c", "import requests"]).await.status.success() {
        let program =
            "import sys, requests; s = requests.Session(); [print(s.get(u).text, end='') for u in sys.argv[1:]]";
        let urls = ["https://web.test/hello", "http://web.test/hello", "http://web.test/hello"];
        assert_eq!(site.prints("python3", &["-c", program, urls[0], urls[1], urls[2]]).await, HELLO.repeat(3));
    } else {
        eprintln!("skipped: not installed: the requests package of Python");
    }
    site.all_served().await;
}

#[tokio::test]
async fn pip_and_uv() {
    if !installed(&["python3"]) {
        return;
    }
    let site = Site::new().await;
    fs::create_dir_all(site.path("site/simple/demo")).expect("a folder");
    let wheel = "site/simple/demo/demo-1.0-py3-none-any.whl";
    let files = [
        "demo.py=answer = 42\n",
        "demo-1.0.dist-info/METADATA=Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n",
        "demo-1.0.dist-info/WHEEL=Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "demo-1.0.dist-info/RECORD=demo.py,,\ndemo-1.0.dist-info/METADATA,,\ndemo-1.0.dist-info/WHEEL,,\ndemo-1.0.dist-info/RECORD,,\n",
    ];
    site.prints("python3", &[&["-c", PACK, "zip", wheel], files.as_slice()].concat()).await;
    site.write("site/simple/demo/index.html", "<a href='demo-1.0-py3-none-any.whl'>demo-1.0-py3-none-any.whl</a>");
    let index = "https://web.test/simple/";
    if site.run("python3", &["-m", "pip", "--version"]).await.status.success() {
        let install =
            ["-m", "pip", "install", "-q", "--no-cache-dir", "--disable-pip-version-check", "--target", "by-pip"];
        site.prints("python3", &[install.as_slice(), &["--index-url", index, "demo"]].concat()).await;
        assert!(site.path("by-pip/demo.py").exists());
    } else {
        eprintln!("skipped: not installed: the pip package of Python");
    }
    if installed(&["uv"]) {
        site.prints("uv", &["pip", "install", "-q", "--no-cache", "--target", "by-uv", "--index-url", index, "demo"])
            .await;
        assert!(site.path("by-uv/demo.py").exists());
    }
    site.all_served().await;
}

#[tokio::test]
async fn node_fetch() {
    if !installed(&["node"]) {
        return;
    }
    let site = Site::new().await;
    let version = site.prints("node", &["-p", "process.versions.node"]).await;
    let numbers: Vec<u32> = version.trim().split('.').map_while(|part| part.parse().ok()).collect();
    if !(numbers[0] >= 24 || numbers[0] == 22 && numbers[1] >= 21) {
        eprintln!("skipped: node {} reads no proxy variables", version.trim());
        return;
    }
    let program = "fetch('https://web.test/hello').then(r => r.text()).then(t => process.stdout.write(t))";
    assert_eq!(site.prints("node", &["-e", program]).await, HELLO);
    site.all_served().await;
}

#[tokio::test]
async fn npm() {
    if !installed(&["npm", "python3"]) {
        return;
    }
    let site = Site::new().await;
    fs::create_dir_all(site.path("site/npm")).expect("a folder");
    let manifest = r#"{"name": "demo", "version": "1.0.0"}"#;
    let package = format!("package/package.json={manifest}");
    site.prints("python3", &["-c", PACK, "tar", "site/npm/demo.tgz", &package]).await;
    let document = r#"{"name": "demo", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0":
        {"name": "demo", "version": "1.0.0", "dist": {"tarball": "https://web.test/npm/demo.tgz"}}}}"#;
    site.write("site/npm/demo", document);
    site.write("project/package.json", r#"{"name": "project", "version": "1.0.0"}"#);
    let install =
        ["install", "--prefix", "project", "--registry", "https://web.test/npm/", "--no-audit", "--no-fund", "demo"];
    let output = site.run_with("npm", &install, &[("npm_config_update_notifier", "false")]).await;
    text(&output);
    assert_eq!(fs::read_to_string(site.path("project/node_modules/demo/package.json")).expect("installed"), manifest);
    site.all_served().await;
}

#[tokio::test]
async fn cargo() {
    if !installed(&["python3", "sha256sum"]) {
        return;
    }
    let site = Site::new().await;
    let manifest = "[package]\nname = \"demo\"\nversion = \"1.0.0\"\nedition = \"2021\"\n";
    fs::create_dir_all(site.path("site/index/de/mo")).expect("a folder");
    let files = [format!("demo-1.0.0/Cargo.toml={manifest}"), "demo-1.0.0/src/lib.rs=".to_owned()];
    site.prints("python3", &["-c", PACK, "tar", "site/index/demo.crate", &files[0], &files[1]]).await;
    let sum = site.prints("sha256sum", &["site/index/demo.crate"]).await;
    let sum = sum.split(' ').next().expect("a sum");
    site.write("site/index/config.json", r#"{"dl": "https://web.test/index/{crate}.crate"}"#);
    site.write(
        "site/index/de/mo/demo",
        format!(r#"{{"name":"demo","vers":"1.0.0","deps":[],"cksum":"{sum}","features":{{}},"yanked":false}}"#),
    );
    site.write(
        "project/Cargo.toml",
        "[package]\nname = \"project\"\nversion = \"1.0.0\"\nedition = \"2021\"\n[dependencies]\n\
         demo = { version = \"1\", registry = \"local\" }\n[workspace]\n",
    );
    site.write("project/src/lib.rs", "");
    let rustc = std::path::Path::new(env!("CARGO")).with_file_name("rustc").display().to_string();
    let index = [("CARGO_REGISTRIES_LOCAL_INDEX", "sparse+https://web.test/index/"), ("RUSTC", rustc.as_str())];
    let output = site.run_with(env!("CARGO"), &["fetch", "-q", "--manifest-path", "project/Cargo.toml"], &index).await;
    text(&output);
    assert!(fs::read_to_string(site.path("project/Cargo.lock")).expect("a lock file").contains(sum));
    site.all_served().await;
}

#[tokio::test]
async fn go() {
    if !installed(&["go", "python3"]) {
        return;
    }
    let site = Site::new().await;
    let at = "site/go/demo.test/m/@v";
    fs::create_dir_all(site.path(at)).expect("a folder");
    site.write(&format!("{at}/v1.0.0.info"), r#"{"Version":"v1.0.0"}"#);
    site.write(&format!("{at}/v1.0.0.mod"), "module demo.test/m\n");
    let archive = format!("{at}/v1.0.0.zip");
    let files = ["demo.test/m@v1.0.0/go.mod=module demo.test/m\n", "demo.test/m@v1.0.0/m.go=package m\n"];
    site.prints("python3", &["-c", PACK, "zip", &archive, files[0], files[1]]).await;
    let settings =
        [("GOPROXY", "https://web.test/go"), ("GOSUMDB", "off"), ("GOTOOLCHAIN", "local"), ("GOFLAGS", "-modcacherw")];
    let output = site.run_with("go", &["mod", "download", "-json", "demo.test/m@v1.0.0"], &settings).await;
    assert!(text(&output).contains("\"Version\": \"v1.0.0\""));
    site.all_served().await;
}

/// Java's two HTTP clients. Only the first one knows SOCKS, which is how a token reaches the proxy.
const JAVA: &str = r#"
import java.net.*; import java.net.http.*;
public class Get {
    public static void main(String[] words) throws Exception {
        for (String url : words) {
            System.out.write(new URL(url).openStream().readAllBytes());
            if (System.getProperty("http.proxyHost") != null)
                System.out.print(HttpClient.newHttpClient().send(HttpRequest.newBuilder(URI.create(url)).build(),
                    HttpResponse.BodyHandlers.ofString()).body());
        }
        System.out.flush();
    }
}
"#;

#[tokio::test]
async fn java() {
    if !installed(&["java", "javac", "keytool"]) {
        return;
    }
    for (token, times) in [(None, 4), (Some(Token::random()), 2)] {
        let site = Site::with(token).await;
        site.write("Get.java", JAVA);
        let import = ["-importcert", "-noprompt", "-file", "ca.pem", "-keystore", "trust", "-storepass", "secret"];
        site.prints("keytool", &import).await;
        let trust = ["-Djavax.net.ssl.trustStore=trust", "-Djavax.net.ssl.trustStorePassword=secret"];
        let words = [trust[0], trust[1], "Get.java", "https://web.test/hello", "http://web.test/hello"];
        assert_eq!(site.prints("java", &words).await, HELLO.repeat(times));
        site.all_served().await;
    }
}

#[tokio::test]
async fn ssh_over_socks() {
    if !installed(&["ssh", "ssh-keygen", "nc", "id"]) {
        return;
    }
    let sshd = std::path::Path::new("/usr/sbin/sshd");
    if !sshd.exists() {
        eprintln!("skipped: not installed: sshd");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    for key in ["host", "user"] {
        let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", &path(key)]).status().await;
        assert!(made.expect("started").success());
    }
    let port = free_port();
    let config = format!(
        "ListenAddress 127.0.0.1:{port}\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nStrictModes no\nUsePAM no\n\
         PermitRootLogin yes\nPasswordAuthentication no\n",
        path("host"),
        path("user.pub")
    );
    fs::write(path("sshd_config"), config).expect("written");
    // It does without its own folder only if it need not separate privileges.
    fs::create_dir_all("/run/sshd").ok();
    let mut server = Command::new(sshd)
        .args(["-D", "-e", "-f", &path("sshd_config")])
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("started");
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], port));
    for _ in 0..100 {
        if tokio::net::TcpStream::connect(address).await.is_ok() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    if let Ok(Some(status)) = server.try_wait() {
        eprintln!("skipped: sshd does not start for this user ({status})");
        return;
    }
    let proxy = Proxy::start(|context| lets(context, "box.test", 22, address)).await;
    let hop = format!("ProxyCommand=nc -X 5 -x {} %h %p", proxy.address);
    let user = text(&Command::new("id").arg("-un").output().await.expect("started"));
    let options = ["-F", "none", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", &hop];
    let output = Command::new("ssh")
        .args(options)
        .args([
            "-i",
            &path("user"),
            "-o",
            "BatchMode=yes",
            &format!("{}@box.test", user.trim()),
            "echo through the proxy",
        ])
        .output()
        .await
        .expect("started");
    assert_eq!(text(&output), "through the proxy\n");
    // Another host, by the same way.
    let refused = Command::new("ssh")
        .args(options)
        .args(["-o", "BatchMode=yes", "evil.test", "true"])
        .output()
        .await
        .expect("started");
    assert!(!refused.status.success());
    let records = proxy.close().await;
    assert_eq!((records[0].outcome.clone(), records[0].protocol), (Outcome::Served, Protocol::Socks5));
    assert!(matches!(records[1].outcome, Outcome::Refused(Refusal::NotAllowed(_))), "{records:?}");
}

//! A site with something for every client: pages, a git repository, and the registries of package managers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

use prowess_egress::{ConnectionRecord, Outcome, Token, environment};
use tempfile::TempDir;
use tokio::process::Command;

use crate::egress::origin::{Authority, Origin};
use crate::egress::proxy::{Proxy, lets};

/// How long a client may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// `web.test` over HTTP and HTTPS behind a proxy, and an empty home for one client.
pub(crate) struct Site {
    pub(crate) proxy: Proxy,
    pub(crate) folder: TempDir,
    variables: Vec<(String, String)>,
    _origins: [Origin; 2],
}

impl Site {
    pub(crate) async fn new() -> Self {
        Self::with(None).await
    }

    pub(crate) async fn with(token: Option<Token>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("site")).expect("a folder");
        fs::create_dir(folder.path().join("home")).expect("a folder");
        let authority = Authority::new();
        let ca = folder.path().join("ca.pem");
        fs::write(&ca, authority.pem()).expect("written");
        let https = Origin::https(&authority, &["web.test"], &folder.path().join("site")).await;
        let http = Origin::http_files(&folder.path().join("site")).await;
        let for_clients = token.clone();
        let proxy = Proxy::start(|context| {
            lets(context, "web.test", 443, https.address);
            lets(context, "web.test", 80, http.address);
            context.token = token;
        })
        .await;
        let mut variables = environment(proxy.address, for_clients.as_ref());
        let trust = [
            "CURL_CA_BUNDLE",
            "SSL_CERT_FILE",
            "GIT_SSL_CAINFO",
            "NODE_EXTRA_CA_CERTS",
            "PIP_CERT",
            "REQUESTS_CA_BUNDLE",
            "CARGO_HTTP_CAINFO",
            "npm_config_cafile",
        ];
        variables.extend(trust.map(|name| (name.to_owned(), ca.display().to_string())));
        variables.push(("HOME".to_owned(), folder.path().join("home").display().to_string()));
        Self { proxy, folder, variables, _origins: [https, http] }
    }

    /// A path in the folder of the test.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file in the folder of the test.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, content).expect("written");
    }

    /// Starts `program` with the variables for the proxy and nothing else, in the folder of the test.
    pub(crate) async fn run(&self, program: impl AsRef<Path>, args: &[&str]) -> Output {
        self.run_with(program, args, &[]).await
    }

    pub(crate) async fn run_with(&self, program: impl AsRef<Path>, args: &[&str], more: &[(&str, &str)]) -> Output {
        let mut command = Command::new(program.as_ref());
        command.args(args).env_clear().envs(self.variables.iter().cloned()).envs(more.iter().copied());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.current_dir(self.folder.path()).kill_on_drop(true);
        let output = tokio::time::timeout(PATIENCE, command.output()).await.expect("ended in time");
        output.unwrap_or_else(|error| panic!("{}: {error}", program.as_ref().display()))
    }

    /// Runs a client that must succeed, and returns what it printed.
    pub(crate) async fn prints(&self, program: impl AsRef<Path>, args: &[&str]) -> String {
        text(&self.run(program, args).await)
    }

    /// Stops the proxy. Every connection must have been served by `web.test`, and there must be one.
    pub(crate) async fn all_served(self) -> Vec<ConnectionRecord> {
        let records = self.proxy.close().await;
        assert!(!records.is_empty(), "the client used another way");
        for record in &records {
            assert_eq!(record.outcome, Outcome::Served, "{record:?}");
            assert_eq!(record.host.as_ref().map(ToString::to_string).as_deref(), Some("web.test"));
        }
        records
    }
}

/// What a program printed, if it succeeded.
pub(crate) fn text(output: &Output) -> String {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}\n{out}\n{err}", output.status);
    out.into_owned()
}

/// Whether all `programs` are installed. If not, says which test is left out.
pub(crate) fn installed(programs: &[&str]) -> bool {
    let folders: Vec<PathBuf> =
        std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default();
    let missing: Vec<&&str> =
        programs.iter().filter(|program| !folders.iter().any(|folder| folder.join(program).is_file())).collect();
    if !missing.is_empty() {
        eprintln!("skipped: not installed: {missing:?}");
    }
    missing.is_empty()
}

/// A Python program that packs `files` of the test's folder into an archive.
pub(crate) const PACK: &str = "
import io, sys, tarfile, zipfile
kind, target, *pairs = sys.argv[1:]
pairs = [pair.split('=', 1) for pair in pairs]
if kind == 'zip':
    with zipfile.ZipFile(target, 'w') as archive:
        for name, content in pairs:
            archive.writestr(name, content)
else:
    with tarfile.open(target, 'w:gz') as archive:
        for name, content in pairs:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content.encode()))
";

//! The machine and what it talks to: the model, the state directory, the network and the gateway.

use std::net::{TcpStream, ToSocketAddrs};
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use prowess_agent::settings::{Choice, choose};
use prowess_host::{Context, model_settings};
use prowess_policy::{ExecSettings, SandboxChoice};
use rustix::fs::{Access, access};

use super::{Finding, Standing};
use crate::cli::Globals;
use crate::output::{safe, short_path};
use crate::remote::target::Target;

/// How long a host may take to accept a connection.
const PATIENCE: Duration = Duration::from_secs(3);

/// A host and port that something is asked at.
pub(super) struct Host {
    name: String,
    port: u16,
    /// Whether a proxy is asked in its place.
    proxied: bool,
}

/// Which model answers; and where, if it is behind a network.
pub(super) fn model(context: &Context) -> (Vec<Finding>, Option<Host>) {
    let env = |name: &str| context.config.env().get(name).map(str::to_owned);
    let settings = model_settings(context);
    let mut host = None;
    let first = match choose(&settings, None) {
        Ok(Choice::Embedded) => {
            Finding::new("model", "model", Standing::Warning, "no language model: the embedded planner answers")
                .advice("set ANTHROPIC_API_KEY or OPENAI_API_KEY; for others see: prowess models")
        }
        Ok(Choice::Scripted(file)) => {
            Finding::new("model", "model", Standing::Works, format!("the script {}", file.display()))
        }
        Ok(Choice::Wire { first, .. }) => {
            let is_proxied =
                ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"].iter().any(|name| env(name).is_some());
            host = Host::of(&first.base_url, is_proxied);
            Finding::new("model", "model", Standing::Works, safe(&first.id()))
                .advice("not asked yet; to test the key and the model: prowess models --probe")
        }
        Err(error) => {
            Finding::new("model", "model", Standing::Broken, safe(&error.to_string())).advice("prowess models")
        }
    };
    let problems = settings.problems.iter().map(|problem| {
        Finding::new("model", "model", Standing::Warning, safe(problem)).advice("prowess config get models")
    });
    (std::iter::once(first).chain(problems).collect(), host)
}

/// Whether prowess can keep anything.
pub(super) fn state(context: &Context) -> Finding {
    let dir = &context.locations.state_dir;
    let shown = short_path(dir, context.user_home());
    let existing = dir.ancestors().find(|dir| dir.exists()).unwrap_or(Path::new("/"));
    if existing.is_dir() && access(existing, Access::WRITE_OK | Access::EXEC_OK).is_ok() {
        return Finding::new("state", "state", Standing::Works, shown);
    }
    Finding::new("state", "state", Standing::Broken, format!("{shown} cannot be written"))
        .advice(format!("check the permissions of {}, or set OPENCLAW_STATE_DIR", existing.display()))
}

/// Whether the model can be reached, and whether commands have a network.
pub(super) fn network(host: Option<&Host>, settings: &ExecSettings) -> Vec<Finding> {
    let finding = |standing, what: String| Finding::new("network", "network", standing, what);
    let reached = host.map(|host| match host.reach() {
        _ if host.proxied => finding(Standing::Works, format!("{} is reached through a proxy", safe(&host.name))),
        Ok(()) => finding(Standing::Works, format!("{} is reachable", safe(&host.name))),
        Err(why) => finding(Standing::Broken, format!("{} is not reachable: {}", safe(&host.name), safe(&why)))
            .advice("check your connection, or the model's baseUrl: prowess config get models.providers"),
    });
    let is_ours = matches!(settings.sandbox, SandboxChoice::Auto | SandboxChoice::Landlock | SandboxChoice::Bubblewrap);
    let commands = match (is_ours, settings.grants.network) {
        (true, false) => finding(Standing::Works, "commands reach only the hosts that you allow".to_owned())
            .advice("to allow one before you are asked: prowess leases allow --host NAME"),
        (true, true) => finding(Standing::Warning, "every command may use it (tools.exec.sandbox.network)".to_owned()),
        (false, _) => finding(Standing::Works, "commands have the network of their sandbox".to_owned()),
    };
    reached.into_iter().chain([commands]).collect()
}

/// Whether a gateway runs, and lets us in.
pub(super) fn gateway(globals: &Globals) -> Finding {
    let finding = |standing, what: String| Finding::new("gateway", "gateway", standing, what);
    let target = match Target::meant(globals) {
        Ok(target) => target,
        Err(failure) => {
            let broken = finding(Standing::Warning, safe(&failure.message));
            return failure.hints.iter().take(1).fold(broken, |finding, hint| finding.advice(hint.clone()));
        }
    };
    let url = safe(&target.url);
    let is_up = Host::of(&target.url, false).is_some_and(|host| host.reach().is_ok());
    if !is_up {
        return finding(Standing::Missing, format!("not running at {url} (optional)")).advice("prowess gateway run");
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let connected = match runtime {
        Ok(runtime) => {
            runtime.block_on(async { target.connect().await.map(drop).map_err(|failure| failure.sentence()) })
        }
        Err(error) => Err(error.to_string()),
    };
    match connected {
        Ok(()) => finding(Standing::Works, format!("running at {url}")),
        Err(why) => finding(Standing::Warning, safe(&why)).advice("prowess gateway status"),
    }
}

impl Host {
    /// The host of an address such as `https://api.example.com/v1`.
    fn of(url: &str, proxied: bool) -> Option<Self> {
        let (scheme, rest) = url.trim().split_once("://")?;
        let authority = rest.split(['/', '?', '#']).next()?;
        let place = authority.rsplit_once('@').map_or(authority, |(_, place)| place);
        let usual = if matches!(scheme, "https" | "wss") { 443 } else { 80 };
        let (name, port) = match place.strip_prefix('[') {
            Some(rest) => {
                let (name, after) = rest.split_once(']')?;
                (name, after.strip_prefix(':'))
            }
            None => place.split_once(':').map_or((place, None), |(name, port)| (name, Some(port))),
        };
        let port = port.map_or(Some(usual), |port| port.parse().ok())?;
        (!name.is_empty()).then(|| Self { name: name.to_owned(), port, proxied })
    }

    /// Whether it accepts a connection in time; nothing is sent.
    fn reach(&self) -> Result<(), String> {
        let (name, port) = (self.name.clone(), self.port);
        let (tell, told) = mpsc::channel();
        // Asking for a name has no time limit of its own; a thread that waits for it ends with the program.
        std::thread::spawn(move || {
            let reached =
                (name.as_str(), port).to_socket_addrs().map_err(|error| error.to_string()).and_then(|addresses| {
                    let mut last = "it has no address".to_owned();
                    for address in addresses.take(4) {
                        match TcpStream::connect_timeout(&address, PATIENCE) {
                            Ok(_) => return Ok(()),
                            Err(error) => last = error.to_string(),
                        }
                    }
                    Err(last)
                });
            // Nobody listens once the time is up.
            let _ = tell.send(reached);
        });
        told.recv_timeout(PATIENCE).unwrap_or_else(|_| Err(format!("no answer within {} seconds", PATIENCE.as_secs())))
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn an_address_has_a_host_and_a_port() {
        let table = [
            ("https://api.example.com/v1", Some(("api.example.com", 443))),
            ("http://127.0.0.1:8080/v1", Some(("127.0.0.1", 8080))),
            ("ws://[::1]:18789", Some(("::1", 18789))),
            ("wss://me:secret@far.example?x", Some(("far.example", 443))),
            ("http://host:none", None),
            ("nothing", None),
        ];
        for (url, expected) in table {
            let host = Host::of(url, false);
            assert_eq!(host.as_ref().map(|host| (host.name.as_str(), host.port)), expected, "{url}");
        }
    }

    #[test]
    fn a_host_is_reached_or_not() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let host = Host { name: "127.0.0.1".to_owned(), port, proxied: false };
        assert_eq!(host.reach(), Ok(()));
        drop(listener);
        assert!(host.reach().is_err());
    }
}

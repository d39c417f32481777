//! `gateway run`: serve until somebody wants it to end.

use std::io::{ErrorKind, IsTerminal as _};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use prowess_config::Secret;
use prowess_gateway::settings::PORT;
use prowess_gateway::tls::machine_addresses;
use prowess_gateway::{Gateway, Options, Running, StartError};
use prowess_host::{Context, Failure};
use serde_json::json;

use crate::chat::tell;
use crate::cli::{Globals, ServeArgs};
use crate::dashboard::{self, Page};
use crate::output::{DIM, Report, WARN, paint, safe, short_path};
use crate::wish::Wish;

pub(crate) fn run(args: &ServeArgs, globals: &Globals, then: Then) -> Result<Report, Failure> {
    if globals.remote.gateway.is_some() {
        return Err(Failure::usage("a gateway runs on this machine").hint("leave --gateway out"));
    }
    let ground = globals.ground()?;
    let given = globals.remote.token.as_deref().map(str::trim);
    if given == Some("") {
        return Err(Failure::usage("the token is empty").hint("leave --token out to generate one"));
    }
    let context = Context::load(&ground)?;
    crate::log::begin(&context, "gateway", args.log);
    let options = Options {
        port: args.port,
        bind: args.bind.clone(),
        tls: args.tls.wanted(),
        token: given.map(Secret::new),
        wait: Some(Duration::from_secs(args.wait)),
        ..Options::default()
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(Failure::ours)?;
    runtime.block_on(async {
        let mut wish = Wish::listen().map_err(Failure::ours)?;
        let running = Gateway::start(ground, options).await.map_err(|error| refused(&error))?;
        announce(&running, &context, globals, then)?;
        wish.comes().await;
        tracing::info!("shutting down; waiting for running turns");
        tokio::select! {
            () = running.end() => Ok(Report::text("")),
            // Whoever wishes twice does not want to wait.
            () = wish.comes() => Ok(Report::text("").code(130)),
        }
    })
}

/// What happens once a gateway runs, besides serving.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    /// Nothing.
    Serve,
    /// The address that signs in is printed.
    Print,
    /// It is opened in a browser.
    Open,
}

/// Says where it is, and how to get in.
fn announce(running: &Running, context: &Context, globals: &Globals, then: Then) -> Result<(), Failure> {
    let (address, print) = (running.address, running.fingerprint());
    let (socket, web) = if print.is_some() { ("wss", "https") } else { ("ws", "http") };
    let (url, page) = (format!("{socket}://{}", reachable(address)), format!("{web}://{}/", reachable(address)));
    tracing::info!(url, version = env!("CARGO_PKG_VERSION"), "the gateway has started");
    let file = running.token_file();
    let elsewhere: Vec<String> = elsewhere(address).into_iter().map(|ip| page_at(web, ip, address.port())).collect();
    if globals.json {
        let told = json!({
            "url": url, "page": page, "pid": std::process::id(), "tokenMade": file.is_some(), "tokenFile": file,
            "tlsFingerprint": print.map(|print| print.to_string()), "elsewhere": elsewhere,
        });
        // One line, so that a program can wait for it.
        return Report::text(format!("{told}\n")).print();
    }
    for warning in context.config.warnings() {
        tell(&format!("{} {}", paint(WARN, "warning:"), safe(&warning.to_string())));
    }
    tell(&format!("listening on {url}"));
    let secret = running.secret().map(|secret| secret.expose().to_owned());
    let link = Page { url: page.clone(), secret, read_only: false }.link();
    // The token belongs on a person's screen, and not into the log of a service.
    let is_shown = then != Then::Serve || std::io::stderr().is_terminal();
    if is_shown {
        tell(&format!("the page, signed in: {link}"));
    } else {
        tell(&format!("the page is at {page}"));
    }
    if let Some(program) = dashboard::opener(context.config.env()).filter(|_| then == Then::Open) {
        tell(&paint(DIM, "opening it in your browser"));
        tokio::task::spawn_blocking(move || dashboard::open(program, &link));
    }
    if then != Then::Serve {
        tell("no gateway was running, so this command runs one until you press Ctrl-C");
        tell(&paint(DIM, "to keep one running: prowess gateway install-service"));
    } else if address.port() == PORT {
        tell(&paint(DIM, "prowess dashboard opens it signed in"));
    } else {
        tell(&paint(DIM, &format!("prowess dashboard --gateway {url} opens it signed in")));
    }
    for other in &elsewhere {
        tell(&format!("from other devices: {other}"));
    }
    if let Some(print) = print {
        tell(&format!("certificate SHA-256: {print}"));
    } else if let Some(wide) = wide(address) {
        tell(&format!("{} {wide}", paint(WARN, "warning:")));
    }
    if let Some(file) = file {
        let file = short_path(file, context.user_home());
        tell(&format!("saved a new token in {file} as gateway.auth.token"));
        tell(&paint(
            DIM,
            "prowess reads it from there; to print it: prowess config get gateway.auth.token --show-secrets",
        ));
    }
    tell(&paint(DIM, "press Ctrl-C to stop"));
    Ok(())
}

/// The addresses of this machine at which other devices reach what listens on `address`.
fn elsewhere(address: SocketAddr) -> Vec<IpAddr> {
    if address.ip().is_unspecified() {
        return machine_addresses().into_iter().filter(|ip| !ip.is_loopback()).collect();
    }
    Some(address.ip()).filter(|ip| !ip.is_loopback()).into_iter().collect()
}

fn page_at(scheme: &str, ip: IpAddr, port: u16) -> String {
    format!("{scheme}://{}/", SocketAddr::new(ip, port))
}

/// An address that a program on this machine can connect to.
fn reachable(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => SocketAddr::new(std::net::Ipv4Addr::LOCALHOST.into(), address.port()),
        IpAddr::V6(ip) if ip.is_unspecified() => SocketAddr::new(std::net::Ipv6Addr::LOCALHOST.into(), address.port()),
        _ => address,
    }
}

/// What is said of an address that other machines reach.
fn wide(address: SocketAddr) -> Option<String> {
    (!address.ip().is_loopback()).then(|| {
        format!(
            "it listens on {address}: other machines can reach it, and nothing is encrypted, not even the token; \
             leave --no-tls and gateway.tls.enabled: false out, or put a proxy with TLS in front of it"
        )
    })
}

fn refused(error: &StartError) -> Failure {
    if is_disk_full(error) {
        return Failure::input(format!("the disk is full: {error}"))
            .hint("free some space, or move the state directory: OPENCLAW_STATE_DIR=/another/disk");
    }
    match error {
        StartError::Listen { address, source } if source.kind() == ErrorKind::AddrInUse => {
            let port = address.port();
            Failure::input(format!("port {port} is in use: another program listens on {address}"))
                .hint("if it is a gateway: prowess gateway status")
                .hint(format!("to see which program: {}", who_has(port)))
                .hint("another port: prowess gateway run --port PORT")
        }
        StartError::Listen { source, .. } if source.kind() == ErrorKind::PermissionDenied => {
            Failure::input(error).hint("ports below 1024 need administrator rights; choose another with --port")
        }
        _ => Failure::input(error),
    }
}

/// Whether it failed because there is no space left, anywhere in its causes.
fn is_disk_full(error: &StartError) -> bool {
    let first: &dyn std::error::Error = error;
    let mut causes = std::iter::successors(Some(first), |cause| cause.source());
    causes.any(|cause| {
        let io = cause.downcast_ref::<std::io::Error>();
        io.is_some_and(|io| matches!(io.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded))
    })
}

/// How to find out who listens on a port.
fn who_has(port: u16) -> String {
    if cfg!(target_os = "linux") && Path::new("/proc/net/tcp").exists() {
        return format!("ss -ltnp 'sport = :{port}'");
    }
    format!("lsof -nP -iTCP:{port} -sTCP:LISTEN")
}

#[cfg(test)]
mod tests {
    use prowess_gateway::JournalError;

    use super::*;

    #[test]
    fn who_listens_to_the_network_is_told() {
        for (address, is_wide) in [("127.0.0.1:1", false), ("[::1]:1", false), ("0.0.0.0:1", true), ("[::]:1", true)] {
            let said = wide(address.parse().expect("an address"));
            assert_eq!(said.is_some_and(|said| said.contains(address) && said.contains("encrypted")), is_wide);
        }
    }

    #[test]
    fn a_full_disk_is_called_one() {
        let io = |kind: ErrorKind| {
            StartError::Journal(JournalError::Io { path: "/s/runs.jsonl".into(), source: kind.into() })
        };
        let full = refused(&io(ErrorKind::StorageFull));
        assert!(full.message.starts_with("the disk is full: ") && full.hints[0].contains("free some space"), "{full}");
        let denied = refused(&io(ErrorKind::PermissionDenied));
        assert!(denied.message.contains("writable") && !denied.message.contains("full"), "{denied}");
    }

    #[test]
    fn everywhere_is_reached_here() {
        let table = [("0.0.0.0:1", "127.0.0.1:1"), ("[::]:1", "[::1]:1"), ("192.0.2.1:1", "192.0.2.1:1")];
        for (bound, expected) in table {
            assert_eq!(reachable(bound.parse().expect("an address")).to_string(), expected);
        }
    }
}

//! `gateway run`: serve until somebody wants it to end.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use prowess_config::Secret;
use prowess_gateway::{Gateway, Options, Running, StartError};
use prowess_host::{Context, Failure};
use serde_json::json;

use crate::chat::tell;
use crate::cli::{Globals, ServeArgs};
use crate::output::{DIM, Report, WARN, paint, safe, short_path};
use crate::wish::Wish;

pub(crate) fn run(args: &ServeArgs, globals: &Globals) -> Result<Report, Failure> {
    if globals.remote.gateway.is_some() {
        return Err(Failure::usage("a gateway runs on this machine").hint("leave --gateway out"));
    }
    let ground = globals.ground()?;
    let given = globals.remote.token.as_deref().map(str::trim);
    if given == Some("") {
        return Err(Failure::usage("the token is empty").hint("leave --token out to have one made"));
    }
    let context = Context::load(&ground)?;
    crate::log::begin(&context, "gateway", args.log);
    let options = Options {
        port: args.port,
        bind: args.bind.clone(),
        token: given.map(Secret::new),
        wait: Some(Duration::from_secs(args.wait)),
        ..Options::default()
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(Failure::ours)?;
    runtime.block_on(async {
        let mut wish = Wish::listen().map_err(Failure::ours)?;
        let running = Gateway::start(ground, options).await.map_err(|error| refused(&error))?;
        announce(&running, &context, globals)?;
        wish.comes().await;
        tracing::info!("ending; what runs is brought to an end first");
        tokio::select! {
            () = running.end() => Ok(Report::text("")),
            // Whoever wishes twice does not want to wait.
            () = wish.comes() => Ok(Report::text("").code(130)),
        }
    })
}

/// Says where it is, and how to come in.
fn announce(running: &Running, context: &Context, globals: &Globals) -> Result<(), Failure> {
    let address = running.address;
    let (url, page) = (format!("ws://{}", reachable(address)), format!("http://{}/", reachable(address)));
    tracing::info!(url, version = env!("CARGO_PKG_VERSION"), "the gateway has started");
    let file = running.token_file();
    if globals.json {
        let told = json!({"url": url, "page": page, "pid": std::process::id(), "tokenMade": file.is_some(), "tokenFile": file});
        // One line, so that a program can wait for it.
        return Report::text(format!("{told}\n")).print();
    }
    for warning in context.config.warnings() {
        tell(&format!("{} {}", paint(WARN, "warning:"), safe(&warning.to_string())));
    }
    tell(&format!("listening on {url}"));
    tell(&format!("the page is at {page}"));
    if let Some(wide) = wide(address) {
        tell(&format!("{} {wide}", paint(WARN, "warning:")));
    }
    if let Some(file) = file {
        let file = short_path(file, context.user_home());
        tell(&format!("a token was made and is kept in {file}, as gateway.auth.token"));
        tell(&paint(
            DIM,
            "prowess on this machine finds it there; prowess config get gateway.auth.token --show-secrets tells it",
        ));
    }
    tell(&paint(DIM, "Ctrl-C ends it"));
    Ok(())
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
             put a proxy with TLS in front of it, or listen on loopback and use a tunnel"
        )
    })
}

fn refused(error: &StartError) -> Failure {
    match error {
        StartError::Listen { address, source } if source.kind() == ErrorKind::AddrInUse => {
            let port = address.port();
            Failure::input(format!("port {port} is taken: something listens on {address} already"))
                .hint("if it is a gateway: prowess gateway status")
                .hint(format!("who it is: {}", who_has(port)))
                .hint("another port: prowess gateway run --port PORT")
        }
        StartError::Listen { source, .. } if source.kind() == ErrorKind::PermissionDenied => {
            Failure::input(error).hint("ports below 1024 are for the administrator")
        }
        _ => Failure::input(error),
    }
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
    use super::*;

    #[test]
    fn who_listens_to_the_network_is_told() {
        for (address, is_wide) in [("127.0.0.1:1", false), ("[::1]:1", false), ("0.0.0.0:1", true), ("[::]:1", true)] {
            let said = wide(address.parse().expect("an address"));
            assert_eq!(said.is_some_and(|said| said.contains(address) && said.contains("encrypted")), is_wide);
        }
    }

    #[test]
    fn everywhere_is_reached_here() {
        let table = [("0.0.0.0:1", "127.0.0.1:1"), ("[::]:1", "[::1]:1"), ("192.0.2.1:1", "192.0.2.1:1")];
        for (bound, expected) in table {
            assert_eq!(reachable(bound.parse().expect("an address")).to_string(), expected);
        }
    }
}

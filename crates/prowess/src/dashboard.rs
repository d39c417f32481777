//! `prowess dashboard`: the page in a browser, signed in.

use std::fmt::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use prowess_config::Env;
use prowess_gateway::client::CallError;
use prowess_gateway::tls::machine_addresses;
use prowess_host::Failure;
use serde_json::json;

use crate::cli::{DashboardArgs, Globals, LogArgs, ServeArgs, TlsArgs};
use crate::gateway::serve;
use crate::output::{DIM, Report, paint};
use crate::remote::target::{Found, Target};

/// How often it is looked whether opening has failed.
const OPENING: u32 = 20;

/// Where the page is, and what signs in there.
pub(crate) struct Page {
    /// As in `http://127.0.0.1:18789/`.
    pub(crate) url: String,
    pub(crate) secret: Option<String>,
    pub(crate) read_only: bool,
}

impl Page {
    /// The page of the gateway at a `ws://` or `wss://` address.
    fn of(target: &Target, read_only: bool) -> Self {
        let url = target.url.replacen("ws", "http", 1);
        let url = format!("{}/", url.trim_end_matches('/'));
        let secret = target.secret.as_ref().map(|(_, secret)| secret.expose().to_owned());
        Self { url, secret, read_only }
    }

    /// The address that signs in. What is behind `#` is never sent over the network.
    pub(crate) fn link(&self) -> String {
        let token = self.secret.as_deref().map(|secret| format!("token={}", encoded(secret)));
        let access = self.read_only.then(|| "access=read".to_owned());
        let parts: Vec<String> = token.into_iter().chain(access).collect();
        if parts.is_empty() { self.url.clone() } else { format!("{}#{}", self.url, parts.join("&")) }
    }
}

/// A text as a part of an address.
fn encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
        out
    })
}

pub(crate) fn run(args: &DashboardArgs, globals: &Globals) -> Result<Report, Failure> {
    let mut target = Target::meant(globals)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::ours)?;
    let found = runtime.block_on(target.find());
    drop(runtime);
    match found {
        Ok(found) => show(&target, &found, args, globals),
        Err(CallError::Gone(_)) if may_start(&target, args, globals) => {
            let then = if args.no_open { serve::Then::Print } else { serve::Then::Open };
            let log = LogArgs { log_level: None };
            serve::run(&ServeArgs { port: None, bind: None, tls: TlsArgs::default(), wait: 10, log }, globals, then)
        }
        Err(error) => Err(target.unreachable(&error)),
    }
}

/// Whether a gateway is started here when there is none: not for a script, and not in place of one elsewhere.
fn may_start(target: &Target, args: &DashboardArgs, globals: &Globals) -> bool {
    target.is_here() && globals.remote.gateway.is_none() && !args.no_start && !args.qr && !globals.json
}

/// Prints the address, and opens it.
fn show(target: &Target, found: &Found, args: &DashboardArgs, globals: &Globals) -> Result<Report, Failure> {
    let page = Page::of(target, args.read_only);
    let link = page.link();
    let elsewhere = elsewhere(target, found, &page);
    if globals.json {
        return Report::json(&json!({"url": page.url, "link": link, "elsewhere": elsewhere}));
    }
    if args.qr {
        let Some(first) = elsewhere.first() else {
            return Err(Failure::input("other devices cannot reach this gateway: it listens on this machine only")
                .hint("start it with: prowess gateway run --bind lan"));
        };
        return Ok(Report::text(format!("{first}\n{}", qr(first)?)));
    }
    let mut text = format!("{link}\n");
    let opener = opener(&globals.ground()?.env).filter(|_| !args.no_open);
    if opener.is_some_and(|program| open(program, &link)) {
        let _ = writeln!(text, "{}", paint(DIM, "opened in your browser"));
    } else if !args.no_open {
        let _ = writeln!(text, "{}", paint(DIM, "no browser could be opened here; open the address yourself"));
    }
    for other in &elsewhere {
        let _ = writeln!(text, "{}", paint(DIM, &format!("from another device: {other}")));
    }
    Ok(Report::text(text))
}

/// The addresses for other devices, if the gateway is on this machine and listens to them.
fn elsewhere(target: &Target, found: &Found, page: &Page) -> Vec<String> {
    let Some(address) = found.address.filter(|address| target.is_here() && !address.ip().is_loopback()) else {
        return Vec::new();
    };
    let scheme = page.url.split("://").next().unwrap_or("https");
    let own = if address.ip().is_unspecified() { machine_addresses() } else { vec![address.ip()] };
    let url = |ip| format!("{scheme}://{}/", std::net::SocketAddr::new(ip, address.port()));
    let pages = own.into_iter().filter(|ip| !ip.is_loopback());
    pages.map(|ip| Page { url: url(ip), secret: page.secret.clone(), ..*page }.link()).collect()
}

/// An address that a phone's camera reads.
fn qr(text: &str) -> Result<String, Failure> {
    let code = qrcode::QrCode::new(text).map_err(|error| Failure::ours(format!("no QR code: {error}")))?;
    Ok(code.render::<qrcode::render::unicode::Dense1x2>().quiet_zone(true).build() + "\n")
}

/// The program that opens a browser, if there is a screen to show one on.
pub(crate) fn opener(env: &Env) -> Option<&'static str> {
    if cfg!(target_os = "macos") {
        return Some("open");
    }
    ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| env.text(name).is_some()).then_some("xdg-open")
}

/// Opens `link` in the person's browser, and tells whether that worked. Waits a moment to see it fail.
pub(crate) fn open(program: &str, link: &str) -> bool {
    let mut command = Command::new(program);
    command.arg(link).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut opening) = command.spawn() else { return false };
    // It may stay for as long as the browser does; one that cannot open anything says so at once.
    for _ in 0..OPENING {
        match opening.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) => std::thread::sleep(Duration::from_millis(50)),
            Err(_) => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_signs_in_whatever_the_secret_is_made_of() {
        let page = |secret: Option<&str>, read_only| Page {
            url: "http://127.0.0.1:1/".to_owned(),
            secret: secret.map(str::to_owned),
            read_only,
        };
        assert_eq!(page(Some("a-b_c"), false).link(), "http://127.0.0.1:1/#token=a-b_c");
        assert_eq!(page(Some("p&w #ä"), true).link(), "http://127.0.0.1:1/#token=p%26w%20%23%C3%A4&access=read");
        assert_eq!(page(None, false).link(), "http://127.0.0.1:1/");
    }
}

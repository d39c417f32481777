//! The target: which gateway is meant, and what does it want to know of us?
//!
//! A token goes only where it belongs: one that is written for this machine's gateway is not sent to another address,
//! and none goes over a network in clear unless the operator insists.

use std::time::Duration;

use prowess_agent::Delivery;
use prowess_config::{Config, Env, Secret};
use prowess_gateway::client::{CallError, Client, Introduction};
use prowess_gateway::settings::{PORT, Settings};
use prowess_gateway::tls::TlsSettings;
use prowess_gateway::{Fingerprint, Options};
use prowess_host::{Context, Failure, Flags, Ground};
use serde_json::{Value, json};

use crate::cli::{GatewayOptions, Globals};
use crate::output::safe;

/// How long a gateway may take to let us in.
const PATIENCE: Duration = Duration::from_secs(15);

/// A gateway, and what it wants to know.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) url: String,
    pub(crate) secret: Option<(Kind, Secret)>,
    /// The only certificate that counts.
    pub(crate) pin: Option<Fingerprint>,
    /// The certificate of this machine's gateway, for when it turns out to be encrypted.
    own: Option<Fingerprint>,
    /// What the operator's variables say about secrets without encryption.
    env: Env,
    /// When replies are told.
    delivery: Delivery,
}

/// What a gateway that was found says about itself.
#[derive(Debug, Clone, Default)]
pub(crate) struct Found {
    /// Where it listens, if it says so.
    pub(crate) address: Option<std::net::SocketAddr>,
}

/// What a secret is to the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Token,
    Password,
}

/// How a gateway was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    ByFlag,
    ByVariable,
}

impl Target {
    /// The gateway that the command line or a variable names, if one does.
    pub(crate) fn asked(globals: &Globals) -> Result<Option<(Self, Asked)>, Failure> {
        let ground = globals.ground_to_edit()?;
        let by_variable = || ground.env.text("OPENCLAW_GATEWAY_URL").map(|url| (url.to_owned(), Asked::ByVariable));
        let given = globals.remote.gateway.as_ref().map(|url| (url.trim().to_owned(), Asked::ByFlag));
        let Some((url, asked)) = given.or_else(by_variable) else { return Ok(None) };
        // A broken configuration here does not matter for a gateway elsewhere, which also has agents of its own.
        let flags = Flags { agent: None, ..ground.flags.clone() };
        let config = Context::load(&Ground { flags, ..ground.clone() }).map(|context| context.config).ok();
        let own = config.as_ref().zip(ground.locations().ok());
        let own = own.map(|(config, at)| TlsSettings::read(&config.tree()["gateway"]["tls"], &at));
        let known = Known { tree: config.as_ref().map(Config::tree), env: &ground.env, tls: own };
        Self::at(url, &globals.remote, &known).map(|target| Some((target, asked)))
    }

    /// The same, or else the gateway that the configuration names, or else the one on this machine.
    pub(crate) fn meant(globals: &Globals) -> Result<Self, Failure> {
        if let Some((target, _)) = Self::asked(globals)? {
            return Ok(target);
        }
        let context = globals.context()?;
        let tree = context.config.tree();
        let section = &tree["gateway"];
        let remote = section["remote"]["url"].as_str().map(str::trim).filter(|url| !url.is_empty());
        let by_variable = context.config.env().text("OPENCLAW_GATEWAY_PORT").and_then(|port| port.parse().ok());
        let written = section["port"].as_u64().and_then(|port| u16::try_from(port).ok());
        let is_encrypted = Settings::resolve(&context.config, &Options::default()).is_ok_and(|settings| settings.tls);
        let scheme = if is_encrypted { "wss" } else { "ws" };
        let here = || format!("{scheme}://127.0.0.1:{}", by_variable.or(written).unwrap_or(PORT));
        let url = remote.filter(|_| section["mode"] == "remote").map_or_else(here, str::to_owned);
        let own = TlsSettings::read(&section["tls"], &context.locations);
        let known = Known { tree: Some(tree), env: context.config.env(), tls: Some(own) };
        Self::at(url, &globals.remote, &known)
    }

    fn at(url: String, given: &GatewayOptions, known: &Known<'_>) -> Result<Self, Failure> {
        check(&url, known.env)?;
        let secret = match given.token.as_deref().map(str::trim) {
            Some("") => return Err(Failure::usage("the token is empty").hint("give a token, or leave --token out")),
            Some(token) => Some((Kind::Token, Secret::new(token))),
            None => known.secret(&url),
        };
        let own = known.tls.as_ref().filter(|_| is_here(&url)).and_then(TlsSettings::fingerprint);
        let pin = given.tls_fingerprint.or(known.pin(&url)?).or(own.filter(|_| url.starts_with("wss://")));
        Ok(Self { url, secret, pin, own, env: known.env.clone(), delivery: Delivery::Live })
    }

    /// The same for who wants replies to be told so.
    pub(crate) fn delivering(self, delivery: Delivery) -> Self {
        Self { delivery, ..self }
    }

    /// Whether it is on this machine, or at the end of a tunnel that begins here.
    pub(crate) fn is_here(&self) -> bool {
        is_here(&self.url)
    }

    /// Looks whether it is there, and how it is reached.
    pub(crate) async fn find(&mut self) -> Result<Found, CallError> {
        let client = match self.attempt().await {
            Err(CallError::Encrypted(_)) if self.is_here() => {
                *self = self.encrypted();
                self.attempt().await?
            }
            client => client?,
        };
        let status = client.call("status", json!({})).await.unwrap_or_default();
        Ok(Found { address: status["gateway"]["address"].as_str().and_then(|address| address.parse().ok()) })
    }

    /// The same gateway over TLS, with the certificate that it has on this machine.
    fn encrypted(&self) -> Self {
        Self { url: self.url.replacen("ws://", "wss://", 1), pin: self.pin.or(self.own), ..self.clone() }
    }

    /// Connects and says who we are.
    pub(crate) async fn connect(&self) -> Result<Client, Failure> {
        self.dial().await.map_err(|error| self.unreachable(&error))
    }

    /// The same, for who wants to try again.
    pub(crate) async fn dial(&self) -> Result<Client, CallError> {
        match self.attempt().await {
            // A gateway on this machine was started with --tls, which the configuration does not say.
            Err(CallError::Encrypted(_)) if self.is_here() => self.encrypted().attempt().await,
            client => client,
        }
    }

    async fn attempt(&self) -> Result<Client, CallError> {
        let introduction = self.introduction();
        let connecting = Client::connect(&self.url, &introduction);
        let late = |_| CallError::Gone(format!("no answer within {} seconds", PATIENCE.as_secs()));
        tokio::time::timeout(PATIENCE, connecting).await.map_err(late)?
    }

    fn introduction(&self) -> Introduction {
        let mut introduction = Introduction::operator("").with_deltas().trusting(&self.env).pinned(self.pin);
        if self.delivery == Delivery::Whole {
            introduction = introduction.with_whole_replies();
        }
        introduction.params["auth"] = match &self.secret {
            Some((Kind::Token, secret)) => json!({"token": secret.expose()}),
            Some((Kind::Password, secret)) => json!({"password": secret.expose()}),
            None => json!({}),
        };
        introduction
    }

    pub(crate) fn unreachable(&self, error: &CallError) -> Failure {
        let url = safe(&self.url);
        if let CallError::Certificate { .. } | CallError::Encrypted(_) = error {
            return Failure::input(safe(&error.to_string()));
        }
        let CallError::Refused { error: said, .. } = error else {
            return Failure::input(format!("no gateway at {url}: {}", safe(&error.to_string())))
                .hint("start one with: prowess gateway run");
        };
        let details = &said["details"];
        let said_so = safe(&without_advice(&error.to_string(), details));
        let failure = Failure::input(format!("the gateway at {url} refused the connection: {said_so}"));
        advice(&self.url, details).into_iter().fold(failure, Failure::hint)
    }
}

/// What to do about a refusal at the door of the gateway at `url`.
pub(crate) fn advice(url: &str, details: &Value) -> Vec<String> {
    let code = details["code"].as_str().unwrap_or_default();
    let (word, name, flag) = match code {
        "PAIRING_REQUIRED" => {
            let id = safe(details["requestId"].as_str().unwrap_or("ID"));
            return vec![format!("approve this device on the gateway's machine: prowess devices approve {id}")];
        }
        "AUTH_PASSWORD_MISSING" | "AUTH_PASSWORD_MISMATCH" => ("password", "OPENCLAW_GATEWAY_PASSWORD", ""),
        "" | "AUTH_TOKEN_MISSING" | "AUTH_TOKEN_MISMATCH" => ("token", "OPENCLAW_GATEWAY_TOKEN", " or --token"),
        // The gateway has said itself what to do.
        _ => return Vec::new(),
    };
    let mut hints = vec![format!("set its {word} with {name}{flag}")];
    if is_here(url) {
        hints.push(format!("for a gateway on this machine, it is gateway.auth.{word} in the configuration"));
    } else {
        hints.push(format!("or set gateway.remote.{word}, together with this URL as gateway.remote.url"));
    }
    hints
}

/// A refusal without what the gateway advises in brackets, where ours is better: it does not know where we are.
fn without_advice(said: &str, details: &Value) -> String {
    let is_ours = matches!(
        details["code"].as_str(),
        Some("AUTH_PASSWORD_MISSING" | "AUTH_PASSWORD_MISMATCH" | "AUTH_TOKEN_MISSING" | "AUTH_TOKEN_MISMATCH")
    );
    let short = said.strip_suffix(')').and_then(|said| said.rsplit_once(" (")).filter(|_| is_ours);
    short.map_or(said, |(short, _)| short).to_owned()
}

/// What is written and set on this machine.
struct Known<'a> {
    tree: Option<&'a Value>,
    env: &'a Env,
    /// Where the certificate of this machine's gateway is.
    tls: Option<TlsSettings>,
}

impl Known<'_> {
    /// The certificate that is written for the gateway at `url`.
    fn pin(&self, url: &str) -> Result<Option<Fingerprint>, Failure> {
        let remote = self.tree.map_or(&Value::Null, |tree| &tree["gateway"]["remote"]);
        let is_there = remote["url"].as_str().is_some_and(|known| same_place(known, url));
        let Some(written) = remote["tlsFingerprint"].as_str().filter(|_| is_there) else { return Ok(None) };
        let broken = || {
            Failure::input("gateway.remote.tlsFingerprint is not a SHA-256 fingerprint")
                .hint("write 64 hexadecimal digits there, as the gateway prints them when it starts")
        };
        Fingerprint::parse(written).map(Some).ok_or_else(broken)
    }

    /// What the gateway at `url` wants to know: a variable is meant for whatever is asked, a written secret only for
    /// the gateway that it is written for.
    fn secret(&self, url: &str) -> Option<(Kind, Secret)> {
        let variable = |name: &str, kind| self.env.text(name).map(|text| (kind, Secret::new(text)));
        let given = variable("OPENCLAW_GATEWAY_TOKEN", Kind::Token)
            .or_else(|| variable("OPENCLAW_GATEWAY_PASSWORD", Kind::Password));
        let Some(tree) = self.tree else { return given };
        let gateway = &tree["gateway"];
        let remote = &gateway["remote"];
        let section = if remote["url"].as_str().is_some_and(|known| same_place(known, url)) {
            remote
        } else if is_here(url) {
            &gateway["auth"]
        } else {
            return given;
        };
        let written = |name: &str, kind| {
            let text = section[name].as_str().map(str::trim).filter(|text| !text.is_empty());
            text.map(|text| (kind, Secret::new(text)))
        };
        let password = written("password", Kind::Password);
        let wants_password = section["mode"] == "password";
        given
            .or_else(|| password.clone().filter(|_| wants_password))
            .or_else(|| written("token", Kind::Token))
            .or(password)
    }
}

fn same_place(one: &str, other: &str) -> bool {
    one.trim().trim_end_matches('/') == other.trim().trim_end_matches('/')
}

/// The parts of an address.
struct Parts<'a> {
    scheme: &'a str,
    host: &'a str,
    /// As it is written, if it is.
    port: Option<&'a str>,
}

fn parts(url: &str) -> Option<Parts<'_>> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let place = authority.rsplit_once('@').map_or(authority, |(_, place)| place);
    let (host, port) = match place.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map(|(host, after)| (host, after.strip_prefix(':')))?,
        None => place.rsplit_once(':').map_or((place, None), |(host, port)| (host, Some(port))),
    };
    Some(Parts { scheme, host, port })
}

fn is_here(url: &str) -> bool {
    let Some(Parts { host, .. }) = parts(url) else { return false };
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Refuses what is not a gateway URL, and what would show the token to a whole network.
fn check(url: &str, env: &Env) -> Result<(), Failure> {
    let example = "for example: ws://127.0.0.1:18789";
    let Some(Parts { scheme, host, port }) = parts(url).filter(|parts| !parts.host.is_empty()) else {
        return Err(Failure::usage(format!("`{}` is not a gateway URL", safe(url))).hint(example));
    };
    if let Some(port) = port.filter(|port| !port.parse::<u16>().is_ok_and(|port| port > 0)) {
        let what = format!("`{}` has an invalid port: `{}`", safe(url), safe(port));
        return Err(Failure::usage(what).hint("use a port from 1 to 65535"));
    }
    match scheme {
        "wss" => Ok(()),
        "ws" if is_here(url) || env.text("OPENCLAW_ALLOW_INSECURE_PRIVATE_WS") == Some("1") => Ok(()),
        "ws" => Err(Failure::usage(format!("ws:// to {} would send the token unencrypted", safe(host)))
            .hint("go through a tunnel: ssh -N -L 18789:127.0.0.1:18789 HOST, then --gateway ws://127.0.0.1:18789")
            .hint("OPENCLAW_ALLOW_INSECURE_PRIVATE_WS=1 allows it on a network that you trust")),
        _ => Err(Failure::usage(format!("`{}` is not a gateway URL", safe(url))).hint(example)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(tree: &Value, env: &[(&str, &str)], url: &str) -> Option<(Kind, String)> {
        let env: Env = env.iter().copied().collect();
        let known = Known { tree: Some(tree), env: &env, tls: None };
        known.secret(url).map(|(kind, secret)| (kind, secret.expose().to_owned()))
    }

    #[test]
    fn a_token_goes_only_where_it_belongs() {
        let tree = json!({"gateway": {
            "auth": {"token": "ours"},
            "remote": {"url": "wss://far.example/", "token": "theirs"},
        }});
        let token = |text: &str| Some((Kind::Token, text.to_owned()));
        assert_eq!(secret(&tree, &[], "ws://127.0.0.1:18789"), token("ours"));
        assert_eq!(secret(&tree, &[], "ws://[::1]:1"), token("ours"));
        assert_eq!(secret(&tree, &[], "wss://far.example"), token("theirs"));
        assert_eq!(secret(&tree, &[], "wss://other.example"), None);
        assert_eq!(secret(&tree, &[("OPENCLAW_GATEWAY_TOKEN", "given")], "wss://other.example"), token("given"));
    }

    #[test]
    fn a_fingerprint_is_for_the_gateway_that_it_is_written_for() {
        let print = "ab".repeat(32);
        let tree = json!({"gateway": {"remote": {"url": "wss://far.example", "tlsFingerprint": print}}});
        let env = Env::new();
        let known = Known { tree: Some(&tree), env: &env, tls: None };
        assert_eq!(known.pin("wss://far.example/").expect("readable"), Fingerprint::parse(&print));
        assert_eq!(known.pin("wss://other.example").expect("readable"), None);
        let broken = json!({"gateway": {"remote": {"url": "wss://far.example", "tlsFingerprint": "ab"}}});
        let known = Known { tree: Some(&broken), env: &env, tls: None };
        assert!(known.pin("wss://far.example").is_err());
    }

    #[test]
    fn a_password_is_given_where_it_is_wanted() {
        let tree = json!({"gateway": {"auth": {"mode": "password", "password": "p", "token": "t"}}});
        assert_eq!(secret(&tree, &[], "ws://localhost:1"), Some((Kind::Password, "p".to_owned())));
    }

    #[test]
    fn who_is_not_let_in_is_told_where_the_secret_belongs() {
        let table = [
            ("ws://127.0.0.1:1", "AUTH_TOKEN_MISMATCH", "gateway.auth.token"),
            ("wss://far.example", "AUTH_TOKEN_MISSING", "gateway.remote.token"),
            ("ws://127.0.0.1:1", "AUTH_PASSWORD_MISMATCH", "gateway.auth.password"),
            ("wss://far.example", "AUTH_PASSWORD_MISSING", "gateway.remote.password"),
        ];
        for (url, code, place) in table {
            let target = Target {
                url: url.to_owned(),
                secret: None,
                pin: None,
                own: None,
                env: Env::new(),
                delivery: Delivery::Live,
            };
            let said = "unauthorized: no (write it into gateway.remote.token)";
            let error = Box::new(json!({"message": said, "details": {"code": code}}));
            let failure = target.unreachable(&CallError::Refused { error, payload: None });
            let word = place.rsplit('.').next().expect("a word");
            assert!(failure.message.ends_with("refused the connection: unauthorized: no"), "{failure}");
            assert!(failure.hints[0].starts_with(&format!("set its {word} with OPENCLAW_GATEWAY_")), "{failure}");
            assert!(failure.hints[1].contains(place), "{failure}");
            assert_eq!(failure.hints[0].contains("--token"), word == "token", "{failure}");
        }
        assert!(advice("ws://127.0.0.1:1", &json!({"code": "AUTH_RATE_LIMITED"})).is_empty());
    }

    #[test]
    fn addresses_are_checked_before_anything_is_sent() {
        let env = Env::new();
        for good in ["ws://127.0.0.1:1", "ws://localhost:1/", "ws://[::1]:1", "wss://far.example/x"] {
            assert!(check(good, &env).is_ok(), "{good}");
        }
        let bad = [
            "127.0.0.1:1",
            "http://127.0.0.1:1",
            "ws://",
            "ws://far.example",
            "ws://127.0.0.1@far.example:1",
            "ws://127.0.0.1:99999",
            "ws://[::1]:0",
            "wss://far.example:x",
        ];
        for bad in bad {
            assert!(check(bad, &env).is_err(), "{bad}");
        }
        let insists = Env::from_iter([("OPENCLAW_ALLOW_INSECURE_PRIVATE_WS", "1")]);
        assert!(check("ws://far.example", &insists).is_ok());
    }
}

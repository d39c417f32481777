//! Settings: what does the operator want of the gateway?

use std::net::{IpAddr, Ipv4Addr};

use prowess_config::{Config, Secret};
use serde_json::Value;
use thiserror::Error;

use crate::caller::{Caller, Network};
use crate::gateway::Options;
use crate::scope::Scope;
use crate::throttle::LockoutRule;

/// The port when nothing else is said.
pub const PORT: u16 = 18789;

/// What the `gateway` section means.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where it listens.
    pub bind: IpAddr,
    /// On which port; 0 takes any that is free.
    pub port: u16,
    /// What a client has to know.
    pub auth: Auth,
    /// Web pages that may connect, besides its own; `*` is all of them.
    pub allowed_origins: Vec<String>,
    /// The section as it is written, for what single parts of the gateway look up themselves.
    pub section: Value,
    /// Whether connections are encrypted.
    pub tls: bool,
    pub(crate) proxies: Vec<Network>,
    pub(crate) real_ip: bool,
    pub(crate) pages_without_device: bool,
    pub(crate) lockout: LockoutRule,
}

/// What a client has to know.
#[derive(Debug, Clone)]
pub enum Auth {
    /// Nothing is written about it: a token is made up when a gateway starts.
    Unset,
    /// Nothing, because the operator said so.
    None,
    /// A token.
    Token(Secret),
    /// A password.
    Password(Secret),
    /// A proxy in front of the gateway has found out who it is.
    Proxy(TrustedProxy),
}

/// A proxy that knows its users.
#[derive(Debug, Clone)]
pub struct TrustedProxy {
    /// The header with the name of the user.
    pub user_header: String,
    /// Headers that have to be there, too.
    pub required_headers: Vec<String>,
    /// Who may come in; nobody listed is everybody.
    pub allow_users: Vec<String>,
    pub(crate) scopes: ProxyScopes,
}

/// What the users behind a proxy may do.
#[derive(Debug, Clone)]
pub(crate) struct ProxyScopes {
    /// Users who are named, and what each may do.
    users: Vec<(String, Vec<Scope>)>,
    /// Everybody else.
    others: Vec<Scope>,
}

impl ProxyScopes {
    /// What `user` may do.
    pub(crate) fn of(&self, user: &str) -> &[Scope] {
        self.users.iter().find(|(name, _)| name == user).map_or(&self.others, |(_, scopes)| scopes)
    }

    /// From one list for everybody, or a list per user with `*` for the others. Whoever is not mentioned may read and
    /// talk, and nothing more.
    fn read(written: &Value) -> Result<Self, SettingsError> {
        let mut own = Self { users: Vec::new(), others: vec![Scope::Read, Scope::Write] };
        match written {
            Value::Null => {}
            Value::Array(_) => own.others = scopes(written)?,
            Value::Object(users) => {
                for (name, list) in users {
                    match name.trim() {
                        "*" => own.others = scopes(list)?,
                        name => own.users.push((name.to_owned(), scopes(list)?)),
                    }
                }
            }
            other => return Err(SettingsError::Scope(other.to_string().chars().take(100).collect())),
        }
        Ok(own)
    }
}

fn scopes(written: &Value) -> Result<Vec<Scope>, SettingsError> {
    let unknown = |value: &Value| SettingsError::Scope(value.to_string().chars().take(100).collect());
    let list = written.as_array().ok_or_else(|| unknown(written))?;
    let parse = |value: &Value| value.as_str().and_then(|name| Scope::parse(name.trim())).ok_or_else(|| unknown(value));
    list.iter().map(parse).collect()
}

/// The settings cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SettingsError {
    /// The port is no port.
    #[error("{what} is `{value}`, which is not a port; use a number from 0 to 65535")]
    Port {
        /// Where it is written.
        what: &'static str,
        /// What is written there.
        value: String,
    },
    /// Where to listen makes no sense.
    #[error("gateway.bind is `{0}`; use loopback, lan, auto, custom with gateway.customBindHost, or an address")]
    Bind(String),
    /// A secret that is in a variable which is not there.
    #[error("{path} is the variable {variable}, which is not set; set it, or write something else there")]
    Unavailable {
        /// Where it is written.
        path: String,
        /// Its name.
        variable: String,
    },
    /// A secret that is no text.
    #[error("{0} must be a string")]
    NoText(String),
    /// `custom` without an address.
    #[error("gateway.bind is `custom`, and gateway.customBindHost is not an IP address; write one there")]
    CustomHost,
    /// The mode is unknown.
    #[error("gateway.auth.mode is `{0}`; use token, password, trusted-proxy or none")]
    Mode(String),
    /// A mode without what it needs.
    #[error("gateway.auth.mode is `{mode}`, and {missing} is missing; set it")]
    Incomplete {
        /// The mode.
        mode: &'static str,
        /// What it needs.
        missing: &'static str,
    },
    /// A scope that does not exist.
    #[error(
        "gateway.auth.trustedProxy.scopes has {0}; use a list of operator.read, operator.write, operator.approvals, \
         operator.pairing and operator.admin, or such a list per user"
    )]
    Scope(String),
    /// Everybody could come in.
    #[error("refusing to listen on {0} without authentication; set gateway.auth.token, or gateway.bind to loopback")]
    Open(IpAddr),
}

impl Settings {
    /// From the configuration.
    pub fn read(config: &Config) -> Result<Self, SettingsError> {
        Self::resolve(config, &Options::default())
    }

    /// From the configuration and what was asked for beyond it.
    pub fn resolve(config: &Config, options: &Options) -> Result<Self, SettingsError> {
        let section = config.tree()["gateway"].clone();
        let env = config.env();
        let port = match (options.port, env.text("OPENCLAW_GATEWAY_PORT")) {
            (Some(port), _) => port,
            (None, Some(text)) => text.parse().map_err(|_| port_error("OPENCLAW_GATEWAY_PORT", text))?,
            (None, None) => port(&section["port"])?,
        };
        let given = options.bind.as_deref().or(section["bind"].as_str()).unwrap_or("loopback");
        let bind = bind(given.trim(), &section["customBindHost"])?;
        let token = options.token.clone();
        let auth = match token {
            Some(token) => Auth::Token(token),
            None => auth(config, &section["auth"])?,
        };
        if matches!(auth, Auth::None) && !bind.is_loopback() {
            return Err(SettingsError::Open(bind));
        }
        // A proxy in front has the certificate; anything else that other machines reach is encrypted.
        let is_exposed = !bind.is_loopback() && !matches!(auth, Auth::Proxy(_));
        let tls = options.tls.or(section["tls"]["enabled"].as_bool()).unwrap_or(is_exposed);
        let page = &section["controlUi"];
        Ok(Self {
            bind,
            port,
            auth,
            tls,
            allowed_origins: texts(&page["allowedOrigins"]),
            proxies: texts(&section["trustedProxies"]).iter().filter_map(|text| Network::parse(text)).collect(),
            real_ip: section["allowRealIpFallback"] == true,
            pages_without_device: page["dangerouslyDisableDeviceAuth"] == true,
            lockout: lockout(&section["auth"]["rateLimit"]),
            section,
        })
    }
}

impl Settings {
    /// What the user may do whom a proxy named; nothing where no proxy does.
    pub(crate) fn proxy_scopes(&self, caller: &Caller) -> Option<&[Scope]> {
        match (&self.auth, &caller.user) {
            (Auth::Proxy(proxy), Some(user)) => Some(proxy.scopes.of(user)),
            _ => None,
        }
    }
}

impl Auth {
    /// As clients are told.
    #[must_use]
    pub fn mode(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Unset | Self::Token(_) => "token",
            Self::Password(_) => "password",
            Self::Proxy(_) => "trusted-proxy",
        }
    }
}

fn port(written: &Value) -> Result<u16, SettingsError> {
    if written.is_null() {
        return Ok(PORT);
    }
    let port = written.as_u64().and_then(|port| u16::try_from(port).ok());
    port.ok_or_else(|| port_error("gateway.port", &written.to_string()))
}

fn port_error(what: &'static str, value: &str) -> SettingsError {
    SettingsError::Port { what, value: value.chars().take(100).collect() }
}

fn bind(given: &str, custom: &Value) -> Result<IpAddr, SettingsError> {
    match given {
        "loopback" | "auto" => Ok(Ipv4Addr::LOCALHOST.into()),
        "lan" => Ok(Ipv4Addr::UNSPECIFIED.into()),
        "custom" => custom.as_str().and_then(|host| host.trim().parse().ok()).ok_or(SettingsError::CustomHost),
        other => other.parse().map_err(|_| SettingsError::Bind(other.chars().take(100).collect())),
    }
}

fn auth(config: &Config, section: &Value) -> Result<Auth, SettingsError> {
    let token = secret(config, "OPENCLAW_GATEWAY_TOKEN", "token", &section["token"])?;
    let password = secret(config, "OPENCLAW_GATEWAY_PASSWORD", "password", &section["password"])?;
    match section["mode"].as_str() {
        Some("none") => Ok(Auth::None),
        Some("token") => Ok(token.map_or(Auth::Unset, Auth::Token)),
        Some("password") => {
            let missing = SettingsError::Incomplete { mode: "password", missing: "gateway.auth.password" };
            password.map(Auth::Password).ok_or(missing)
        }
        Some("trusted-proxy") => proxy(&section["trustedProxy"]).map(Auth::Proxy),
        Some(other) => Err(SettingsError::Mode(other.chars().take(100).collect())),
        None => Ok(match (password, token) {
            (Some(password), _) => Auth::Password(password),
            (None, Some(token)) => Auth::Token(token),
            (None, None) => Auth::Unset,
        }),
    }
}

/// What the variable or the configuration says; nothing if both say nothing. What is written there and cannot be used is
/// not the same as nothing.
fn secret(config: &Config, variable: &str, key: &str, written: &Value) -> Result<Option<Secret>, SettingsError> {
    if let Some(text) = config.env().text(variable) {
        return Ok(Some(Secret::new(text)));
    }
    let path = format!("gateway.auth.{key}");
    if let Some(missing) = config.unavailable().iter().find(|missing| missing.path.to_string() == path) {
        return Err(SettingsError::Unavailable { path, variable: missing.variable.clone() });
    }
    match written {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text.trim()).filter(|text| !text.is_empty()).map(Secret::new)),
        _ => Err(SettingsError::NoText(path)),
    }
}

fn proxy(section: &Value) -> Result<TrustedProxy, SettingsError> {
    let user_header = section["userHeader"].as_str().map(str::trim).filter(|name| !name.is_empty());
    let missing = SettingsError::Incomplete { mode: "trusted-proxy", missing: "gateway.auth.trustedProxy.userHeader" };
    Ok(TrustedProxy {
        user_header: user_header.ok_or(missing)?.to_owned(),
        required_headers: texts(&section["requiredHeaders"]),
        allow_users: texts(&section["allowUsers"]),
        scopes: ProxyScopes::read(&section["scopes"])?,
    })
}

fn lockout(section: &Value) -> LockoutRule {
    let default = LockoutRule::default();
    let number = |name: &str, or: u64| section[name].as_u64().filter(|number| *number > 0).unwrap_or(or);
    let attempts = section["maxAttempts"].as_u64().and_then(|number| usize::try_from(number).ok());
    LockoutRule {
        attempts: attempts.filter(|number| (1..=1000).contains(number)).unwrap_or(default.attempts),
        window: number("windowMs", default.window),
        locked: number("lockoutMs", default.locked),
    }
}

fn texts(value: &Value) -> Vec<String> {
    let texts = value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::trim);
    texts.filter(|text| !text.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use prowess_config::Env;

    use super::*;

    fn read(text: &str, env: &[(&str, &str)]) -> Result<Settings, SettingsError> {
        let env = env.iter().copied().collect();
        Settings::read(&Config::parse(text, &env).expect("a configuration"))
    }

    fn told(text: &str) -> String {
        read(text, &[]).expect_err("it makes no sense").to_string()
    }

    #[test]
    fn nothing_written_is_this_machine_only_with_a_token_to_be_made() {
        let settings = read("{}", &[]).expect("settings");
        assert_eq!((settings.bind, settings.port), (Ipv4Addr::LOCALHOST.into(), PORT));
        assert!(matches!(settings.auth, Auth::Unset));
    }

    #[test]
    fn a_secret_that_is_not_to_be_had_is_no_reason_to_make_another() {
        let missing = told("{ gateway: { auth: { token: '${NO_SUCH_TOKEN}' } } }");
        assert!(missing.contains("gateway.auth.token") && missing.contains("NO_SUCH_TOKEN"), "{missing}");
        assert!(told("{ gateway: { auth: { token: 12345 } } }").contains("must be a string"));
        let found = read("{ gateway: { auth: { token: '${NO_SUCH_TOKEN}' } } }", &[("OPENCLAW_GATEWAY_TOKEN", "t")]);
        assert!(matches!(found.expect("settings").auth, Auth::Token(_)), "another one was given");
    }

    #[test]
    fn nobody_listens_wider_than_this_machine_without_a_secret() {
        for bind in ["lan", "0.0.0.0", "::", "192.0.2.7"] {
            let open = told(&format!("{{ gateway: {{ bind: '{bind}', auth: {{ mode: 'none' }} }} }}"));
            assert!(open.contains("without authentication"), "{bind}: {open}");
        }
        assert!(read("{ gateway: { bind: 'lan' } }", &[]).is_ok(), "a token will be made");
        assert!(read("{ gateway: { auth: { mode: 'none' } } }", &[]).is_ok());
    }

    #[test]
    fn where_to_listen_can_be_said_in_words_and_addresses() {
        let bind =
            |bind: &str| read(&format!("{{ gateway: {{ {bind} }} }}"), &[]).map(|settings| settings.bind.to_string());
        assert_eq!(bind("bind: 'auto'"), Ok("127.0.0.1".into()));
        assert_eq!(bind("bind: 'lan'"), Ok("0.0.0.0".into()));
        assert_eq!(bind("bind: 'custom', customBindHost: ' 192.0.2.7 '"), Ok("192.0.2.7".into()));
        assert_eq!(bind("bind: '::1'"), Ok("::1".into()));
        assert_eq!(bind("bind: 'custom'"), Err(SettingsError::CustomHost));
        assert_eq!(bind("bind: 'tailnet'"), Err(SettingsError::Bind("tailnet".into())));
    }

    #[test]
    fn what_other_machines_reach_is_encrypted_unless_the_operator_says_otherwise() {
        let tls = |gateway: &str| read(&format!("{{ gateway: {{ {gateway} }} }}"), &[]).expect("settings").tls;
        assert!(!tls("bind: 'loopback'"));
        assert!(tls("bind: 'lan'") && tls("bind: '192.0.2.7'") && tls("tls: { enabled: true }"));
        assert!(!tls("bind: 'lan', tls: { enabled: false }"));
        assert!(!tls("bind: 'lan', auth: { mode: 'trusted-proxy', trustedProxy: { userHeader: 'x-user' } }"));
        let config = Config::parse("{ gateway: { bind: 'lan' } }", &Env::new()).expect("a configuration");
        let options = Options { tls: Some(false), ..Options::default() };
        assert!(!Settings::resolve(&config, &options).expect("settings").tls, "an option counts most");
    }

    #[test]
    fn variables_win_over_the_file_and_options_over_both() {
        let text = "{ gateway: { port: 1, auth: { token: 'file' } } }";
        let env = [("OPENCLAW_GATEWAY_PORT", "2"), ("OPENCLAW_GATEWAY_TOKEN", "env")];
        let settings = read(text, &env).expect("settings");
        assert_eq!(settings.port, 2);
        assert!(matches!(&settings.auth, Auth::Token(token) if token.expose() == "env"));
        let config = Config::parse(text, &Env::from_iter(env)).expect("a configuration");
        let options =
            Options { port: Some(3), bind: Some("::1".into()), token: Some(Secret::new("flag")), ..Options::default() };
        let settings = Settings::resolve(&config, &options).expect("settings");
        assert_eq!((settings.port, settings.bind.to_string().as_str()), (3, "::1"));
        assert!(matches!(&settings.auth, Auth::Token(token) if token.expose() == "flag"));
    }

    #[test]
    fn a_password_goes_before_a_token_unless_the_mode_says_otherwise() {
        let auth =
            |auth: &str| read(&format!("{{ gateway: {{ auth: {auth} }} }}"), &[]).map(|settings| settings.auth.mode());
        assert_eq!(auth("{ token: 't', password: 'p' }"), Ok("password"));
        assert_eq!(auth("{ mode: 'token', token: 't', password: 'p' }"), Ok("token"));
        assert_eq!(auth("{ mode: 'trusted-proxy', trustedProxy: { userHeader: 'x-user' } }"), Ok("trusted-proxy"));
        assert!(auth("{ mode: 'trusted-proxy' }").is_err());
        assert!(auth("{ mode: 'password' }").is_err());
        assert!(auth("{ mode: 'magic' }").is_err());
    }

    #[test]
    fn users_behind_a_proxy_may_do_what_is_set_for_them_and_are_no_administrators_otherwise() {
        let of = |scopes: &str, user: &str| {
            let text = format!(
                "{{ gateway: {{ auth: {{ mode: 'trusted-proxy', trustedProxy: {{ userHeader: 'x-user' {scopes} }} }} }} }}"
            );
            let settings = read(&text, &[])?;
            let Auth::Proxy(proxy) = settings.auth else { panic!("another mode") };
            Ok::<_, SettingsError>(proxy.scopes.of(user).to_vec())
        };
        let per_user = ", scopes: { '*': ['operator.read'], ann: ['operator.admin'], bob: [] }";
        assert_eq!(of("", "ann"), Ok(vec![Scope::Read, Scope::Write]));
        assert_eq!(of(", scopes: ['operator.approvals']", "ann"), Ok(vec![Scope::Approvals]));
        assert_eq!(of(per_user, "ann"), Ok(vec![Scope::Admin]));
        assert_eq!(of(per_user, "bob"), Ok(vec![]));
        assert_eq!(of(per_user, "eve"), Ok(vec![Scope::Read]));
        for bad in [", scopes: ['admin']", ", scopes: 'operator.admin'", ", scopes: { ann: 'operator.read' }"] {
            assert!(matches!(of(bad, "ann"), Err(SettingsError::Scope(_))), "{bad}");
        }
    }

    #[test]
    fn what_is_no_port_is_refused() {
        assert!(told("{ gateway: { port: 70000 } }").contains("gateway.port is `70000`"));
        assert!(read("{}", &[("OPENCLAW_GATEWAY_PORT", "x")]).is_err());
    }
}

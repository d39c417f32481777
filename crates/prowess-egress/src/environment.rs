//! Which variables make a child's programs use the proxy?

use std::net::SocketAddr;

use crate::token::{Token, USER};

/// What a variable is set to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Value {
    /// `http://…`
    Http,
    /// `socks5h://…`: the proxy, not the client, looks names up.
    Socks,
    Text(&'static str),
    /// System properties of a Java virtual machine.
    Java,
}

/// One fact: the program, the variable, its value.
struct Fact {
    variable: &'static str,
    value: Value,
}

const fn fact(variable: &'static str, value: Value) -> Fact {
    Fact { variable, value }
}

/// Facts about programs. A client that is not here and ignores the first group cannot connect, because the sandbox has no
/// other way out.
const FACTS: &[Fact] = &[
    // The convention: curl, wget, Python (urllib, requests, httpx, aiohttp with trust_env), Go, Ruby, uv, pip, rustup,
    // docker's client and many more. curl reads only the lower-case `http_proxy`, Go and most others both.
    fact("http_proxy", Value::Http),
    fact("HTTP_PROXY", Value::Http),
    fact("https_proxy", Value::Http),
    fact("HTTPS_PROXY", Value::Http),
    // WebSockets: curl falls back to `http_proxy`, other clients look for these.
    fact("ws_proxy", Value::Http),
    fact("wss_proxy", Value::Http),
    // wget and curl, for `ftp://` through an HTTP proxy: refused with a reason instead of a failed lookup.
    fact("ftp_proxy", Value::Http),
    fact("FTP_PROXY", Value::Http),
    // Everything that is not HTTP. The specific variables above take precedence, so HTTP clients never need SOCKS.
    fact("all_proxy", Value::Socks),
    fact("ALL_PROXY", Value::Socks),
    // No exceptions: localhost of the sandbox is not ours, and localhost of the host needs a rule.
    fact("no_proxy", Value::Text("")),
    fact("NO_PROXY", Value::Text("")),
    // git reads the convention through libcurl, but `http.proxy` of a configuration file would win over it. These
    // variables are configuration of the highest rank.
    fact("GIT_CONFIG_COUNT", Value::Text("1")),
    fact("GIT_CONFIG_KEY_0", Value::Text("http.proxy")),
    fact("GIT_CONFIG_VALUE_0", Value::Http),
    // npm and pnpm read the convention as defaults; a `.npmrc` would win over it, and these win over a `.npmrc`.
    fact("npm_config_proxy", Value::Http),
    fact("npm_config_https_proxy", Value::Http),
    fact("npm_config_noproxy", Value::Text("")),
    // Yarn from version 2 on reads only its own settings. It stops at any `YARN_` variable that it does not know, so
    // there is none for exceptions.
    fact("YARN_HTTP_PROXY", Value::Http),
    fact("YARN_HTTPS_PROXY", Value::Http),
    // Node's fetch and http module read the convention only if told to (22 from 22.21 on, and 24).
    fact("NODE_USE_ENV_PROXY", Value::Text("1")),
    // Programs on Node that use the global-agent package.
    fact("GLOBAL_AGENT_HTTP_PROXY", Value::Http),
    fact("GLOBAL_AGENT_HTTPS_PROXY", Value::Http),
    // pip reads the convention; `proxy` of a pip.conf would win over it, and this wins over a pip.conf.
    fact("PIP_PROXY", Value::Http),
    // cargo prefers its own setting, then git's, then the convention.
    fact("CARGO_HTTP_PROXY", Value::Http),
    // Java reads no variable of the convention, and every virtual machine reads this one.
    fact("JAVA_TOOL_OPTIONS", Value::Java),
];

/// The variables that make programs of a child use the proxy at `proxy`, as the child sees it. A `token` becomes user name
/// and password of the proxy's URL.
///
/// They are a convenience, not the guarantee: a program that ignores them has no other way out of the sandbox.
#[must_use]
pub fn environment(proxy: SocketAddr, token: Option<&Token>) -> Vec<(String, String)> {
    let login = token.map(|token| format!("{USER}:{}@", token.reveal())).unwrap_or_default();
    let text = |value: Value| match value {
        Value::Http => format!("http://{login}{proxy}"),
        Value::Socks => format!("socks5h://{login}{proxy}"),
        Value::Text(text) => text.to_owned(),
        Value::Java => java(proxy, token),
    };
    FACTS.iter().map(|fact| (fact.variable.to_owned(), text(fact.value))).collect()
}

/// Java reads http.proxyHost for HTTP and socksProxyHost for all other sockets (JDBC, for instance). The empty list of
/// exceptions replaces the default, which is localhost.
///
/// Its HTTP clients have no setting for a proxy's password. Its sockets send the property `user.name` to a SOCKS proxy that
/// wants one, and no password; so with a token, everything goes by SOCKS and the token is the user's name.
fn java(proxy: SocketAddr, token: Option<&Token>) -> String {
    let (host, port) = (proxy.ip(), proxy.port());
    let socks = format!("-DsocksProxyHost={host} -DsocksProxyPort={port}");
    match token {
        None => format!(
            "-Dhttp.proxyHost={host} -Dhttp.proxyPort={port} -Dhttps.proxyHost={host} -Dhttps.proxyPort={port} \
             -Dhttp.nonProxyHosts= {socks}"
        ),
        Some(token) => format!("{socks} -Duser.name={}", token.reveal()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::environment;
    use crate::Token;

    #[test]
    fn every_variable_is_set_once_and_leads_to_the_proxy() {
        let token = Token::random();
        for token in [None, Some(&token)] {
            let proxy = "127.0.0.1:4321".parse().expect("an address");
            let list = environment(proxy, token);
            let map: HashMap<&str, &str> = list.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            assert_eq!(map.len(), list.len(), "a variable is set twice");
            let login = token.map(|token| format!("proxy:{}@", token.reveal())).unwrap_or_default();
            for (name, value) in &map {
                let is_proxy = name.to_lowercase().ends_with("proxy") && !name.to_lowercase().ends_with("no_proxy");
                if is_proxy && *name != "npm_config_noproxy" && *name != "NODE_USE_ENV_PROXY" {
                    assert!(value.ends_with(&format!("://{login}127.0.0.1:4321")), "{name}={value}");
                }
            }
            // What `http.proxy` of a configuration file must not override.
            assert_eq!((map["GIT_CONFIG_KEY_0"], map["GIT_CONFIG_VALUE_0"]), ("http.proxy", map["http_proxy"]));
            assert!(map["all_proxy"].starts_with("socks5h://"));
            assert_eq!((map["no_proxy"], map["NO_PROXY"]), ("", ""));
            assert!(!map.contains_key("YARN_NO_PROXY"));
        }
    }
}

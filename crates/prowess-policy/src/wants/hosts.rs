//! Hosts: which ones do the words of a command name?

use url::Url;

use crate::lease::HostRule;

/// Words that are neither options nor the values of options in `values`.
pub(super) fn plain<'a>(args: &'a [String], values: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    let mut is_value = false;
    args.iter().map(String::as_str).filter(move |word| {
        if std::mem::take(&mut is_value) {
            return false;
        }
        is_value = values.contains(word);
        !is_value && !word.starts_with('-')
    })
}

/// The value of the first of these options: `-h HOST`, `-hHOST`, `--host=HOST`.
pub(super) fn option<'a>(args: &'a [String], names: &[&str]) -> Option<&'a str> {
    args.iter().enumerate().find_map(|(at, word)| {
        names.iter().find_map(|name| {
            let rest = word.strip_prefix(name)?;
            match rest.strip_prefix('=').unwrap_or(rest) {
                "" => args.get(at + 1).map(String::as_str),
                _ if name.starts_with("--") && !rest.starts_with('=') => None,
                value => Some(value),
            }
        })
    })
}

/// The host of `[user@]host:path`, the first plain word of that form.
pub(super) fn remote_path(args: &[String], values: &[&str], port: u16) -> Option<HostRule> {
    let port = option(args, &["-P"]).and_then(|port| port.parse().ok()).unwrap_or(port);
    plain(args, values).find_map(|word| {
        let (host, _) = word.split_once(':').filter(|(host, _)| !host.contains('/'))?;
        rule(host.rsplit_once('@').map_or(host, |(_, host)| host), port)
    })
}

/// The hosts of all web addresses in a text.
pub(super) fn urls_in(text: &str) -> Vec<HostRule> {
    let starts = ["http://", "https://"].into_iter().flat_map(|scheme| text.match_indices(scheme));
    let urls = starts.map(|(at, _)| {
        let rest = &text[at..];
        &rest[..rest.find([' ', '\'', '"', '`', ')', '<', '>', '\n', ';', ',']).unwrap_or(rest.len())]
    });
    urls.filter_map(|url| url_host(url, "https")).collect()
}

/// The host of `[user@]host[:path]`, the first plain word.
pub(super) fn login(args: &[String], values: &[&str], port: u16) -> Option<HostRule> {
    let port = option(args, &["-p", "-P"]).and_then(|port| port.parse().ok()).unwrap_or(port);
    plain(args, values).find_map(|word| {
        let host = word.rsplit_once('@').map_or(word, |(_, host)| host);
        let host = host.split_once(':').map_or(host, |(host, _)| host);
        let is_path = word.starts_with(['/', '.', '~']) || host.is_empty() || host.contains('/');
        if is_path { None } else { rule(host, port) }
    })
}

/// The rule for `host` at `port`, or at the port that it names itself.
pub(super) fn rule(host: &str, port: u16) -> Option<HostRule> {
    let named = host.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
    let (host, port) = named.filter(|(host, _)| !host.contains(':')).unwrap_or((host, port));
    HostRule::new(host, &[port]).ok()
}

/// The host and the port that the first two plain words are.
pub(super) fn host_and_port(args: &[String], values: &[&str]) -> Option<HostRule> {
    let mut words = plain(args, values);
    let (host, port) = (words.next()?, words.next().map_or(Some(23), |port| port.parse().ok())?);
    rule(host, port)
}

/// The host that a URL names; `scheme` is what a word without one means. A web address stands for both of its ports: a
/// server that only sends on to its encrypted side is the same host.
pub(super) fn url_host(word: &str, scheme: &str) -> Option<HostRule> {
    let has_scheme = word.contains("://");
    let looks_like_one =
        word.split(['/', '?', ':']).next().is_some_and(|host| host.contains('.') || host == "localhost");
    if !has_scheme && (!looks_like_one || word.contains(char::is_whitespace)) {
        return None;
    }
    let url = if has_scheme { Url::parse(word) } else { Url::parse(&format!("{scheme}://{word}")) }.ok()?;
    let host = url.host_str()?.trim_matches(['[', ']']);
    let port = url.port_or_known_default().or(match url.scheme() {
        "ssh" | "git+ssh" | "sftp" => Some(22),
        "git" => Some(9418),
        "postgres" | "postgresql" => Some(5432),
        "mysql" | "mariadb" => Some(3306),
        "mongodb" => Some(27017),
        "redis" => Some(6379),
        "amqp" => Some(5672),
        _ => None,
    })?;
    if url.port().is_none() && matches!(url.scheme(), "http" | "https") {
        return HostRule::new(host, &[]).ok();
    }
    rule(host, port)
}

/// The host of a Git address: a URL, or `user@host:path`.
pub(super) fn git_host(word: &str) -> Option<HostRule> {
    if word.contains("://") {
        return url_host(word, "https");
    }
    let (host, path) = word.split_once(':')?;
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    (host.contains('.') && !path.is_empty() && !host.contains('/')).then(|| rule(host, 22))?
}

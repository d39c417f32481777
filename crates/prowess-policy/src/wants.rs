//! Wants: what does a command's text say that it would use beyond the sandbox?
//!
//! Read before anything runs, so that a person is asked once and about all of it. It is a forecast and no guarantee: a
//! program in no table is not foreseen, and the sandbox holds it back until its host is asked about.

mod table;

use std::path::{Component, Path, PathBuf};

use url::Url;

use crate::judge::{Judged, Objection};
use crate::lease::{HostRule, Lease};
use crate::script::DoubtKind;
use table::{Fact, Finds};

/// Where a command can go without asking: what the sandbox gives to every command, and the leases that this one holds.
#[derive(Debug, Clone, Default)]
pub struct Ground {
    /// The home that `~` stands for.
    pub home: PathBuf,
    /// What the sandbox lets it read.
    pub readable: Vec<PathBuf>,
    /// What the sandbox lets it change.
    pub writable: Vec<PathBuf>,
    /// The Git remotes of the working directory: names and addresses.
    pub remotes: Vec<(String, String)>,
    /// What its skill declares that it uses.
    pub declared: Lease,
    /// Whether the operator gave it the whole network.
    pub open_network: bool,
    /// The leases.
    pub held: Lease,
}

/// What a command of these segments, in `cwd`, wants beyond the sandbox.
pub(crate) fn wants(segments: &[Judged], objections: &[Objection], cwd: &Path, ground: &Ground) -> Lease {
    let mut wanted = ground.declared.clone();
    for segment in segments {
        wanted = wanted.and(&Reader { segment, cwd, ground }.read());
    }
    let in_background = |one: &Objection| matches!(one, Objection::Doubt(doubt) if doubt.kind == DoubtKind::Background);
    if ground.open_network {
        wanted.hosts.clear();
    }
    wanted.keeps_running |= objections.iter().any(in_background);
    wanted
}

/// One simple command.
struct Reader<'a> {
    segment: &'a Judged,
    cwd: &'a Path,
    ground: &'a Ground,
}

impl Reader<'_> {
    fn read(&self) -> Lease {
        let mut lease = self.redirections();
        lease.keeps_running = self.segment.wrappers.iter().any(|name| base(name) == "nohup");
        let Some((program, args)) = self.segment.argv.split_first() else { return lease };
        let name = base(program);
        let fact = table::FACTS.iter().filter(|fact| fact.programs.contains(&name)).find(|fact| fact.applies(args));
        if let Some(fact) = fact {
            lease = lease.and(&self.fact(fact, args));
        }
        lease.and(&self.paths(name, args))
    }

    fn fact(&self, fact: &Fact, args: &[String]) -> Lease {
        let mut hosts: Vec<HostRule> = fact.hosts.iter().filter_map(|host| host.parse().ok()).collect();
        hosts.extend(match fact.finds {
            Finds::Nothing => Vec::new(),
            Finds::Urls => plain(args, fact.values).filter_map(|word| url_host(word, "http")).collect(),
            Finds::Login(port) => login(args, fact.values, port).into_iter().collect(),
            Finds::Option(names, port) => option(args, names).and_then(|host| rule(host, port)).into_iter().collect(),
            Finds::GitRemote => self.git(args),
        });
        let paths = |list: &[&str]| list.iter().filter_map(|path| self.outside(path, &[])).collect();
        Lease {
            hosts,
            reads: paths(fact.reads),
            sockets: fact.sockets.iter().map(PathBuf::from).collect(),
            ..Lease::default()
        }
    }

    /// The hosts of a Git command: of a URL, or of the remote that it names or means.
    fn git(&self, args: &[String]) -> Vec<HostRule> {
        let words: Vec<&str> = plain(args, table::GIT_VALUES).collect();
        let named: Vec<HostRule> = words.iter().skip(1).filter_map(|word| git_host(word)).collect();
        if !named.is_empty() {
            return named;
        }
        let is_meant = |name: &str| words.iter().skip(1).any(|word| *word == name);
        let known = self.ground.remotes.iter().any(|(name, _)| is_meant(name));
        let meant =
            self.ground.remotes.iter().filter(|(name, _)| if known { is_meant(name) } else { name == "origin" });
        meant.filter_map(|(_, url)| git_host(url)).collect()
    }

    fn redirections(&self) -> Lease {
        let mut lease = Lease::default();
        for objection in self.segment.standing.as_ref().err().into_iter().flatten() {
            match objection {
                Objection::WritesTo(target) => lease.writes.extend(self.outside(target, &self.ground.writable)),
                Objection::ReadsFrom(target) => lease.reads.extend(self.outside(target, &self.ground.readable)),
                _ => {}
            }
        }
        lease
    }

    /// Paths among the arguments that the sandbox does not let it touch.
    fn paths(&self, name: &str, args: &[String]) -> Lease {
        let mut lease = Lease::default();
        if table::TEXT_PROGRAMS.contains(&name) {
            return lease;
        }
        let changes = table::WRITERS.contains(&name);
        let given: Vec<&String> = args.iter().filter(|word| word.starts_with(['/', '~', '.'])).collect();
        // The last path of a copy is where it goes, the others are only read.
        let sources = if table::COPIERS.contains(&name) { given.len().saturating_sub(1) } else { 0 };
        for (position, word) in given.into_iter().enumerate() {
            let (list, allowed) = if changes && position >= sources {
                (&mut lease.writes, &self.ground.writable)
            } else {
                (&mut lease.reads, &self.ground.readable)
            };
            list.extend(self.outside(word, allowed).filter(|path| !list.contains(path)));
        }
        lease
    }

    /// The path that `word` means, if none of `allowed` contains it. The place above an allowed one is not asked about:
    /// what may be seen of it is seen.
    fn outside(&self, word: &str, allowed: &[PathBuf]) -> Option<PathBuf> {
        if word.contains(['$', '`', '*', '?', '{', '\n']) {
            return None;
        }
        let word = word.trim_matches(['"', '\'']);
        let path = match word.strip_prefix('~') {
            Some("") => self.ground.home.clone(),
            Some(rest) => self.ground.home.join(rest.strip_prefix('/')?),
            None => self.cwd.join(word),
        };
        let path = lexical(&path);
        let is_allowed = allowed.iter().any(|place| path.starts_with(place) || place.starts_with(&path));
        let is_inert = path.starts_with("/dev") || path.starts_with("/proc");
        (!is_allowed && !is_inert).then_some(path)
    }
}

/// Words that are neither options nor the values of options in `values`.
fn plain<'a>(args: &'a [String], values: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
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
fn option<'a>(args: &'a [String], names: &[&str]) -> Option<&'a str> {
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

/// The host of `[user@]host[:path]`, the first plain word.
fn login(args: &[String], values: &[&str], port: u16) -> Option<HostRule> {
    let port = option(args, &["-p", "-P"]).and_then(|port| port.parse().ok()).unwrap_or(port);
    plain(args, values).find_map(|word| {
        let host = word.rsplit_once('@').map_or(word, |(_, host)| host);
        let host = host.split_once(':').map_or(host, |(host, _)| host);
        let is_path = word.starts_with(['/', '.', '~']) || host.is_empty() || host.contains('/');
        if is_path { None } else { rule(host, port) }
    })
}

fn rule(host: &str, port: u16) -> Option<HostRule> {
    HostRule::new(host, &[port]).ok()
}

/// The host that a URL names; `scheme` is what a word without one means. A web address stands for both of its ports: a
/// server that only sends on to its encrypted side is the same host.
fn url_host(word: &str, scheme: &str) -> Option<HostRule> {
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
        _ => None,
    })?;
    if url.port().is_none() && matches!(url.scheme(), "http" | "https") {
        return HostRule::new(host, &[]).ok();
    }
    rule(host, port)
}

/// The host of a Git address: a URL, or `user@host:path`.
fn git_host(word: &str) -> Option<HostRule> {
    if word.contains("://") {
        return url_host(word, "https");
    }
    let (host, path) = word.split_once(':')?;
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    (host.contains('.') && !path.is_empty() && !host.contains('/')).then(|| rule(host, 22))?
}

fn base(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// `path` without `.` and `..`, as far as its text tells.
fn lexical(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

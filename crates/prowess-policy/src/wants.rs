//! Wants: what does a command's text say that it would use beyond the sandbox?
//!
//! Read before anything runs, so that a person is asked once and about all of it. It is a forecast and no guarantee: a
//! program in no table is not foreseen, and the sandbox holds it back until its host is asked about.

mod table;

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use url::Url;

use crate::judge::{Judged, Objection};
use crate::lease::{HostRule, Lease};
use crate::lookup::Lookup;
use crate::protected::Protection;
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
    /// The names of what is in `/tmp`, where commands have a `/tmp` of their own instead: that they do not see.
    pub foreign_tmp: Option<Vec<OsString>>,
    /// The names in the root directory. A word that begins with another is no path.
    pub root_names: Vec<OsString>,
    /// Programs that the project in the working directory has installed for itself.
    pub installed: Vec<String>,
    /// What is read-only in what it may change.
    pub protection: Protection,
    /// The configuration of the Git repository of the working directory.
    pub git_config: Option<PathBuf>,
    /// The Git remotes of the working directory: names and addresses.
    pub remotes: Vec<(String, String)>,
    /// The skill whose own command it is.
    pub skill: Option<String>,
    /// What that skill declares that its commands use.
    pub declared: Lease,
    /// Ports at which commands of its session listen. The proxy leads there without a lease.
    pub served: Vec<u16>,
    /// Whether the operator gave it the whole network.
    pub open_network: bool,
    /// The leases.
    pub held: Lease,
}

impl Ground {
    /// Whether `path` is in the `/tmp` that the command has to itself, rather than something in the system's.
    fn is_own_tmp(&self, path: &Path) -> bool {
        let Some(foreign) = &self.foreign_tmp else { return false };
        let Ok(inside) = path.strip_prefix("/tmp") else { return false };
        let first = inside.components().next();
        first.is_none_or(|first| !foreign.iter().any(|name| first.as_os_str() == name))
    }
}

/// What a command of these segments, in `cwd`, wants beyond the sandbox.
pub(crate) fn wants(
    segments: &[Judged],
    objections: &[Objection],
    (cwd, ground, lookup): (&Path, &Ground, &dyn Lookup),
) -> Lease {
    let mut wanted = Lease::default();
    for segment in segments {
        wanted = wanted.and(&Reader { segment, cwd, ground, lookup }.read());
    }
    let mut wanted = wanted.or(&ground.declared);
    let in_background = |one: &Objection| matches!(one, Objection::Doubt(doubt) if doubt.kind == DoubtKind::Background);
    if ground.open_network {
        wanted.hosts.clear();
    }
    wanted.keeps_running |= objections.iter().any(in_background);
    // A command with a part in the background may start what it connects to. If it does not, the proxy asks.
    let is_own = |rule: &HostRule| wanted.keeps_running || rule.ports().iter().all(|port| ground.served.contains(port));
    wanted.hosts.retain(|rule| !rule.is_local() || !is_own(rule));
    // A directory to work in is one to change: that is what commands do where they run.
    let is_open = ground.writable.is_empty() || ground.writable.iter().any(|place| cwd.starts_with(place));
    if !is_open && !ground.is_own_tmp(cwd) && !wanted.writes.iter().any(|one| cwd.starts_with(one)) {
        wanted.reads.retain(|one| !one.starts_with(cwd));
        wanted.writes.retain(|one| !one.starts_with(cwd));
        wanted.writes.push(cwd.to_owned());
    }
    wanted
}

/// One simple command.
struct Reader<'a> {
    segment: &'a Judged,
    cwd: &'a Path,
    ground: &'a Ground,
    lookup: &'a dyn Lookup,
}

impl Reader<'_> {
    fn read(&self) -> Lease {
        let mut lease = self.redirections();
        lease.keeps_running = self.segment.wrappers.iter().any(|name| base(name) == "nohup");
        let Some((program, args)) = self.segment.argv.split_first() else { return lease };
        let name = base(program);
        let (name, args) = module(name, args).unwrap_or((name, args));
        let fact = table::FACTS.iter().filter(|fact| fact.programs.contains(&name)).find(|fact| fact.applies(args));
        if let Some(fact) = fact.filter(|_| !self.is_installed(name, args)) {
            lease = lease.and(&self.fact(fact, args));
        }
        if name == "git" {
            lease.writes.extend(self.git_writes(args));
        }
        lease.and(&self.paths(name, args))
    }

    /// Whether a launcher of packages would start a program that is there already.
    fn is_installed(&self, name: &str, args: &[String]) -> bool {
        let wanted = args.iter().find(|word| !word.starts_with('-'));
        table::PACKAGE_LAUNCHERS.contains(&name) && wanted.is_some_and(|wanted| self.ground.installed.contains(wanted))
    }

    fn fact(&self, fact: &Fact, args: &[String]) -> Lease {
        let mut hosts: Vec<HostRule> = fact.hosts.iter().filter_map(|host| host.parse().ok()).collect();
        hosts.extend(match fact.finds {
            Finds::Nothing => Vec::new(),
            Finds::Urls => plain(args, fact.values).filter_map(|word| url_host(word, "http")).collect(),
            Finds::Login(port) => login(args, fact.values, port).into_iter().collect(),
            Finds::RemotePath(port) => remote_path(args, fact.values, port).into_iter().collect(),
            Finds::UrlsInCode => args.iter().flat_map(|word| urls_in(word)).collect(),
            Finds::Option(flags, port) => {
                let given = option(args, flags).and_then(|host| rule(host, port));
                let urls = args.iter().filter(|word| word.contains("://")).filter_map(|word| url_host(word, "http"));
                given.into_iter().chain(urls).collect()
            }
            Finds::GitRemote => self.git(args),
        });
        // Without a host it works on this machine, and needs no keys for another.
        let is_local = hosts.is_empty() && matches!(fact.finds, Finds::Login(_) | Finds::RemotePath(_));
        let reads = if is_local { &[] } else { fact.reads };
        Lease {
            hosts,
            reads: reads.iter().filter_map(|path| self.outside(path, &[])).collect(),
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
                Objection::WritesTo(target) => lease.writes.extend(self.unwritable(target)),
                Objection::ReadsFrom(target) => lease.reads.extend(self.outside(target, &self.ground.readable)),
                _ => {}
            }
        }
        lease
    }

    /// Paths among the arguments that the sandbox does not let it touch.
    fn paths(&self, name: &str, args: &[String]) -> Lease {
        let mut lease = Lease::default();
        // Where nothing is known about the sandbox, nothing is outside of it.
        if table::TEXT_PROGRAMS.contains(&name) || self.ground.readable.is_empty() {
            return lease;
        }
        let changes = table::WRITERS.contains(&name);
        // What a program only reads is asked about where it lies outside; what it changes also within, where protected.
        let is_path = |word: &&String| word.starts_with(['/', '~', '.']) || changes && !word.starts_with('-');
        let given: Vec<&String> = args.iter().filter(is_path).collect();
        // The last path of a copy is where it goes, the others are only read.
        let sources = if table::COPIERS.contains(&name) { given.len().saturating_sub(1) } else { 0 };
        for (position, word) in given.into_iter().enumerate() {
            let (list, path) = if changes && position >= sources {
                (&mut lease.writes, self.unwritable(word))
            } else {
                (&mut lease.reads, self.outside(word, &self.ground.readable))
            };
            list.extend(path.filter(|path| !list.contains(path)));
        }
        lease
    }

    /// The configuration that a Git command changes. It can make git start programs, so the sandbox protects it.
    fn git_writes(&self, args: &[String]) -> Option<PathBuf> {
        let words: Vec<&str> = plain(args, table::GIT_VALUES).collect();
        let has = |flags: &[&str]| args.iter().any(|word| flags.contains(&word.as_str()));
        let (command, rest) = words.split_first()?;
        let changes = match *command {
            "config" => has(table::GIT_CONFIG_CHANGES) || rest.len() > 1 && !has(table::GIT_CONFIG_READS),
            "remote" => rest.first().is_some_and(|verb| table::GIT_REMOTE_CHANGES.contains(verb)),
            "submodule" => rest.first().is_some_and(|verb| *verb != "status" && *verb != "summary"),
            "push" => has(&["-u", "--set-upstream"]),
            "branch" => has(&["-u", "--set-upstream-to", "--unset-upstream", "-t", "--track"]),
            "checkout" | "switch" => has(&["-t", "--track"]),
            _ => false,
        };
        if !changes {
            return None;
        }
        if has(&["--global"]) {
            return Some(self.ground.home.join(".gitconfig"));
        }
        self.ground.git_config.clone()
    }

    /// What has to be open to changes for `path` to be made: it, or the nearest directory above it that is there. That is
    /// never a home, nor anything above one.
    fn place_for(&self, path: PathBuf) -> PathBuf {
        let is_narrow = |dir: &&Path| !self.ground.home.starts_with(dir);
        let there = path.ancestors().find(|dir| self.lookup.exists(dir)).filter(is_narrow).map(Path::to_owned);
        there.unwrap_or(path)
    }

    /// The path that `word` means, if the sandbox does not let it change: because it lies outside, or in something that is
    /// protected. In that case it is the protected file or directory.
    fn unwritable(&self, word: &str) -> Option<PathBuf> {
        let path = self.resolve(word)?;
        let root = self.ground.writable.iter().find(|place| path.starts_with(place));
        let Some(root) = root else {
            return self.outside(word, &self.ground.writable).map(|path| self.place_for(path));
        };
        let inside = path.strip_prefix(root).ok()?;
        let is_protected = |part: &&Path| self.ground.protection.entry(part).is_some();
        let part = inside.ancestors().filter(|part| !part.as_os_str().is_empty()).find(is_protected)?;
        Some(root.join(part))
    }

    /// The path that `word` means, if none of `allowed` contains it. The place above an allowed one is not asked about:
    /// what may be seen of it is seen.
    fn outside(&self, word: &str, allowed: &[PathBuf]) -> Option<PathBuf> {
        let path = self.resolve(word)?;
        let is_allowed = allowed.iter().any(|place| path.starts_with(place) || place.starts_with(&path));
        let is_inert = path.starts_with("/dev") || path.starts_with("/proc");
        (!is_allowed && !is_inert && !self.ground.is_own_tmp(&path) && self.is_possible(&path)).then_some(path)
    }

    /// Whether there can be something at `path`: patterns and names often begin with a slash, too.
    fn is_possible(&self, path: &Path) -> bool {
        let names = &self.ground.root_names;
        let first = path.components().nth(1);
        names.is_empty() || first.is_none_or(|first| names.iter().any(|name| first.as_os_str() == name))
    }
}

impl Reader<'_> {
    /// The path that `word` means, as far as its text tells.
    fn resolve(&self, word: &str) -> Option<PathBuf> {
        if word.contains(['$', '`', '*', '?', '{', '\n']) {
            return None;
        }
        let word = word.trim_matches(['"', '\'']);
        let path = match word.strip_prefix('~') {
            Some("") => self.ground.home.clone(),
            Some(rest) => self.ground.home.join(rest.strip_prefix('/')?),
            None => self.cwd.join(word),
        };
        Some(lexical(&path))
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

/// The host of `[user@]host:path`, the first plain word of that form.
fn remote_path(args: &[String], values: &[&str], port: u16) -> Option<HostRule> {
    let port = option(args, &["-P"]).and_then(|port| port.parse().ok()).unwrap_or(port);
    plain(args, values).find_map(|word| {
        let (host, _) = word.split_once(':').filter(|(host, _)| !host.contains('/'))?;
        rule(host.rsplit_once('@').map_or(host, |(_, host)| host), port)
    })
}

/// The hosts of all web addresses in a text.
fn urls_in(text: &str) -> Vec<HostRule> {
    let starts = ["http://", "https://"].into_iter().flat_map(|scheme| text.match_indices(scheme));
    let urls = starts.map(|(at, _)| {
        let rest = &text[at..];
        &rest[..rest.find([' ', '\'', '"', '`', ')', '<', '>', '\n', ';', ',']).unwrap_or(rest.len())]
    });
    urls.filter_map(|url| url_host(url, "https")).collect()
}

/// The module that an interpreter is told to run as a program: `python3 -m pip install`.
fn module<'a>(name: &str, args: &'a [String]) -> Option<(&'a str, &'a [String])> {
    let [flag, module, rest @ ..] = args else { return None };
    (name.starts_with("python") && flag == "-m").then_some((module.as_str(), rest))
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

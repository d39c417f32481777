//! Wants: what does a command's text say that it would use beyond the sandbox?
//!
//! Read before anything runs, so that a person is asked once and about all of it. It is a forecast and no guarantee: a
//! program in no table is not foreseen, and the sandbox holds it back until its host is asked about.

mod git;
mod hosts;
mod kube;
mod paths;
mod place;
mod places;
mod table;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::judge::{Judged, Objection};
use crate::lease::{HostRule, Lease};
use crate::lookup::Lookup;
use crate::permit::Binding;
use crate::protected::{GIT_PROTECTED, Protection};
use crate::script::{DoubtKind, quote};
use git::GitCall;
use hosts::{host_and_port, login, option, plain, remote_path, rule, url_host, urls_in};
use paths::{Makes, PathUse};
pub use place::Unleasable;
use places::{places, resolve};
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
    /// What stays out of its sight. A directory around it cannot be opened to changes.
    pub hidden: Vec<PathBuf>,
    /// The names of what is in `/tmp`, where commands have a `/tmp` of their own instead: that they do not see.
    pub foreign_tmp: Option<Vec<OsString>>,
    /// The names in the root directory. A word that begins with another is no path.
    pub root_names: Vec<OsString>,
    /// Programs that the project in the working directory has installed for itself.
    pub installed: Vec<String>,
    /// What is read-only in what it may change.
    pub protection: Protection,
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

    /// What of `path` is protected where a run may change `root`: the file or directory that the sandbox keeps read-only.
    fn protected_part(&self, root: &Path, path: &Path, lookup: &dyn Lookup) -> Option<PathBuf> {
        let inside = path.strip_prefix(root).ok()?;
        let is_listed = |part: &&Path| self.protection.entry(part).is_some();
        let listed = inside.ancestors().filter(|part| !part.as_os_str().is_empty()).find(is_listed);
        if let Some(part) = listed {
            return Some(root.join(part));
        }
        let git = lookup.git_dir_around(path).filter(|_| self.protection.covers_git())?;
        // Whoever may change a Git directory by its name, or a part of it, may change what is in there. A workspace that is
        // one was not named for that.
        let is_above = |place: &&PathBuf| *place != root && root.starts_with(place);
        if root.starts_with(&git) && self.writable.iter().chain(&self.held.writes).any(|place| is_above(&place)) {
            return None;
        }
        let part = GIT_PROTECTED.iter().map(|name| git.join(name)).find(|part| path.starts_with(part));
        part.or_else(|| (path == git && root != git).then_some(git))
    }
}

/// What a command wants beyond the sandbox.
#[derive(Debug, Default)]
pub(crate) struct Wants {
    /// All of it, as far as its text tells.
    pub(crate) lease: Lease,
    /// What has to be made before it starts, so that it can be opened to it: files, and directories with a `/` behind.
    pub(crate) creates: Vec<PathBuf>,
    /// What it needs and cannot be given.
    pub(crate) refused: Vec<Unleasable>,
}

/// What the command of `binding`, which has these segments, wants beyond the sandbox.
pub(crate) fn wants(
    segments: &[Judged],
    objections: &[Objection],
    (binding, ground, lookup): (&Binding, &Ground, &dyn Lookup),
) -> Wants {
    let (cwd, command) = (binding.cwd.path.as_path(), binding.command.as_str());
    let mut wants = Wants::default();
    for (segment, place) in segments.iter().zip(places(segments, objections, (cwd, &ground.home))) {
        let reader = Reader { command, segment, cwd: &place, ground, lookup };
        let mut found = reader.read();
        if place != cwd {
            reader.moved(&mut found);
        }
        wants.lease = wants.lease.and(&found.lease);
        if !reader.is_missing() {
            wants.creates.extend(found.creates);
            wants.refused.extend(found.refused);
        }
    }
    if let [only] = segments {
        wants.refused.extend(never(only, command, ground));
    }
    let in_background = |one: &Objection| matches!(one, Objection::Doubt(doubt) if doubt.kind == DoubtKind::Background);
    wants.lease = wants.lease.or(&ground.declared);
    wants.lease.keeps_running |= objections.iter().any(in_background);
    complete(&mut wants.lease, (cwd, ground, lookup));
    wants
}

/// Adds the directory to work in, and leaves out what need not be said.
fn complete(wanted: &mut Lease, (cwd, ground, lookup): (&Path, &Ground, &dyn Lookup)) {
    if ground.open_network {
        wanted.hosts.clear();
    }
    // A command with a part in the background may start what it connects to. If it does not, the proxy asks.
    let is_own = |rule: &HostRule| wanted.keeps_running || rule.ports().iter().all(|port| ground.served.contains(port));
    wanted.hosts.retain(|rule| !rule.is_local() || !is_own(rule));
    // A directory to work in is one to change: that is what commands do where they run.
    let is_open = ground.writable.is_empty() || ground.writable.iter().any(|place| cwd.starts_with(place));
    if !is_open && !ground.is_own_tmp(cwd) && !wanted.writes.iter().any(|one| cwd.starts_with(one)) {
        wanted.writes.insert(0, cwd.to_owned());
    }
    let (reads, writes) = (wanted.reads.clone(), wanted.writes.clone());
    let is_below = |path: &Path, above: &PathBuf| path != above && path.starts_with(above);
    let is_read = |path: &Path| reads.iter().any(|above| is_below(path, above));
    wanted.reads.retain(|path| !is_read(path) && !writes.iter().any(|above| path.starts_with(above)));
    let is_covered = |path: &Path, above: &PathBuf| is_below(path, above) && covers(above, path, ground, lookup);
    wanted.writes.retain(|path| !writes.iter().any(|above| is_covered(path, above)));
}

/// The part of what is `wanted` that no lease covers. A lease for a directory covers no protected file in it.
pub(crate) fn lacks(wanted: &Lease, ground: &Ground, lookup: &dyn Lookup) -> Lease {
    let mut rest = wanted.beyond(&ground.held);
    let is_given = |path: &Path| ground.held.writes.iter().any(|given| covers(given, path, ground, lookup));
    rest.writes = wanted.writes.iter().filter(|path| !is_given(path)).cloned().collect();
    rest
}

/// Why a program cannot work in the sandbox, whatever is allowed. As a part of a longer command it runs and says so itself.
fn never(segment: &Judged, command: &str, ground: &Ground) -> Option<Unleasable> {
    let (program, args) = segment.argv.split_first()?;
    // What starts another program, such as `sudo`, counts as itself.
    let name =
        segment.wrappers.iter().map(|name| base(name)).find(|name| *name == "sudo").unwrap_or_else(|| base(program));
    let asks_for_help = args.iter().any(|word| matches!(word.as_str(), "--help" | "--version" | "-V"));
    if asks_for_help {
        return None;
    }
    if let Some((_, why)) = table::NEVER.iter().find(|(programs, _)| programs.contains(&name)) {
        return Some(Unleasable::new(why, "run it yourself, in a terminal".to_owned()));
    }
    let needs_network = table::NEED_NETWORK.contains(&name) && !ground.open_network;
    needs_network.then(|| {
        let why = "it speaks to the network directly, and the sandbox has only a proxy";
        Unleasable::new(why, format!("prowess exec run --network -- {}", quote(command)))
    })
}

/// Whether a run that may change `given` may change `path`.
fn covers(given: &Path, path: &Path, ground: &Ground, lookup: &dyn Lookup) -> bool {
    path.starts_with(given) && ground.protected_part(given, path, lookup).is_none()
}

/// What was found in one simple command.
#[derive(Debug, Default)]
struct Found {
    lease: Lease,
    creates: Vec<PathBuf>,
    refused: Vec<Unleasable>,
}

/// One simple command.
struct Reader<'a> {
    /// The whole command.
    command: &'a str,
    segment: &'a Judged,
    cwd: &'a Path,
    ground: &'a Ground,
    lookup: &'a dyn Lookup,
}

impl Reader<'_> {
    /// Whether there is no such program: then it asks for nothing, and whoever runs it is told.
    fn is_missing(&self) -> bool {
        let objections = self.segment.standing.as_ref().err().into_iter().flatten();
        objections.into_iter().any(|one| matches!(one, Objection::NotFound(_)))
    }

    fn read(&self) -> Found {
        let mut found = self.redirections();
        found.lease.keeps_running = self.segment.wrappers.iter().any(|name| base(name) == "nohup");
        let Some((program, args)) = self.segment.argv.split_first() else { return found };
        let name = base(program);
        let (name, args) = module(name, args).unwrap_or((name, args));
        let fact = table::FACTS.iter().filter(|fact| fact.programs.contains(&name)).find(|fact| fact.applies(args));
        if let Some(fact) = fact.filter(|_| !self.is_installed(name, args)) {
            found.lease = found.lease.and(&self.fact(fact, args));
            fact.writes.iter().for_each(|dir| self.change(dir, Makes::Dir, &mut found));
        }
        if name == "git"
            && let Some(call) = GitCall::read(self, args)
        {
            call.wants(self, &mut found);
        }
        self.paths(name, args, &mut found);
        found
    }

    /// Notes the directory that a `cd` before it led to, if that is outside.
    fn moved(&self, found: &mut Found) {
        let Some((program, args)) = self.segment.argv.split_first() else { return };
        // In a directory of the system most programs only look around.
        if self.ground.readable.iter().any(|place| self.cwd.starts_with(place)) {
            return;
        }
        let place = self.cwd.to_string_lossy();
        let looks = match base(program) {
            "cd" | "pushd" => return,
            "git" => GitCall::read(self, args).is_some_and(|call| call.only_looks()),
            name => table::LOOKERS.contains(&name),
        };
        if looks {
            found.lease.reads.extend(self.outside(self.cwd, &place, &self.ground.readable));
        } else {
            self.change(&place, Makes::Nothing, found);
        }
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
            Finds::Urls => self.urls(args, fact.values),
            Finds::Login(port) => login(args, fact.values, port).into_iter().collect(),
            Finds::HostAndPort => host_and_port(args, fact.values).into_iter().collect(),
            Finds::RemotePath(port) => remote_path(args, fact.values, port).into_iter().collect(),
            Finds::UrlsInCode => args.iter().flat_map(|word| urls_in(word)).collect(),
            Finds::Kubeconfig => self.kube_server(args).into_iter().collect(),
            Finds::Option(flags, port, port_flags) => {
                let port = option(args, port_flags).and_then(|port| port.parse().ok()).unwrap_or(port);
                let given = option(args, flags).and_then(|host| rule(host, port));
                let urls = args.iter().filter(|word| word.contains("://")).filter_map(|word| url_host(word, "http"));
                given.into_iter().chain(urls).collect()
            }
        });
        // Without a host it works on this machine, and needs no keys for another.
        let is_local = hosts.is_empty() && matches!(fact.finds, Finds::Login(_) | Finds::RemotePath(_));
        let (mut sockets, reads) = (fact.sockets.to_vec(), if is_local { &[] } else { fact.reads });
        if hosts.is_empty() {
            hosts.extend(fact.otherwise.iter().filter_map(|host| host.parse().ok()));
            sockets.extend(fact.own_sockets);
        }
        let is_there = |path: &PathBuf| self.lookup.exists(path);
        let logins = fact.logins.iter().filter_map(|path| self.outside(self.cwd, path, &[])).filter(is_there);
        let sockets = sockets.into_iter().chain(option(args, &["--unix-socket"])).map(PathBuf::from);
        Lease {
            hosts,
            reads: reads.iter().filter_map(|path| self.outside(self.cwd, path, &[])).chain(logins).collect(),
            sockets: sockets.collect(),
            ..Lease::default()
        }
    }

    /// The hosts of web addresses among the words. If a variable stands for one, those of all addresses in the command.
    fn urls(&self, args: &[String], values: &[&str]) -> Vec<HostRule> {
        let named: Vec<HostRule> = plain(args, values).filter_map(|word| url_host(word, "http")).collect();
        let is_dynamic = || plain(args, values).any(|word| word.trim_start_matches('"').starts_with('$'));
        if named.is_empty() && is_dynamic() { urls_in(self.command) } else { named }
    }

    /// The server that the operator's settings for kubectl name.
    fn kube_server(&self, args: &[String]) -> Option<HostRule> {
        let given = option(args, &["--kubeconfig"]).and_then(|file| self.resolve_in(self.cwd, file));
        let file = given.unwrap_or_else(|| self.ground.home.join(".kube/config"));
        let context = option(args, &["--context", "--kube-context"]);
        kube::server(&self.lookup.text(&file)?, context).and_then(|url| url_host(&url, "https"))
    }

    fn redirections(&self) -> Found {
        let mut found = Found::default();
        for objection in self.segment.standing.as_ref().err().into_iter().flatten() {
            match objection {
                Objection::WritesTo(target) => self.change(target, Makes::File, &mut found),
                Objection::ReadsFrom(target) => {
                    found.lease.reads.extend(self.outside(self.cwd, target, &self.ground.readable));
                }
                _ => {}
            }
        }
        found
    }

    /// Paths among the arguments that the sandbox does not let it touch.
    fn paths(&self, name: &str, args: &[String], found: &mut Found) {
        // Where nothing is known about the sandbox, nothing is outside of it.
        if self.ground.readable.is_empty() {
            return;
        }
        for (word, does) in paths::paths(name, args) {
            match does {
                PathUse::Reads => found.lease.reads.extend(self.outside(self.cwd, word, &self.ground.readable)),
                PathUse::Changes(makes) => self.change(word, makes, found),
            }
            if name == "rm" {
                found.lease.writes.extend(self.repository_at(word));
            }
        }
    }

    /// The Git directory that is removed with the directory that `word` means.
    fn repository_at(&self, word: &str) -> Option<PathBuf> {
        let path = self.resolve_in(self.cwd, word)?;
        let git_dir = self.lookup.repository(&path)?.git_dir;
        let root = self.ground.writable.iter().find(|place| path.starts_with(place))?;
        let part = self.ground.protected_part(root, &git_dir, self.lookup);
        part.filter(|_| git_dir.parent() == Some(&path))
    }

    /// Notes that it changes what `word` means, if the sandbox does not let it: because it lies outside, or in something
    /// that is protected. In that case it is the protected file or directory.
    fn change(&self, word: &str, makes: Makes, found: &mut Found) {
        self.change_in(self.cwd, word, makes, found);
    }

    /// The same, seen from `dir`.
    fn change_in(&self, dir: &Path, word: &str, makes: Makes, found: &mut Found) {
        let Some(path) = self.resolve_in(dir, word) else { return };
        if let Some(root) = self.ground.writable.iter().find(|place| path.starts_with(place)) {
            found.lease.writes.extend(self.ground.protected_part(root, &path, self.lookup));
            return;
        }
        let Some(path) = self.outside(dir, word, &[]) else { return };
        let mut given = self.ground.held.writes.iter();
        if let Some(part) = given.find_map(|given| self.ground.protected_part(given, &path, self.lookup)) {
            found.lease.writes.push(part);
            return;
        }
        let makes = if makes == Makes::File && word.ends_with('/') { Makes::Dir } else { makes };
        match self.place_for(path, makes) {
            Ok(place) => {
                found.creates.extend(place.made);
                found.lease.writes.push(place.open);
            }
            Err(why) => found.refused.push(why),
        }
    }

    /// The path that `word` means, seen from `dir`, if none of `allowed` contains it. The place above an allowed one is not
    /// asked about: what may be seen of it is seen.
    fn outside(&self, dir: &Path, word: &str, allowed: &[PathBuf]) -> Option<PathBuf> {
        let path = self.resolve_in(dir, word)?;
        let is_allowed = allowed.iter().any(|place| path.starts_with(place) || place.starts_with(&path));
        let is_allowed = is_allowed && !self.ground.hidden.iter().any(|hidden| path.starts_with(hidden));
        let is_inert = path.starts_with("/dev") || path.starts_with("/proc");
        (!is_allowed && !is_inert && !self.ground.is_own_tmp(&path) && self.is_possible(&path)).then_some(path)
    }

    /// Whether there can be something at `path`: patterns and names often begin with a slash, too.
    fn is_possible(&self, path: &Path) -> bool {
        let names = &self.ground.root_names;
        let first = path.components().nth(1);
        names.is_empty() || first.is_none_or(|first| names.iter().any(|name| first.as_os_str() == name))
    }

    /// The path that `word` means, seen from `dir`, as far as its text tells.
    fn resolve_in(&self, dir: &Path, word: &str) -> Option<PathBuf> {
        resolve(word, dir, &self.ground.home)
    }
}

/// The module that an interpreter is told to run as a program: `python3 -m pip install`.
fn module<'a>(name: &str, args: &'a [String]) -> Option<(&'a str, &'a [String])> {
    let [flag, module, rest @ ..] = args else { return None };
    (name.starts_with("python") && flag == "-m").then_some((module.as_str(), rest))
}

fn base(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

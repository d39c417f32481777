//! Files: how does a confinement become rules of Landlock?
//!
//! Landlock knows only permissions, for a folder and all below it. So a folder that holds something hidden is not
//! granted whole: its entries are, one by one, without that one. Every path is opened once, and what was opened is what
//! the rule is about.

use std::ffi::OsStr;
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use rustix::fs::{Access as May, Dir, FileType, Mode, OFlags};
use rustix::process::geteuid;

use crate::confine::SHARED_MEMORY;
use crate::sandbox::{Confinement, Proxy, Refused, real};

/// Every step in which Landlock learnt to guard more, greatest first.
const LEVELS: &[(u8, ABI)] =
    &[(9, ABI::V9), (6, ABI::V6), (5, ABI::V5), (4, ABI::V4), (3, ABI::V3), (2, ABI::V2), (1, ABI::V1)];

/// What a rule lets a run do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Right {
    /// See which names are there.
    List,
    /// Read and execute.
    Read,
    /// Read, write and control a device.
    Device,
    /// Everything.
    Write,
}

/// Something on disk, opened only to point at it.
struct Place {
    fd: OwnedFd,
    is_dir: bool,
}

/// What a confinement comes down to: places by their real paths.
struct Rule {
    path: PathBuf,
    place: Place,
    right: Right,
}

/// The paths below `above` that a run may use, topmost first and without what lies below another, and whether it may
/// change them. What is hidden is in none of them.
pub(super) fn usable_below(above: &Path, confinement: &Confinement) -> Result<Vec<(PathBuf, bool)>, Refused> {
    let mut usable: Vec<(PathBuf, bool)> = rules(confinement)?
        .into_iter()
        .filter(|rule| rule.right != Right::List && rule.path.starts_with(above) && rule.path != above)
        .map(|rule| (rule.path, rule.right == Right::Write))
        .collect();
    usable.sort();
    // Of the same path, the one that may be changed counts.
    usable.dedup_by(|next, kept| {
        next.0 == kept.0 && {
            kept.1 |= next.1;
            true
        }
    });
    let mut topmost: Vec<(PathBuf, bool)> = Vec::new();
    for (path, writable) in usable {
        if !topmost.iter().any(|(kept, _)| path.starts_with(kept)) {
            topmost.push((path, writable));
        }
    }
    Ok(topmost)
}

/// The highest step this kernel knows; 0 is none.
pub(super) fn level() -> u8 {
    strongest().map_or(0, |(level, _)| level)
}

/// Lets this process, and all it starts, touch only what the confinement names.
pub(super) fn restrict(confinement: &Confinement) -> Result<u8, Refused> {
    let Some((level, abi)) = strongest() else {
        return Err(Refused::new("sandbox", "this kernel has no Landlock; choose another sandbox"));
    };
    let mut rules = rules(confinement)?;
    rules.extend(own_terminal().and_then(|path| open_rule(&path, Right::Device)));
    let refused = |error: RulesetError| Refused::new("sandbox", format!("Landlock refuses its rules: {error}"));
    let mut ruleset = handle(Ruleset::default(), confinement, abi).and_then(Ruleset::create).map_err(refused)?;
    for rule in rules {
        ruleset = permit(ruleset, rule.place, access(rule.right, abi)).map_err(refused)?;
    }
    if confinement.unix_sockets
        && let Some(root) = open_rule(Path::new("/"), Right::List)
    {
        ruleset = permit(ruleset, root.place, sockets(abi)).map_err(refused)?;
    }
    for socket in confinement.sockets.iter().filter_map(|path| open_rule(path, Right::List)) {
        ruleset = permit(ruleset, socket.place, sockets(abi)).map_err(refused)?;
    }
    let status = ruleset.restrict_self().map_err(refused)?;
    if status.ruleset != RulesetStatus::FullyEnforced {
        return Err(Refused::new("sandbox", "Landlock does not enforce all of its rules here; choose another sandbox"));
    }
    Ok(level)
}

fn strongest() -> Option<(u8, ABI)> {
    let everything = Confinement::default();
    LEVELS.iter().copied().find(|&(_, abi)| {
        let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        handle(ruleset, &everything, abi).is_ok()
    })
}

/// Names everything that is forbidden unless a rule permits it.
fn handle(ruleset: Ruleset, confinement: &Confinement, abi: ABI) -> Result<Ruleset, RulesetError> {
    let mut ruleset = ruleset.handle_access(AccessFs::from_all(abi))?;
    let net = AccessNet::from_all(abi);
    let has_network = confinement.network || confinement.proxy != Proxy::None;
    if !has_network && !net.is_empty() {
        ruleset = ruleset.handle_access(net)?;
    }
    let mut scope = Scope::from_all(abi);
    if confinement.unix_sockets {
        scope.remove(Scope::AbstractUnixSocket);
    }
    if !scope.is_empty() {
        ruleset = ruleset.scope(scope)?;
    }
    Ok(ruleset)
}

fn permit(ruleset: RulesetCreated, place: Place, access: BitFlags<AccessFs>) -> Result<RulesetCreated, RulesetError> {
    let access = if place.is_dir { access } else { access & AccessFs::from_file(ABI::V9) };
    if access.is_empty() { Ok(ruleset) } else { ruleset.add_rule(PathBeneath::new(place.fd, access)) }
}

fn access(right: Right, abi: ABI) -> BitFlags<AccessFs> {
    let known = AccessFs::from_all(abi);
    known
        & match right {
            Right::List => BitFlags::from(AccessFs::ReadDir),
            Right::Read => AccessFs::ReadFile | AccessFs::ReadDir | AccessFs::Execute,
            Right::Device => {
                AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::ReadDir | AccessFs::IoctlDev
            }
            // No devices, whoever made them.
            Right::Write => !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev),
        }
}

fn sockets(abi: ABI) -> BitFlags<AccessFs> {
    AccessFs::from_all(abi) & AccessFs::ResolveUnix
}

/// The terminal on standard input: of all terminals, the only one the run has business with.
fn own_terminal() -> Option<PathBuf> {
    fs::read_link("/proc/self/fd/0").ok().filter(|path| path.starts_with("/dev/pts"))
}

/// The rules of a confinement. What is not there needs none.
fn rules(confinement: &Confinement) -> Result<Vec<Rule>, Refused> {
    // What is not there yet counts here: whoever may change the folder could make it.
    let secrets: Vec<PathBuf> = confinement.hidden.iter().map(|path| real(path)).collect();
    let mut rules = Vec::with_capacity(64);
    for path in confinement.changeable() {
        let is_device = path.starts_with("/dev") && !path.starts_with(SHARED_MEMORY);
        let right = if is_device { Right::Device } else { Right::Write };
        let Some(rule) = open_rule(path, right) else { continue };
        if let Some(secret) = secrets.iter().find(|hidden| **hidden != rule.path && hidden.starts_with(&rule.path)) {
            return Err(Refused::new(
                "sandbox",
                format!(
                    "refusing to run in {}: it contains {}; choose a smaller workspace or grant",
                    rule.path.display(),
                    secret.display()
                ),
            ));
        }
        rules.push(rule);
    }
    let hidden: Vec<PathBuf> = secrets.into_iter().filter(|path| is_exposed(path)).collect();
    for rule in confinement.read.iter().filter_map(|path| open_rule(path, Right::Read)) {
        split(rule, &hidden, &mut rules);
    }
    Ok(rules)
}

/// Whether there are means to read what is to be hidden: it is this user's, or readable, or is not there and this user
/// could make it.
fn is_exposed(path: &Path) -> bool {
    let may = |path: &Path, may: May| rustix::fs::access(path, may).is_ok();
    match rustix::fs::stat(path) {
        Ok(stat) => stat.st_uid == geteuid().as_raw() || may(path, May::READ_OK),
        Err(_) => path.ancestors().find(|above| may(above, May::EXISTS)).is_some_and(|above| may(above, May::WRITE_OK)),
    }
}

fn open_rule(path: &Path, right: Right) -> Option<Rule> {
    let fd = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let stat = rustix::fs::fstat(&fd).ok()?;
    let is_dir = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    let path = fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).ok()?;
    Some(Rule { path, place: Place { fd, is_dir }, right })
}

/// Grants what the rule is about, or its entries where something below it is hidden.
fn split(rule: Rule, hidden: &[PathBuf], rules: &mut Vec<Rule>) {
    let holds_secret = hidden.iter().any(|hidden| *hidden != rule.path && hidden.starts_with(&rule.path));
    if !holds_secret {
        rules.push(rule);
        return;
    }
    // What cannot be listed is not granted.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let entries = rustix::fs::openat(&rule.place.fd, c".", flags, Mode::empty()).and_then(Dir::new);
    for entry in entries.into_iter().flatten().flatten() {
        let name = entry.file_name();
        let path = rule.path.join(OsStr::from_bytes(name.to_bytes()));
        if matches!(name.to_bytes(), b"." | b"..") || hidden.contains(&path) {
            continue;
        }
        // What a link points to has, or has not, a rule of its own; it is not followed.
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(fd) = rustix::fs::openat(&rule.place.fd, name, flags, Mode::empty()) else { continue };
        let is_dir = match kind(entry.file_type(), &fd) {
            FileType::Directory => true,
            FileType::RegularFile => false,
            _ => continue,
        };
        split(Rule { path, place: Place { fd, is_dir }, right: rule.right }, hidden, rules);
    }
    rules.push(Rule { right: Right::List, ..rule });
}

/// Some file systems do not say in a list what an entry is.
fn kind(listed: FileType, fd: &OwnedFd) -> FileType {
    if listed != FileType::Unknown {
        return listed;
    }
    rustix::fs::fstat(fd).map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_a_secret_is_granted_without_it() {
        let scratch = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(scratch.path()).unwrap();
        for file in ["etc/passwd", "etc/shadow", "etc/ssl/certs/ca", "etc/ssl/private/key"] {
            let path = root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        std::os::unix::fs::symlink(root.join("etc/shadow"), root.join("etc/link")).unwrap();
        let confinement = Confinement {
            read: vec![root.join("etc")],
            hidden: vec![root.join("etc/shadow"), root.join("etc/ssl/private"), root.join("etc/missing")],
            ..Confinement::default()
        };
        let found = |confinement: &Confinement| {
            let rules = rules(confinement).map_err(|refused| refused.code)?;
            let mut found: Vec<_> = rules.into_iter().map(|rule| (rule.path, rule.right)).collect();
            found.sort();
            Ok::<_, String>(found)
        };
        let expected = [
            ("etc", Right::List),
            ("etc/passwd", Right::Read),
            ("etc/ssl", Right::List),
            ("etc/ssl/certs", Right::Read),
        ];
        assert_eq!(found(&confinement).unwrap(), expected.map(|(path, right)| (root.join(path), right)));

        let named = Confinement { read: vec![root.join("etc/ssl/private/key")], ..confinement.clone() };
        assert_eq!(found(&named).unwrap(), [(root.join("etc/ssl/private/key"), Right::Read)]);

        std::os::unix::fs::symlink(root.join("etc"), root.join("alias")).unwrap();
        let aliased = Confinement { write: vec![root.join("alias")], ..confinement };
        assert_eq!(found(&aliased), Err("sandbox".to_owned()), "a link does not hide what it opens");

        fs::create_dir(root.join("home")).unwrap();
        std::os::unix::fs::symlink(root.join("home"), root.join("link")).unwrap();
        let later = |read: &[&str], write: &[&str]| Confinement {
            read: read.iter().map(|name| root.join(name)).collect(),
            write: write.iter().map(|name| root.join(name)).collect(),
            hidden: vec![root.join("link/.ssh/id")],
            ..Confinement::default()
        };
        assert_eq!(found(&later(&[], &["home"])), Err("sandbox".to_owned()), "it could be made");
        assert_eq!(found(&later(&["home"], &[])).unwrap(), [(root.join("home"), Right::List)], "or appear later");
    }

    #[test]
    fn only_write_makes_anything_and_nothing_makes_devices() {
        let abi = ABI::V6;
        assert!(!access(Right::Read, abi).contains(AccessFs::WriteFile));
        assert!(!access(Right::List, abi).contains(AccessFs::ReadFile));
        assert!(access(Right::Write, abi).contains(AccessFs::MakeReg | AccessFs::Refer | AccessFs::Truncate));
        assert!(!access(Right::Write, abi).intersects(AccessFs::MakeBlock | AccessFs::MakeChar));
        assert!(AccessFs::from_all(ABI::V1).contains(access(Right::Write, ABI::V1)));
    }
}

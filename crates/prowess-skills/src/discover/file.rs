//! One `SKILL.md`: opened once, checked and read through that handle.
//!
//! Checking a path and then opening it would leave a gap in which the file can be exchanged. So the file is opened
//! without following a link, and size, kind and link count are those of the open file.

use std::cmp::Ordering;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::memory::{Identity, Parsed};
use crate::problem::{Problem, ProblemKind};
use crate::skill::Skill;
use crate::text;
use crate::tier::Tier;

/// Why there is nothing to read.
pub(super) enum Unread {
    /// There is no such file.
    Absent,
    /// There is one, and it is refused.
    Refused(Problem),
}

/// What a `SKILL.md` has to satisfy.
pub(super) struct Rules {
    /// Bytes it may have.
    pub(super) max_bytes: u64,
    /// Whether more than one hard link to it is fine.
    pub(super) hard_links: bool,
}

/// Reads `path` into `buffer`, and says what the file was known by before it was read. `real_dir` is its folder with all links resolved: a `SKILL.md` that is itself a link
/// may only lead to somewhere below it.
pub(super) fn read(
    path: &Path,
    real_dir: &Path,
    rules: &Rules,
    buffer: &mut Vec<u8>,
) -> Result<Option<Identity>, Unread> {
    let refuse = |kind, reason: String, fix: &str| Unread::Refused(Problem::new(kind, path, reason, fix));
    let (file, is_link) = match open_plain(path) {
        Ok(file) => (file, false),
        Err(Opening::Absent) => return Err(Unread::Absent),
        Err(Opening::Link) => (open_link(path, real_dir)?, true),
        Err(Opening::Failed(error)) => return Err(Unread::Refused(unreadable(path, &error))),
    };
    let facts = facts(&file).map_err(|error| Unread::Refused(unreadable(path, &error)))?;
    if !facts.is_file {
        return Err(refuse(ProblemKind::NotAFile, "SKILL.md is not a regular file".to_owned(), "make it a file"));
    }
    if !rules.hard_links && facts.links > 1 {
        let reason = "SKILL.md has more than one hard link, so it may be changed from outside this folder";
        return Err(refuse(ProblemKind::HardLinked, reason.to_owned(), "replace it with a copy"));
    }
    if facts.size > rules.max_bytes {
        let reason = format!("SKILL.md has {} bytes, more than the limit of {}", facts.size, rules.max_bytes);
        return Err(refuse(ProblemKind::TooLarge, reason, "shorten it, or raise skills.limits.maxSkillFileBytes"));
    }
    buffer.clear();
    let size = usize::try_from(facts.size).unwrap_or(usize::MAX);
    let read = fill(&file, size.min(HEAD), buffer)
        .and_then(|()| if has_frontmatter(buffer) { Ok(()) } else { fill(&file, size, buffer) });
    read.map_err(|error| Unread::Refused(unreadable(path, &error)))?;
    // Where a link leads can change without the file, so it has nothing to be known by.
    Ok(facts.identity.filter(|_| !is_link))
}

/// What the bytes of a `SKILL.md` come to.
pub(super) fn parse(bytes: &[u8], path: &Path, tier: Tier) -> Parsed {
    readable_path(path)?;
    Skill::parse(bytes, path, tier).map(|(skill, problems)| (Arc::new(skill), problems))
}

/// A path that a model can be given as it is.
fn readable_path(path: &Path) -> Result<(), Problem> {
    let problem = |reason: &str| Problem::new(ProblemKind::UnsafePath, path, reason, "rename the folder");
    let shown = path.to_str().ok_or_else(|| problem("the path is not UTF-8"))?;
    if text::clean(shown) == shown { Ok(()) } else { Err(problem("the path contains invisible characters")) }
}

/// Bytes that are read first: enough for most frontmatter, and the body is for the model.
const HEAD: usize = 4096;

/// Whether the head holds a whole frontmatter block, so that nothing after it matters.
fn has_frontmatter(head: &[u8]) -> bool {
    head.starts_with(b"---") && memchr::memmem::find(&head[3..], b"\n---").is_some()
}

/// Reads on until `buffer` has `size` bytes or the file ends. What is appended meanwhile is not read: the limit holds.
fn fill(file: &File, size: usize, buffer: &mut Vec<u8>) -> io::Result<()> {
    let missing = size.saturating_sub(buffer.len());
    buffer.reserve(missing);
    file.take(missing as u64).read_to_end(buffer).map(|_| ())
}

fn open_link(path: &Path, real_dir: &Path) -> Result<File, Unread> {
    let lost = || Problem::new(ProblemKind::Unreadable, path, "the symlink is broken", "put the file itself here");
    let target = path.canonicalize().map_err(|_| Unread::Refused(lost()))?;
    if !target.starts_with(real_dir) {
        return Err(Unread::Refused(escape(path, &target, "keep the file itself in the skill's folder")));
    }
    match open_plain(&target) {
        Ok(file) => Ok(file),
        Err(Opening::Failed(error)) => Err(Unread::Refused(unreadable(path, &error))),
        Err(Opening::Absent | Opening::Link) => Err(Unread::Refused(lost())),
    }
}

/// The problem of a link that leads nowhere.
pub(super) fn dead_link(path: &Path) -> Problem {
    Problem::new(ProblemKind::DeadLink, path, "the symlink is broken", "remove it, or fix its target")
}

/// The problem of a link that leads out of where it belongs.
pub(super) fn escape(path: &Path, target: &Path, fix: &str) -> Problem {
    let reason = format!("the symlink leads out of its folder, to {}", target.display());
    Problem::new(ProblemKind::Escapes, path, reason, fix)
}

/// The problem of something that cannot be read.
pub(super) fn unreadable(path: &Path, error: &io::Error) -> Problem {
    Problem::new(ProblemKind::Unreadable, path, format!("cannot be read: {error}"), "check its permissions")
}

enum Opening {
    Absent,
    Link,
    Failed(io::Error),
}

#[cfg(unix)]
fn open_plain(path: &Path) -> Result<File, Opening> {
    use rustix::fs::{Mode, OFlags};
    use rustix::io::Errno;

    // Without blocking, because a named pipe called SKILL.md would otherwise keep us waiting for a writer.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(handle) => Ok(File::from(handle)),
        Err(Errno::NOENT | Errno::NOTDIR) => Err(Opening::Absent),
        Err(Errno::LOOP | Errno::MLINK) => Err(Opening::Link),
        Err(error) => Err(Opening::Failed(error.into())),
    }
}

#[cfg(not(unix))]
fn open_plain(path: &Path) -> Result<File, Opening> {
    match path.symlink_metadata() {
        Ok(metadata) if metadata.file_type().is_symlink() => Err(Opening::Link),
        Ok(_) => File::open(path).map_err(Opening::Failed),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Opening::Absent),
        Err(error) => Err(Opening::Failed(error)),
    }
}

/// What is known of an open file.
struct Facts {
    is_file: bool,
    size: u64,
    links: u64,
    identity: Option<Identity>,
}

fn facts(file: &File) -> io::Result<Facts> {
    let metadata = file.metadata()?;
    let (is_file, size, links) = (metadata.is_file(), metadata.len(), links(&metadata));
    Ok(Facts { is_file, size, links, identity: Identity::read(&metadata) })
}

#[cfg(unix)]
fn links(metadata: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::nlink(metadata)
}

#[cfg(not(unix))]
fn links(_: &Metadata) -> u64 {
    1
}

/// A folder's children that could lead to skills, in the order of their UTF-16 units.
pub(super) struct Listing {
    pub(super) children: Vec<Child>,
    /// Entries that were not looked at because there are too many.
    pub(super) left_out: usize,
    /// A file that only looks like `SKILL.md`.
    pub(super) near_miss: Option<PathBuf>,
}

/// A child folder, or a link that may lead to one.
pub(super) struct Child {
    pub(super) name: OsString,
    pub(super) is_link: bool,
}

/// Lists `dir`, keeping at most `keep` children. Hidden folders and `node_modules` are passed over.
pub(super) fn list(dir: &Path, keep: usize) -> io::Result<Listing> {
    // Names are kept until they are sorted and cut, so that which ones are looked at does not depend on the disk. The
    // ceiling is for folders with so many entries that keeping their names would cost more than it is worth.
    let ceiling = keep.saturating_mul(32);
    let mut listing = Listing { children: Vec::new(), left_out: 0, near_miss: None };
    for entry in dir.read_dir()? {
        let entry = entry?;
        let kind = entry.file_type()?;
        let name = entry.file_name();
        if kind.is_file() {
            if name.eq_ignore_ascii_case("SKILL.md") {
                listing.near_miss = Some(entry.path());
            }
        } else if (kind.is_dir() || kind.is_symlink()) && !is_passed_over(&name) {
            if listing.children.len() < ceiling {
                listing.children.push(Child { name, is_link: kind.is_symlink() });
            } else {
                listing.left_out += 1;
            }
        }
    }
    listing.children.sort_by(|a, b| cmp_names(&a.name, &b.name));
    listing.left_out += listing.children.len().saturating_sub(keep);
    listing.children.truncate(keep);
    Ok(listing)
}

/// Orders paths component by component: a separator comes before any character of a name.
pub(super) fn cmp_paths(a: &Path, b: &Path) -> Ordering {
    let (a, b) = (a.to_string_lossy(), b.to_string_lossy());
    let same = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    let same = (0..=same).rev().find(|&at| a.is_char_boundary(at) && b.is_char_boundary(at)).unwrap_or(0);
    let (a, b) = (&a[same..], &b[same..]);
    match (a.starts_with(std::path::is_separator), b.starts_with(std::path::is_separator)) {
        (true, false) if !b.is_empty() => Ordering::Less,
        (false, true) if !a.is_empty() => Ordering::Greater,
        _ => text::cmp_units(a, b),
    }
}

/// Orders names by their UTF-16 units.
fn cmp_names(a: &OsStr, b: &OsStr) -> Ordering {
    let (plain_a, plain_b) = (a.as_encoded_bytes(), b.as_encoded_bytes());
    if plain_a.is_ascii() && plain_b.is_ascii() {
        return plain_a.cmp(plain_b);
    }
    text::cmp_units(&a.to_string_lossy(), &b.to_string_lossy())
}

fn is_passed_over(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".") || name == "node_modules"
}

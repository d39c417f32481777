//! Memory: which `SKILL.md` need not be read again?
//!
//! A file is the same as long as the system says the same of it: device, number, size, links, mode and both times. That
//! costs one question instead of opening, reading and parsing. The time of a change has a grain, though: a file that
//! changes twice within it looks the same after the second time. So what was changed only just before it was read is
//! not remembered, and is read again until it has settled.
//!
//! A load also leaves behind on which [`Place`]s its outcome hangs, for whoever wants to notice changes.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::discover::FILE;
use crate::problem::Problem;
use crate::skill::Skill;
use crate::tier::Tier;

/// How long a file must have been left alone before it is remembered: longer than the grain of any file system's clock.
const SETTLED: Duration = Duration::from_secs(2);

/// What the system says of a file, without opening it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    device: u64,
    inode: u64,
    mode: u32,
    links: u64,
    size: u64,
    modified: (i64, i64),
    /// Nobody can set this one back.
    changed: (i64, i64),
}

impl Identity {
    /// That of `path` itself, be it a link. `None` where it is not there or the system does not tell.
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        path.symlink_metadata().ok().and_then(|metadata| Self::read(&metadata))
    }

    /// That of what `path` leads to.
    #[must_use]
    pub fn behind(path: &Path) -> Option<Self> {
        path.metadata().ok().and_then(|metadata| Self::read(&metadata))
    }

    #[cfg(unix)]
    #[expect(clippy::unnecessary_wraps, reason = "other systems do not tell")]
    pub(crate) fn read(metadata: &Metadata) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        Some(Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            mode: metadata.mode(),
            links: metadata.nlink(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }

    #[cfg(not(unix))]
    pub(crate) fn read(_: &Metadata) -> Option<Self> {
        None
    }

    /// Whether its last change was before `time`.
    #[must_use]
    pub fn is_older_than(&self, time: SystemTime) -> bool {
        let (seconds, nanos) = self.changed;
        let (Ok(seconds), Ok(nanos)) = (u64::try_from(seconds), u32::try_from(nanos)) else { return false };
        SystemTime::UNIX_EPOCH + Duration::new(seconds, nanos) < time
    }
}

/// Something that the outcome of a load hangs on, besides the files that were read.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// A folder that is no skill, by its path without links: what lies in it may be, or lead to, skills.
    Folder(PathBuf),
    /// A folder that is a skill, by its path without links: of what lies in it only `SKILL.md` counts.
    Skill(PathBuf),
    /// A link, by its own path: where it leads matters.
    Link(PathBuf),
}

/// What came of reading a `SKILL.md`: the skill and what was mended, or why there is none.
pub(crate) type Parsed = Result<(Arc<Skill>, Vec<Problem>), Problem>;

/// What is remembered of one file.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) identity: Identity,
    pub(crate) parsed: Parsed,
}

/// What one search leaves behind.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    pub(crate) known: Vec<(PathBuf, Known)>,
    pub(crate) places: Vec<Place>,
    /// Files that were opened.
    pub(crate) read: usize,
}

impl Trace {
    pub(crate) fn extend(&mut self, other: Self) {
        self.known.extend(other.known);
        self.places.extend(other.places);
        self.read += other.read;
    }
}

/// What earlier loads have read. It never holds more than the last load came across.
///
/// ```
/// use prowess_skills::{Catalog, Memory, Places, Reach};
///
/// let places = Places { workspace: Some("/no/such/place".into()), ..Places::default() };
/// let mut memory = Memory::default();
/// let catalog = Catalog::load_with(&places.roots(), &Reach::default(), &mut memory);
/// assert!(catalog == Catalog::load(&places.roots(), &Reach::default()));
/// ```
#[derive(Debug)]
pub struct Memory {
    settled: Duration,
    /// The limit that the outcomes were made under.
    file_bytes: u64,
    /// By path, as text: a path is hashed name by name, which takes longer than asking about the file.
    known: HashMap<Tier, HashMap<OsString, Known>>,
    places: Vec<Place>,
    read: usize,
}

impl Default for Memory {
    fn default() -> Self {
        Self::settling_after(SETTLED)
    }
}

impl Memory {
    /// One that trusts files which were left alone for `settled`. Less than the grain of the file system's clock loses
    /// changes.
    #[must_use]
    pub fn settling_after(settled: Duration) -> Self {
        Self { settled, file_bytes: 0, known: HashMap::new(), places: Vec::new(), read: 0 }
    }

    /// Forgets what was read at `path` or below it: it will be read again, whatever it looks like.
    pub fn forget(&mut self, path: &Path) {
        for known in self.known.values_mut() {
            // Nothing is below a file.
            if known.remove(path.as_os_str()).is_none() && !path.ends_with(FILE) {
                known.retain(|file, _| !Path::new(file).starts_with(path));
            }
        }
    }

    /// Forgets everything.
    pub fn forget_all(&mut self) {
        self.known.clear();
    }

    /// What the last load hangs on.
    #[must_use]
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// How many files the last load opened.
    #[must_use]
    pub fn read(&self) -> usize {
        self.read
    }

    /// What is known of the file, if it is still the same.
    pub(crate) fn recall(&self, tier: Tier, file: &Path) -> Option<&Known> {
        let known = self.known.get(&tier)?.get(file.as_os_str())?;
        (Identity::of(file)? == known.identity).then_some(known)
    }

    /// Before a load with this limit on the size of a file.
    pub(crate) fn begin(&mut self, file_bytes: u64) {
        if std::mem::replace(&mut self.file_bytes, file_bytes) != file_bytes {
            self.known.clear();
        }
    }

    /// After a load that began at `began`: keeps what can be trusted of what it left behind.
    pub(crate) fn keep(&mut self, traces: Vec<(Tier, Trace)>, began: SystemTime) {
        let trusted = began.checked_sub(self.settled).unwrap_or(SystemTime::UNIX_EPOCH);
        self.known.clear();
        self.places.clear();
        self.read = 0;
        for (tier, trace) in traces {
            let settled = trace.known.into_iter().filter(|(_, known)| known.identity.is_older_than(trusted));
            let settled = settled.map(|(file, known)| (file.into_os_string(), known));
            self.known.entry(tier).or_default().extend(settled);
            self.places.extend(trace.places);
            self.read += trace.read;
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use prowess_testkit::{Tree, eventually};

    use super::*;
    use crate::catalog::Catalog;
    use crate::discover::Reach;
    use crate::root::{Origin, Root};
    use crate::settings::Limits;

    fn roots(tree: &Tree) -> Vec<Root> {
        vec![Root { tier: Tier::Workspace, path: tree.path("root"), origin: Origin::Convention }]
    }

    /// How many files a load opens.
    fn read(tree: &Tree, memory: &mut Memory) -> usize {
        let catalog = Catalog::load_with(&roots(tree), &Reach::default(), memory);
        assert!(catalog == Catalog::load(&roots(tree), &Reach::default()));
        memory.read()
    }

    #[test]
    fn what_has_settled_is_read_once() {
        let tree = Tree::new().plant("root/a: d\nroot/b: d\nroot/group/c: d").file("root/bad/SKILL.md", "nothing");
        let mut memory = Memory::settling_after(Duration::from_millis(20));
        assert_eq!(read(&tree, &mut memory), 4);
        eventually("the files settle", || read(&tree, &mut memory) == 0);
        let tree = tree.skill("root/b", "another", "");
        assert_eq!(read(&tree, &mut memory), 1);
    }

    #[test]
    fn what_is_fresh_is_read_again() {
        let tree = Tree::new().plant("root/a: d");
        let mut memory = Memory::settling_after(Duration::from_secs(1 << 30));
        assert_eq!([read(&tree, &mut memory), read(&tree, &mut memory)], [1, 1]);
    }

    #[test]
    fn what_is_forgotten_is_read_again() {
        let tree = Tree::new().plant("root/a: d\nroot/b: d\nroot/group/c: d\nroot/group/d: d");
        let mut memory = Memory::settling_after(Duration::ZERO);
        eventually("the files settle", || read(&tree, &mut memory) == 0);
        memory.forget(&tree.path("root/a/SKILL.md"));
        assert_eq!(read(&tree, &mut memory), 1);
        memory.forget(&tree.path("root/group"));
        assert_eq!(read(&tree, &mut memory), 2);
        memory.forget_all();
        assert_eq!(read(&tree, &mut memory), 4);
    }

    #[test]
    fn another_limit_makes_another_outcome() {
        let tree = Tree::new().plant("root/a: d");
        let mut memory = Memory::settling_after(Duration::ZERO);
        eventually("the file settles", || read(&tree, &mut memory) == 0);
        let reach = Reach { limits: Limits { file_bytes: 3, ..Limits::default() }, ..Reach::default() };
        assert!(Catalog::load_with(&roots(&tree), &reach, &mut memory).skills().is_empty());
    }

    #[test]
    fn a_load_tells_what_it_hangs_on() {
        let tree = Tree::new()
            .plant("root/a: d\nroot/group/b: d\nroot/group/.git/c: d\nroot/l -> group/b\nroot/dead -> nowhere")
            .file("root/a/sub/deep.md", "");
        let mut memory = Memory::default();
        read(&tree, &mut memory);
        let mut places: Vec<String> = memory.places().iter().map(|place| tree.mask(&format!("{place:?}"))).collect();
        places.sort();
        places.dedup();
        assert_eq!(
            places,
            [
                r#"Folder("$ROOT/root")"#,
                r#"Folder("$ROOT/root/group")"#,
                r#"Link("$ROOT/root/dead")"#,
                r#"Link("$ROOT/root/l")"#,
                r#"Skill("$ROOT/root/a")"#,
                r#"Skill("$ROOT/root/group/b")"#,
            ]
        );
    }
}

//! A kept context: what did the operator ask for, without reading it all again each time?
//!
//! Whoever asks gets what the files said at that moment or later. They are read only when one of them does not look as it
//! did just before it was read last. What cannot be read leaves in place what was read before.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use prowess_skills::Identity;

use crate::context::{Context, Ground};
use crate::failure::Failure;
use crate::watch::config_files;

/// How long files must have been left alone before their looks are trusted.
const SETTLED: Duration = Duration::from_secs(2);

/// How files looked just before they were read.
#[derive(Debug)]
pub(crate) struct Looks {
    files: Vec<(PathBuf, Option<Identity>)>,
    at: SystemTime,
}

impl Looks {
    /// How these look now.
    pub(crate) fn at(files: Vec<PathBuf>) -> Self {
        let at = SystemTime::now();
        let look = |file: PathBuf| {
            let look = Identity::behind(&file);
            (file, look)
        };
        Self { files: files.into_iter().map(look).collect(), at }
    }

    /// These were read too. Those that are new to us were read before anybody looked at them, so they are not the same the
    /// next time.
    pub(crate) fn and(mut self, files: Vec<PathBuf>) -> Self {
        for file in files {
            if self.files.iter().all(|(known, _)| *known != file) {
                self.files.push((file, None));
            }
        }
        self
    }

    /// Whether all of them are certainly as they were.
    pub(crate) fn are_same(&self) -> bool {
        // Where the system does not tell files apart, nothing is certain.
        if !cfg!(unix) || self.files.is_empty() {
            return false;
        }
        let trusted = self.at.checked_sub(SETTLED).unwrap_or(SystemTime::UNIX_EPOCH);
        self.files.iter().all(|(file, then)| {
            let now = Identity::behind(file);
            now == *then && now.is_none_or(|now| now.is_older_than(trusted))
        })
    }
}

/// What the operator asked for, kept for as long as the files say the same.
pub struct Kept {
    ground: Ground,
    last: RwLock<Option<Arc<Read>>>,
    /// One reads at a time.
    reading: Mutex<()>,
    /// How often the files were read, or begun to be.
    begun: AtomicU64,
    broken: Box<dyn Fn(&Failure) + Send + Sync>,
}

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kept").field("last", &self.last).finish_non_exhaustive()
    }
}

/// What was read, and from what.
#[derive(Debug)]
struct Read {
    context: Arc<Context>,
    looks: Looks,
}

impl Kept {
    /// On this ground, nothing read yet. `broken` hears of files that cannot be used after others that could.
    pub fn new(ground: Ground, broken: impl Fn(&Failure) + Send + Sync + 'static) -> Self {
        let begun = AtomicU64::new(0);
        Self { ground, last: RwLock::default(), reading: Mutex::default(), begun, broken: Box::new(broken) }
    }

    /// What is known when a program starts.
    #[must_use]
    pub fn ground(&self) -> &Ground {
        &self.ground
    }

    /// How often the files were read.
    #[must_use]
    pub fn reads(&self) -> u64 {
        self.begun.load(Ordering::SeqCst)
    }

    /// What the files say now. Looks at the disk.
    pub fn context(&self) -> Result<Arc<Context>, Failure> {
        let asked = self.reads();
        let last = self.last();
        if let Some(read) = last.as_ref().filter(|read| read.is_current(&self.ground)) {
            return Ok(Arc::clone(&read.context));
        }
        let _alone = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let last = self.last();
        // Somebody began to read after this was called.
        if let Some(read) = last.as_ref().filter(|_| self.reads() != asked) {
            return Ok(Arc::clone(&read.context));
        }
        self.begun.fetch_add(1, Ordering::SeqCst);
        let looks = Looks::at(last.as_ref().map(|read| config_files(&read.context)).unwrap_or_default());
        let (context, looks) = match (Context::load(&self.ground), last) {
            (Ok(context), _) => {
                let looks = looks.and(config_files(&context));
                (Arc::new(context), looks)
            }
            (Err(failure), Some(last)) => {
                (self.broken)(&failure);
                (Arc::clone(&last.context), looks)
            }
            (Err(failure), None) => return Err(failure),
        };
        let read = Arc::new(Read { context: Arc::clone(&context), looks });
        *self.last.write().unwrap_or_else(PoisonError::into_inner) = Some(read);
        Ok(context)
    }

    fn last(&self) -> Option<Arc<Read>> {
        self.last.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Read {
    fn is_current(&self, ground: &Ground) -> bool {
        self.looks.are_same() && ground.locations().is_ok_and(|locations| locations == self.context.locations)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs::{File, FileTimes};

    use prowess_config::Env;
    use prowess_testkit::Tree;

    use super::*;
    use crate::context::Flags;

    const CONFIG: &str = ".openclaw/openclaw.json";

    fn kept(tree: &Tree) -> Kept {
        let home = tree.root().to_string_lossy().into_owned();
        let ground = Ground {
            flags: Flags::default(),
            env: Env::from_iter([("HOME", home.as_str())]),
            cwd: tree.root().to_owned(),
        };
        Kept::new(ground, |_| {})
    }

    fn says(kept: &Kept, key: &str) -> String {
        kept.context().expect("a configuration").config.tree()[key]["x"].as_str().unwrap_or_default().to_owned()
    }

    #[test]
    fn whatever_file_changes_the_next_who_asks_sees_it() {
        let tree = Tree::new()
            .file(CONFIG, "{ meta: { x: '${FROM_ENV}' }, ui: { $include: './more.json5' } }")
            .file(".openclaw/more.json5", "{ x: 'one' }")
            .file(".openclaw/.env", "FROM_ENV=first\n");
        let kept = kept(&tree);
        assert_eq!((says(&kept, "meta"), says(&kept, "ui")), ("first".into(), "one".into()));
        std::fs::write(tree.path(".openclaw/more.json5"), "{ x: 'two' }").expect("written");
        assert_eq!(says(&kept, "ui"), "two");
        std::fs::write(tree.path(".openclaw/.env"), "FROM_ENV=other\n").expect("written");
        assert_eq!(says(&kept, "meta"), "other");
        std::fs::write(tree.path(CONFIG), "{ meta: { x: 'plain' } }").expect("written");
        assert_eq!(says(&kept, "meta"), "plain");
        std::fs::write(tree.path(CONFIG), "{ broken").expect("written");
        assert_eq!(says(&kept, "meta"), "plain", "as before, until it can be read");
        std::fs::remove_file(tree.path(CONFIG)).expect("it was there");
        assert_eq!(says(&kept, "meta"), "");
    }

    #[test]
    fn what_could_never_be_read_is_an_error() {
        let tree = Tree::new().file(CONFIG, "{ broken");
        let kept = kept(&tree);
        assert!(kept.context().is_err());
        std::fs::write(tree.path(CONFIG), "{ meta: { x: 'mended' } }").expect("written");
        assert_eq!(says(&kept, "meta"), "mended");
    }

    /// How files look once they were left alone for long: the time of their last change cannot be set, but how old it was
    /// when they were read can.
    #[test]
    fn files_that_were_left_alone_are_read_once() {
        let tree = Tree::new().file(CONFIG, "{ meta: { x: 'a' } }");
        let kept = kept(&tree);
        let first = kept.context().expect("a configuration");
        let files = config_files(&first);
        let later = SystemTime::now() + Duration::from_secs(3_600);
        let looks = || Looks { at: later, ..Looks::at(files.clone()) };
        let read = Read { context: Arc::clone(&first), looks: looks() };
        *kept.last.write().expect("nobody panicked") = Some(Arc::new(read));
        let before = kept.reads();
        for _ in 0..3 {
            assert!(Arc::ptr_eq(&kept.context().expect("a configuration"), &first));
        }
        assert_eq!(kept.reads(), before, "nobody read it again");
        // Not even the same size and the same time hide a change.
        let file = File::options().write(true).open(tree.path(CONFIG)).expect("a file");
        let then = file.metadata().and_then(|metadata| metadata.modified()).expect("a time");
        std::fs::write(tree.path(CONFIG), "{ meta: { x: 'b' } }").expect("written");
        file.set_times(FileTimes::new().set_modified(then)).expect("set");
        assert_eq!(says(&kept, "meta"), "b");
        assert_eq!(kept.reads(), before + 1);
    }
}

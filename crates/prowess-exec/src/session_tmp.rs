//! Directories for temporary files: what is at `/tmp` for the commands of one conversation?
//!
//! Commands see their own `/tmp`, not the system's: other programs keep sockets and private files there. All commands of
//! a conversation share one, so that the next finds what the last left. It is removed when nobody uses it any more.

use std::collections::HashMap;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use tempfile::TempDir;

/// The most conversations whose directories are kept. The one that was used longest ago goes first.
const MAX_KEPT: usize = 256;

/// The directory inside, which commands see.
const INSIDE: &str = "tmp";

/// The directories of all conversations.
#[derive(Debug, Clone, Default)]
pub(crate) struct SessionTmp {
    kept: Arc<Mutex<Kept>>,
}

#[derive(Debug, Default)]
struct Kept {
    dirs: HashMap<String, (u64, Arc<TempDir>)>,
    uses: u64,
}

impl SessionTmp {
    /// The directory of `session`, and its path without symlinks. It is there at least as long as the value.
    pub(crate) fn dir(&self, session: &str) -> io::Result<(Arc<TempDir>, PathBuf)> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.uses += 1;
        let now = kept.uses;
        if let Some((used, dir)) = kept.dirs.get_mut(session).filter(|(_, dir)| dir.path().is_dir()) {
            *used = now;
            return Ok((Arc::clone(dir), dir.path().join(INSIDE).canonicalize()?));
        }
        if kept.dirs.len() >= MAX_KEPT
            && let Some(oldest) = kept.dirs.iter().min_by_key(|(_, (used, _))| *used).map(|(name, _)| name.clone())
        {
            kept.dirs.remove(&oldest);
        }
        let private = Permissions::from_mode(0o700);
        let dir = Arc::new(tempfile::Builder::new().prefix("prowess-tmp-").permissions(private).tempdir()?);
        // The mode of what commands see as `/tmp` is theirs to change; nobody gets past the directory around it.
        std::fs::create_dir(dir.path().join(INSIDE))?;
        let path = dir.path().join(INSIDE).canonicalize()?;
        kept.dirs.insert(session.to_owned(), (now, Arc::clone(&dir)));
        Ok((dir, path))
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_KEPT, SessionTmp};

    #[test]
    fn a_conversation_keeps_its_directory_and_others_have_their_own() {
        let all = SessionTmp::default();
        let (first, path) = all.dir("a").unwrap();
        std::fs::write(path.join("x"), "x").unwrap();
        assert_eq!(all.dir("a").unwrap().1, path);
        assert_ne!(all.dir("b").unwrap().1, path);
        for number in 0..MAX_KEPT {
            all.dir(&format!("s{number}")).unwrap();
        }
        assert!(path.join("x").is_file(), "it is in use");
        drop(first);
        assert!(!path.exists(), "and then it is gone");
        assert!(all.kept.lock().unwrap().dirs.len() <= MAX_KEPT);
    }
}

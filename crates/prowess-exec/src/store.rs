//! The approvals file: what has the operator allowed for good?
//!
//! `exec-approvals.json` in the state directory.

mod locked_file;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use prowess_policy::approvals::Approvals;

pub(crate) use locked_file::LockedFile;
pub use locked_file::StoreError;

/// Where approvals are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalsFile(LockedFile);

impl ApprovalsFile {
    /// The file in `state_dir`.
    #[must_use]
    pub fn in_state_dir(state_dir: &Path) -> Self {
        Self(LockedFile::new(state_dir.join("exec-approvals.json")))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// The file that writers lock.
    #[must_use]
    pub fn lock_path(&self) -> PathBuf {
        self.0.lock_path()
    }

    /// What is in it; nothing when there is no file.
    pub fn load(&self) -> Result<Approvals, StoreError> {
        self.parse(self.0.read()?.as_deref())
    }

    /// Changes what is in it. Nobody else writes between the reading and the writing, and nothing is written when
    /// nothing changes.
    pub fn update<T>(&self, change: impl FnOnce(&mut Approvals) -> T) -> Result<T, StoreError> {
        self.0.update(|text| {
            let before = self.parse(text)?;
            let mut after = before.clone();
            let done = change(&mut after);
            Ok(((after != before || text.is_none()).then(|| after.render()), done))
        })
    }

    fn parse(&self, text: Option<&str>) -> Result<Approvals, StoreError> {
        let Some(text) = text else { return Ok(Approvals::default()) };
        Approvals::parse(text, names(text)).map_err(|why| self.0.broken(&why))
    }
}

/// Names for entries that have none. Who reads the same file twice finds the same names, so that the use of an entry can
/// be noted after its command was started.
fn names(text: &str) -> impl FnMut() -> String {
    let mut count = 0_u64;
    move || {
        count += 1;
        let half = |salt: u8| {
            let mut hasher = DefaultHasher::new();
            (salt, count, text).hash(&mut hasher);
            hasher.finish()
        };
        let bits = (u128::from(half(0)) << 64) | u128::from(half(1));
        uuid::Builder::from_random_bytes(bits.to_be_bytes()).into_uuid().to_string()
    }
}

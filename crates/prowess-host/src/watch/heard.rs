//! What has come to our ears since the last refresh?
//!
//! Paths are kept for telling people and for reading them again whatever they look like. There is a bound: beyond it,
//! and after the system has lost events, everything may have changed.

use std::collections::BTreeSet;
use std::path::PathBuf;

/// Paths that are kept.
const MAX_PATHS: usize = 64;

/// Changes that have not been dealt with.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Heard {
    /// Where something changed, as far as it is known.
    pub(crate) paths: BTreeSet<PathBuf>,
    /// Whether more changed than is known.
    pub(crate) is_everything: bool,
    /// Whether something came, went or was renamed, so that watches may be dead or on the wrong folder.
    pub(crate) is_shape: bool,
}

/// What sort of change it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Something came, went or was renamed.
    Shape,
    /// A file has another content, or something has other rights.
    Content,
}

impl Heard {
    /// Something changed at `path`.
    pub(crate) fn note(&mut self, path: PathBuf, kind: Kind) {
        self.is_shape |= kind == Kind::Shape;
        if self.paths.len() < MAX_PATHS || self.paths.contains(&path) {
            self.paths.insert(path);
        } else {
            self.is_everything = true;
        }
    }

    /// Events were lost.
    pub(crate) fn note_loss(&mut self) {
        (self.is_everything, self.is_shape) = (true, true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_the_bound_it_may_be_anything() {
        let mut heard = Heard::default();
        for round in 0..2 {
            for path in 0..MAX_PATHS {
                heard.note(format!("/{path}").into(), Kind::Content);
            }
            assert_eq!((heard.paths.len(), heard.is_everything, heard.is_shape), (MAX_PATHS, false, false), "{round}");
        }
        heard.note("/one-more".into(), Kind::Shape);
        assert_eq!((heard.paths.len(), heard.is_everything, heard.is_shape), (MAX_PATHS, true, true));
    }

    #[test]
    fn what_was_lost_may_be_anything() {
        let mut heard = Heard::default();
        heard.note_loss();
        assert!(heard.is_everything && heard.is_shape);
    }
}

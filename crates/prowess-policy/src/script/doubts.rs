//! Doubts while they are collected: few of each kind, and in the order of the text at the end.

use super::{Doubt, DoubtKind, Span};

/// So many of one kind are listed. The first already decides; the rest only show a person where to look.
const MAX_OF_A_KIND: usize = 16;

/// The doubts so far.
#[derive(Debug, Default)]
pub(super) struct Doubts(Vec<Doubt>);

impl Doubts {
    /// Adds one, unless it is known or there are enough of its kind.
    pub(super) fn push(&mut self, span: Span, kind: DoubtKind) {
        let doubt = Doubt { span, kind };
        let alike = self.0.iter().filter(|known| known.kind == kind).count();
        if alike < MAX_OF_A_KIND && !self.0.contains(&doubt) {
            self.0.push(doubt);
        }
    }

    /// Whether all is certain so far.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them, by place.
    pub(super) fn into_list(mut self) -> Vec<Doubt> {
        self.0.sort_by_key(|doubt| doubt.span);
        self.0
    }
}

impl Extend<Doubt> for Doubts {
    fn extend<T: IntoIterator<Item = Doubt>>(&mut self, doubts: T) {
        for doubt in doubts {
            self.push(doubt.span, doubt.kind);
        }
    }
}

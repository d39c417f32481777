//! Output: what did a command say, as text a model can read?
//!
//! Bytes arrive in pieces of any size and go through three steps: [`decode`](Decoder) makes characters of them,
//! [`clean`](Cleaner) takes out what only a terminal understands, and the rest is [`kept`](Kept). How the bytes were
//! cut into pieces never shows in the result.

mod clean;
mod decode;
mod keep;

pub use clean::{Cleaner, is_hidden};
pub use decode::Decoder;
pub use keep::{Drained, Keeper, Kept, Pending, last_units, units};

/// The peer's bounds for what may be kept of one command, in UTF-16 units.
const KEPT_RANGE: (usize, usize) = (1_000, 200_000);

/// How much of an output is kept, in UTF-16 units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Of the whole output: half from the beginning, half from the end.
    pub kept: usize,
    /// Of what has not been polled yet.
    pub pending: usize,
    /// Of the end, for progress reports.
    pub tail: usize,
}

impl Limits {
    /// Limits with the given bounds for the whole and for what is pending, as far as they are sensible.
    #[must_use]
    pub fn new(kept: Option<usize>, pending: Option<usize>) -> Self {
        let kept = kept.unwrap_or(KEPT_RANGE.1).clamp(KEPT_RANGE.0, KEPT_RANGE.1);
        Self { kept, pending: pending.unwrap_or(30_000).clamp(KEPT_RANGE.0, KEPT_RANGE.1).min(kept), tail: 2_000 }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::new(None, None)
    }
}

/// The output of one command while it grows.
#[derive(Debug)]
pub struct Output {
    decoder: Decoder,
    cleaner: Cleaner,
    keeper: Keeper,
    pending: Pending,
    tail: usize,
}

impl Output {
    /// An output of which nothing has arrived yet.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            decoder: Decoder::default(),
            cleaner: Cleaner::default(),
            keeper: Keeper::new(limits.kept),
            pending: Pending::new(limits.pending),
            tail: limits.tail,
        }
    }

    /// Takes the next bytes. Returns how often they ask a terminal where its cursor is.
    pub fn push(&mut self, bytes: &[u8]) -> usize {
        let text = self.decoder.push(bytes);
        let before = self.cleaner.asked();
        let clean = self.cleaner.push(&text);
        self.store(&clean);
        self.cleaner.asked() - before
    }

    /// Takes what was waiting for its other half.
    pub fn finish(&mut self) {
        let rest = self.decoder.finish();
        let mut clean = self.cleaner.push(&rest);
        clean.push_str(&self.cleaner.finish());
        self.store(&clean);
    }

    /// What is kept of everything so far.
    #[must_use]
    pub fn kept(&self) -> Kept {
        self.keeper.kept()
    }

    /// The end of everything so far.
    #[must_use]
    pub fn tail(&self) -> String {
        self.keeper.last(self.tail)
    }

    /// What came since the last time.
    pub fn drain(&mut self) -> Drained {
        self.pending.drain()
    }

    fn store(&mut self, text: &str) {
        self.keeper.push(text);
        self.pending.push(text);
    }
}

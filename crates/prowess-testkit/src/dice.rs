//! Dice: chance that falls the same way in every run.

/// Dice that a seed decides.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// Dice with this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        // Zero would stay zero.
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// The next throw.
    pub fn throw(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `limit`; zero where there is none.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.throw().checked_rem(limit).unwrap_or(0)
    }

    /// One of these.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        let place = usize::try_from(self.below(from.len() as u64)).expect("a place in the list");
        &from[place]
    }
}

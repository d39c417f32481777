//! Limits: how much of what may a client take?

use std::time::Duration;

/// What a gateway allows its clients. Everybody has the same limits.
#[derive(Debug, Clone)]
pub struct Limits {
    /// How many connections are open at once.
    pub connections: usize,
    /// How many of them may come from one address before they are let in; this machine itself is not counted.
    pub strangers: usize,
    /// How many requests of one client are worked on at once.
    pub in_flight: usize,
    /// How many bytes may wait for a client before it is too slow for us.
    pub buffered: usize,
    /// How long a client may take to say who it is, and how long the head of an HTTP request may take.
    pub handshake: Duration,
    /// How long one frame may take to be written.
    pub writing: Duration,
    /// How often a sign of life is given and asked for.
    pub tick: Duration,
    /// After how many unanswered signs of life a client counts as gone.
    pub missed_ticks: u64,
    /// How long work that is under way may take when the gateway ends.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 4096,
            strangers: 64,
            in_flight: 256,
            buffered: 50 * 1024 * 1024,
            handshake: Duration::from_secs(10),
            writing: Duration::from_secs(60),
            tick: Duration::from_secs(30),
            missed_ticks: 3,
            grace: Duration::from_secs(10),
        }
    }
}

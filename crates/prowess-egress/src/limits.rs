//! How much may one command use of the network?

use std::time::Duration;

/// Every bound of an [`Outlet`](crate::Outlet), in one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Connections that are open at once. More are refused.
    pub connections: usize,
    /// Connections that wait for an answer at once. More are refused.
    pub held: usize,
    /// Different hosts that one command may ask about. More are refused without a question.
    pub questions: usize,
    /// How long a question waits for its answer.
    pub answer_time: Duration,
    /// Bytes of a request's or a response's head, and of the first message in a tunnel.
    pub head_bytes: usize,
    /// How long a head may take to arrive, from its first byte.
    pub head_time: Duration,
    /// Bytes of one connection, both directions together.
    pub connection_bytes: u64,
    /// Bytes of all connections of the command together.
    pub command_bytes: u64,
    /// How long a connection may stay silent in both directions.
    pub idle_time: Duration,
    /// How long looking up a name and connecting may take together.
    pub connect_time: Duration,
    /// How long one connection may last.
    pub total_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 10_000,
            held: 64,
            questions: 16,
            answer_time: Duration::from_secs(120),
            head_bytes: 32 * 1024,
            head_time: Duration::from_secs(15),
            connection_bytes: 16 << 30,
            command_bytes: 64 << 30,
            idle_time: Duration::from_secs(300),
            connect_time: Duration::from_secs(20),
            total_time: Duration::from_secs(6 * 60 * 60),
        }
    }
}

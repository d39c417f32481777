//! The terminal's own settings: a program that ends in the middle of a line leaves them as they were.

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

/// How the terminal was set before anybody edited a line on it; nothing where there is none.
pub(super) struct Terminal(Option<Termios>);

impl Terminal {
    /// As it is now.
    pub(super) fn remember() -> Self {
        Self(tcgetattr(std::io::stdin()).ok())
    }

    /// Makes it so again.
    pub(super) fn restore(&self) {
        if let Some(settings) = &self.0 {
            // Nothing is left to do when the terminal has gone away.
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, settings);
        }
    }
}

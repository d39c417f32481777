//! Ears that hear only the bell, for systems whose way of telling we do not use: there the disk is asked now and then.

use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::{Armed, Until};
use crate::watch::heard::Heard;
use crate::watch::plan::Plan;

/// Wakes whoever waits.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bell(Arc<(Mutex<bool>, Condvar)>);

impl Bell {
    /// Rings it.
    pub(crate) fn ring(&self) {
        let (rung, waiting) = &*self.0;
        *rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        waiting.notify_all();
    }
}

/// Ears that hear only the bell.
#[derive(Debug, Default)]
pub(crate) struct Ears(Bell);

impl Ears {
    /// With a bell of their own.
    #[expect(clippy::unnecessary_wraps, reason = "other ears can be had or not")]
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self::default())
    }

    /// What wakes them.
    pub(crate) fn bell(&self) -> Bell {
        self.0.clone()
    }

    /// Watches nothing of `plan`.
    #[expect(clippy::unused_self, reason = "other ears remember what they watch")]
    pub(crate) fn arm(&mut self, _: &Plan) -> Armed {
        Armed { is_partial: true, ..Armed::default() }
    }

    /// Watches nothing.
    #[expect(clippy::unused_self, reason = "other ears remember what they watch")]
    pub(crate) fn disarm(&mut self) {}

    /// Waits for the bell, at most for `limit`.
    pub(crate) fn wait(&self, _: Until, limit: Option<Duration>) {
        let (rung, waiting) = &*self.0.0;
        let mut is_rung = rung.lock().unwrap_or_else(PoisonError::into_inner);
        if !*is_rung {
            is_rung = match limit {
                Some(limit) => waiting.wait_timeout(is_rung, limit).unwrap_or_else(PoisonError::into_inner).0,
                None => waiting.wait(is_rung).unwrap_or_else(PoisonError::into_inner),
            };
        }
        *is_rung = false;
    }

    /// Hears nothing.
    #[expect(clippy::unused_self, reason = "other ears have a queue")]
    pub(crate) fn hear(&mut self, _: &mut Heard) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bell_is_heard_even_if_it_rang_before() {
        let ears = Ears::new().expect("ears");
        ears.bell().ring();
        ears.wait(Until::Rung, None);
        let bell = ears.bell();
        std::thread::scope(|scope| {
            scope.spawn(move || bell.ring());
            ears.wait(Until::Anything, None);
        });
        ears.wait(Until::Rung, Some(Duration::ZERO));
    }

    #[test]
    fn nothing_is_watched() {
        let mut ears = Ears::new().expect("ears");
        assert!(ears.arm(&Plan::default()).is_partial);
        let mut heard = Heard::default();
        assert!(!ears.hear(&mut heard) && heard == Heard::default());
        ears.disarm();
    }
}

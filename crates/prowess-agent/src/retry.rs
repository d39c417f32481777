//! Retry: is the same request worth another try, and after how long?
//!
//! Only a policy: whoever asks does the waiting, tells people about it, and may be interrupted meanwhile.

use std::time::Duration;

use crate::model::ModelError;

/// How often and how patiently a request is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// How many tries there are after the first.
    pub attempts: u32,
    /// The wait before the first of them; it doubles from then on.
    pub first: Duration,
    /// The longest wait, also when the provider asks for a longer one.
    pub most: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { attempts: 3, first: Duration::from_secs(2), most: Duration::from_secs(60) }
    }
}

impl Backoff {
    /// How long to wait after `attempt` tries (from 1) of which the last ended with `error`; nothing means to give up.
    ///
    /// `jitter`, from 0 to 1, spreads the waits of many programs over up to a quarter more, so that they do not all come
    /// back at once. What the provider asks for is kept to exactly, but not when it is longer than the longest wait: then
    /// trying earlier is useless, and the person is better told (see [`Backoff::refusal`]).
    #[must_use]
    pub fn wait(&self, attempt: u32, error: &ModelError, jitter: f64) -> Option<Duration> {
        if !error.is_passing() || attempt == 0 || attempt > self.attempts {
            return None;
        }
        if let Some(asked) = error.after() {
            return (asked <= self.most).then_some(asked);
        }
        let doubled = self.first.saturating_mul(2_u32.saturating_pow(attempt - 1)).min(self.most);
        let spread = if jitter.is_finite() { jitter.clamp(0.0, 1.0) } else { 0.0 };
        Some(doubled.mul_f64(1.0 + spread / 4.0).min(self.most))
    }

    /// Why it is given up although a later try may work, when that is because the provider asks for too long a wait.
    #[must_use]
    pub fn refusal(&self, error: &ModelError) -> Option<String> {
        let asked = error.after().filter(|asked| *asked > self.most)?;
        Some(format!(
            "the provider asks to come back in {} seconds, and prowess waits at most {}",
            asked.as_secs(),
            self.most.as_secs()
        ))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn busy(after: Option<u64>) -> ModelError {
        let after = after.map(Duration::from_secs);
        ModelError::Busy { provider: "p".to_owned(), status: 429, said: "slow".to_owned(), after }
    }

    #[test]
    fn waits_double_and_end() {
        let backoff = Backoff::default();
        let waits: Vec<_> =
            (0..6).map(|attempt| backoff.wait(attempt, &busy(None), 0.0).map(|wait| wait.as_secs())).collect();
        assert_eq!(waits, [None, Some(2), Some(4), Some(8), None, None]);
    }

    #[test]
    fn what_cannot_pass_is_not_tried_again() {
        let provider = || "p".to_owned();
        let lasting = [
            ModelError::Key { provider: provider(), said: String::new() },
            ModelError::Request { provider: provider(), status: 400, said: String::new() },
            ModelError::Overflow { said: String::new() },
            ModelError::Malformed { provider: provider(), why: String::new() },
            ModelError::TooLong { provider: provider(), limit: 1 },
            ModelError::Refused { provider: provider(), said: String::new() },
        ];
        for error in lasting {
            assert_eq!(Backoff::default().wait(1, &error, 0.0), None, "{error}");
        }
        let cut = ModelError::Cut { provider: provider() };
        assert_eq!(Backoff::default().wait(1, &cut, 0.0), Some(Duration::from_secs(2)));
    }

    #[test]
    fn the_provider_knows_best_within_reason() {
        let backoff = Backoff::default();
        assert_eq!(backoff.wait(1, &busy(Some(0)), 1.0), Some(Duration::ZERO));
        assert_eq!(backoff.wait(1, &busy(Some(60)), 1.0), Some(Duration::from_secs(60)));
        assert_eq!(backoff.refusal(&busy(Some(60))), None);
        assert_eq!(backoff.wait(1, &busy(Some(61)), 0.0), None);
        assert!(backoff.refusal(&busy(Some(61))).is_some_and(|why| why.contains("61 seconds")));
    }

    proptest! {
        #[test]
        fn no_wait_is_longer_than_the_longest(attempts in 0_u32..200, attempt in 0_u32..200, jitter in proptest::num::f64::ANY) {
            let backoff = Backoff { attempts, ..Backoff::default() };
            if let Some(wait) = backoff.wait(attempt, &busy(None), jitter) {
                prop_assert!(wait >= backoff.first && wait <= backoff.most);
                prop_assert!(attempt <= attempts);
            }
        }
    }
}

//! Remedies: what can a person do when a model did not answer?

use super::ModelError;

impl ModelError {
    /// What to do about it, as the end of a sentence.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Key { .. } => "check the key; `prowess models` shows where it comes from",
            Self::Quota { .. } => "check the plan and the balance of the account, or ask another model with --model",
            Self::Request { status: 404, .. } => {
                "check the model's name and the base URL; `prowess models --probe` shows what answers"
            }
            Self::Request { .. } => "use another model with --model, or start over with --new",
            Self::Overflow { .. } => "start over with --new, or use a model with a larger context window with --model",
            Self::Busy { .. } | Self::Server { .. } | Self::Cut { .. } => {
                "try again later, or ask another model with --model"
            }
            Self::Connection { .. } => {
                "check that it runs and that the base URL is right; `prowess models --probe` shows what answers"
            }
            Self::Malformed { .. } => {
                "check the base URL and the wire format of the provider; `prowess models` shows them"
            }
            Self::TooLong { .. } => "ask for less at once, or ask another model with --model",
            Self::Refused { .. } => "say it in other words, or ask another model with --model",
        }
    }
}

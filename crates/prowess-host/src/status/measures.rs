//! How large is the list of skills, how large may it be, and what was cut?

use prowess_skills::{Budget, Snapshot};
use serde::Serialize;

/// The measures of a list of skills.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Measures {
    chars: usize,
    tokens: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_chars: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<usize>,
    max_skills: usize,
    total: usize,
    included: usize,
    shortened: Vec<String>,
    name_only: Vec<String>,
    dropped: Vec<String>,
    fingerprint: String,
}

impl Measures {
    /// Of the list in `snapshot`, which was made for `budget`.
    #[must_use]
    pub fn new(snapshot: &Snapshot, budget: &Budget) -> Self {
        let prompt = snapshot.prompt();
        Self {
            chars: prompt.chars(),
            tokens: prompt.tokens(),
            max_chars: Some(budget.chars).filter(|&chars| chars < usize::MAX),
            max_tokens: budget.tokens,
            max_skills: budget.skills,
            total: prompt.cut.total,
            included: prompt.cut.total - prompt.cut.dropped.len(),
            shortened: prompt.cut.shortened.clone(),
            name_only: prompt.cut.name_only.clone(),
            dropped: prompt.cut.dropped.clone(),
            fingerprint: snapshot.fingerprint().to_string(),
        }
    }
}

//! Withheld keys: which variables could a skill's commands get, if a person agreed?
//!
//! A skill can declare any variable of the host, and a skill can have the name of another one whose key the operator
//! configured. Neither is a reason to hand a key out. Such a key is kept here until a lease names it: a setting, an
//! earlier answer, or the answer to the question about this command.

use std::ffi::OsString;
use std::fmt;

use prowess_policy::lease::Lease;

use crate::setting::SkillShare;

/// A variable that reaches a skill's commands only with a lease.
#[derive(Clone, PartialEq, Eq)]
pub struct WithheldKey {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: OsString,
    /// What the operator types to give it to the skill for good.
    pub remedy: String,
}

impl fmt::Debug for WithheldKey {
    /// Without the value.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WithheldKey").field("name", &self.name).finish_non_exhaustive()
    }
}

impl SkillShare {
    /// What the model has to know about keys that a command with this lease runs without.
    #[must_use]
    pub(crate) fn key_warnings(&self, lease: &Lease) -> Vec<String> {
        let missing = self.withheld.iter().filter(|key| !lease.keys.contains(&key.name));
        let warning = |key: &WithheldKey| {
            format!(
                "Warning: this command runs without {}, because nobody allowed the skill `{}` to use it. The operator \
                 can allow it with: {}",
                key.name, self.name, key.remedy
            )
        };
        missing.map(warning).collect()
    }

    /// Turns the withheld keys that `held` names into variables like any other.
    pub(crate) fn give_held(&mut self, held: &Lease) {
        let is_held = |key: &WithheldKey| held.keys.contains(&key.name);
        let (given, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut self.withheld).into_iter().partition(is_held);
        self.vars.extend(given.into_iter().map(|key| (key.name, key.value)));
        self.withheld = rest;
    }
}

//! Skill lists: which skills may this agent, or this channel, use at all?

/// A list of skill names, or no restriction.
///
/// ```
/// use prowess_skills::Filter;
///
/// assert!(Filter::any().allows("weather"));
/// assert!(!Filter::only(["github"]).allows("weather"));
/// assert!(!Filter::only([" "]).allows("weather")); // a list of nothing allows nothing
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter(Option<Vec<String>>);

impl Filter {
    /// No restriction.
    #[must_use]
    pub fn any() -> Self {
        Self(None)
    }

    /// Only these names; trimmed, without blanks.
    #[must_use]
    pub fn only<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> Self {
        let names = names.into_iter().map(|name| crate::text::trim(name.as_ref()).to_owned());
        Self(Some(names.filter(|name| !name.is_empty()).collect()))
    }

    /// Whether a skill of this name may be used.
    #[must_use]
    pub fn allows(&self, name: &str) -> bool {
        self.0.as_ref().is_none_or(|names| names.iter().any(|allowed| allowed == name))
    }

    /// The names, unless there is no restriction.
    #[must_use]
    pub fn names(&self) -> Option<&[String]> {
        self.0.as_deref()
    }
}

/// The lists that apply to a conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filters {
    /// The agent's.
    pub agent: Filter,
    /// The channel's.
    pub channel: Filter,
}

impl Filters {
    /// The names that both lists allow, in the order of the channel's; `None` when there is no restriction.
    #[must_use]
    pub fn names(&self) -> Option<Vec<String>> {
        match (self.channel.names(), self.agent.names()) {
            (None, None) => None,
            (Some(names), None) | (None, Some(names)) => Some(names.to_vec()),
            (Some(channel), Some(agent)) => Some(channel.iter().filter(|name| agent.contains(name)).cloned().collect()),
        }
    }
}

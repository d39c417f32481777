//! Refusals: what is a model, and the person behind it, told about a command that did not run?
//!
//! Three lines at most: what happened, why, and what to type.

use prowess_policy::{Judgment, Objection, listed};

use crate::exec_tool::NAME;
use crate::leases::Holder;
use crate::tool::ToolResult;

/// The most reasons and remedies that are named; `prowess exec check` shows them all.
const MAX_NAMED: usize = 3;

/// Why a judged command did not run.
pub(crate) struct Refusal {
    /// What happened, in a few words.
    pub what: String,
    /// The lines that say why, and what would change it; none where a person decided.
    more: Vec<String>,
}

impl Refusal {
    /// One that nothing can be added to.
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), more: Vec::new() }
    }

    /// The same with the reasons and remedies that [`explained`] found.
    pub(crate) fn with(self, more: Vec<String>) -> Self {
        Self { more, ..self }
    }

    /// As the result of a call.
    pub(crate) fn result(&self) -> ToolResult {
        let first = format!("exec denied: {}.", self.what);
        let lines: Vec<&str> = std::iter::once(first.as_str()).chain(self.more.iter().map(String::as_str)).collect();
        refuse(&lines.join("\n"))
    }
}

/// Why `judgment` does not let the command run, and what would change that: a line each.
pub(crate) fn explained(judgment: &Judgment, holder: &Holder) -> Vec<String> {
    let mut wants: Vec<&str> = Vec::new();
    let mut others: Vec<String> = Vec::new();
    for objection in judgment.all_objections() {
        match objection {
            Objection::Leaves(phrase) => wants.push(phrase),
            other if others.contains(&other.to_string()) => {}
            other => others.push(other.to_string()),
        }
    }
    let wants = (!wants.is_empty()).then(|| format!("it would {}", listed(&wants)));
    let reasons: Vec<String> = wants.into_iter().chain(others).collect();
    let remedies = remedies(judgment, holder);
    let mut lines = Vec::new();
    if !reasons.is_empty() {
        lines.push(format!("Why: {}.", named(&reasons)));
    }
    if !remedies.is_empty() {
        let is_typed = remedies.iter().all(|remedy| remedy.starts_with("prowess "));
        let label = if is_typed { "To allow it" } else { "What helps" };
        lines.push(format!("{label}: {}", named(&remedies)));
    }
    lines
}

/// What would change the verdict, the command that gives a lease included.
pub(crate) fn remedies(judgment: &Judgment, holder: &Holder) -> Vec<String> {
    let mut remedies = judgment.remedies();
    if judgment.objections().iter().any(|one| matches!(one, Objection::Leaves(_))) {
        remedies.push(holder.allow_command(judgment.lacks()));
    }
    remedies
}

fn named(items: &[String]) -> String {
    let first = items.iter().take(MAX_NAMED).map(String::as_str).collect::<Vec<_>>().join("; ");
    match items.len().saturating_sub(MAX_NAMED) {
        0 => first,
        rest => format!("{first}; and {rest} more (`prowess exec check` shows all)"),
    }
}

/// A command that was not started for another reason than the rules.
pub(crate) fn not_run(why: &dyn std::fmt::Display) -> ToolResult {
    refuse(&format!("The command was not run: {why}."))
}

/// A refusal in these words.
pub(crate) fn refuse(why: &str) -> ToolResult {
    ToolResult::error(NAME, why)
}

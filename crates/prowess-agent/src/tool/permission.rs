//! Permission: does a skill in use want a person to be asked before this call?
//!
//! A skill can list the tools it needs, in `allowed-tools` of the Agent Skills standard. While such a skill is in use, a
//! call that its list does not name is put to a person, for it is not what the skill is for; of several skills each has
//! its say. A list never makes anything allowed that would be asked about without it.

use std::path::Path;
use std::sync::Arc;

use prowess_exec::ToolResult;
use prowess_exec::approver::{Change, MAX_SHOWN, Offer, Passage, ToolQuestion, unanswered};
use prowess_policy::script::{Redirect, RedirectKind, Segment, Word};
use prowess_policy::{Answer, Denied, Script, listed};
use prowess_skills::Skill;
use serde_json::{Map, Value};

use super::place::{Opened, absolute};
use super::policy::matches;
use crate::tool::Scope;

/// How much of a call the model is told when it was refused, in characters.
const MAX_TOLD: usize = 2_000;

/// How many entries of a list are shown.
const MAX_ENTRIES: usize = 12;

/// In the details of a refusal: what it comes from.
pub(crate) const RULE: &str = "rule";

/// There: a skill in use lists other tools. No approval of a program helps against that.
pub(crate) const BY_LIST: &str = "allowed-tools";

/// What a process can be asked and told while any skill is in use. Giving it input is more than that.
const LOOKING_AFTER: &[&str] = &["list", "poll", "log", "kill", "clear", "remove"];

/// What a call wants, for a person to decide.
pub(crate) struct Wish<'a> {
    tool: &'a str,
    summary: String,
    content: Vec<Passage>,
}

impl<'a> Wish<'a> {
    /// `tool` wants to do what `summary` says.
    pub(crate) fn new(tool: &'a str, summary: String) -> Self {
        Self { tool, summary, content: Vec::new() }
    }

    /// With what it would write.
    pub(crate) fn writing(self, content: Vec<Passage>) -> Self {
        Self { content, ..self }
    }
}

/// Lets a call pass, asks about it, or gives the answer that says why it did not happen.
pub(crate) async fn check(tool: &str, arguments: &Map<String, Value>, scope: &Scope<'_>) -> Result<(), ToolResult> {
    let skills: Vec<Arc<Skill>> =
        scope.uses.skills().into_iter().filter(|skill| !skill.standard.allowed_tools.is_empty()).collect();
    if skills.is_empty() || is_always_fine(tool, arguments, scope) {
        return Ok(());
    }
    let command = arguments.get("command").and_then(Value::as_str);
    let is_other = |skill: &&Arc<Skill>| !is_listed(&skill.standard.allowed_tools, tool, command);
    let others: Vec<&Arc<Skill>> = skills.iter().filter(is_other).collect();
    if others.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = others.iter().map(|skill| format!("`{}`", skill.name)).collect();
    let entries = others.iter().flat_map(|skill| &skill.standard.allowed_tools);
    let shown: Vec<&str> = entries.map(String::as_str).take(MAX_ENTRIES).collect();
    let why = format!("the skill {} in use lists other tools ({})", listed(&names), shown.join(", "));
    ask(scope, Wish::new(tool, summary(tool, arguments)).writing(passages(arguments)), &why).await.map_err(
        |mut answer| {
            answer.details[RULE] = Value::from(BY_LIST);
            answer
        },
    )
}

/// Asks a person. Everything but a yes is an answer for the model.
pub(crate) async fn ask(scope: &Scope<'_>, wish: Wish<'_>, why: &str) -> Result<(), ToolResult> {
    let Wish { tool, summary, content } = wish;
    let question = ToolQuestion {
        agent: scope.agent.to_owned(),
        session: scope.session.to_owned(),
        tool: tool.to_owned(),
        summary,
        why: why.to_owned(),
        content,
        offer: Offer::Once,
    };
    let (denied, helps) = if question.text().is_none() {
        let limit = MAX_SHOWN / 1024;
        (
            format!("it needs approval, but is too long to show in full (limit: {limit} KiB)"),
            "split it into smaller parts",
        )
    } else {
        match scope.approver.ask_tool(&question).await {
            Some(Answer::Once | Answer::Session | Answer::Always) => return Ok(()),
            Some(Answer::No) => (Denied::ByPerson.to_string(), "ask the user what to do; do not try it another way"),
            None => (
                unanswered(scope.approver),
                "do without it, or have the operator do it or answer at a terminal (`prowess chat`)",
            ),
        }
    };
    let summary = cut(&question.summary);
    Err(ToolResult::error(
        tool,
        &format!("{tool} denied: {denied}.\nWhy: it wanted to {summary}, and {why}.\nWhat helps: {helps}."),
    ))
}

/// What a call wants, with everything it was given but the texts that [`passages`] has.
fn summary(tool: &str, arguments: &Map<String, Value>) -> String {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    let (what, said) = match (text("command"), text("path")) {
        (Some(command), _) => (format!("run {command}"), "command"),
        (None, Some(path)) => (format!("{tool} {path}"), "path"),
        (None, None) => (format!("call {tool}"), ""),
    };
    let is_passage = |name: &str, value: &Value| value.is_string() && PASSAGES.iter().any(|(known, _)| *known == name);
    let rest = arguments.iter().filter(|(name, value)| *name != said && !is_passage(name, value));
    let rest: Map<String, Value> = rest.map(|(name, value)| (name.clone(), value.clone())).collect();
    if rest.is_empty() { what } else { format!("{what} with {}", Value::Object(rest)) }
}

/// The arguments that are texts for a file, or from it.
const PASSAGES: [(&str, Change); 3] =
    [("oldText", Change::Removed), ("newText", Change::Added), ("content", Change::Added)];

fn passages(arguments: &Map<String, Value>) -> Vec<Passage> {
    let passage = |(name, change): (&str, Change)| {
        let text = arguments.get(name).and_then(Value::as_str)?;
        Some(Passage { change, text: text.to_owned() })
    };
    PASSAGES.into_iter().filter_map(passage).collect()
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_TOLD) {
        Some((end, _)) => format!("{} [… cut, {} bytes in all]", &text[..end], text.len()),
        None => text.to_owned(),
    }
}

/// Asking about one's own jobs, and reading what skills bring: without that no skill could be used at all.
fn is_always_fine(tool: &str, arguments: &Map<String, Value>, scope: &Scope<'_>) -> bool {
    match tool {
        "process" => {
            arguments.get("action").and_then(Value::as_str).is_some_and(|action| LOOKING_AFTER.contains(&action))
        }
        "read" => arguments.get("path").and_then(Value::as_str).is_some_and(|path| is_of_a_skill(path, scope)),
        _ => false,
    }
}

fn is_of_a_skill(path: &str, scope: &Scope<'_>) -> bool {
    let asked = absolute(path, scope.workspace, scope.home);
    let real = Opened::find(Path::new(&asked)).map(|opened| opened.real);
    real.is_ok_and(|real| scope.skills.around(&asked, &real).is_some())
}

/// Whether a list names this call: all of a command's parts, if it is one.
fn is_listed(entries: &[impl AsRef<str>], tool: &str, command: Option<&str>) -> bool {
    let entries: Vec<Entry<'_>> = entries.iter().filter_map(|entry| Entry::parse(entry.as_ref())).collect();
    if entries.iter().any(|entry| entry.names(tool) && entry.condition.is_none()) {
        return true;
    }
    let Some(command) = command.filter(|_| tool == "exec") else { return false };
    let rules: Vec<Rule> =
        entries.iter().filter(|entry| entry.names("exec")).filter_map(|entry| Rule::parse(entry.condition?)).collect();
    let script = Script::parse(command);
    script.doubts.is_empty()
        && !script.segments.is_empty()
        && script.segments.iter().all(|segment| rules.iter().any(|rule| rule.covers(segment)))
}

/// One entry of a list: a tool, perhaps with a condition in brackets.
#[derive(Debug, PartialEq, Eq)]
struct Entry<'a> {
    tool: String,
    condition: Option<&'a str>,
}

impl<'a> Entry<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let text = text.trim();
        let (tool, condition) = match text.split_once('(') {
            Some((tool, rest)) => (tool, Some(rest.strip_suffix(')')?.trim())),
            None => (text, None),
        };
        let tool = tool.trim().to_lowercase();
        // `Bash(*)` is no condition.
        (!tool.is_empty()).then_some(Self { tool, condition: condition.filter(|rule| !matches!(*rule, "*" | "**")) })
    }

    /// Whether it is about `tool`. Other programs have other names for the same.
    fn names(&self, tool: &str) -> bool {
        let small = tool.to_lowercase();
        match self.tool.as_str() {
            "bash" | "shell" => small == "exec",
            // Whoever may write a file anew may change a part of it.
            "write" => matches!(small.as_str(), "write" | "edit"),
            "multiedit" => small == "edit",
            pattern => matches(pattern, &small),
        }
    }
}

/// The commands that a condition is for.
#[derive(Debug, PartialEq, Eq)]
struct Rule {
    words: Vec<String>,
    rest: Rest,
}

/// What may follow the words of a rule.
#[derive(Debug, PartialEq, Eq)]
enum Rest {
    Anything,
    Nothing,
}

impl Rule {
    /// `git:*` and `git status *` are beginnings, `git status` is a whole command. What else stars might mean is not
    /// certain, so it means nothing.
    fn parse(condition: &str) -> Option<Self> {
        let (text, rest) = match condition.strip_suffix('*') {
            Some(begin) => {
                let begin = begin.trim_end().strip_suffix(':').or_else(|| begin.strip_suffix(' '))?;
                (begin, Rest::Anything)
            }
            None => (condition, Rest::Nothing),
        };
        let script = Script::parse(text);
        let [segment] = script.segments.as_slice() else { return None };
        let is_plain = script.doubts.is_empty() && segment.assignments.is_empty() && segment.redirects.is_empty();
        let words: Option<Vec<String>> = segment.words.iter().map(|word| word.literal().map(str::to_owned)).collect();
        words.filter(|words| is_plain && !words.is_empty()).map(|words| Self { words, rest })
    }

    fn covers(&self, segment: &Segment) -> bool {
        let given: Vec<Option<&str>> = segment.words.iter().map(Word::literal).collect();
        let begins = given.len() >= self.words.len()
            && self.words.iter().zip(&given).all(|(word, given)| *given == Some(word.as_str()));
        let ends = match self.rest {
            Rest::Anything => true,
            Rest::Nothing => given.len() == self.words.len(),
        };
        begins && ends && segment.assignments.is_empty() && segment.redirects.iter().all(is_quiet)
    }
}

/// Whether a redirection only silences or joins outputs.
fn is_quiet(redirect: &Redirect) -> bool {
    match redirect.kind {
        RedirectKind::Read | RedirectKind::Write => redirect.target.literal() == Some("/dev/null"),
        RedirectKind::Duplicate => true,
        RedirectKind::HereDocument | RedirectKind::HereString => false,
    }
}

#[cfg(test)]
mod tests {
    use super::is_listed;

    #[test]
    fn a_list_names_tools_by_the_names_they_have_elsewhere() {
        let table = [
            (&["Read"][..], "read", true),
            (&["Read"], "write", false),
            (&["read"], "read", true),
            (&["Bash"], "exec", true),
            (&["exec"], "exec", true),
            (&["Bash(*)"], "exec", true),
            (&["Bash(git:*)"], "exec", false),
            (&["Write"], "edit", true),
            (&["Edit"], "write", false),
            (&["MultiEdit"], "edit", true),
            (&["Read(./docs/**)"], "read", false),
            (&["mcp__files__*"], "mcp__files__search", true),
            (&["mcp__files__*"], "mcp__mail__send", false),
            (&["Grep", "Glob"], "exec", false),
            (&["*"], "exec", true),
            (&["", "()", "Bash(git"], "exec", false),
        ];
        for (entries, tool, expected) in table {
            assert_eq!(is_listed(entries, tool, None), expected, "{entries:?} {tool}");
        }
    }

    #[test]
    fn a_condition_is_for_every_part_of_a_command() {
        let git = &["Bash(git:*)"][..];
        let table = [
            (git, "git status", true),
            (git, "git", true),
            (git, "git log | head", false),
            (&["Bash(git:*)", "Bash(head:*)"], "git log | head -3", true),
            (git, "git status && rm -rf x", false),
            (git, "git status; git log", true),
            (git, "gitx status", false),
            (git, "/usr/bin/git status", false),
            (git, "env git status", false),
            (git, "GIT_DIR=x git status", false),
            (git, "git log > out", false),
            (git, "git log 2>&1", true),
            (git, "git log 2>/dev/null", true),
            (git, "git log $(rm x)", false),
            (git, "git log `rm x`", false),
            (git, "git log &", false),
            (git, "(git log)", false),
            (git, "git commit -m \"$MESSAGE\"", true),
            (git, "$GIT status", false),
            (git, "", false),
            (&["Bash(git: *)"], "git status", true),
            (&["Bash(git status *)"], "git status -s", true),
            (&["Bash(git status *)"], "git status", true),
            (&["Bash(git status *)"], "git push", false),
            (&["Bash(git status:*)"], "git $X", false),
            (&["Bash(git status)"], "git status", true),
            (&["Bash(git status)"], "git status -s", false),
            (&["Bash(git*)"], "git status", false),
            (&["Bash(git * main)"], "git push main", false),
            (&["Bash(git;rm:*)"], "rm x", false),
            (&["Bash(npm run test:*)"], "npm run test", true),
            (&["Bash(npm run test:*)"], "npm run build", false),
            (&["Read", "Bash(ls:*)"], "ls -l", true),
        ];
        for (entries, command, expected) in table {
            assert_eq!(is_listed(entries, "exec", Some(command)), expected, "{entries:?} {command}");
        }
    }
}

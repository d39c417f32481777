//! Slash commands: how does a person call on a skill?

use std::collections::HashSet;

use crate::skill::{Dispatch, Skill, SkillName};
use crate::text::{clean, is_space, prefix_units, trim, units};

/// The longest command name; chat platforms allow no more.
pub const MAX_NAME: usize = 32;
/// The longest command description, in UTF-16 units.
const MAX_DESCRIPTION: usize = 100;

/// Command names that OpenClaw keeps for itself.
pub const RESERVED: [&str; 51] = [
    "acp",
    "activation",
    "agents",
    "allowlist",
    "approve",
    "bash",
    "commands",
    "compact",
    "config",
    "context",
    "debug",
    "dock-discord",
    "dock-slack",
    "dock-telegram",
    "dock_discord",
    "dock_slack",
    "dock_telegram",
    "elev",
    "elevated",
    "exec",
    "export",
    "export-session",
    "focus",
    "help",
    "id",
    "kill",
    "model",
    "models",
    "new",
    "queue",
    "reason",
    "reasoning",
    "reset",
    "restart",
    "send",
    "session",
    "skill",
    "status",
    "steer",
    "stop",
    "subagents",
    "t",
    "tell",
    "think",
    "thinking",
    "tts",
    "unfocus",
    "usage",
    "v",
    "verbose",
    "whoami",
];

/// A slash command of a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// What is typed after the slash.
    pub name: String,
    /// The skill it calls on.
    pub skill: SkillName,
    /// One line about it.
    pub description: String,
    /// The tool it goes to, when it bypasses the model.
    pub dispatch: Option<Dispatch>,
}

/// A message that calls on a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call<'a> {
    /// The command that was meant.
    pub command: &'a Command,
    /// What follows it.
    pub args: Option<&'a str>,
}

/// The commands of `skills` in their order, for those that a user may call on. Names in `reserved` are taken.
#[must_use]
pub fn commands<'a, S: AsRef<str>>(
    skills: impl IntoIterator<Item = &'a Skill>,
    reserved: impl IntoIterator<Item = S>,
) -> Vec<Command> {
    let mut taken: HashSet<String> = reserved.into_iter().map(|name| name.as_ref().to_lowercase()).collect();
    let callable = skills.into_iter().filter(|skill| skill.invocation.by_user);
    callable
        .map(|skill| Command {
            name: claim(&sanitize(skill.name.as_str()), &mut taken),
            skill: skill.name.clone(),
            description: describe(skill),
            dispatch: skill.dispatch.clone(),
        })
        .collect()
}

/// The command name of a skill: lower case, runs of other characters as one underscore, at most 32 characters.
#[must_use]
pub fn sanitize(name: &str) -> String {
    let mut out = String::new();
    for c in name.to_lowercase().chars() {
        if c.is_ascii_lowercase() || c.is_ascii_digit() {
            out.push(c);
        } else if !out.ends_with('_') {
            out.push('_');
        }
    }
    let name: String = out.trim_matches('_').chars().take(MAX_NAME).collect();
    if name.is_empty() { "skill".to_owned() } else { name }
}

/// `base`, or `base_2`, `base_3`, … when it is taken; never longer than allowed.
fn claim(base: &str, taken: &mut HashSet<String>) -> String {
    let numbered = |number: usize| {
        let suffix = format!("_{number}");
        format!("{}{suffix}", &base[..base.len().min(MAX_NAME - suffix.len())])
    };
    let mut name = base.to_owned();
    let mut number = 2;
    while taken.contains(&name) {
        name = numbered(number);
        number += 1;
    }
    taken.insert(name.clone());
    name
}

fn describe(skill: &Skill) -> String {
    let text = clean(&skill.description);
    let text = Some(trim(&text)).filter(|text| !text.is_empty()).unwrap_or(skill.name.as_str());
    if units(text) <= MAX_DESCRIPTION {
        return text.to_owned();
    }
    format!("{}…", prefix_units(text, MAX_DESCRIPTION - 1))
}

/// The call that a message makes, as `/name args` or `/skill name args`; `None` when it is an ordinary message.
#[must_use]
pub fn resolve<'a>(message: &'a str, commands: &'a [Command]) -> Option<Call<'a>> {
    let (word, rest) = split_word(trim(message).strip_prefix('/')?);
    if word.is_empty() {
        return None;
    }
    if word.eq_ignore_ascii_case("skill") {
        let (name, args) = split_word(rest?);
        let exact = |command: &&Command| command.name == name || command.skill.as_str() == name;
        let command = commands.iter().find(exact).or_else(|| commands.iter().find(|command| means(command, name)))?;
        return Some(Call { command, args });
    }
    let name = word.to_lowercase();
    let dashed = name.replace('-', "_");
    let exact = commands.iter().find(|command| command.name == name);
    let command = exact.or_else(|| commands.iter().find(|command| command.name == dashed))?;
    Some(Call { command, args: rest })
}

/// The first word, and what follows it unless that is blank.
fn split_word(text: &str) -> (&str, Option<&str>) {
    let (word, rest) = text.split_once(is_space).unwrap_or((text, ""));
    (word, Some(trim(rest)).filter(|rest| !rest.is_empty()))
}

/// Whether `/skill name` means this command: by its name or the skill's, in any case, with hyphens or underscores.
fn means(command: &Command, name: &str) -> bool {
    let hyphenated = |text: &str| {
        let lower = text.to_lowercase();
        lower.split(|c: char| is_space(c) || c == '_').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
    };
    let wanted = [name.to_lowercase(), hyphenated(name)];
    let known = [command.name.as_str(), command.skill.as_str()];
    known.iter().any(|known| wanted[0] == known.to_lowercase() || wanted[1] == hyphenated(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_never_makes_a_name_too_long() {
        let mut taken = HashSet::new();
        let base = "x".repeat(MAX_NAME);
        let names: Vec<String> = (0..12).map(|_| claim(&base, &mut taken)).collect();
        assert_eq!(names[1], format!("{}_2", "x".repeat(30)));
        assert_eq!(names[11], format!("{}_12", "x".repeat(29)));
        assert_eq!(taken.len(), 12);
    }

    #[test]
    fn the_first_word_ends_at_any_white_space() {
        assert_eq!(split_word("a b c"), ("a", Some("b c")));
        assert_eq!(split_word("a\n b "), ("a", Some("b")));
        assert_eq!(split_word("a\u{a0}b"), ("a", Some("b")));
        assert_eq!(split_word("a  "), ("a", None));
        assert_eq!(split_word(""), ("", None));
    }

    #[test]
    fn the_reserved_names_are_sorted_and_in_lower_case() {
        assert!(RESERVED.is_sorted() && RESERVED.iter().all(|name| *name == name.to_lowercase()));
    }
}

//! Slash commands: which skills does a person call on?
//!
//! `/name args` and `/skill name args` call on one skill, `$name` anywhere in a message on up to eight. A call either
//! goes straight to a tool, or the message is rewritten so that the model finds the `SKILL.md`, hidden skills included.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use prowess_skills::text::{clean, is_space, shorten, units};
use prowess_skills::{Command, Skill, compact, resolve};
use thiserror::Error;

use crate::skills::SkillSet;

/// How many skills one message may call on.
pub const MAX_SKILLS: usize = 8;
/// The longest line about one skill, in UTF-16 units.
pub const MAX_LINE: usize = 512;
/// The longest text put before a message, in UTF-16 units.
pub const MAX_PREFIX: usize = 1_000;

/// What stands between the instructions for the model and what the user typed.
const REQUEST: &str = "\n\nUser request:\n";

/// What a message is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said<'a> {
    /// A message like any other.
    Plain,
    /// A call that goes straight to a tool.
    Dispatch {
        /// The command.
        command: &'a Command,
        /// The tool.
        tool: &'a str,
        /// What follows the command; empty if nothing does.
        args: &'a str,
    },
    /// A message that calls on skills.
    Calls {
        /// The message for the model.
        text: String,
        /// The skills, in the order in which they are named.
        skills: Vec<String>,
    },
}

/// Why a message that calls on skills cannot be passed on.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SlashError {
    /// Too many skills.
    #[error("the message calls {found} skills; the limit is {MAX_SKILLS}: name fewer, or write \\$name for plain text")]
    TooMany {
        /// How many.
        found: usize,
    },
    /// The name or the location of a skill is too long to be passed on.
    #[error(
        "the name and location of the skill {skill:?} are longer than {MAX_LINE} characters: move it to a shorter path"
    )]
    LongLine {
        /// The beginning of its name.
        skill: String,
    },
    /// All of them together are too long to be passed on.
    #[error(
        "the names and locations of the {found} skills are longer than {MAX_PREFIX} characters: name fewer at once"
    )]
    LongPrefix {
        /// How many.
        found: usize,
    },
}

/// Reads a message. A name that no skill of this conversation has is plain text.
///
/// `home` is what locations are shortened by.
pub fn read<'a>(text: &'a str, skills: &'a SkillSet, home: Option<&Path>) -> Result<Said<'a>, SlashError> {
    let mut called: Vec<&Arc<Skill>> = Vec::new();
    let call = resolve(text, &skills.commands);
    if let Some((call, skill)) =
        call.and_then(|call| skills.find(call.command.skill.as_str()).map(|skill| (call, skill)))
    {
        if let Some(dispatch) = &call.command.dispatch {
            let args = call.args.unwrap_or_default();
            return Ok(Said::Dispatch { command: call.command, tool: &dispatch.tool, args });
        }
        called.push(skill);
    }
    for skill in referenced(text, skills) {
        if !called.iter().any(|known| known.name == skill.name) {
            called.push(skill);
        }
    }
    if called.is_empty() {
        return Ok(Said::Plain);
    }
    if called.len() > MAX_SKILLS {
        return Err(SlashError::TooMany { found: called.len() });
    }
    let prefix = prefix(&called, skills, home)?;
    let names = called.iter().map(|skill| skill.name.to_string()).collect();
    Ok(Said::Calls { text: format!("{prefix}{REQUEST}{text}"), skills: names })
}

/// What the user typed: `text` without the instructions that this program or OpenClaw put before it for the model.
#[must_use]
pub fn typed(text: &str) -> &str {
    let Some((before, request)) = text.split_once(REQUEST) else { return text };
    let mut lines = before.lines();
    let is_wrapper = lines.next().is_some_and(|first| first.contains("SKILL.md") && first.ends_with(':'));
    if is_wrapper && lines.all(|line| line.starts_with("- ")) { request } else { text }
}

/// The skills that `$name` stands for in `text`, each once.
fn referenced<'a>(text: &str, skills: &'a SkillSet) -> Vec<&'a Arc<Skill>> {
    let mut names = names(text).peekable();
    if names.peek().is_none() {
        return Vec::new();
    }
    let spellings = Spellings::of(&skills.commands);
    let mut seen = HashSet::new();
    let mut found: Vec<&Arc<Skill>> = Vec::new();
    for name in names {
        let Some(command) = spellings.find(name) else { continue };
        if seen.insert(command.name.as_str()) {
            found.extend(skills.find(command.skill.as_str()));
        }
    }
    found
}

/// The names behind dollar signs that could be those of skills.
///
/// Names without a small letter are those of variables, and a backslash before the sign makes it plain text.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices('$').filter_map(|(at, _)| {
        let backslashes = text[..at].bytes().rev().take_while(|byte| *byte == b'\\').count();
        if backslashes % 2 == 1 {
            return None;
        }
        let rest = &text[at + 1..];
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '-');
        let name = rest[..rest.find(|c| !is_name(c)).unwrap_or(rest.len())].trim_end_matches(':');
        name.bytes().any(|byte| byte.is_ascii_lowercase()).then_some(name)
    })
}

/// Commands by every spelling that means them. Made once for a message, which may have very many dollar signs.
struct Spellings<'a> {
    exact: HashMap<&'a str, &'a Command>,
    loose: HashMap<String, &'a Command>,
}

impl<'a> Spellings<'a> {
    fn of(commands: &'a [Command]) -> Self {
        let mut made = Self { exact: HashMap::new(), loose: HashMap::new() };
        for command in commands {
            for name in [command.name.as_str(), command.skill.as_str()] {
                made.exact.entry(name).or_insert(command);
                made.loose.entry(loosen(name)).or_insert(command);
            }
        }
        made
    }

    fn find(&self, name: &str) -> Option<&'a Command> {
        self.exact.get(name).or_else(|| self.loose.get(&loosen(name))).copied()
    }
}

/// A name in lower case and with single hyphens, as `/skill name` compares it.
fn loosen(name: &str) -> String {
    let lower = name.to_lowercase();
    lower.split(|c: char| is_space(c) || c == '_').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}

/// What stands before the message. Locations that the model has in its catalogue are left out when there is no room.
fn prefix(called: &[&Arc<Skill>], skills: &SkillSet, home: Option<&Path>) -> Result<String, SlashError> {
    let all = with_locations(called, home, |_| true)?;
    if units(&all) <= MAX_PREFIX {
        return Ok(all);
    }
    let dropped = &skills.snapshot.prompt().cut.dropped;
    let is_unseen =
        |skill: &Skill| !skill.invocation.by_model || dropped.iter().any(|name| name == skill.name.as_str());
    let needed = with_locations(called, home, is_unseen)?;
    if units(&needed) <= MAX_PREFIX {
        return Ok(needed);
    }
    Err(SlashError::LongPrefix { found: called.len() })
}

fn with_locations(
    called: &[&Arc<Skill>],
    home: Option<&Path>,
    is_located: impl Fn(&Skill) -> bool,
) -> Result<String, SlashError> {
    let mut out = String::from(match called {
        [_] => "The user calls a skill. Read its SKILL.md before anything else, then follow it for this request:",
        _ => "The user calls several skills. Read the SKILL.md of each before anything else, then follow them:",
    });
    for skill in called {
        let mut line = format!("- \"{}\"", skill.name);
        if is_located(skill) {
            line.extend([" at ", &clean(&compact(&skill.file.to_string_lossy(), home))]);
        }
        if units(&line) > MAX_LINE {
            let skill = shorten(skill.name.as_str(), 60);
            return Err(SlashError::LongLine { skill });
        }
        out.push('\n');
        out.push_str(&line);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_was_typed_is_found_behind_the_instructions_for_the_model() {
        let ours = "The user calls a skill. Read its SKILL.md before anything else, then follow it for this request:\n- \"weather\" at ~/s/weather/SKILL.md\n\nUser request:\n$weather Shanghai\n\nplease";
        let theirs = "Use the following explicitly referenced skills for this request. Read each skill's SKILL.md before acting:\n- weather\n\nUser request:\n/weather Lisbon";
        let table = [
            (ours, "$weather Shanghai\n\nplease"),
            (theirs, "/weather Lisbon"),
            ("plain", "plain"),
            ("What does this mean?\n\nUser request:\nx", "What does this mean?\n\nUser request:\nx"),
            ("See SKILL.md:\nmy own words\n\nUser request:\nx", "See SKILL.md:\nmy own words\n\nUser request:\nx"),
        ];
        for (text, expected) in table {
            assert_eq!(typed(text), expected);
        }
    }

    #[test]
    fn names_stand_behind_dollar_signs() {
        let table: [(&str, &[&str]); 12] = [
            ("use $weather now", &["weather"]),
            ("$a-b_c:d, $e.", &["a-b_c:d", "e"]),
            ("用$weather查上海", &["weather"]),
            ("$weather: and $x::", &["weather", "x"]),
            ("$HOME $5 $_ $ $: $-", &[]),
            ("\\$weather", &[]),
            ("\\\\$weather", &["weather"]),
            ("\\\\\\$weather", &[]),
            ("$$weather", &["weather"]),
            ("a$b", &["b"]),
            ("$Weather", &["Weather"]),
            ("", &[]),
        ];
        for (text, wanted) in table {
            assert_eq!(names(text).collect::<Vec<_>>(), wanted, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn a_name_is_a_word_of_the_message(text in r"([$\\a-cA:é-]|\PC){0,24}") {
            for name in names(&text) {
                let written = format!("${name}");
                prop_assert!(text.contains(&written));
                prop_assert!(!name.ends_with(':') && name.bytes().any(|byte| byte.is_ascii_lowercase()));
            }
        }
    }
}

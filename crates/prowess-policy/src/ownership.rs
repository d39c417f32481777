//! Ownership: is this one of a skill's own commands?
//!
//! What a skill was given (keys, hosts, directories) serves its own commands and no others that happen to run in the same
//! turn. A command is the skill's own if everything that it starts is: a program that the skill lists or brings, a script
//! of the skill, or a command that stands in the skill's text. Plain filters may follow in a pipe.

use std::path::{Path, PathBuf};

use crate::script::{Script, Segment, Value};

/// What tells the commands of a skill.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnCommands {
    /// Names of programs that the skill lists under its requirements, or brings.
    pub programs: Vec<String>,
    /// Directories with its scripts and programs.
    pub dirs: Vec<PathBuf>,
    /// Commands as they stand in its text.
    pub texts: Vec<String>,
}

/// Programs that only pass on or look at what they are given, and shell builtins that start nothing.
const FILTERS: &[&str] = &[
    "cat", "head", "tail", "grep", "egrep", "fgrep", "jq", "sort", "uniq", "wc", "cut", "tr", "column", "fold", "echo",
    "printf", "cd", "true", "test", "[", "mkdir", "date", "sleep", "set",
];

/// Programs that run the script they are given: one of these is the skill's only with a script of the skill.
const INTERPRETERS: &[&str] = &[
    "sh",
    "bash",
    "dash",
    "zsh",
    "fish",
    "ksh",
    "python",
    "python3",
    "node",
    "deno",
    "bun",
    "ruby",
    "perl",
    "php",
    "lua",
    "Rscript",
    "osascript",
    "pwsh",
    "tclsh",
    "source",
    ".",
];

/// Programs that start others by name: never the skill's, whatever follows.
const STARTERS: &[&str] =
    &["env", "xargs", "eval", "exec", "command", "uv", "uvx", "npx", "make", "nohup", "timeout", "nice"];

impl OwnCommands {
    /// Whether `command`, run in `cwd`, is one of them.
    #[must_use]
    pub fn include(&self, command: &str, cwd: &Path) -> bool {
        let plain = squeezed(command);
        if self.texts.iter().any(|text| squeezed(text) == plain) {
            return true;
        }
        let script = Script::parse(command);
        if !script.doubts.is_empty() || script.segments.is_empty() {
            return false;
        }
        let standings: Vec<Standing> = script.segments.iter().map(|segment| self.standing(segment, cwd)).collect();
        standings.contains(&Standing::Own) && !standings.contains(&Standing::Foreign)
    }

    fn standing(&self, segment: &Segment, cwd: &Path) -> Standing {
        let words: Option<Vec<&str>> = segment
            .words
            .iter()
            .map(|word| match &word.value {
                Value::Literal(text) => Some(text.as_str()),
                Value::Dynamic { .. } => None,
            })
            .collect();
        let first = segment.words.first().and_then(|word| match &word.value {
            Value::Literal(text) => Some(text.as_str()),
            Value::Dynamic { .. } => None,
        });
        let Some(program) = first else { return Standing::Foreign };
        if program.contains('/') {
            return if self.has(program, cwd) { Standing::Own } else { Standing::Foreign };
        }
        if STARTERS.contains(&program) {
            return Standing::Foreign;
        }
        if INTERPRETERS.contains(&program) {
            // The first word that is no option has to be a script of the skill, and nothing may come before it.
            let script = words.as_ref().and_then(|words| words.get(1)).filter(|word| !word.starts_with('-'));
            let is_own = script.is_some_and(|script| self.has(script, cwd));
            return if is_own { Standing::Own } else { Standing::Foreign };
        }
        if self.programs.iter().any(|name| name == program) {
            return Standing::Own;
        }
        if FILTERS.contains(&program) { Standing::Filter } else { Standing::Foreign }
    }

    /// Whether `path` is below one of the skill's directories, as far as its text tells.
    fn has(&self, path: &str, cwd: &Path) -> bool {
        let path = cwd.join(path);
        let is_plain = path.components().all(|part| !matches!(part, std::path::Component::ParentDir));
        is_plain && self.dirs.iter().any(|dir| path.starts_with(dir))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    Own,
    Filter,
    Foreign,
}

fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_skills_own_commands_are() {
        let own = OwnCommands {
            programs: vec!["curl".to_owned(), "python3".to_owned()],
            dirs: vec!["/skills/weather".into()],
            texts: vec!["bash -c 'echo  hi'".to_owned()],
        };
        let table = [
            ("curl -s wttr.in/Lisbon", true),
            ("curl -s wttr.in/Lisbon | jq .a | head -3", true),
            ("cd /tmp && curl wttr.in", true),
            ("/skills/weather/scripts/now.sh Lisbon", true),
            ("scripts/now.sh", true),
            ("python3 /skills/weather/now.py --x", true),
            ("bash -c 'echo hi'", true),
            ("python3 other.py", true),
            ("python3 -c 'import os'", false),
            ("python3 ../github/x.py", false),
            ("/skills/weather/../github/x.sh", false),
            ("curl wttr.in; env", false),
            ("curl wttr.in | sh", false),
            ("curl $(cat x)", false),
            ("env curl wttr.in", false),
            ("gh pr list", false),
            ("cat README.md", false),
            ("$x wttr.in", false),
            ("curl \"$URL\"", true),
        ];
        for (command, expected) in table {
            assert_eq!(own.include(command, Path::new("/skills/weather")), expected, "{command}");
        }
        assert!(!own.include("python3 other.py", Path::new("/work")));
    }
}

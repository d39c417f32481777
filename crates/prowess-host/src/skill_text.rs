//! The code in a skill's text: which commands and programs does it show?

use std::io::Read as _;

use prowess_skills::Skill;

/// The most of a `SKILL.md` that is read, in bytes.
const MAX_TEXT: u64 = 256 * 1024;

/// Words behind the fence of code that is meant for a shell.
const SHELLS: &[&str] = &["", "bash", "sh", "shell", "zsh", "console", "terminal", "shell-session"];

/// A line of fenced code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CodeLine {
    /// The line, without blanks around it.
    pub(crate) text: String,
    /// Whether the fence says that a shell reads it, or says nothing.
    pub(crate) is_shell: bool,
}

/// The text of a skill. What cannot be read has no text.
pub(crate) fn read(skill: &Skill) -> String {
    let mut bytes = Vec::new();
    let _ = std::fs::File::open(&skill.file).and_then(|file| file.take(MAX_TEXT).read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The lines in the fenced code of a Markdown text, without comments and prompts.
pub(crate) fn fenced(text: &str) -> Vec<CodeLine> {
    let mut fence: Option<bool> = None;
    let mut lines = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(info) = line.strip_prefix("```") {
            let word = info.trim_start_matches('`').split_whitespace().next().unwrap_or_default().to_lowercase();
            fence = if fence.is_some() { None } else { Some(SHELLS.contains(&word.as_str())) };
        } else if let Some(is_shell) = fence
            && !line.is_empty()
            && !line.starts_with('#')
        {
            lines.push(CodeLine { text: line.trim_start_matches("$ ").to_owned(), is_shell });
        }
    }
    lines
}

/// The commands among `lines`: a line that ends with a backslash goes on in the next one.
pub(crate) fn commands(lines: &[CodeLine]) -> Vec<String> {
    let mut commands = Vec::new();
    let mut begun = String::new();
    for line in lines.iter().filter(|line| line.is_shell) {
        if let Some(part) = line.text.strip_suffix('\\') {
            begun.push_str(part);
        } else {
            begun.push_str(&line.text);
            commands.push(std::mem::take(&mut begun));
        }
    }
    commands.extend(Some(begun).filter(|rest| !rest.is_empty()));
    commands
}

/// The code spans in the prose of a Markdown text.
pub(crate) fn spans(text: &str) -> Vec<&str> {
    let mut spans = Vec::new();
    let mut is_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            spans.extend(line.split('`').skip(1).step_by(2));
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_told_from_prose() {
        let text = "See `curl a.example` and `B_TOKEN`.\n```bash\n$ curl -s \\\n  https://b.example\n# no\nls\n```\n```json\n{\"a\": 1}\n```\n`x";
        let lines = fenced(text);
        assert_eq!(commands(&lines), ["curl -s https://b.example", "ls"]);
        assert_eq!(lines.iter().map(|line| line.is_shell).collect::<Vec<_>>(), [true, true, true, false]);
        assert_eq!(spans(text), ["curl a.example", "B_TOKEN", "x"]);
    }
}

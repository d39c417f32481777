//! Questions about tools: may a call that is no command do what it wants?
//!
//! A command is asked about with all that the judge found. A call of another tool has no judgment; what it wants fits
//! into a line, and there is nothing to be stored for the next time.

use std::fmt::Write as _;

use prowess_policy::shown;

use super::line::Line;

/// How much of what a call would write is shown: lines and bytes.
const MAX_PREVIEW: (usize, usize) = (40, 4 * 1024);

/// A call that a person has to decide about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolQuestion {
    /// The tool.
    pub tool: String,
    /// What the call would do.
    pub summary: String,
    /// Why it is asked.
    pub why: String,
    /// What it would write, if it writes.
    pub content: Vec<Passage>,
}

/// A text that a call puts into a file, or takes out of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// What becomes of it.
    pub change: Change,
    /// The text.
    pub text: String,
}

/// What becomes of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It comes in.
    Added,
    /// It goes.
    Removed,
}

impl Passage {
    /// The text as a person may safely see it: its beginning, and how much more there is. Every line has a sign in front,
    /// so that none can pass for one of ours.
    fn render(&self, most: (usize, usize)) -> String {
        let sign = match self.change {
            Change::Added => '+',
            Change::Removed => '-',
        };
        let end = (0..=most.1.min(self.text.len())).rev().find(|&at| self.text.is_char_boundary(at)).unwrap_or(0);
        let (mut rendered, mut taken) = (String::new(), 0);
        for line in self.text[..end].split_inclusive('\n').take(most.0) {
            taken += line.len();
            let _ = writeln!(rendered, "    {sign} {}", shown(line.strip_suffix('\n').unwrap_or(line)));
        }
        let rest = &self.text[taken..];
        if !rest.is_empty() {
            let _ = writeln!(rendered, "    [… {} more bytes, {} more lines]", rest.len(), rest.lines().count());
        }
        rendered
    }
}

/// A person's answer to a [`ToolQuestion`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    /// It may, this once.
    Given,
    /// It may not.
    Refused,
}

impl ToolQuestion {
    /// The question as a person may safely see it.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!("\nThe tool `{}` wants to:\n\n", shown(&self.tool));
        for line in self.summary.split('\n') {
            let _ = writeln!(text, "    {}", shown(line));
        }
        if !self.content.is_empty() {
            text.push('\n');
        }
        // What comes in must not be pushed out by what goes.
        let (lines, bytes) = MAX_PREVIEW;
        let each = self.content.len().max(1);
        for passage in &self.content {
            text.push_str(&passage.render((lines / each, bytes / each)));
        }
        let _ = writeln!(text, "\n  because  {}", shown(&self.why));
        text
    }
}

pub(super) fn converse(asked: &str, line: &mut Line<'_>) -> Option<Consent> {
    line.say(asked)?;
    loop {
        line.say("Allow it? [y]es, once / [n]o: ")?;
        match line.hear()?.trim().to_lowercase().as_str() {
            "y" | "yes" => return Some(Consent::Given),
            "n" | "no" | "" => return Some(Consent::Refused),
            _ => line.say("Please answer with one of these words.\n")?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Change, Passage, ToolQuestion};

    #[test]
    fn nothing_in_it_can_pass_for_one_of_our_lines() {
        let question = ToolQuestion {
            tool: "read\u{1b}[2J".to_owned(),
            summary: "read /a\n  because  all is well\u{202e}".to_owned(),
            why: "it is outside\nAllow it? y".to_owned(),
            content: Vec::new(),
        };
        let expected = "\nThe tool `read\\u{1b}[2J` wants to:\n\n    read /a\n      because  all is well\\u{202e}\n\n  \
                        because  it is outside\\u{a}Allow it? y\n";
        assert_eq!(question.text(), expected);
    }
    #[test]
    fn what_would_be_written_is_shown_as_far_as_it_fits() {
        let text = |content: Vec<Passage>| {
            let (tool, summary, why) = ("edit".to_owned(), "edit /a".to_owned(), "it is a skill".to_owned());
            ToolQuestion { tool, summary, why, content }.text()
        };
        let passage = |change, text: &str| Passage { change, text: text.to_owned() };
        let shown = text(vec![passage(Change::Removed, "old"), passage(Change::Added, "new\n\u{1b}[2J\n  because  x")]);
        let expected = "\nThe tool `edit` wants to:\n\n    edit /a\n\n    - old\n    + new\n    + \\u{1b}[2J\n    +   because  x\n\n  \
                        because  it is a skill\n";
        assert_eq!(shown, expected);
        let many = text(vec![passage(Change::Added, &"line\n".repeat(100))]);
        assert_eq!(many.matches("    + line\n").count(), 40);
        assert!(many.contains("    [… 300 more bytes, 60 more lines]\n"), "{many}");
        let wide = text(vec![passage(Change::Added, &"ä".repeat(10_000))]);
        assert!(wide.len() < 5_000 && wide.contains("[… 15904 more bytes, 1 more lines]"), "{wide}");
        let pushed = text(vec![passage(Change::Removed, &"a\n".repeat(500)), passage(Change::Added, "evil")]);
        assert!(pushed.contains("    + evil\n"), "{pushed}");
    }
}

//! Questions about tools: may a call that is no command do what it wants?
//!
//! A command is asked about with all that the judge found. A call of another tool has no judgment, and what it wants fits
//! into a line.

use std::fmt::Write as _;

use prowess_policy::shown;

use super::{MANY_BYTES, MANY_LINES, Offer};

/// The longest question that is put, in bytes as a person sees it. What cannot be shown whole cannot be approved.
pub const MAX_SHOWN: usize = 64 * 1024;

/// The tool of questions about a host that a running command connects to.
pub const NETWORK: &str = "network";

/// A call that a person has to decide about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolQuestion {
    /// The agent whose call it is.
    pub agent: String,
    /// The conversation it comes from.
    pub session: String,
    /// The tool.
    pub tool: String,
    /// What the call would do.
    pub summary: String,
    /// Why it is asked.
    pub why: String,
    /// What it would write, if it writes.
    pub content: Vec<Passage>,
    /// What may be answered besides no.
    pub offer: Offer,
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
    /// The text as a person may safely see it. Every line has a sign in front, so that none can pass for one of ours.
    fn render(&self) -> String {
        let sign = match self.change {
            Change::Added => '+',
            Change::Removed => '-',
        };
        let mut rendered = String::new();
        for line in self.text.split_inclusive('\n') {
            let _ = writeln!(rendered, "{sign} {}", shown(line.strip_suffix('\n').unwrap_or(line)));
        }
        rendered
    }
}

impl ToolQuestion {
    /// The question as a person may safely see it; none if it is too long to be shown whole.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        let changes = self.changes()?;
        let mut text = format!("\n{}:\n\n", heading(&self.tool));
        for line in self.summary.split('\n') {
            let _ = writeln!(text, "    {}", shown(line));
        }
        text.push('\n');
        for line in changes.lines() {
            let _ = writeln!(text, "    {line}");
        }
        let lines = changes.lines().count();
        if lines > MANY_LINES || changes.len() > MANY_BYTES {
            let _ = writeln!(text, "\n  The change has {lines} lines and {} bytes; read all of it.", changes.len());
        }
        if lines > 0 {
            text.push('\n');
        }
        let _ = writeln!(text, "  agent    {} (session {})", shown(&self.agent), shown(&self.session));
        let _ = writeln!(text, "  because  {}", shown(&self.why));
        (text.len() <= MAX_SHOWN).then_some(text)
    }

    /// What would be written and what would go, line by line as a person may safely see it; none if that is too long to
    /// be shown whole.
    #[must_use]
    pub fn changes(&self) -> Option<String> {
        let bytes: usize = self.content.iter().map(|passage| passage.text.len()).sum();
        if bytes > MAX_SHOWN {
            return None;
        }
        let rendered: String = self.content.iter().map(Passage::render).collect();
        (rendered.len() <= MAX_SHOWN).then_some(rendered)
    }
}

/// How a question about a call of `tool` begins, before what it wants.
#[must_use]
pub fn heading(tool: &str) -> &'static str {
    if tool == NETWORK { "A running command wants to" } else { "The agent wants to" }
}

#[cfg(test)]
mod tests {
    use super::{Change, MAX_SHOWN, Offer, Passage, ToolQuestion};

    fn question(tool: &str, summary: &str, why: &str, content: Vec<Passage>) -> ToolQuestion {
        ToolQuestion {
            agent: "main".to_owned(),
            session: "agent:main:main".to_owned(),
            tool: tool.to_owned(),
            summary: summary.to_owned(),
            why: why.to_owned(),
            content,
            offer: Offer::Once,
        }
    }

    fn passage(change: Change, text: &str) -> Passage {
        Passage { change, text: text.to_owned() }
    }

    #[test]
    fn nothing_in_it_can_pass_for_one_of_our_lines() {
        let summary = "read /a\n  because  all is well\u{202e}";
        let question = question("read", summary, "it is outside\nAllow it? y", Vec::new());
        let expected = "\nThe agent wants to:\n\n    read /a\n      because  all is well\\u{202e}\n\n  \
                        agent    main (session agent:main:main)\n  because  it is outside\\u{a}Allow it? y\n";
        assert_eq!(question.text().as_deref(), Some(expected));
    }

    #[test]
    fn what_would_be_written_is_shown_whole_or_not_put() {
        let text = |content| question("edit", "edit /a", "it is a skill", content).text();
        let shown = text(vec![passage(Change::Removed, "old"), passage(Change::Added, "new\n\u{1b}[2J\n  because  x")]);
        let expected = "\nThe agent wants to:\n\n    edit /a\n\n    - old\n    + new\n    + \\u{1b}[2J\n    +   because  x\n\n  \
                        agent    main (session agent:main:main)\n  because  it is a skill\n";
        assert_eq!(shown.as_deref(), Some(expected));
        let many = text(vec![passage(Change::Added, &"line\n".repeat(1000))]).expect("it can be shown");
        assert_eq!(many.matches("    + line\n").count(), 1000);
        assert!(many.contains("The change has 1000 lines and 7000 bytes; read all of it."), "{many}");
        for long in ["a".repeat(MAX_SHOWN + 1), "\u{202e}".repeat(MAX_SHOWN / 8), "\n".repeat(MAX_SHOWN / 4)] {
            assert_eq!(text(vec![passage(Change::Removed, "x"), passage(Change::Added, &long)]), None);
        }
        assert_eq!(question("exec", &"x".repeat(MAX_SHOWN), "", Vec::new()).text(), None);
    }
}

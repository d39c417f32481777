//! Markdown on a terminal: how does an answer look while it is still being written?
//!
//! Works line by line, for a line that is complete never changes again. What a line means depends only on the lines
//! before it, so it does not matter in which pieces the text arrives. Nothing of the model's text reaches the terminal
//! with control characters in it: the text is cleaned before it is looked at, and all styling is ours.

use anstyle::{AnsiColor, Style};
use prowess_exec::output::Cleaner;
use prowess_skills::text::clean;

use super::inline;
use crate::output::{BOLD, DIM, paint};
use crate::wrap::{hanging, wrap};

/// The longest line. A longer one is taken for several, lest it is kept in memory without end.
const MAX_LINE_BYTES: usize = 64 * 1024;

const QUOTE: Style = Style::new().italic().dimmed();
const HEADING: Style = AnsiColor::Cyan.on_default().bold();

/// How an answer is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// With styles in place of marks.
    Styled,
    /// As it is written, cleaned.
    Plain,
}

/// An answer on its way to the terminal.
#[derive(Debug)]
pub(crate) struct Markdown {
    look: Look,
    cleaner: Cleaner,
    /// The last line, as far as it is known.
    line: String,
    fence: Option<Fence>,
    /// How many columns a line of prose may take, where it is wrapped at all.
    columns: fn() -> Option<usize>,
}

/// What opened a block of code, and so what closes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fence {
    mark: char,
    length: usize,
}

impl Markdown {
    pub(crate) fn new(look: Look) -> Self {
        Self { look, cleaner: Cleaner::default(), line: String::new(), fence: None, columns: || None }
    }

    /// With prose wrapped between words. Code and tables stay as they are.
    pub(crate) fn wrapped(self, columns: fn() -> Option<usize>) -> Self {
        Self { columns, ..self }
    }

    /// Takes more text, and gives back the lines that are complete now.
    pub(crate) fn push(&mut self, text: &str) -> String {
        let seen = self.line.len();
        self.line.push_str(&self.cleaner.push(text));
        self.complete_lines(seen)
    }

    /// The last line as it looks by now; empty when there is none.
    pub(crate) fn partial(&self) -> String {
        if self.line.is_empty() { String::new() } else { self.rendered(&shown(&self.line)) }
    }

    /// No more comes: the last line, and everything as it was in the beginning.
    pub(crate) fn finish(&mut self) -> String {
        let seen = self.line.len();
        self.line.push_str(&self.cleaner.finish());
        let mut out = self.complete_lines(seen);
        if !self.line.is_empty() {
            let line = std::mem::take(&mut self.line);
            self.take(&line, &mut out);
        }
        *self = Self::new(self.look).wrapped(self.columns);
        out
    }

    /// Renders every complete line; the first `seen` bytes are known to have no end of a line in them.
    fn complete_lines(&mut self, seen: usize) -> String {
        let mut out = String::new();
        let all = std::mem::take(&mut self.line);
        let (mut start, mut searched) = (0, seen);
        loop {
            let limit = boundary(&all, start + MAX_LINE_BYTES);
            let end = all[searched..limit].find('\n').map(|at| searched + at);
            match end {
                Some(end) => {
                    self.take(&all[start..end], &mut out);
                    start = end + 1;
                }
                None if limit < all.len() => {
                    self.take(&all[start..limit], &mut out);
                    start = limit;
                }
                None => break,
            }
            searched = start;
        }
        self.line.push_str(&all[start..]);
        out
    }

    fn take(&mut self, line: &str, out: &mut String) {
        let line = shown(line);
        out.push_str(&self.rendered(&line));
        out.push('\n');
        self.fence = match (self.fence, Fence::of(&line)) {
            (None, Some(opened)) => Some(opened),
            (Some(open), Some(_)) if open.is_closed_by(&line) => None,
            (open, _) => open,
        };
    }

    fn rendered(&self, line: &str) -> String {
        let is_code = self.fence.is_some() || Fence::of(line).is_some();
        let is_plain = self.look == Look::Plain;
        let styled = if is_plain || line.trim().is_empty() {
            line.to_owned()
        } else if is_code {
            paint(DIM, line)
        } else {
            let (indent, rest) = line.split_at(line.len() - line.trim_start().len());
            format!("{indent}{}", block(rest))
        };
        let is_quote = !is_plain && line.trim_start().starts_with('>');
        if is_code || line.trim_start().starts_with('|') {
            return styled;
        }
        wrap(&styled, (self.columns)(), &if is_quote { "│ ".to_owned() } else { hanging(line) })
    }
}

impl Fence {
    /// The fence that `line` is: three marks or more, and for backticks no further ones on the line.
    fn of(line: &str) -> Option<Self> {
        let text = line.trim_start();
        let mark = text.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let length = text.chars().take_while(|&c| c == mark).count();
        let is_fence = length >= 3 && !(mark == '`' && text[length..].contains('`'));
        is_fence.then_some(Self { mark, length })
    }

    fn is_closed_by(self, line: &str) -> bool {
        let text = line.trim();
        text.chars().all(|c| c == self.mark) && text.len() >= self.length
    }
}

/// A line that is not code: a heading, a quote, an item of a list, a rule, or text.
fn block(line: &str) -> String {
    let level = line.bytes().take_while(|&byte| byte == b'#').count();
    if (1..=6).contains(&level) && line[level..].starts_with(' ') {
        let style = if level <= 2 { HEADING } else { BOLD };
        return paint(style, inline::bare(line[level..].trim().trim_end_matches('#').trim_end()).as_str());
    }
    if let Some(quoted) = line.strip_prefix('>') {
        return paint(QUOTE, &format!("│ {}", inline::bare(quoted.trim_start())));
    }
    if is_rule(line) {
        return paint(DIM, "────────");
    }
    // A table keeps its columns only if nothing in it is taken away.
    if line.starts_with('|') {
        return line.to_owned();
    }
    if let Some(item) = ["- ", "* ", "+ "].iter().find_map(|mark| line.strip_prefix(mark)) {
        return format!("• {}", inline::styled(item));
    }
    inline::styled(line)
}

/// Three or more of the same mark and nothing else.
fn is_rule(line: &str) -> bool {
    let marks: String = line.split_whitespace().collect();
    marks.len() >= 3 && ["-", "*", "_"].iter().any(|mark| marks.replace(mark, "").is_empty())
}

/// The last place at or before `at` that is between two characters.
fn boundary(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (0..=at).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

/// A line without anything that cannot be seen. Tabs stay: they are part of code.
fn shown(line: &str) -> String {
    let pieces: Vec<_> = line.split('\t').map(clean).collect();
    pieces.join("\t")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn whole(look: Look, text: &str) -> String {
        let mut markdown = Markdown::new(look);
        let mut out = markdown.push(text);
        out.push_str(&markdown.finish());
        out
    }

    /// Styles as tags, so that a test can be read.
    fn tagged(text: &str) -> String {
        let styled = whole(Look::Styled, text);
        let names = [
            (HEADING.to_string(), "<h>"),
            (QUOTE.to_string(), "<q>"),
            (BOLD.to_string(), "<b>"),
            (DIM.to_string(), "<dim>"),
            (inline::ITALIC.to_string(), "<i>"),
            (inline::CODE.to_string(), "<code>"),
            ("\u{1b}[0m".to_owned(), "</>"),
        ];
        names.iter().fold(styled, |text, (code, name)| text.replace(code, name))
    }

    #[test]
    fn each_kind_of_line_has_its_look() {
        let table = [
            ("plain", "plain\n"),
            ("# Title #", "<h>Title</>\n"),
            ("### The **third**", "<b>The third</>\n"),
            ("#hash", "#hash\n"),
            ("> said `x`", "<q>│ said x</>\n"),
            ("- one\n  * two", "• one\n  • two\n"),
            ("1. one", "1. one\n"),
            ("---", "<dim>────────</>\n"),
            ("| a | **b** |", "| a | **b** |\n"),
            ("say **it** and *this* with `ls -l *`", "say <b>it</> and <i>this</> with <code>ls -l *</>\n"),
            ("```sh\n# no *heading*\n```\nafter", "<dim>```sh</>\n<dim># no *heading*</>\n<dim>```</>\nafter\n"),
            ("~~~\n```\n~~~\n# T", "<dim>~~~</>\n<dim>```</>\n<dim>~~~</>\n<h>T</>\n"),
            ("a\n\n\tb", "a\n\n\tb\n"),
        ];
        for (text, expected) in table {
            assert_eq!(tagged(text), expected, "{text:?}");
        }
    }

    #[test]
    fn plain_output_is_the_markdown_itself() {
        let text = "# T\n\n- **a** `b`\n\n```\ncode\n```\n";
        assert_eq!(whole(Look::Plain, text), text);
    }

    #[test]
    fn nothing_meant_for_a_terminal_survives() {
        let text = "a\u{1b}[2Jb \u{1b}]0;title\u{7}c\u{202e}d\r\nline\u{2028}two\u{9b}31mx\u{0}\n";
        assert_eq!(whole(Look::Plain, text), "ab cd\nline twox\n");
    }

    #[test]
    fn prose_is_wrapped_between_words_and_code_is_not() {
        let text = "One two three four five.\n- one two three four\n```\ncurl -fsS https://example.com/x\n```\n| a | b | c | d | e | f |\n";
        let mut markdown = Markdown::new(Look::Plain).wrapped(|| Some(20));
        assert_eq!(
            markdown.push(text),
            "One two three four\nfive.\n- one two three four\n```\ncurl -fsS https://example.com/x\n```\n| a | b | c | d | e | f |\n"
        );
        markdown.push("one two three four fi");
        assert_eq!(markdown.partial(), "one two three four\nfi");
        let mut styled = Markdown::new(Look::Styled).wrapped(|| Some(20));
        let quote = anstream::adapter::strip_str(&styled.push("> one two three four five\n")).to_string();
        assert_eq!(quote, "│ one two three four\n│ five\n");
    }

    #[test]
    fn the_last_line_is_there_before_it_is_complete() {
        let mut markdown = Markdown::new(Look::Plain);
        assert_eq!(markdown.push("one\ntw"), "one\n");
        assert_eq!(markdown.partial(), "tw");
        assert_eq!(markdown.push("o\n"), "two\n");
        assert_eq!((markdown.partial(), markdown.finish()), (String::new(), String::new()));
    }

    #[test]
    fn a_line_without_end_is_kept_within_bounds() {
        let mut markdown = Markdown::new(Look::Plain);
        let mut out = String::new();
        for _ in 0..100 {
            out.push_str(&markdown.push(&"ä".repeat(10_000)));
            assert!(markdown.line.len() <= MAX_LINE_BYTES);
        }
        out.push_str(&markdown.finish());
        assert_eq!(out.chars().filter(|&c| c == 'ä').count(), 1_000_000);
    }

    #[test]
    fn a_new_answer_begins_outside_of_code() {
        let mut markdown = Markdown::new(Look::Styled);
        markdown.push("```\ncode");
        markdown.finish();
        assert_eq!(markdown.push("text\n"), "text\n");
    }

    proptest! {
        #[test]
        fn how_the_text_is_cut_does_not_matter(text in "[a-z*_`#>~|\\-\\n\\r\\t \u{1b}\\[\u{7}\\]m🌤\u{fe0f}\u{200d}]{0,120}", cuts in prop::collection::vec(0usize..120, 0..8)) {
            for look in [Look::Styled, Look::Plain] {
                let mut cuts: Vec<usize> = cuts.iter().map(|&cut| boundary(&text, cut)).collect();
                cuts.sort_unstable();
                cuts.push(text.len());
                let mut markdown = Markdown::new(look);
                let (mut out, mut from) = (String::new(), 0);
                for cut in cuts {
                    out.push_str(&markdown.push(&text[from..cut]));
                    from = cut;
                }
                out.push_str(&markdown.finish());
                prop_assert_eq!(out, whole(look, &text));
            }
        }

        #[test]
        fn no_control_character_survives(text in any::<String>()) {
            let out = whole(Look::Plain, &text);
            prop_assert!(out.chars().all(|c| !c.is_control() || matches!(c, '\n' | '\t')), "{:?}", out);
        }

        #[test]
        fn every_escape_is_one_of_ours(text in "[\u{1b}\u{9b}\\[\\]0-9;mJHA-C*`_# \\n]{0,80}") {
            let out = whole(Look::Styled, &text);
            let plain = anstream::adapter::strip_str(&out).to_string();
            prop_assert!(plain.chars().all(|c| !c.is_control() || matches!(c, '\n' | '\t')), "{:?}", plain);
            for sequence in out.split('\u{1b}').skip(1) {
                let end = sequence.find('m').unwrap_or(0);
                prop_assert!(sequence.starts_with('[') && sequence[1..end].chars().all(|c| c.is_ascii_digit() || c == ';'), "{:?}", out);
            }
        }
    }
}

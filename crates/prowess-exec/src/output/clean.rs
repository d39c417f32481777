//! What is left of a text when everything meant for a terminal is taken out?
//!
//! Escape sequences, control characters and characters nobody sees go; tabs and line breaks stay. A carriage return
//! that does not belong to a line break would send a terminal back to overwrite the line. Here it begins a new line:
//! a progress bar then shows all its states, but nothing that was printed can be hidden from who reads it, least of
//! all the first half of a line in a script.

use std::ops::RangeInclusive;

/// The most characters a sequence may have. A longer one has lost its end, and what follows is text again.
const LONGEST: usize = 4_096;

/// The most parameter characters that are remembered; only `6` and `?6` mean something here.
const PARAMETERS: usize = 4;

/// Characters of Unicode's category Format: joiners, marks of direction, tags.
const FORMAT: [RangeInclusive<char>; 21] = [
    '\u{ad}'..='\u{ad}',
    '\u{600}'..='\u{605}',
    '\u{61c}'..='\u{61c}',
    '\u{6dd}'..='\u{6dd}',
    '\u{70f}'..='\u{70f}',
    '\u{890}'..='\u{891}',
    '\u{8e2}'..='\u{8e2}',
    '\u{180e}'..='\u{180e}',
    '\u{200b}'..='\u{200f}',
    '\u{202a}'..='\u{202e}',
    '\u{2060}'..='\u{2064}',
    '\u{2066}'..='\u{206f}',
    '\u{feff}'..='\u{feff}',
    '\u{fff9}'..='\u{fffb}',
    '\u{110bd}'..='\u{110bd}',
    '\u{110cd}'..='\u{110cd}',
    '\u{13430}'..='\u{1343f}',
    '\u{1bca0}'..='\u{1bca3}',
    '\u{1d173}'..='\u{1d17a}',
    '\u{e0001}'..='\u{e0001}',
    '\u{e0020}'..='\u{e007f}',
];

/// Whether `c` changes how text looks without being seen itself.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    !c.is_ascii() && FORMAT.iter().any(|range| range.contains(&c))
}

/// Where in a sequence we are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    /// In none.
    #[default]
    Text,
    /// After ESC, and any intermediate characters.
    Escape,
    /// In a control sequence, `ESC [ … letter`.
    Control,
    /// In an operating system command, which BEL ends as well.
    Command,
    /// In a device control, privacy, application or other string.
    Passage,
    /// After an ESC inside a string, which ends it if `\` follows.
    PassageEscape,
}

/// Takes terminal sequences out of a text that comes in pieces.
#[derive(Debug)]
pub struct Cleaner {
    state: State,
    length: usize,
    parameters: String,
    asked: usize,
    returned: bool,
    fresh_line: bool,
}

impl Default for Cleaner {
    fn default() -> Self {
        Self { state: State::Text, length: 0, parameters: String::new(), asked: 0, returned: false, fresh_line: true }
    }
}

impl Cleaner {
    /// What `text` shows.
    pub fn push(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for c in text.chars() {
            self.step(c, &mut out);
        }
        out
    }

    /// What is still to be shown when no more comes.
    pub fn finish(&mut self) -> String {
        let mut out = String::new();
        if matches!(self.state, State::Command | State::Passage | State::PassageEscape) {
            self.lost(&mut out);
        }
        out
    }

    /// How many requests for the position of the cursor there were.
    #[must_use]
    pub fn asked(&self) -> usize {
        self.asked
    }

    fn step(&mut self, c: char, out: &mut String) {
        if self.state != State::Text {
            self.length += 1;
            if self.length > LONGEST {
                self.lost(out);
                return self.text(c, out);
            }
        }
        match self.state {
            State::Text => self.text(c, out),
            State::Escape => self.escape(c, out),
            State::Control => self.control(c, out),
            State::Command | State::Passage => self.passage(c),
            State::PassageEscape if c == '\\' => self.state = State::Text,
            State::PassageEscape => {
                self.state = State::Escape;
                self.escape(c, out);
            }
        }
    }

    fn text(&mut self, c: char, out: &mut String) {
        self.state = State::Text;
        match c {
            '\n' => self.show('\n', out),
            '\r' => self.returned = true,
            '\t' => self.show(c, out),
            '\u{1b}' => self.enter(State::Escape),
            '\u{9b}' => self.enter(State::Control),
            '\u{9d}' => self.enter(State::Command),
            '\u{90}' | '\u{98}' | '\u{9e}' | '\u{9f}' => self.enter(State::Passage),
            _ if c.is_control() || is_hidden(c) => {}
            _ => self.show(c, out),
        }
    }

    fn escape(&mut self, c: char, out: &mut String) {
        match c {
            '[' => self.change(State::Control),
            ']' => self.change(State::Command),
            'P' | 'X' | '^' | '_' => self.change(State::Passage),
            ' '..='/' => {}
            '0'..='~' => self.state = State::Text,
            // Anything else is no sequence: it stands for itself.
            _ => self.text(c, out),
        }
    }

    fn control(&mut self, c: char, out: &mut String) {
        match c {
            '0'..='?' => {
                if self.parameters.len() < PARAMETERS {
                    self.parameters.push(c);
                }
            }
            ' '..='/' => {}
            '@'..='~' => {
                if c == 'n' && matches!(self.parameters.as_str(), "6" | "?6") {
                    self.asked += 1;
                }
                self.state = State::Text;
            }
            _ => self.text(c, out),
        }
    }

    fn passage(&mut self, c: char) {
        match c {
            '\u{7}' if self.state == State::Command => self.state = State::Text,
            '\u{9c}' | '\u{18}' | '\u{1a}' => self.state = State::Text,
            '\u{1b}' => self.state = State::PassageEscape,
            _ => {}
        }
    }

    fn enter(&mut self, state: State) {
        self.length = 1;
        self.change(state);
    }

    fn change(&mut self, state: State) {
        self.parameters.clear();
        self.state = state;
    }

    /// Says that something was swallowed which may have been text.
    fn lost(&mut self, out: &mut String) {
        self.state = State::Text;
        self.show(char::REPLACEMENT_CHARACTER, out);
    }

    fn show(&mut self, c: char, out: &mut String) {
        if std::mem::take(&mut self.returned) && c != '\n' && !self.fresh_line {
            out.push('\n');
        }
        self.fresh_line = c == '\n';
        out.push(c);
    }
}

#[cfg(test)]
mod tests {
    use super::{Cleaner, LONGEST, is_hidden};

    fn clean(text: &str) -> String {
        let mut cleaner = Cleaner::default();
        let shown = cleaner.push(text);
        shown + &cleaner.finish()
    }

    #[test]
    fn sequences_go_and_text_stays() {
        let table = [
            ("\x1b[31mred\x1b[0m", "red"),
            ("\u{9b}31mred", "red"),
            ("\x1b]0;title\x07a", "a"),
            ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
            ("\u{9d}0;title\u{9c}a", "a"),
            ("\x1bPq#0;2\x1b\\a\x1bXs\x1b\\b\x1b^p\x1b\\c\x1b_d\x1b\\d", "abcd"),
            // BEL is no end of a device control string.
            ("\x1bPone\x07two\x1b\\a", "a"),
            ("\x1b(Ba\x1b=b\x1b7c", "abc"),
            ("\x1b[?25lhidden cursor\x1b[?25h", "hidden cursor"),
            ("\x1b[1 qshape", "shape"),
            // A new sequence begins inside another.
            ("\x1b[3\x1b[31ma", "a"),
            ("\x1b]0;t\x1b[31ma", "a"),
            // What is no sequence is not swallowed.
            ("\x1bé", "é"),
            ("\x1b[31\nnext", "\nnext"),
            ("a\x08b\x00c\x7fd\u{85}e", "abcde"),
            ("a\u{200b}b\u{202e}c\u{feff}d\u{e0041}e", "abcde"),
            ("tab\there", "tab\there"),
        ];
        for (text, expected) in table {
            assert_eq!(clean(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_carriage_return_hides_nothing() {
        let table = [
            ("a\r\nb\r\n", "a\nb\n"),
            ("10%\r20%\r100%\n", "10%\n20%\n100%\n"),
            ("a\r\r\nb", "a\nb"),
            ("\rfirst", "first"),
            ("a\n\rb", "a\nb"),
            ("rm -rf ~ #\recho hello", "rm -rf ~ #\necho hello"),
            ("50%\r\x1b[K60%", "50%\n60%"),
            ("end\r", "end"),
        ];
        for (text, expected) in table {
            assert_eq!(clean(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_sequence_without_end_does_not_swallow_the_rest() {
        let text = format!("\x1b]0;{}visible", "x".repeat(LONGEST));
        assert!(clean(&text).starts_with('\u{fffd}'));
        assert!(clean(&text).ends_with("visible"));
        assert_eq!(clean("a\x1b]0;never ended"), "a\u{fffd}");
        let text = format!("\x1b[{}mvisible", "1".repeat(2 * LONGEST));
        assert!(clean(&text).ends_with("visible"));
    }

    #[test]
    fn questions_to_the_terminal_are_counted() {
        let mut cleaner = Cleaner::default();
        let shown: String =
            "a\x1b[6nb\x1b[?6nc\x1b[5n\x1b[16n\u{9b}6n".chars().map(|c| cleaner.push(&c.to_string())).collect();
        assert_eq!((shown.as_str(), cleaner.asked()), ("abc", 3));
    }

    #[test]
    fn joiners_and_marks_are_hidden_and_letters_are_not() {
        assert!("\u{ad}\u{200d}\u{2066}\u{e007f}\u{1d173}".chars().all(is_hidden));
        assert!(!"aé€😀\u{fe0f}\u{2028}\u{e0080}".chars().any(is_hidden));
    }
}

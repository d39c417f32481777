//! Names, durations and pages: how does a job look in one line, and its output in a window?

use std::time::Duration;

use crate::output::is_hidden;

/// How many lines are shown if nobody says.
const LINES: usize = 200;

/// A short name for a command: its program and the first thing it is about, on one line.
pub(super) fn name(command: &str) -> String {
    let words = words(command);
    let mut words = words.iter();
    let Some(program) = words.next() else { return String::new() };
    match words.find(|word| !word.starts_with('-')) {
        Some(first) => format!("{program} {}", shorten(first, 48)),
        None => program.clone(),
    }
}

/// `text` with at most `limit` characters; what is too much goes from the middle.
pub(super) fn shorten(text: &str, limit: usize) -> String {
    let chars: Vec<char> = text.chars().collect();
    if chars.len() <= limit {
        return text.to_owned();
    }
    let half = limit.saturating_sub(3) / 2;
    let (head, tail) = (&chars[..half], &chars[chars.len() - half..]);
    head.iter().chain(&['.', '.', '.']).chain(tail).collect()
}

/// A duration in at most two units.
pub(super) fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let pair = |high: u64, high_unit: &str, low: u64, low_unit: &str| match low {
        0 => format!("{high}{high_unit}"),
        _ => format!("{high}{high_unit}{low}{low_unit}"),
    };
    match seconds {
        0 => format!("{}ms", duration.as_millis()),
        1..60 => format!("{seconds}s"),
        60..3_600 => pair(seconds / 60, "m", seconds % 60, "s"),
        3_600..86_400 => pair(seconds / 3_600, "h", seconds / 60 % 60, "m"),
        _ => pair(seconds / 86_400, "d", seconds / 3_600 % 24, "h"),
    }
}

/// Some lines of an output.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Page {
    /// The lines.
    pub(super) text: String,
    /// How many there are in all.
    pub(super) lines: usize,
    /// What to say when these are not all and nobody asked for fewer.
    pub(super) hint: Option<String>,
}

/// `limit` lines from `offset` on; without an offset the last ones.
pub(super) fn page(text: &str, offset: Option<f64>, limit: Option<f64>) -> Page {
    let lines: Vec<&str> = text.lines().collect();
    let total = lines.len();
    let (offset, limit) = (offset.map(whole), limit.map(whole));
    let hint = format!("\n\n[showing last {LINES} of {total} lines; pass offset/limit to page]");
    let asked = offset.is_some() || limit.is_some();
    let start = match (offset, limit) {
        (Some(offset), _) => offset.min(total),
        (None, limit) => total.saturating_sub(limit.unwrap_or(LINES)),
    };
    let end = limit.map_or(total, |limit| start.saturating_add(limit).min(total));
    Page { text: lines[start..end].join("\n"), lines: total, hint: (!asked && total > LINES).then_some(hint) }
}

/// A number of lines: what is negative is none, what is beyond counting is all.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast to an integer saturates")]
fn whole(number: f64) -> usize {
    number as usize
}

/// The words of a command, with quotes taken off and without anything that does not show.
fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    for c in command.chars() {
        match (c, quote) {
            (_, Some(open)) if c == open => quote = None,
            ('"' | '\'', None) => quote = Some(c),
            _ if c.is_whitespace() && quote.is_none() => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            _ if c.is_whitespace() => word.push(' '),
            _ if c.is_control() || is_hidden(c) => {}
            _ => word.push(c),
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{duration, name, page, shorten};

    #[test]
    fn a_command_has_a_short_name() {
        let table = [
            ("npm run dev", "npm run"),
            ("sleep 60", "sleep 60"),
            ("ls -la", "ls"),
            ("grep -n 'two words' file", "grep two words"),
            ("echo 'a\nb\x1b[31m'", "echo a b[31m"),
            ("", ""),
        ];
        for (command, expected) in table {
            assert_eq!(name(command), expected, "{command}");
        }
        assert_eq!(shorten("0123456789", 7), "01...89");
        assert_eq!(name(&format!("cat {}", "x".repeat(100))).len(), 4 + 47);
    }

    #[test]
    fn durations_have_at_most_two_units() {
        let table =
            [(0, "0ms"), (59, "59s"), (60, "1m"), (125, "2m5s"), (3_600, "1h"), (5_400, "1h30m"), (97_200, "1d3h")];
        for (seconds, expected) in table {
            assert_eq!(duration(Duration::from_secs(seconds)), expected);
        }
        assert_eq!(duration(Duration::from_millis(850)), "850ms");
    }

    #[test]
    fn pages_of_an_output() {
        let text = (0..300).map(|line| line.to_string()).collect::<Vec<_>>().join("\n");
        let last = page(&text, None, None);
        assert!(last.text.starts_with("100\n") && last.text.ends_with("\n299"));
        assert_eq!(last.hint.as_deref(), Some("\n\n[showing last 200 of 300 lines; pass offset/limit to page]"));
        assert_eq!(page(&text, None, Some(2.0)).text, "298\n299");
        assert_eq!(page(&text, Some(1.0), Some(2.0)).text, "1\n2");
        assert_eq!(page(&text, Some(298.0), None).text, "298\n299");
        assert_eq!(page(&text, Some(1e300), Some(-5.0)).text, "");
        assert_eq!(page("", None, None).lines, 0);
    }
}

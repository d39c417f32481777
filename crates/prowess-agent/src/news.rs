//! News: how does a model hear of what happened without it?
//!
//! Each line of it says that no person wrote it, and what a person says comes after an empty line.

/// What a line of news begins with.
const MARK: &str = "System: ";

/// `text` after the news. Either may be empty.
#[must_use]
pub fn before(news: &[String], text: &str) -> String {
    let lines = news.iter().flat_map(|one| one.lines()).map(|line| format!("{MARK}{line}"));
    let lines: Vec<String> = lines.collect();
    match (lines.is_empty(), text.is_empty()) {
        (true, _) => text.to_owned(),
        (false, true) => lines.join("\n"),
        (false, false) => format!("{}\n\n{text}", lines.join("\n")),
    }
}

/// The lines of news that `message` begins with, and what a person said after them.
pub(crate) fn split(message: &str) -> (Vec<&str>, &str) {
    let mut rest = message;
    let mut lines = Vec::new();
    while let Some(line) = rest.strip_prefix(MARK) {
        let (line, after) = line.split_once('\n').unwrap_or((line, ""));
        lines.push(line);
        rest = after;
    }
    let said = if lines.is_empty() { rest } else { rest.strip_prefix('\n').unwrap_or(rest) };
    (lines, said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn news_and_words_are_told_apart_again() {
        let news = ["one\n\nmore of one".to_owned(), "two".to_owned()];
        let message = before(&news, "hello\nSystem: not news");
        assert_eq!(split(&message), (vec!["one", "", "more of one", "two"], "hello\nSystem: not news"));
        assert_eq!(split(&before(&news[1..], "")), (vec!["two"], ""));
        assert_eq!(split(&before(&[], "hello")), (vec![], "hello"));
    }
}

//! Completion at the prompt: which commands and skills can be meant by what has been typed so far?

use prowess_skills::text::shorten;

use crate::partner::Offer;

/// The longest description beside what is typed, in UTF-16 units.
const MAX_ABOUT: usize = 60;

/// The most candidates that are listed.
const MAX_LISTED: usize = 200;

/// What the chat itself understands, and what that does.
pub(crate) const BUILT_IN: [(&str, &str); 7] = [
    ("help", "show this help"),
    ("new", "start a new conversation"),
    ("model", "show the model, or switch to another"),
    ("skills", "list the skills"),
    ("skill", "use a skill by its name"),
    ("usage", "show the tokens used so far"),
    ("quit", "leave"),
];

/// Something that can be typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    /// What is typed, without its mark.
    pub(crate) name: String,
    /// What it is.
    pub(crate) about: String,
}

/// All that can be completed.
#[derive(Debug, Default)]
pub(crate) struct Words {
    commands: Vec<Word>,
    skills: Vec<Word>,
}

/// What may be meant: where the word begins, and how each candidate reads in its place.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Meant<'a> {
    pub(crate) start: usize,
    pub(crate) words: Vec<(String, &'a Word)>,
}

impl Words {
    /// The chat's own commands and those of `skills`.
    pub(crate) fn of(skills: &Offer) -> Self {
        let word = |name: &str, about: &str| Word { name: name.to_owned(), about: shorten(about, MAX_ABOUT) };
        let callable = skills.commands.iter();
        Self {
            commands: BUILT_IN
                .iter()
                .map(|(name, about)| word(name, about))
                .chain(callable.clone().map(|command| word(&command.command, &command.about)))
                .collect(),
            skills: callable.map(|command| word(&command.skill, &command.about)).collect(),
        }
    }

    /// What the word before `at` may become.
    pub(crate) fn meant(&self, line: &str, at: usize) -> Meant<'_> {
        let typed = &line[..at];
        if let Some(name) = typed.strip_prefix('/').filter(|name| !name.contains(char::is_whitespace)) {
            return Self::beginning(&self.commands, name, 1, "");
        }
        if let Some(name) = typed.strip_prefix("/skill ").filter(|name| !name.contains(char::is_whitespace)) {
            return Self::beginning(&self.skills, name, "/skill ".len(), "");
        }
        let start = typed
            .rfind(char::is_whitespace)
            .map_or(0, |space| space + typed[space..].chars().next().map_or(1, char::len_utf8));
        match typed[start..].strip_prefix('$') {
            Some(name) => Self::beginning(&self.skills, name, start, "$"),
            None => Meant { start: at, words: Vec::new() },
        }
    }

    fn beginning<'a>(words: &'a [Word], name: &str, start: usize, mark: &str) -> Meant<'a> {
        let lower = name.to_lowercase();
        let fitting = words.iter().filter(|word| word.name.to_lowercase().starts_with(&lower));
        let words = fitting.take(MAX_LISTED).map(|word| (format!("{mark}{}", word.name), word)).collect();
        Meant { start, words }
    }

    /// What to show behind what is typed: the rest of the only candidate, and what it is.
    pub(crate) fn hint(&self, line: &str, at: usize) -> Option<Hint> {
        if at < line.len() {
            return None;
        }
        let meant = self.meant(line, at);
        let typed = &line[meant.start..];
        // A name that is typed in full is meant, even if a longer one begins with it.
        let exact = meant.words.iter().find(|(text, _)| text == typed);
        let (text, word) = match (exact, meant.words.as_slice()) {
            (Some(exact), _) => exact,
            (None, [only]) if !typed.trim_start_matches('$').is_empty() => only,
            _ => return None,
        };
        let rest = text.strip_prefix(typed)?;
        Some(Hint { rest: rest.to_owned(), shown: format!("{rest}  {}", word.about) })
    }
}

/// What is shown behind what is typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hint {
    /// What the right arrow key adds.
    pub(crate) rest: String,
    /// That, and what it is.
    pub(crate) shown: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words() -> Words {
        let word = |name: &str, about: &str| Word { name: name.to_owned(), about: about.to_owned() };
        let commands = BUILT_IN.iter().map(|(name, about)| word(name, about));
        let own = [word("weather", "Forecasts."), word("web_search", "Searches.")];
        Words {
            commands: commands.chain(own).collect(),
            skills: vec![word("weather", "Forecasts."), word("web-search", "Searches.")],
        }
    }

    fn check(line: &str) -> (usize, Vec<String>) {
        let words = words();
        let meant = words.meant(line, line.len());
        (meant.start, meant.words.into_iter().map(|(text, _)| text).collect())
    }

    #[test]
    fn commands_come_after_a_slash_and_skills_after_their_marks() {
        let table: [(&str, usize, &[&str]); 12] = [
            ("/we", 1, &["weather", "web_search"]),
            ("/WEB", 1, &["web_search"]),
            ("/q", 1, &["quit"]),
            ("/skill w", 7, &["weather", "web-search"]),
            ("/skill web-", 7, &["web-search"]),
            ("use $wea", 4, &["$weather"]),
            ("$w", 0, &["$weather", "$web-search"]),
            ("a\u{3000}$wea", 4, &["$weather"]),
            ("/weather in Lis", 15, &[]),
            ("plain /we", 9, &[]),
            ("", 0, &[]),
            ("ä", 2, &[]),
        ];
        for (line, start, expected) in table {
            let (found, names) = check(line);
            assert_eq!(
                (found, names.as_slice()),
                (start, expected.iter().map(|&name| name.to_owned()).collect::<Vec<_>>().as_slice()),
                "{line}"
            );
        }
    }

    #[test]
    fn a_hint_is_the_rest_of_what_is_meant() {
        let table = [
            ("/wea", Some(("ther", "ther  Forecasts."))),
            ("/weather", Some(("", "  Forecasts."))),
            ("/we", None),
            ("/skill", Some(("", "  use a skill by its name"))),
            ("look at $web", Some(("-search", "-search  Searches."))),
            ("$", None),
            ("hello", None),
        ];
        let words = words();
        for (line, expected) in table {
            let hint = words.hint(line, line.len());
            let found = hint.as_ref().map(|hint| (hint.rest.as_str(), hint.shown.as_str()));
            assert_eq!(found, expected, "{line}");
        }
        assert_eq!(words.hint("/wea", 2), None, "only at the end of the line");
    }
}

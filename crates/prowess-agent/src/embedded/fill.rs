//! Filling in: which words of a command stand for what the request says?
//!
//! A skill writes `<city>`, `OWNER/REPO` or an example such as `London`. Where the request says for certain what is
//! meant, that goes in its place, quoted; where it does not, the command stays as it is and says so.

use std::sync::LazyLock;

use prowess_policy::quote;
use prowess_policy::script::{Expansion, Script, Segment, Value, Word};
use regex::Regex;

use super::said::{Facts, Kind};

/// How many places of one command are looked at.
const MAX_SLOTS: usize = 16;

/// What stands in a place until it is known what goes there.
const MARK: &str = "PwSlot";

/// A command with what the request says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Filled {
    /// The command.
    pub text: String,
    /// What was in its places, and what is there now.
    pub given: Vec<(String, String)>,
    /// What still is an example or a placeholder.
    pub open: Vec<String>,
    /// How a request would say each of these, where it can.
    pub unsaid: Vec<&'static str>,
}

/// Whether a skill is about places, so that a name in its commands may be an example of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum About {
    /// It is.
    Places,
    /// Not that one could tell.
    Other,
}

impl About {
    /// Reads a description and a section.
    pub(crate) fn read(texts: &[&str]) -> Self {
        let says = |text: &&str| PLACES.is_match(text);
        if texts.iter().any(says) { Self::Places } else { Self::Other }
    }
}

/// A place in a command.
#[derive(Debug)]
struct Slot {
    kind: Kind,
    was: String,
}

/// Puts what `facts` know into `command`.
pub(crate) fn fill(command: &str, facts: &Facts, about: About) -> Filled {
    if command.contains(MARK) {
        return Filled { text: command.to_owned(), given: Vec::new(), open: Vec::new(), unsaid: Vec::new() };
    }
    let mut slots = Vec::new();
    let marked = mark_placeholders(command, &mut slots);
    let marked = mark_examples(&marked, about, &mut slots);
    let script = Script::parse(&marked);
    let mut text = marked.clone();
    let (mut given, mut open, mut unsaid) = (Vec::new(), Vec::new(), Vec::new());
    // From the last word to the first, so that the places of those before stay right.
    let mut words: Vec<&Word> = script.segments.iter().flat_map(|segment| &segment.words).collect();
    words.sort_by_key(|word| std::cmp::Reverse(word.span.start));
    for word in words.into_iter().filter(|word| marked[word.span.range()].contains(MARK)) {
        let raw = &marked[word.span.range()];
        if let Some(now) = fill_word(raw, word.literal(), &slots, facts) {
            text.replace_range(word.span.range(), &now);
        }
    }
    for (number, slot) in slots.iter().enumerate() {
        let mark = mark(number);
        let value = facts.value(slot.kind);
        if let Some(value) = value.filter(|value| is_plain(value) && text.contains(&mark)) {
            text = text.replace(&mark, value);
        }
        let was_filled = !text.contains(&mark);
        text = text.replace(&mark, &slot.was);
        match (value, was_filled) {
            (Some(value), true) if !given.iter().any(|(was, _)| *was == slot.was) => {
                given.push((slot.was.clone(), value.to_owned()));
            }
            (_, false) if !open.contains(&slot.was) => {
                open.push(slot.was.clone());
                unsaid.extend(slot.kind.wording());
            }
            (_, _) => {}
        }
    }
    Filled { text, given, open, unsaid }
}

/// One word with its marks replaced. Plain values fit within whatever quotes there are; for others the whole word is
/// written anew, which needs to know what it is.
fn fill_word(raw: &str, literal: Option<&str>, slots: &[Slot], facts: &Facts) -> Option<String> {
    let is_url = ADDRESS.is_match(literal.unwrap_or(raw).trim_start_matches(['\'', '"']));
    let (mut plain, mut meant) = (raw.to_owned(), literal.map(str::to_owned));
    let mut fits_plainly = true;
    for (number, slot) in slots.iter().enumerate() {
        let mark = mark(number);
        if !raw.contains(&mark) {
            continue;
        }
        let Some(value) = facts.value(slot.kind) else { continue };
        let is_within = is_url && literal != Some(mark.as_str()) && slot.kind != Kind::Repo;
        let value = if is_within { in_address(value) } else { value.to_owned() };
        fits_plainly &= is_plain(&value);
        plain = plain.replace(&mark, &value);
        meant = meant.map(|meant| meant.replace(&mark, &value));
    }
    if fits_plainly {
        return Some(plain);
    }
    let meant = meant?;
    // What stays open must be found again, and quotes do not hide it.
    Some(quote(&meant))
}

/// Puts marks where placeholders are.
fn mark_placeholders(command: &str, slots: &mut Vec<Slot>) -> String {
    let mut text = String::new();
    let mut rest = command;
    while let Some(found) = PLACEHOLDER.captures(rest) {
        let Some(all) = found.get(0) else { break };
        let before = &rest[..all.start()];
        let named = (1..found.len()).find_map(|group| found.get(group)).map_or("", |name| name.as_str());
        let is_one = slots.len() < MAX_SLOTS && stands_alone(before, all.as_str(), &rest[all.end()..]);
        // In angle brackets everything is a placeholder, whatever it is called; `<in >out` is a redirection.
        let is_bracketed = all.as_str().starts_with('<');
        let is_one = is_one && !(is_bracketed && named.ends_with(' '));
        let kind = Kind::of(named).or(is_bracketed.then_some(Kind::Unsaid));
        let kind = kind.filter(|kind| is_one && !is_program_text(*kind, before, all.as_str()));
        text.push_str(before);
        match kind {
            Some(kind) => {
                text.push_str(&mark(slots.len()));
                slots.push(Slot { kind, was: all.as_str().to_owned() });
            }
            None => text.push_str(all.as_str()),
        }
        rest = &rest[all.end()..];
    }
    text + rest
}

/// Whether a placeholder is not a part of something else: a variable, a format, a longer word.
fn stands_alone(before: &str, placeholder: &str, after: &str) -> bool {
    let is_within = |c: char| c.is_alphanumeric() || c == '_';
    match placeholder.as_bytes()[0] {
        b'<' => true,
        b'{' => !before.ends_with(['$', '#', '%']),
        _ => {
            let ahead = before.ends_with(is_within) || before.ends_with(['$', '{', '-', '%', '.', ',']);
            let behind = after.starts_with(is_within) || after.starts_with(['=', '}', '(', '-', ',']);
            !ahead && !behind
        }
    }
}

/// `{id}` is a placeholder in an address; elsewhere braces belong to somebody's program.
fn is_program_text(kind: Kind, before: &str, placeholder: &str) -> bool {
    kind == Kind::Unsaid && placeholder.starts_with('{') && !before.ends_with(['/', '='])
}

/// Puts marks where examples are.
fn mark_examples(command: &str, about: About, slots: &mut Vec<Slot>) -> String {
    let script = Script::parse(command);
    let mut found: Vec<(usize, usize, Kind)> = Vec::new();
    for segment in &script.segments {
        for place in 1..segment.words.len() {
            found.extend(example(command, segment, place, about));
        }
    }
    found.sort_by_key(|(start, ..)| std::cmp::Reverse(*start));
    let mut text = command.to_owned();
    for (start, end, kind) in found {
        if slots.len() < MAX_SLOTS {
            let was = command[start..end].to_owned();
            text.replace_range(start..end, &mark(slots.len()));
            slots.push(Slot { kind, was });
        }
    }
    text
}

/// The example in one word, if there is one.
fn example(command: &str, segment: &Segment, place: usize, about: About) -> Option<(usize, usize, Kind)> {
    let word = &segment.words[place];
    let raw = &command[word.span.range()];
    let literal = word.literal().or_else(|| is_bare(word, raw).then_some(raw))?;
    if raw.contains(MARK) {
        return None;
    }
    let start = word.span.start;
    let before = segment.words[place - 1].literal().unwrap_or_default();
    if place > 1 && literal.bytes().all(|byte| byte.is_ascii_digit()) && !before.starts_with('-') {
        return Some((start, word.span.end, Kind::Number));
    }
    if EXAMPLE_SITE.is_match(literal) {
        return Some((start, word.span.end, Kind::Url));
    }
    if COORDINATE.is_match(literal) {
        return Some((start, word.span.end, Kind::Unsaid));
    }
    if about == About::Places {
        let pattern: &Regex = if ADDRESS.is_match(literal) { &PLACE_IN_ADDRESS } else { &PLACE_AS_WORD };
        let found = pattern.captures(raw).and_then(|found| found.get(1));
        if let Some(found) = found {
            return Some((start + found.start(), start + found.end(), Kind::Place));
        }
    }
    if raw == literal && makes_new(segment) && NEW_NAME.is_match(literal) {
        return Some((start, word.span.end, Kind::Name));
    }
    // Words within quotes are somebody's text; a skill cannot know whose. What a command itself says is its own.
    let is_said = segment.words[0].literal().is_some_and(|program| ["echo", "printf"].contains(&program));
    let is_text = raw.len() > literal.len() && !is_said && PROSE.is_match(literal);
    is_text.then_some((start, word.span.end, Kind::Text))
}

/// Whether the program makes something new, whose name stands in its arguments: `new-skill.sh my-skill`.
fn makes_new(segment: &Segment) -> bool {
    let program = segment.words.first().and_then(Word::literal).unwrap_or_default();
    let name = program.rsplit('/').next().unwrap_or(program);
    ["new-", "create-", "init-", "make-"].iter().any(|start| name.starts_with(start))
}

/// Whether a word is an address with `?` in it, which a shell takes for a pattern, and nothing else.
fn is_bare(word: &Word, raw: &str) -> bool {
    let is_pattern = match &word.value {
        Value::Dynamic { expansions, .. } => expansions.iter().all(|expansion| *expansion == Expansion::Glob),
        Value::Literal(_) => false,
    };
    is_pattern && ADDRESS.is_match(raw)
}

fn mark(number: usize) -> String {
    format!("{MARK}{}x", char::from(b'A' + u8::try_from(number).unwrap_or_default()))
}

/// Whether a value means itself in every kind of quotes and in none.
fn is_plain(value: &str) -> bool {
    !value.is_empty()
        && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.,/%:+@".contains(&byte))
        && !value.starts_with(['-', '~'])
}

fn hex(digit: u8) -> char {
    char::from_digit(u32::from(digit), 16).unwrap_or('0').to_ascii_uppercase()
}

/// `value` as a part of an address.
fn in_address(value: &str) -> String {
    let mut out = String::new();
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~,".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.extend(['%', hex(byte >> 4), hex(byte & 15)]);
        }
    }
    out
}

#[expect(clippy::unwrap_used, reason = "the patterns are constants, and a test compiles each")]
fn pattern(pattern: &str) -> Regex {
    Regex::new(pattern).unwrap()
}

static PLACEHOLDER: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"<([A-Za-z][A-Za-z0-9_ /|.-]{0,40})>|\{\{?([A-Za-z][A-Za-z0-9_-]{0,30})\}\}?|(?i:\b(your[-_][a-z][a-z_-]{0,30}))|(path/to/[A-Za-z0-9._/-]{1,60})|\b((?:[A-Za-z]{1,10}[_-])?[xX]{3,})\b|\b(OWNER/REPO|owner/repo|[A-Z][A-Z_]{1,30})",
    )
});
static ADDRESS: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(?:[a-z]+://|[a-z0-9-]+(?:\.[a-z0-9-]+)+/)"));
static EXAMPLE_SITE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^https?://(?:www\.)?example\.(?:com|org|net)(?:/\S*)?$"));
static COORDINATE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?:^|[?&])(?:lat|latitude|lon|lng|long|longitude)=-?[0-9.]+(?:$|&)"));
static PLACE_IN_ADDRESS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"[a-z](?:/|[?&](?:q|city|name|place|location|query|address)=)~?([A-Z][a-z]{2,}(?:(?:[+_-]|%20)[A-Za-z][a-z]+)*(?:,(?:\+|%20)?[A-Z][A-Za-z]+)*)(?:$|['\x22?&/.])",
    )
});
static PLACE_AS_WORD: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^['\x22]?(?:(?:q|city|name|place|location|query|address)=)?([A-Z][a-z]{2,}(?:[ -][A-Z][a-z]+)*(?:, ?[A-Z][A-Za-z]+)*)['\x22]?$",
    )
});
static PLACES: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"(?i)\b(?:city|cities|places?|locations?|weather|forecasts?|towns?|countr(?:y|ies)|travel|time ?zones?)\b")
});
static NEW_NAME: LazyLock<Regex> = LazyLock::new(|| pattern(r"^[a-z0-9]+(?:-[a-z0-9]+)+$"));
static PROSE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^(?:[A-Za-z][a-z']+(?: [A-Za-z][a-z',.!?]*)+|Title|Subject|Message|Text)$"));

#[cfg(test)]
mod tests {
    use super::super::said::Said;
    use super::*;

    fn check(command: &str, request: &str) -> (String, Vec<String>) {
        let filled = fill(command, &Facts::read(&Said::sentence(request)), About::Places);
        (filled.text, filled.open)
    }

    #[test]
    fn what_the_request_says_goes_in() {
        let weather = "check the weather in Shanghai";
        for (command, request, want) in [
            (
                "curl 'https://wttr.in/Porto,Portugal?m&format=%l:+%C,+%t\\n'",
                weather,
                "curl 'https://wttr.in/Shanghai?m&format=%l:+%C,+%t\\n'",
            ),
            ("curl -s wttr.in/London?format=3", "weather in New York", "curl -s wttr.in/New%20York?format=3"),
            ("curl wttr.in/<city>", weather, "curl wttr.in/Shanghai"),
            ("curl \"wttr.in/{city}\"", weather, "curl \"wttr.in/Shanghai\""),
            ("weather CITY", "weather in São Paulo", "weather 'São Paulo'"),
            ("weather \"London\"", "weather in New York", "weather 'New York'"),
            (
                "geo --data-urlencode 'name=Porto' -d count=5",
                "weather in New York",
                "geo --data-urlencode 'name=New York' -d count=5",
            ),
            ("gh pr view 57 -R OWNER/REPO", "show PR 123 of cli/cli", "gh pr view 123 -R cli/cli"),
            ("gh api repos/{owner}/{repo}/issues", "issues of cli/cli", "gh api repos/cli/cli/issues"),
            (
                "mkdir -p x && /s/new-thing.sh -d 'Deploys the shop.' deploy-shop x",
                "create a thing called notes: \"Keeps notes.\"",
                "mkdir -p x && /s/new-thing.sh -d 'Keeps notes.' notes x",
            ),
            ("yt-dlp https://example.com/watch", "get https://a.b/c?d=e&f=g", "yt-dlp 'https://a.b/c?d=e&f=g'"),
            ("rg -F 'blue heron' \"$DIR\"", "find \"it's here\" in the logs", "rg -F 'it'\\''s here' \"$DIR\""),
        ] {
            assert_eq!(check(command, request), (want.to_owned(), vec![]), "{command} | {request}");
        }
    }

    #[test]
    fn what_it_does_not_say_stays_and_is_named() {
        for (command, request, open) in [
            ("curl wttr.in/London", "what is the weather", "London"),
            ("curl wttr.in/<city>", "what is the weather", "<city>"),
            ("curl wttr.in/<city>", "weather in Paris and in Rome", "<city>"),
            ("gh pr view 57", "show my pull request", "57"),
            ("gh pr list -R OWNER/REPO", "show my pull requests", "OWNER/REPO"),
            ("curl -G x -d latitude=41.15", "weather in Paris", "latitude=41.15"),
            ("tool --token YOUR_TOKEN", "do it in Paris", "YOUR_TOKEN"),
            ("tool -H 'Authorization: Bearer YOUR_KEY'", "do it in Paris", "YOUR_KEY"),
            ("send --message-id om_xxx", "do it in Paris", "om_xxx"),
            ("send '{\"chat\":\"oc_xxxx\"}'", "do it in Paris", "oc_xxxx"),
            ("show <open_id>", "do it in Paris", "<open_id>"),
            ("curl https://a.b/messages/{message_id}", "do it in Paris", "{message_id}"),
            ("sort <names >sorted", "do it in Paris", ""),
            ("echo <city", "weather in Paris", ""),
            ("tmux list -F '#{session_name}' \"${CITY}\" $CITY", "in Paris", ""),
            ("awk '{print $1}' | jq '{id}'", "in Paris", ""),
            ("lsblk -o NAME,TYPE,SIZE", "do it in Paris", ""),
            ("ls x || echo 'none found'", "do it in Paris", ""),
        ] {
            let want: Vec<String> = Some(open.to_owned()).filter(|open| !open.is_empty()).into_iter().collect();
            assert_eq!(check(command, request), (command.to_owned(), want), "{command} | {request}");
        }
    }

    #[test]
    fn a_value_cannot_become_a_command() {
        for value in ["\"$(reboot)\"", "\"`reboot`\"", "\"a; reboot\"", "\"a\nreboot\"", "\"'; reboot; '\"", "\"-rf\""]
        {
            for command in ["say <text>", "say '<text>'", "say \"<text>\"", "say 'some words'", "say <text> | cat"] {
                let (text, _) = check(command, &format!("say {value}"));
                let script = Script::parse(&text);
                let programs: Vec<_> =
                    script.segments.iter().filter_map(|segment| segment.words[0].literal()).collect();
                assert!(programs.iter().all(|program| ["say", "cat"].contains(program)), "{text}: {programs:?}");
            }
        }
    }
}

//! Words: which ones in a text say what it is about, and which are the same word?
//!
//! Lower case, endings taken off lightly, words that say nothing left out. Scripts without spaces are read in pairs of
//! characters. Nothing here knows a language well; it has to be equal on both sides, not right.

/// The longest text that is read, in bytes; what a person asks and what a skill describes are far shorter.
const MAX_TEXT: usize = 64 * 1024;

/// The longest word that is one.
const MAX_WORD: usize = 48;

/// A word of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    /// As it was written, in lower case.
    pub shown: String,
    /// What it is compared by.
    pub stem: String,
    /// Whether it may be a name: a capital letter in the middle of a sentence, or a script that has no capitals.
    pub may_be_name: bool,
}

/// The words of `text` that say something, in order.
pub(crate) fn words(text: &str) -> Vec<Word> {
    let text = cut(text, MAX_TEXT);
    let mut found = Vec::new();
    let mut starts_sentence = true;
    for piece in text.split(|c: char| !c.is_alphanumeric() && !matches!(c, '\'' | '’' | '.' | '!' | '?' | '\n' | ':'))
    {
        for part in piece.split_inclusive(['.', '!', '?', '\n', ':']) {
            let bare = part.trim_end_matches(['.', '!', '?', '\n', ':']);
            let word = bare.split(['\'', '’']).find(|word| !word.is_empty()).unwrap_or_default();
            if !word.is_empty() {
                push(word, starts_sentence, &mut found);
                starts_sentence = false;
            }
            starts_sentence |= bare.len() < part.len();
        }
    }
    found
}

/// What the words of `text` are compared by.
pub(crate) fn stems(text: &str) -> Vec<String> {
    words(text).into_iter().map(|word| word.stem).collect()
}

/// How much a word says: little for those that fit every request.
pub(crate) fn strength(stem: &str) -> f64 {
    if WEAK.binary_search(&stem).is_ok() { 0.25 } else { 1.0 }
}

/// The start of `text`, at most `max` bytes of it.
pub(crate) fn cut(text: &str, max: usize) -> &str {
    let end = (0..=max.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    &text[..end]
}

/// The end of `text`, at most `max` bytes of it.
pub(crate) fn tail(text: &str, max: usize) -> &str {
    let from = text.len().saturating_sub(max);
    let start = (from..=text.len()).find(|&at| text.is_char_boundary(at)).unwrap_or(text.len());
    &text[start..]
}

fn push(word: &str, starts_sentence: bool, found: &mut Vec<Word>) {
    if word.chars().any(is_unspaced) {
        let chars: Vec<char> = word.chars().collect();
        let pairs = chars.windows(2).map(String::from_iter);
        found.extend(pairs.map(|pair| Word { shown: pair.clone(), stem: pair, may_be_name: true }));
        if let [one] = chars[..] {
            found.push(Word { shown: one.to_string(), stem: one.to_string(), may_be_name: true });
        }
        return;
    }
    let shown = word.to_lowercase();
    let says_nothing = shown.chars().count() < 2 || shown.chars().all(char::is_numeric) || shown.len() > MAX_WORD;
    if says_nothing || STOP.binary_search(&shown.as_str()).is_ok() {
        return;
    }
    let may_be_name = !starts_sentence && word.starts_with(char::is_uppercase) && word.chars().any(char::is_lowercase);
    found.push(Word { stem: stem(&shown), shown, may_be_name });
}

/// Chinese, Japanese and the like: written without spaces.
fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{0E00}'..='\u{0E7F}' | '\u{3040}'..='\u{30FF}' | '\u{3400}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{323AF}')
}

/// `word` without the ending that only its place in the sentence gives it.
fn stem(word: &str) -> String {
    if !word.is_ascii() {
        return word.to_owned();
    }
    let singular = match word {
        _ if word.len() > 4 && word.ends_with("ies") => format!("{}y", &word[..word.len() - 3]),
        _ if word.len() > 4 && ["sses", "xes", "zes", "ches", "shes"].iter().any(|end| word.ends_with(end)) => {
            word[..word.len() - 2].to_owned()
        }
        _ if word.len() > 3 && word.ends_with('s') && !["ss", "us", "is"].iter().any(|end| word.ends_with(end)) => {
            word[..word.len() - 1].to_owned()
        }
        _ => word.to_owned(),
    };
    let root = ["ing", "ed"].iter().find_map(|end| singular.strip_suffix(end).filter(|root| is_root(root)));
    let root = root.map_or(singular.as_str(), undoubled);
    let root = root.strip_suffix('e').filter(|root| root.len() > 2).unwrap_or(root);
    root.strip_suffix('y').filter(|rest| rest.len() > 2).map_or_else(|| root.to_owned(), |rest| format!("{rest}i"))
}

fn is_root(root: &str) -> bool {
    root.len() > 2 && root.contains(['a', 'e', 'i', 'o', 'u', 'y'])
}

/// `stopp` is `stop`; `call` and `pass` are what they are.
fn undoubled(root: &str) -> &str {
    let bytes = root.as_bytes();
    match bytes {
        [.., a, b] if a == b && !matches!(a, b'l' | b's' | b'z' | b'e' | b'o') => &root[..root.len() - 1],
        _ => root,
    }
}

/// Words that say nothing about what is wanted; sorted.
#[rustfmt::skip]
const STOP: &[&str] = &[
    "about", "after", "again", "all", "also", "am", "an", "and", "any", "are", "as", "ask", "asks", "at", "auf",
    "aus", "be", "been", "before", "being", "bitte", "but", "by", "can", "como", "con", "could", "da", "das", "dass",
    "de", "del", "dem", "den", "der", "des", "did", "die", "do", "does", "doing", "don", "du", "each", "ein", "eine",
    "einen", "el", "else", "en", "est", "et", "etc", "every", "for", "from", "für", "give", "go", "got", "had", "has",
    "have", "he", "hello", "help", "her", "here", "hey", "hi", "him", "his", "how", "ich", "if", "im", "in", "into",
    "is", "ist", "it", "its", "je", "just", "kind", "know", "la", "le", "les", "let", "like", "ll", "los", "mais",
    "may", "me", "mich", "might", "mir", "mit", "more", "most", "must", "my", "need", "needs", "nicht", "no", "not",
    "now", "of", "off", "oh", "ok", "okay", "on", "one", "only", "or", "other", "our", "out", "over", "para",
    "please", "por", "pour", "que", "re", "really", "she", "should", "so", "some", "something", "such", "tell",
    "than", "thank", "thanks", "that", "the", "their", "them", "then", "there", "these", "they", "thing", "things",
    "this", "those", "to", "too", "un", "una", "und", "une", "up", "us", "use", "used", "user", "users", "uses",
    "using", "ve", "very", "von", "want", "wants", "was", "we", "were", "what", "when", "where", "whether", "which",
    "while", "who", "whom", "whose", "why", "wie", "will", "with", "would", "yes", "you", "your", "yours", "zu",
];

/// What a word of a request is about, where no skill has the word itself.
pub(crate) fn topic(stem: &str) -> Option<&'static str> {
    TOPICS.iter().find(|(words, _)| words.contains(&stem)).map(|(_, topic)| *topic)
}

/// Words that people use for a topic, as stems, and the stem that a description has for it. Scripts without spaces are
/// read in pairs of characters.
#[rustfmt::skip]
const TOPICS: &[(&[&str], &str)] = &[
    (&["umbrella", "raincoat", "sunscreen", "rain", "snow", "sunni", "cloudi", "wetter", "météo", "clima", "tiempo",
       "天气", "天氣", "天気", "气温", "氣溫", "下雨", "下雪", "预报", "預報", "날씨"], "weather"),
    (&["日历", "日曆", "日程", "会议"], "calendar"),
    (&["邮件", "郵件", "邮箱"], "email"),
    (&["笔记", "筆記"], "not"),
    (&["提醒"], "remind"),
    (&["翻译", "翻譯"], "translat"),
    (&["音乐", "音樂"], "music"),
    (&["图片", "圖片", "照片"], "imag"),
];

/// Stems of words that fit nearly every request; sorted.
#[rustfmt::skip]
const WEAK: &[&str] = &[
    "abl", "access", "activ", "add", "allow", "api", "app", "automat", "bas", "best", "bring", "call", "chang",
    "check", "cli", "com", "command", "creat", "current", "dai", "data", "day", "detail", "differ", "do", "easi",
    "even", "exist", "fast", "file", "find", "first", "follow", "full", "fulli", "gener", "get", "good", "great",
    "handl", "hour", "includ", "inform", "keep", "last", "latest", "list", "local", "long", "look", "main", "mak",
    "make", "manag", "mani", "mean", "mention", "minut", "morn", "much", "multipl", "new", "next", "number", "open",
    "option", "part", "perfect", "perform", "place", "problem", "provid", "quick", "quickli", "read", "recommend",
    "relat", "request", "requir", "result", "return", "right", "run", "see", "send", "set", "show", "simpl", "singl",
    "specif", "start", "stat", "stop", "suggest", "support", "system", "tak", "task", "thank", "through", "time",
    "todai", "tomorrow", "tool", "tri", "try", "two", "typ", "updat", "valu", "via", "view", "wai", "week", "well",
    "work", "workflow", "writ", "write", "wrong",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_can_be_searched() {
        assert!(STOP.is_sorted() && WEAK.is_sorted());
    }

    #[test]
    fn forms_of_a_word_are_one_word() {
        for (some, other) in [
            ("forecast", "forecasts"),
            ("create", "creating"),
            ("create", "created"),
            ("query", "queries"),
            ("branch", "branches"),
            ("stop", "stopped"),
            ("harden", "hardening"),
            ("release", "releases"),
            ("city", "cities"),
        ] {
            assert_eq!(stem(some), stem(other), "{some} {other}");
        }
        for (some, other) in [("thing", "th"), ("status", "statu"), ("red", "r")] {
            assert_ne!(stem(some), stem(other), "{some} {other}");
        }
    }

    #[test]
    fn texts_become_words() {
        let check = |text: &str| words(text).into_iter().map(|word| word.shown).collect::<Vec<_>>().join(" ");
        assert_eq!(check("What's the weather in Shanghai?"), "weather shanghai");
        assert_eq!(check("what is 2+2"), "");
        assert_eq!(check("hello"), "");
        assert_eq!(check("Wie ist das Wetter in Köln?"), "wetter köln");
        assert_eq!(check("上海天气"), "上海 海天 天气");
        assert_eq!(check("see gh-issues, wttr.in"), "see gh issues wttr");
        assert_eq!(check(""), "");
        let names: Vec<bool> = words("Weather in Porto. Rain in Rio").iter().map(|word| word.may_be_name).collect();
        assert_eq!(names, [false, true, false, true]);
    }
}

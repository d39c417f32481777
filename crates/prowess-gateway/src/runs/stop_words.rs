//! Stop words: which messages are meant to end what goes on?

/// What people say when they want an agent to stop, as OpenClaw knows it.
const WORDS: &[&str] = &[
    "/stop",
    "abort",
    "anhalten",
    "arrete",
    "arrête",
    "aufhören",
    "deten",
    "detente",
    "detén",
    "do not do that",
    "esc",
    "exit",
    "halt",
    "hoer auf",
    "interrupt",
    "openclaw stop",
    "pare",
    "please stop",
    "stop",
    "stop action",
    "stop agent",
    "stop current action",
    "stop current run",
    "stop do not do anything",
    "stop doing anything",
    "stop don't do anything",
    "stop dont do anything",
    "stop openclaw",
    "stop please",
    "stop run",
    "stop the agent",
    "stopp",
    "wait",
    "остановись",
    "останови",
    "остановить",
    "прекрати",
    "стоп",
    "توقف",
    "रुको",
    "やめて",
    "停止",
    "止めて",
];

/// The longest message that can be one of them, in bytes.
const MAX_BYTES: usize = 200;

/// Whether `text` says nothing but stop.
pub(crate) fn means_stop(text: &str) -> bool {
    let text = text.trim();
    if text.len() > MAX_BYTES {
        return false;
    }
    let plain = text.to_lowercase().replace(['’', '`'], "'");
    let words: Vec<&str> = plain.split_whitespace().collect();
    let words = words.join(" ");
    let is_mark = |c: char| ".!?…,，。;；:：'\"’”)]}".contains(c);
    WORDS.contains(&words.trim_end_matches(is_mark).trim())
}

#[cfg(test)]
mod tests {
    use super::means_stop;

    #[test]
    fn stop_is_stop_in_many_words() {
        for text in ["stop", " STOP! ", "/stop", "Please  stop.", "stop don’t do anything", "止めて。", "Стоп"]
        {
            assert!(means_stop(text), "{text:?}");
        }
        for text in ["", "stop the music", "don't stop", "/stopwatch", &"stop ".repeat(100)] {
            assert!(!means_stop(text), "{text:?}");
        }
    }
}

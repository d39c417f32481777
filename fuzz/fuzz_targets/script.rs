//! Any text as a shell command: it is read without falling over, and whatever is said about it is about a part of it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use prowess_policy::script::{MAX_BYTES, Segment, Span};
use prowess_policy::{Script, disguise, quote};

fuzz_target!(|text: &str| {
    // What is longer is not read at all; a little more shows that.
    if text.len() > MAX_BYTES + 8 {
        return;
    }
    let script = Script::parse(text);
    assert_eq!(script.text, text);
    for span in script.segments.iter().flat_map(spans).chain(script.doubts.iter().map(|doubt| doubt.span)) {
        assert!(text.get(span.range()).is_some(), "{span:?} is no part of it");
    }
    if script.doubts.is_empty() {
        certain(&script);
    }
    let _ = disguise::disguises(text);
    // The text as one word is that word again, but for what no word may have in it.
    let quoted = Script::parse(&format!("echo {}", quote(text)));
    if quoted.doubts.is_empty() {
        let words = &quoted.segments[0].words;
        assert_eq!(quoted.segments.len(), 1, "{quoted:?}");
        assert_eq!(words.len(), 2, "{quoted:?}");
        assert_eq!(words[1].value, prowess_policy::script::Value::Literal(text.to_owned()));
    }
});

/// Without a doubt there is a flat list of commands, in the order of the text, none inside another.
fn certain(script: &Script) {
    assert!(!script.segments.is_empty() && script.text.len() <= MAX_BYTES);
    assert!(script.segments.iter().all(|segment| !segment.nested));
    assert!(script.segments.windows(2).all(|pair| pair[0].span.end <= pair[1].span.start), "{script:?}");
    for segment in &script.segments {
        assert!(segment.words.windows(2).all(|pair| pair[0].span.end < pair[1].span.start), "{script:?}");
    }
}

fn spans(segment: &Segment) -> impl Iterator<Item = Span> + '_ {
    let words = segment.words.iter().map(|word| word.span);
    let assignments = segment.assignments.iter().flat_map(|one| [one.span, one.value.span]);
    let redirects = segment.redirects.iter().flat_map(|one| [one.span, one.target.span]);
    words.chain(assignments).chain(redirects).chain([segment.span])
}

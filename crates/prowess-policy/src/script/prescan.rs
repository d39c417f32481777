//! The first look: are there characters that hide something, and is the text fit for a parser at all?
//!
//! One pass over the characters that knows nothing of quotes. What hides, hides in quotes too: a person is shown the
//! whole text, and a file may be named by any part of it.

use super::doubts::Doubts;
use super::{Doubt, DoubtKind, MAX_BYTES, MAX_DEPTH, Span};

/// Whether the grammars may look at the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fitness {
    /// They may.
    Fit,
    /// They may not: it would take them too long, or they would read only a part of it.
    Unfit,
}

/// Looks at every character of `text` and notes what is wrong with it.
pub(super) fn look(text: &str, doubts: &mut Doubts) -> Fitness {
    let whole = Span { start: 0, end: text.len() };
    if text.len() > MAX_BYTES {
        doubts.push(whole, DoubtKind::TooLong);
        return Fitness::Unfit;
    }
    note_characters(text, doubts);
    if let Some(at) = too_deep(text) {
        doubts.push(Span { start: at, end: at + 1 }, DoubtKind::TooDeep);
        return Fitness::Unfit;
    }
    if text.contains('\0') { Fitness::Unfit } else { Fitness::Fit }
}

fn note_characters(text: &str, doubts: &mut Doubts) {
    // Neighbours of one kind are one doubt.
    let mut run: Option<Doubt> = None;
    let mut before = None;
    for (start, character) in text.char_indices() {
        let end = start + character.len_utf8();
        if (before, character) == (Some('\\'), '\n') {
            doubts.push(Span { start: start - 1, end }, DoubtKind::Continuation);
        }
        before = Some(character);
        let Some(kind) = suspicion(character) else { continue };
        match &mut run {
            Some(open) if open.kind == kind && open.span.end == start => open.span.end = end,
            _ => {
                doubts.extend(run.take());
                run = Some(Doubt { span: Span { start, end }, kind });
            }
        }
    }
    doubts.extend(run);
}

/// What speaks against a character, whatever stands around it.
pub(crate) fn suspicion(character: char) -> Option<DoubtKind> {
    match character {
        '\t' | '\n' | ' '..='~' => None,
        '\0' => Some(DoubtKind::Nul),
        _ if character.is_control() => Some(DoubtKind::Control),
        _ if character.is_whitespace() || is_invisible(character) => Some(DoubtKind::Invisible),
        _ => None,
    }
}

/// Whether a character leaves no mark of its own: fillers, joiners, marks of direction, variation selectors, tags.
fn is_invisible(character: char) -> bool {
    matches!(character,
        '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}'..='\u{1160}' | '\u{17B4}'..='\u{17B5}' | '\u{180B}'..='\u{180F}'
        | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{2800}' | '\u{3164}'
        | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}' | '\u{FFF0}'..='\u{FFFB}' | '\u{13430}'..='\u{1345F}'
        | '\u{16FE4}' | '\u{1BCA0}'..='\u{1BCA3}' | '\u{1D159}' | '\u{1D173}'..='\u{1D17A}' | '\u{E0000}'..='\u{E0FFF}')
}

/// Where brackets are nested beyond [`MAX_DEPTH`], each opening one counted whether or not it is quoted: the parsers
/// take very long over such texts, and so would a reader.
fn too_deep(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    text.bytes().position(|byte| {
        match byte {
            b'(' | b'{' | b'[' => depth += 1,
            b')' | b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth > MAX_DEPTH
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> (Vec<DoubtKind>, Fitness) {
        let mut doubts = Doubts::default();
        let fitness = look(text, &mut doubts);
        (doubts.into_list().into_iter().map(|doubt| doubt.kind).collect(), fitness)
    }

    #[test]
    fn characters_that_hide_are_found_inside_quotes_too() {
        for hidden in ['\u{A0}', '\u{200B}', '\u{202E}', '\u{2028}', '\u{3000}', '\u{E0041}', '\u{FE0F}', '\u{2800}'] {
            assert_eq!(kinds(&format!("echo '{hidden}'")), (vec![DoubtKind::Invisible], Fitness::Fit), "{hidden:?}");
        }
        for control in ['\r', '\u{1B}', '\u{7F}', '\u{85}', '\u{9B}', '\u{B}', '\u{C}'] {
            assert_eq!(kinds(&format!("echo '{control}'")), (vec![DoubtKind::Control], Fitness::Fit), "{control:?}");
        }
        assert_eq!(kinds("echo '\0'"), (vec![DoubtKind::Nul], Fitness::Unfit));
        assert_eq!(kinds("echo 'a\\\nb'"), (vec![DoubtKind::Continuation], Fitness::Fit));
        assert_eq!(kinds("rg 'héllo — 漢字 🦀 e\u{301}'\t\n"), (vec![], Fitness::Fit));
    }

    #[test]
    fn neighbours_are_one_doubt() {
        let mut doubts = Doubts::default();
        look("a\u{200B}\u{200B}\r\rb\r", &mut doubts);
        let spans: Vec<_> = doubts.into_list().iter().map(|doubt| (doubt.span.start, doubt.span.end)).collect();
        assert_eq!(spans, [(1, 7), (7, 9), (10, 11)]);
    }

    #[test]
    fn length_and_depth_are_bounded() {
        assert_eq!(kinds(&"a".repeat(MAX_BYTES)), (vec![], Fitness::Fit));
        assert_eq!(kinds(&"(".repeat(MAX_BYTES + 1)), (vec![DoubtKind::TooLong], Fitness::Unfit));
        assert_eq!(kinds(&"({[".repeat(MAX_DEPTH / 3)), (vec![], Fitness::Fit));
        assert_eq!(kinds(&"({[".repeat(MAX_DEPTH / 3 + 1)), (vec![DoubtKind::TooDeep], Fitness::Unfit));
        assert_eq!(kinds(&"()".repeat(1000)), (vec![], Fitness::Fit));
    }
}

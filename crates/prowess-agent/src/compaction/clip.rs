//! Clipping: what if the results of tools, or answers, do not fit into one call?
//!
//! Before a call, no single one may take more than half of the window, and the whole no more than three quarters of it. Only what the model is sent is clipped so; the transcript keeps all but the middle of what is absurdly long.

use super::{estimate, size};
use crate::ledger::{Mark, Marked};
use crate::message::{Assistant, Block, Message, ToolReply};

/// What stands where the middle of a result or an answer was.
const CUT: &str = "\n[… the middle is left out here, for it is too long …]\n";

/// What stands where a whole result was.
const REMOVED: &str = "[This output is left out to make room. Run the call again if you need it.]";

/// What was clipped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Clipped {
    /// How many results and answers were cut.
    pub(crate) cut: usize,
    /// How many were removed.
    pub(crate) removed: usize,
}

/// How many images, and how many bytes of them, one call may have. Those that go, the oldest first, go several at a time,
/// so that most calls begin like the one before.
const MAX_IMAGES: usize = 50;
const MAX_IMAGE_BYTES: usize = 24_000_000;
const IMAGES_AT_ONCE: usize = 8;

/// What stands where an image was.
const NO_IMAGE: &str = "[An older image is left out here to make room.]";

/// Whether [`clip`] would change anything.
#[must_use]
pub(crate) fn is_tight(messages: &[Message], window: u64) -> bool {
    if surplus_images(messages) > 0 {
        return true;
    }
    let longest = usize::try_from(window).unwrap_or(usize::MAX);
    let is_long = |message: &Message| match message {
        // No text has more characters than bytes.
        Message::ToolResult(ToolReply { content, .. }) | Message::Assistant(Assistant { content, .. }) => {
            content.iter().filter_map(Block::as_text).map(str::len).sum::<usize>() > longest
        }
        // What a person says is theirs to shorten.
        Message::User(_) => false,
    };
    messages.iter().any(is_long) || estimate(messages) > window / 4 * 3
}

/// Makes the results of tools and the answers in `messages` fit into a window of that many tokens.
pub(crate) fn clip(messages: &mut [Message], window: u64) -> Clipped {
    let mut clipped = Clipped::default();
    clipped.removed += forget_images(messages);
    // Half of the window at two characters a token: what tools print is denser than prose.
    let longest = usize::try_from(window).unwrap_or(usize::MAX);
    for message in messages.iter_mut() {
        let content = match message {
            Message::ToolResult(reply) => &mut reply.content,
            Message::Assistant(said) => &mut said.content,
            Message::User(_) => continue,
        };
        clipped.cut += usize::from(shorten(content, longest));
    }
    let most = window / 4 * 3;
    let mut total = estimate(messages);
    // The oldest goes first; instructions of skills go when nothing else is left, and the newest result last of all.
    for what in [Marked::Output, Marked::File] {
        for message in messages.iter_mut() {
            if total <= most {
                return clipped;
            }
            let before = size(message);
            let Message::ToolResult(reply) = message else { continue };
            if kind(reply) != what || !remove(reply) {
                continue;
            }
            clipped.removed += 1;
            total = total - before + size(message);
        }
    }
    clipped
}

fn content(message: &Message) -> &[Block] {
    match message {
        Message::User(user) => &user.content,
        Message::Assistant(said) => &said.content,
        Message::ToolResult(reply) => &reply.content,
    }
}

/// How many of the oldest images are too many.
fn surplus_images(messages: &[Message]) -> usize {
    let image = |block: &Block| match block {
        Block::Image(image) => Some(image.bytes()),
        Block::Text { .. } | Block::Thinking { .. } | Block::ToolCall(_) | Block::Other(_) => None,
    };
    let sizes: Vec<usize> = messages.iter().flat_map(content).filter_map(image).collect();
    let mut bytes = 0;
    let fit = sizes.iter().rev().take(MAX_IMAGES).take_while(|size| {
        bytes += **size;
        bytes <= MAX_IMAGE_BYTES
    });
    let surplus = sizes.len() - fit.count();
    surplus.next_multiple_of(IMAGES_AT_ONCE).min(sizes.len())
}

/// Puts a note in place of the images that are too many. Says how many those are.
fn forget_images(messages: &mut [Message]) -> usize {
    let surplus = surplus_images(messages);
    let blocks = messages.iter_mut().flat_map(|message| match message {
        Message::User(user) => user.content.iter_mut(),
        Message::Assistant(said) => said.content.iter_mut(),
        Message::ToolResult(reply) => reply.content.iter_mut(),
    });
    for block in blocks.filter(|block| matches!(block, Block::Image(_))).take(surplus) {
        *block = Block::text(NO_IMAGE);
    }
    surplus
}

fn kind(reply: &ToolReply) -> Marked {
    let is_file = Mark::read(reply.details.as_ref()).iter().any(|mark| mark.what == Marked::File);
    if is_file { Marked::File } else { Marked::Output }
}

/// Cuts the middle out of texts that are longer than `longest` characters. Says whether they were.
fn shorten(content: &mut [Block], longest: usize) -> bool {
    let lengths: Vec<usize> =
        content.iter().map(|block| block.as_text().map_or(0, |text| text.chars().count())).collect();
    let total: usize = lengths.iter().sum();
    if total <= longest {
        return false;
    }
    for (block, length) in content.iter_mut().zip(lengths) {
        let Block::Text { text, text_signature } = block else { continue };
        // Each block by its share. In 128 bits, for the product of two lengths is large.
        let room = usize::try_from(length as u128 * longest as u128 / total.max(1) as u128).unwrap_or(longest);
        *text = without_middle(text, length, room.saturating_sub(CUT.chars().count()));
        // It was for the whole text.
        *text_signature = None;
    }
    true
}

/// Two thirds of what is kept is the beginning, the rest the end: errors are often there.
fn without_middle(text: &str, length: usize, room: usize) -> String {
    let head = room - room / 3;
    let tail = room - head;
    let at = |place: usize| text.char_indices().nth(place).map_or(text.len(), |(at, _)| at);
    format!("{}{CUT}{}", &text[..at(head)], &text[at(length - tail)..])
}

/// Takes away what a result says. Says whether there was something to take.
fn remove(reply: &mut ToolReply) -> bool {
    let removed = vec![Block::text(REMOVED)];
    let is_worth_it = reply.content.iter().map(super::weight).sum::<u64>() > super::weight(&removed[0]);
    if is_worth_it {
        reply.content = removed;
    }
    is_worth_it
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::compaction::tests::{model, person, result, skill_file};

    fn text(message: &Message) -> String {
        let Message::ToolResult(reply) = message else { panic!("a result") };
        reply.text()
    }

    #[test]
    fn what_fits_stays_as_it_is() {
        let mut messages = vec![person("hi"), result("a", &"x".repeat(900), &json!({}))];
        let before = messages.clone();
        assert_eq!(clip(&mut messages, 1_000), Clipped::default());
        assert_eq!(messages, before);
    }

    #[test]
    fn a_huge_answer_keeps_its_ends_and_a_question_all_of_it() {
        let long = format!("start{}end", "u".repeat(5_000));
        let mut messages = vec![person(&long), model(&long, &[])];
        assert!(is_tight(&messages, 4_000));
        assert_eq!(clip(&mut messages, 4_000), Clipped { cut: 1, removed: 0 });
        assert_eq!(messages[0], person(&long));
        let Message::Assistant(answer) = &messages[1] else { panic!("an answer") };
        let text = answer.text();
        assert!(text.starts_with("startu") && text.ends_with("uend") && text.contains(CUT), "{text}");
        assert!(text.chars().count() <= 4_000);
    }

    #[test]
    fn the_oldest_images_go_several_at_a_time() {
        let image = crate::image::Image { data: "R0lGODlh".to_owned(), mime_type: "image/gif".to_owned() };
        let user = |count: usize| {
            let content = vec![Block::Image(image.clone()); count];
            Message::User(crate::message::User { content, timestamp: 0 })
        };
        let left = |count: usize| {
            let mut messages = vec![user(count / 2), user(count - count / 2)];
            let is_tight = is_tight(&messages, 1_000_000);
            assert_eq!(clip(&mut messages, 1_000_000).removed > 0, is_tight);
            messages.iter().flat_map(content).filter(|block| matches!(block, Block::Image(_))).count()
        };
        assert_eq!([50, 51, 55, 58, 59].map(left), [50, 43, 47, 50, 43]);
    }

    #[test]
    fn one_huge_result_keeps_its_ends() {
        let long = format!("start{}end", "ü".repeat(5_000));
        let mut messages = vec![result("a", &long, &json!({}))];
        assert_eq!(clip(&mut messages, 1_000).cut, 1);
        // Its letters are dense, so that even the cut one is too much for three quarters of the window.
        let mut messages = vec![result("a", &long.replace('ü', "u"), &json!({}))];
        assert_eq!(clip(&mut messages, 1_000), Clipped { cut: 1, removed: 0 });
        let text = text(&messages[0]);
        assert!(text.starts_with("startuuu") && text.ends_with("uuuend") && text.contains("left out"));
        assert!(text.chars().count() <= 1_000);
    }

    #[test]
    fn the_oldest_goes_first_and_instructions_last() {
        let long = "x".repeat(1_000);
        let mut messages = vec![
            result("skill", &long, &skill_file("w")),
            result("old", &long, &json!({})),
            result("older", &long, &json!({})),
            result("new", &long, &json!({})),
        ];
        assert_eq!(clip(&mut messages, 1_100), Clipped { cut: 0, removed: 1 });
        let whole: Vec<bool> = messages.iter().map(|message| text(message) == long).collect();
        assert_eq!(whole, [true, false, true, true]);
    }

    proptest! {
        #[test]
        fn results_always_fit(sizes in prop::collection::vec(0..4_000_usize, 0..8), window in 200..4_000_u64) {
            let mut messages: Vec<Message> =
                sizes.iter().map(|size| result("a", &"é".repeat(*size), &json!({}))).collect();
            clip(&mut messages, window);
            let floor = messages.len() as u64 * super::super::weight(&Block::text(REMOVED));
            prop_assert!(estimate(&messages) <= (window / 4 * 3).max(floor));
            prop_assert_eq!(messages.len(), sizes.len());
        }
    }
}

//! How much of a result, or of an answer that was broken off, is kept?

use prowess_skills::text::{prefix_units, units};

use crate::message::{Block, ToolReply};

/// The most text that is stored of one result or broken-off answer, in UTF-16 units.
pub const MAX_RESULT: usize = 400_000;
/// What a block keeps at least, while there is room.
const LEAST: usize = 2_000;

/// A result whose text is no longer than [`MAX_RESULT`].
#[must_use]
pub fn clip_result(result: ToolReply) -> ToolReply {
    ToolReply { content: clip_texts(result.content), ..result }
}

/// Blocks whose text is no longer than [`MAX_RESULT`]. Short ones stay, each long one gives up its share, at the end of a
/// line where one is near, and says so.
pub(crate) fn clip_texts(content: Vec<Block>) -> Vec<Block> {
    let lengths: Vec<usize> = content.iter().filter_map(Block::as_text).map(units).collect();
    let total: usize = lengths.iter().sum();
    if total <= MAX_RESULT {
        return content;
    }
    let firm: usize = lengths.iter().map(|own| own.min(&LEAST)).sum();
    let (room, long) = (MAX_RESULT.saturating_sub(firm), (total - firm).max(1));
    let mut left = MAX_RESULT;
    let clipped = content.into_iter().filter_map(|block| match block {
        Block::Text { text, text_signature } => {
            let own = units(&text);
            let share = own.min(LEAST) + own.saturating_sub(LEAST).saturating_mul(room) / long;
            let text = clip(text, own, share.min(left))?;
            left -= units(&text);
            Some(Block::Text { text, text_signature })
        }
        Block::Thinking { .. } | Block::ToolCall(_) | Block::Image(_) | Block::Other(_) => Some(block),
    });
    clipped.collect()
}

/// `text`, which has `own` units, within `share` units; `None` when there is no room for any of it.
fn clip(text: String, own: usize, share: usize) -> Option<String> {
    if own <= share {
        return Some(text);
    }
    let note = format!("\n\n[cut for storage: the beginning of {own} chars; ask for a smaller part to see the rest]");
    let room = share.checked_sub(units(&note))?;
    let kept = prefix_units(&text, room);
    let line = kept.rfind('\n').map(|at| &kept[..at]).filter(|line| units(line) > room / 5 * 4);
    Some(format!("{}{note}", line.unwrap_or(kept)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clipped(texts: &[String]) -> Vec<String> {
        let result = ToolReply {
            tool_call_id: "a".to_owned(),
            tool_name: "exec".to_owned(),
            content: texts.iter().map(Block::text).collect(),
            details: None,
            is_error: false,
            timestamp: 0,
        };
        clip_result(result).content.iter().filter_map(Block::as_text).map(str::to_owned).collect()
    }

    #[test]
    fn what_fits_stays() {
        let texts = ["x".repeat(MAX_RESULT - 10), "é".repeat(10)];
        assert_eq!(clipped(&texts), texts);
    }

    #[test]
    fn every_block_gives_up_its_share() {
        let texts = ["a".repeat(600_000), "b".repeat(200_000), "small".to_owned()];
        let made = clipped(&texts);
        let lengths: Vec<usize> = made.iter().map(|text| units(text)).collect();
        assert!(lengths.iter().sum::<usize>() <= MAX_RESULT);
        assert!(lengths[0] > 290_000 && lengths[1] > 90_000, "{lengths:?}");
        assert!(made[0].contains("600000 chars") && made[2] == "small");
    }

    #[test]
    fn a_line_that_ends_nearby_is_where_it_is_cut() {
        let text = format!("{}\n{}", "a".repeat(390_000), "b".repeat(50_000));
        let made = clipped(&[text]);
        assert!(made[0].starts_with(&format!("{}\n\n[cut", "a".repeat(390_000))));
        let far = format!("{}\n{}", "a".repeat(100_000), "b".repeat(500_000));
        assert!(clipped(&[far])[0].contains("bbb\n\n[cut"));
    }

    #[test]
    fn very_many_blocks_stay_within_the_limit() {
        let made = clipped(&vec!["🌤".repeat(1_500); 1_000]);
        assert!(made.iter().map(|text| units(text)).sum::<usize>() <= MAX_RESULT);
    }
}

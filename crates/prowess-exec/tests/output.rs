//! The laws of output: nothing panics, nothing depends on how bytes were cut, and nothing goes missing uncounted.

use proptest::prelude::*;
use prowess_exec::output::{Kept, Limits, Output, units};

/// Bytes with many of those that mean something.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let special = prop::sample::select(
        b"\x1b[]P\\;m6n?\x07\r\n\t\x00\x7f\x18\xc2\x9b\x9d\x9c\xe2\x82\xac\xf0\x9f\x98\x80".to_vec(),
    );
    prop::collection::vec(prop_oneof![3 => special, 1 => any::<u8>()], 0..600)
}

fn read<'a>(pieces: impl Iterator<Item = &'a [u8]>, limits: Limits) -> (Kept, String, usize) {
    let mut output = Output::new(limits);
    let mut asked = 0;
    for piece in pieces {
        asked += output.push(piece);
    }
    output.finish();
    (output.kept(), output.tail(), asked)
}

fn whole(bytes: &[u8]) -> String {
    read(std::iter::once(bytes), Limits::default()).0.text()
}

proptest! {
    #[test]
    fn how_bytes_were_cut_does_not_show(bytes in bytes(), size in 1_usize..50) {
        let limits = Limits { kept: 200, pending: 100, tail: 50 };
        let at_once = read(std::iter::once(bytes.as_slice()), limits);
        prop_assert_eq!(read(bytes.chunks(size), limits), at_once);
    }

    #[test]
    fn nothing_that_moves_a_terminal_is_left(bytes in bytes()) {
        let text = whole(&bytes);
        prop_assert!(!text.chars().any(|c| c.is_control() && c != '\n' && c != '\t'), "{:?}", text);
    }

    #[test]
    fn what_is_kept_and_what_is_dropped_make_the_whole(bytes in bytes(), kept in 130_usize..400) {
        let all = whole(&bytes);
        let (part, ..) = read(bytes.chunks(7), Limits { kept, pending: 100, tail: 50 });
        prop_assert_eq!(part.total_bytes, all.len() as u64);
        prop_assert_eq!((part.head.len() + part.tail.len()) as u64 + part.dropped_bytes, part.total_bytes);
        prop_assert_eq!(part.total_lines, all.lines().count() as u64);
        prop_assert!(units(&part.text()) <= kept);
        prop_assert!(all.starts_with(&part.head) && all.ends_with(&part.tail));
        if units(&all) <= kept {
            prop_assert_eq!(part.text(), all);
        }
    }

    #[test]
    fn plain_text_comes_through_unchanged(text in "[a-zé€😀 \t\n]{0,200}") {
        prop_assert_eq!(whole(text.as_bytes()), text);
    }

    #[test]
    fn what_is_polled_piece_by_piece_is_the_whole(bytes in bytes(), size in 1_usize..50) {
        let mut output = Output::new(Limits::default());
        let mut polled = String::new();
        for piece in bytes.chunks(size) {
            output.push(piece);
            polled += &output.drain().text;
        }
        output.finish();
        polled += &output.drain().text;
        prop_assert_eq!(polled, whole(&bytes));
    }
}

#[test]
fn the_peers_limits_are_kept_within_bounds() {
    assert_eq!(Limits::default(), Limits { kept: 200_000, pending: 30_000, tail: 2_000 });
    assert_eq!(Limits::new(Some(5), Some(50_000)), Limits { kept: 1_000, pending: 1_000, tail: 2_000 });
    assert_eq!(Limits::new(Some(usize::MAX), None).kept, 200_000);
}

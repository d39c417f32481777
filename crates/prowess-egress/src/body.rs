//! Where does the body of a message end?

use crate::audit::Refusal;
use crate::head::Framing;

/// The rest of a body that is being forwarded. Bytes pass as they are; chunks must be written in the plainest way, without
/// extensions and trailers, so that the host finds the same end.
#[derive(Debug)]
pub struct BodyScan(State);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Length(u64),
    UntilClose,
    /// The digits of a chunk's size, and how many there are.
    Size(u64, u8),
    /// The line feed behind the size.
    SizeEnd(u64),
    Data(u64),
    /// `\r` and `\n` behind a chunk.
    DataEnd(u8),
    /// `\r` and `\n` behind the last chunk.
    Last(u8),
    Done,
}

const MALFORMED: Refusal = Refusal::Malformed("a chunk of the body");

impl BodyScan {
    /// A body that begins now.
    #[must_use]
    pub fn new(framing: Framing) -> Self {
        Self(match framing {
            Framing::Empty | Framing::Length(0) => State::Done,
            Framing::Length(length) => State::Length(length),
            Framing::Chunked => State::Size(0, 0),
            Framing::UntilClose => State::UntilClose,
        })
    }

    /// Whether the body is complete.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.0 == State::Done
    }

    /// Whether the body may end here because the connection closed.
    #[must_use]
    pub fn may_close(&self) -> bool {
        matches!(self.0, State::Done | State::UntilClose)
    }

    /// How many of `bytes` belong to the body.
    pub fn accept(&mut self, bytes: &[u8]) -> Result<usize, Refusal> {
        let mut used = 0;
        while let Some(&byte) = bytes.get(used)
            && self.0 != State::Done
        {
            let left = bytes.len() - used;
            used += match &mut self.0 {
                State::UntilClose => left,
                State::Length(rest) | State::Data(rest) => {
                    let count = usize::try_from(*rest).unwrap_or(usize::MAX).min(left);
                    *rest -= count as u64;
                    count
                }
                state => {
                    *state = frame(*state, byte)?;
                    1
                }
            };
            match self.0 {
                State::Length(0) => self.0 = State::Done,
                State::Data(0) => self.0 = State::DataEnd(b'\r'),
                _ => {}
            }
        }
        Ok(used)
    }
}

/// What follows `byte` of a chunk's frame.
fn frame(state: State, byte: u8) -> Result<State, Refusal> {
    match (state, byte) {
        (State::Size(size, digits), b'\r') if digits > 0 => Ok(State::SizeEnd(size)),
        (State::Size(size, digits), _) if digits < 15 => {
            let digit = char::from(byte).to_digit(16).ok_or(MALFORMED)?;
            Ok(State::Size(size * 16 + u64::from(digit), digits + 1))
        }
        (State::SizeEnd(0), b'\n') => Ok(State::Last(b'\r')),
        (State::SizeEnd(size), b'\n') => Ok(State::Data(size)),
        (State::DataEnd(b'\r'), b'\r') => Ok(State::DataEnd(b'\n')),
        (State::DataEnd(b'\n'), b'\n') => Ok(State::Size(0, 0)),
        (State::Last(b'\r'), b'\r') => Ok(State::Last(b'\n')),
        (State::Last(b'\n'), b'\n') => Ok(State::Done),
        _ => Err(MALFORMED),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::BodyScan;
    use crate::head::Framing;

    fn scan(framing: Framing, bytes: &[u8]) -> Option<(usize, bool)> {
        let mut body = BodyScan::new(framing);
        body.accept(bytes).ok().map(|used| (used, body.is_done()))
    }

    #[test]
    fn a_body_ends_where_its_head_said() {
        use Framing::{Chunked, Empty, Length, UntilClose};
        type Row = (Framing, &'static [u8], Option<(usize, bool)>);
        let table: &[Row] = &[
            (Empty, b"GET", Some((0, true))),
            (Length(3), b"abcGET", Some((3, true))),
            (Length(3), b"ab", Some((2, false))),
            (UntilClose, b"abc", Some((3, false))),
            (Chunked, b"3\r\nabc\r\n0\r\n\r\nGET", Some((13, true))),
            (Chunked, b"A\r\n0123456789\r\n0\r\n\r\n", Some((20, true))),
            (Chunked, b"3\r\nabc", Some((6, false))),
            (Chunked, b"3\nabc\r\n0\r\n\r\n", None),
            (Chunked, b"3;x=y\r\nabc\r\n0\r\n\r\n", None),
            (Chunked, b"3 \r\nabc\r\n0\r\n\r\n", None),
            (Chunked, b"0x3\r\nabc\r\n", None),
            (Chunked, b"+3\r\nabc\r\n", None),
            (Chunked, b"\r\n", None),
            (Chunked, b"3\r\nabcX\r\n", None),
            (Chunked, b"0\r\nTrailer: x\r\n\r\n", None),
            (Chunked, b"ffffffffffffffffff\r\n", None),
        ];
        for (framing, bytes, expected) in table {
            assert_eq!(scan(*framing, bytes), *expected, "{framing:?} {}", bytes.escape_ascii());
        }
    }

    proptest! {
        /// However the bytes are cut, the body ends at the same place.
        #[test]
        fn the_cut_changes_nothing(chunks in prop::collection::vec("[a-z\r\n]{1,20}", 0..5), tail in "[A-Z]{0,9}", cut in 1_usize..9) {
            let framed: Vec<String> = chunks.iter().map(|chunk| format!("{:x}\r\n{chunk}\r\n", chunk.len())).collect();
            let mut wire = framed.concat() + "0\r\n\r\n";
            let length = wire.len();
            wire += &tail;
            prop_assert_eq!(scan(Framing::Chunked, wire.as_bytes()), Some((length, true)));
            let mut body = BodyScan::new(Framing::Chunked);
            let used: usize = wire.as_bytes().chunks(cut).map(|piece| body.accept(piece).expect("valid")).sum();
            prop_assert_eq!((used, body.is_done()), (length, true));
        }
    }
}

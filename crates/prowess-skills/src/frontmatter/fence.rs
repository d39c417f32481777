//! The fence: where does the frontmatter start and end?
//!
//! OpenClaw 2026.3.2 wants three hyphens as the very first bytes and takes any later line that begins with three
//! hyphens as the end. The same is taken here, and besides: a file that plainly has frontmatter but misses a fence, or
//! has something before it, is read with a note of what was wrong.

use std::borrow::Cow;

use super::Flaw;
use crate::problem::{Position, ProblemKind};

/// The text between the fences.
#[derive(Debug)]
pub(super) struct Block<'a> {
    pub(super) header: Cow<'a, str>,
    /// The line of the file that the header starts on, from 1.
    pub(super) line: usize,
    pub(super) flaws: Vec<Flaw>,
}

/// Finds the frontmatter of a file.
pub(super) fn find(bytes: &[u8]) -> Result<Block<'_>, Flaw> {
    let mut flaws = Vec::new();
    let text = match bytes.strip_prefix(b"\xef\xbb\xbf") {
        Some(rest) => {
            flaws.push(mended(1, "the file starts with a byte order mark", "save it as UTF-8 without one"));
            rest
        }
        None => bytes,
    };
    let (start, first_line) = open(text, &mut flaws)?;
    let end = match closing(&text[start..], first_line, &mut flaws) {
        Some(end) => start + end,
        None => start + close_by_guess(&text[start..], first_line, &mut flaws)?,
    };
    let header = &text[start..end];
    // Nearly always valid, and then a plain check is the fastest.
    let header = std::str::from_utf8(header).map_or_else(|_| String::from_utf8_lossy(header), Cow::Borrowed);
    Ok(Block { header: unix_lines(header), line: first_line, flaws })
}

/// The offset of the first header byte and its line.
fn open(text: &[u8], flaws: &mut Vec<Flaw>) -> Result<(usize, usize), Flaw> {
    let (at, line) = if text.starts_with(b"---") { (0, 1) } else { skip_preface(text) };
    let opening = line_at(text, at);
    if !opening.text.starts_with(b"---") {
        if is_key_line(opening.text, &["name", "description"]) {
            flaws.push(mended(line, "the opening `---` is missing", "put a line with `---` before the first key"));
            return Ok((at, line));
        }
        return Err(Flaw {
            kind: ProblemKind::NoFrontmatter,
            at: Some(Position { line: 1, column: 1 }),
            reason: "the file has no frontmatter".to_owned(),
            fix: "start it with a `---` line, `name:` and `description:`, and another `---` line".to_owned(),
        });
    }
    if at > 0 {
        flaws.push(mended(line, "there is something before the opening `---`", "make `---` the first line"));
    }
    let rest = opening.text.iter().position(|&b| b != b'-').map_or(&[][..], |dashes| &opening.text[dashes..]);
    if !is_blank(rest) {
        flaws.push(mended(line, "text follows the opening `---`", "move it to its own line"));
        return Ok((at + opening.text.len() - rest.len(), line));
    }
    if opening.text.len() - rest.len() > 3 {
        flaws.push(mended(line, "the opening fence has more than three hyphens", "write `---`"));
    }
    Ok((opening.next, line + 1))
}

/// Skips blank lines and HTML comments before a fence or a first key.
fn skip_preface(text: &[u8]) -> (usize, usize) {
    let (mut at, mut line, mut in_comment) = (0, 1, false);
    while at < text.len() {
        let current = line_at(text, at);
        in_comment |= trim(current.text).starts_with(b"<!--");
        if !in_comment && !is_blank(current.text) {
            break;
        }
        if in_comment && contains(current.text, b"-->") {
            in_comment = false;
        }
        at = current.next;
        line += 1;
    }
    (at, line)
}

/// The end of the header: the first line that begins with three hyphens.
fn closing(text: &[u8], first_line: usize, flaws: &mut Vec<Flaw>) -> Option<usize> {
    for (number, line) in lines(text).enumerate() {
        if line.text.starts_with(b"---") {
            if !is_blank(&line.text[3..]) {
                let at = first_line + number;
                flaws.push(mended(at, "the closing fence has something after its three hyphens", "write `---` alone"));
            }
            return Some(line.start);
        }
    }
    None
}

/// The end of a header whose closing fence is odd or missing.
fn close_by_guess(text: &[u8], first_line: usize, flaws: &mut Vec<Flaw>) -> Result<usize, Flaw> {
    let odd = |line: &[u8]| {
        let line = trim(line);
        line == b"..."
            || (!line.is_empty() && String::from_utf8_lossy(line).chars().all(|c| matches!(c, '-' | '–' | '—')))
    };
    if let Some((number, line)) = lines(text).enumerate().find(|(_, line)| odd(line.text)) {
        flaws.push(mended(first_line + number, "the closing fence is not a plain `---`", "write `---` at column 1"));
        return Ok(line.start);
    }
    let end = header_end(text).ok_or_else(|| Flaw {
        kind: ProblemKind::BadFrontmatter,
        at: Some(Position { line: first_line.max(2) - 1, column: 1 }),
        reason: "the frontmatter is never closed and has no keys".to_owned(),
        fix: "add `name:`, `description:` and a closing `---` line".to_owned(),
    })?;
    let line = first_line + lines(&text[..end]).count();
    flaws.push(mended(line, "the closing `---` is missing", "put a line with `---` after the last key"));
    Ok(end)
}

/// Where a run of `key: value` lines and what belongs to them ends; `None` if there is no key at all.
pub(super) fn header_end(text: &[u8]) -> Option<usize> {
    let (mut seen_key, mut end) = (false, 0);
    for line in lines(text) {
        match line.text.first() {
            _ if is_blank(line.text) => continue,
            Some(b' ' | b'\t' | b'}' | b']' | b'{' | b'[') => {}
            Some(b'-') if line.text.starts_with(b"- ") => {}
            Some(b'#') if !seen_key => {}
            _ if is_key_line(line.text, &[]) => seen_key = true,
            _ => break,
        }
        end = line.next;
    }
    seen_key.then_some(end)
}

/// Whether a line is `key: value` at column 1; with `names`, whether the key is one of them.
pub(super) fn is_key_line(line: &[u8], names: &[&str]) -> bool {
    let Some(colon) = line.iter().position(|&b| b == b':') else { return false };
    let key = &line[..colon];
    let word = !key.is_empty() && key.iter().all(|&b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'));
    let spaced = line.get(colon + 1).is_none_or(|&b| matches!(b, b' ' | b'\t'));
    word && spaced && (names.is_empty() || names.iter().any(|name| key.eq_ignore_ascii_case(name.as_bytes())))
}

fn mended(line: usize, reason: &str, fix: &str) -> Flaw {
    Flaw::mended(Position { line, column: 1 }, reason, fix)
}

struct Line<'a> {
    text: &'a [u8],
    start: usize,
    next: usize,
}

/// The line that starts at `start`, ended by LF, CR LF or a lone CR.
fn line_at(text: &[u8], start: usize) -> Line<'_> {
    let rest = &text[start..];
    let length = memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
    let end = start + length;
    let skip = match text.get(end..) {
        Some([b'\r', b'\n', ..]) => 2,
        Some([_, ..]) => 1,
        _ => 0,
    };
    Line { text: &text[start..end], start, next: end + skip }
}

fn lines(text: &[u8]) -> impl Iterator<Item = Line<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        (at < text.len()).then(|| {
            let line = line_at(text, at);
            at = line.next;
            line
        })
    })
}

fn trim(line: &[u8]) -> &[u8] {
    line.trim_ascii()
}

fn is_blank(line: &[u8]) -> bool {
    trim(line).is_empty()
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle)
}

fn unix_lines(text: Cow<'_, str>) -> Cow<'_, str> {
    if text.contains('\r') { Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n")) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, header: &str, flaws: usize) {
        let block = find(text.as_bytes()).expect("frontmatter");
        assert_eq!(block.header, header, "{text:?}");
        assert_eq!(block.flaws.len(), flaws, "{text:?}: {:?}", block.flaws);
    }

    #[test]
    fn plain_fences() {
        check("---\na: b\n---\nbody\n", "a: b\n", 0);
        check("---\r\na: b\r\n---\r\n", "a: b\n", 0);
        check("---\ra: b\r---\rbody\r", "a: b\n", 0);
        check("--- \na: b\n---", "a: b\n", 0);
        check("---\n---\nbody", "", 0);
        check("---\na: |\n  ---\n  x\n---\n", "a: |\n  ---\n  x\n", 0);
    }

    #[test]
    fn odd_fences_are_read_and_reported() {
        check("\u{feff}---\na: b\n---\n", "a: b\n", 1);
        check("\n---\na: b\n---\n", "a: b\n", 1);
        check("<!-- x\ny -->\n---\na: b\n---\n", "a: b\n", 1);
        check("----\na: b\n---\n", "a: b\n", 1);
        check("---\na: b\n---suffix\n", "a: b\n", 1);
        check("---\na: b\n ---\nbody\n", "a: b\n", 1);
        check("---\na: b\n...\nbody\n", "a: b\n", 1);
        check("---\na: b\n———\nbody\n", "a: b\n", 1);
    }

    #[test]
    fn missing_fences_are_guessed() {
        check("---\nname: x\ndescription: y\n\n# Title\n\ntext\n", "name: x\ndescription: y\n", 1);
        check(
            "---\nname: x\ndescription: |\n  one\n\n  two\n\nText.\n",
            "name: x\ndescription: |\n  one\n\n  two\n",
            1,
        );
        check("name: x\ndescription: y\n---\nbody\n", "name: x\ndescription: y\n", 1);
        check("name: x\ndescription: y\n\nbody\n", "name: x\ndescription: y\n", 2);
    }

    #[test]
    fn no_frontmatter() {
        for text in ["", "# just text\n", "text --- text\n", "note: not a skill\n"] {
            assert_eq!(find(text.as_bytes()).map_err(|flaw| flaw.kind).err(), Some(ProblemKind::NoFrontmatter));
        }
        assert_eq!(find(b"---\n# x\n").map_err(|flaw| flaw.kind).err(), Some(ProblemKind::BadFrontmatter));
    }
}

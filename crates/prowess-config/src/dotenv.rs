//! What does a `.env` file set?
//!
//! `NAME=value` per line, with an optional `export`. Single quotes and backticks keep everything as it is; double
//! quotes know `\n`, `\r`, `\t`, `\"` and `\\`; quoted values may span lines. In a bare value ` #` starts a comment.
//! Nothing is expanded.

/// What one file holds: its variables in order, and the lines that make no sense.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Dotenv {
    pub(crate) variables: Vec<(String, String)>,
    pub(crate) bad_lines: Vec<(usize, &'static str)>,
}

pub(crate) fn parse(text: &str) -> Dotenv {
    let mut found = Dotenv::default();
    let mut rest = text.trim_start_matches('\u{feff}');
    let mut line = 1;
    while !rest.is_empty() {
        let (entry, used) = entry(rest);
        match entry {
            Ok(Some(variable)) => found.variables.push(variable),
            Ok(None) => {}
            Err(reason) => found.bad_lines.push((line, reason)),
        }
        line += rest[..used].matches('\n').count();
        rest = &rest[used..];
    }
    found
}

type Entry = Result<Option<(String, String)>, &'static str>;

/// The entry at the start of `text`, and how many bytes it takes with its line end.
fn entry(text: &str) -> (Entry, usize) {
    let line_end = text.find('\n').map_or(text.len(), |at| at + 1);
    let line = text[..line_end].trim();
    if line.is_empty() || line.starts_with('#') {
        return (Ok(None), line_end);
    }
    let Some(equals) = text[..line_end].find('=') else {
        return (Err("there is no `=` in it; write NAME=value"), line_end);
    };
    let name = text[..equals].trim();
    let name = name.strip_prefix("export").filter(|rest| rest.starts_with([' ', '\t'])).unwrap_or(name).trim();
    if name.is_empty() {
        return (Err("there is no name before the `=`; write NAME=value"), line_end);
    }
    let after = &text[equals + 1..];
    let padding = after.len() - after.trim_start_matches([' ', '\t']).len();
    let value_start = equals + 1 + padding;
    match text[value_start..].chars().next() {
        Some(quote @ ('"' | '\'' | '`')) => match quoted(&text[value_start + 1..], quote) {
            Some((value, used)) => {
                let end = value_start + 1 + used;
                let used = text[end..].find('\n').map_or(text.len(), |at| end + at + 1);
                (Ok(Some((name.to_owned(), value))), used)
            }
            None => (Err("its quote is never closed; close it"), line_end),
        },
        _ => (Ok(Some((name.to_owned(), bare(&text[value_start.min(line_end)..line_end])))), line_end),
    }
}

fn bare(text: &str) -> String {
    let comment = text.char_indices().find(|&(at, c)| c == '#' && (at == 0 || text[..at].ends_with([' ', '\t'])));
    text[..comment.map_or(text.len(), |(at, _)| at)].trim().to_owned()
}

/// The value up to the closing quote, and how many bytes it takes with that quote.
fn quoted(text: &str, quote: char) -> Option<(String, usize)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            c if c == quote => return Some((value, at + c.len_utf8())),
            '\\' if quote == '"' => match chars.next()?.1 {
                'n' => value.push('\n'),
                'r' => value.push('\r'),
                't' => value.push('\t'),
                same @ ('"' | '\\') => value.push(same),
                other => value.extend(['\\', other]),
            },
            c => value.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::parse;

    fn check(text: &str) -> Vec<(String, String)> {
        parse(text).variables
    }

    #[test]
    fn reads_every_form() {
        for (text, value) in [
            ("A=b", "b"),
            ("export A=b", "b"),
            ("  A = b  ", "b"),
            ("A=", ""),
            ("A=b # note", "b"),
            ("A=b#c", "b#c"),
            ("A=# note", ""),
            ("A='b # c'", "b # c"),
            ("A='b\\n'", "b\\n"),
            (r#"A="b\n\"c\" \d" # note"#, "b\n\"c\" \\d"),
            ("A=\"b\nc\"", "b\nc"),
            ("A=`b'c`", "b'c"),
            ("A=b=c", "b=c"),
            ("\u{feff}A=${B}\r\n", "${B}"),
            ("A=\nB", ""),
        ] {
            assert_eq!(check(text).first(), Some(&("A".to_owned(), value.to_owned())), "{text:?}");
        }
    }

    #[test]
    fn goes_on_after_bad_lines() {
        let found = parse("# top\n\nnonsense\n=x\nA=\"open\nB=1\n");
        assert_eq!(found.variables, [("B".to_owned(), "1".to_owned())]);
        assert_eq!(found.bad_lines.iter().map(|bad| bad.0).collect::<Vec<_>>(), [3, 4, 5]);
    }

    #[test]
    fn a_quoted_value_over_two_lines_counts_both() {
        assert_eq!(parse("A='x\ny'\nbad\n").bad_lines.first().map(|bad| bad.0), Some(3));
    }
}

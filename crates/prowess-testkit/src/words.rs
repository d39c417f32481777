//! How does a command line in a test become arguments?

/// The words of `line`, as a shell would split them: blanks separate, `'…'` and `"…"` hold together, `\` takes the next
/// character as it is (outside single quotes). `$HOME` becomes `home`, except in single quotes; nothing else expands.
#[track_caller]
pub(crate) fn split(line: &str, home: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match (quote, c) {
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (Some(open), _) if open == c => quote = None,
            (None, _) if c.is_whitespace() => words.extend(word.take()),
            (None | Some('"'), '\\') => {
                let next = rest.chars().next().unwrap_or_else(|| panic!("nothing follows the last `\\`: {line}"));
                rest = &rest[next.len_utf8()..];
                word.get_or_insert_default().push(next);
            }
            (None | Some('"'), '$') if rest.starts_with("HOME") => {
                rest = &rest["HOME".len()..];
                word.get_or_insert_default().push_str(home);
            }
            _ => word.get_or_insert_default().push(c),
        }
    }
    assert!(quote.is_none(), "a quote is not closed: {line}");
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn a_line_is_split_as_a_shell_would() {
        let table: &[(&str, &[&str])] = &[
            ("", &[]),
            ("  skills   list --json ", &["skills", "list", "--json"]),
            (r#"run "two words" 'and "three" words'"#, &["run", "two words", r#"and "three" words"#]),
            (r#"a"b"'c' "" ''"#, &["abc", "", ""]),
            (r#"a\ b "\"" '\'"#, &["a b", "\"", "\\"]),
            (r#"$HOME/x "$HOME" '$HOME' \$HOME $OTHER"#, &["/h/x", "/h", "$HOME", "$HOME", "$OTHER"]),
            ("--emoji=🌤️ é", &["--emoji=🌤️", "é"]),
        ];
        for (line, words) in table {
            assert_eq!(split(line, "/h"), *words, "{line}");
        }
    }

    #[test]
    #[should_panic(expected = "a quote is not closed")]
    fn an_open_quote_is_a_mistake_in_the_test() {
        split("say 'hello", "/h");
    }
}

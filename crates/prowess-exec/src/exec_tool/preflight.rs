//! Is this script really a script, or shell text that landed in the wrong file?
//!
//! Models sometimes write shell syntax into a Python or JavaScript file and run it. That fails in odd ways; saying so
//! before is kinder. This is advice, not protection.

use std::path::Path;

/// The largest script that is looked at.
pub const MAX_PREFLIGHT_BYTES: usize = 512 * 1024;

/// The two languages that are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Language {
    Python,
    Node,
}

impl Language {
    fn name(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Node => "node",
        }
    }
}

/// Looks at the script that `command` runs, if it begins with one. `read` gives a file's text if it may be looked at:
/// it lies inside the working directory and is text.
pub fn preflight(command: &str, read: impl Fn(&Path) -> Option<String>) -> Result<(), String> {
    let Some((language, file)) = script(command) else { return Ok(()) };
    let path = Path::new(file);
    let Some(text) = read(path).filter(|text| text.len() <= MAX_PREFLIGHT_BYTES) else { return Ok(()) };
    let name = path.file_name().map_or_else(|| file.to_owned(), |name| name.to_string_lossy().into_owned());
    if let Some((variable, line)) = shell_variable(&text) {
        let language = language.name();
        return Err(format!(
            "exec preflight: detected likely shell variable injection ({variable}) in {language} script: {name}:{line}.\n\
             The file seems to hold shell text: {language} does not know {variable}.\n\
             Write the file again with the value itself, or read it from the environment in {language}'s own way."
        ));
    }
    let first = text.lines().map(str::trim_start).find(|line| !line.is_empty()).unwrap_or_default();
    if language == Language::Node && starts_with_word(first, "NODE") {
        return Err(format!(
            "exec preflight: the first line of {name} begins with NODE, which looks like the end mark of a shell heredoc.\n\
             Write the file again without the shell text around it."
        ));
    }
    Ok(())
}

/// The text of a script that the preflight may look at: a plain file, and no more of it than it looks at.
pub(crate) fn script_text(path: &Path) -> Option<String> {
    use std::io::Read;
    let largest = u64::try_from(MAX_PREFLIGHT_BYTES).ok()?;
    // Asked before it is opened: opening a pipe would wait for somebody to write to it.
    std::fs::metadata(path).ok().filter(|it| it.is_file() && it.len() <= largest)?;
    let mut text = String::new();
    std::fs::File::open(path).ok()?.take(largest + 1).read_to_string(&mut text).ok()?;
    Some(text)
}

/// The script a command begins with: an interpreter, any flags, and a file of its kind.
fn script(command: &str) -> Option<(Language, &str)> {
    let mut words = command.split_whitespace();
    let (language, ending) = match words.next()? {
        "python" | "python3" => (Language::Python, ".py"),
        "node" => (Language::Node, ".js"),
        _ => return None,
    };
    let file = words.find(|word| !word.starts_with('-'))?;
    file.ends_with(ending).then_some((language, file))
}

/// The first `$NAME` in capitals, and its line.
fn shell_variable(text: &str) -> Option<(&str, usize)> {
    let is_first = |byte: u8| byte.is_ascii_uppercase() || byte == b'_';
    let is_next = |byte: u8| is_first(byte) || byte.is_ascii_digit();
    for (at, _) in text.match_indices('$') {
        let name = text[at + 1..].bytes().take_while(|&byte| is_next(byte)).count();
        if name >= 2 && text.as_bytes().get(at + 1).copied().is_some_and(is_first) {
            return Some((&text[at..=at + name], text[..at].matches('\n').count() + 1));
        }
    }
    None
}

fn starts_with_word(text: &str, word: &str) -> bool {
    let ends = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    text.strip_prefix(word).is_some_and(ends)
}

#[cfg(test)]
mod tests {
    use super::preflight;

    fn check(command: &str, text: &str) -> Option<String> {
        preflight(command, |_| Some(text.to_owned())).err()
    }

    #[test]
    fn shell_text_in_a_script_is_named_with_its_line() {
        let why = check("python3 -u dir/run.py --x", "import os\nprint($HOME_DIR)\n").unwrap();
        let begin = "exec preflight: detected likely shell variable injection ($HOME_DIR) in python script: run.py:2.";
        assert!(why.starts_with(begin), "{why}");
        assert!(check("node app.js", "\n\nNODE\n").is_some());
        assert!(check("node --inspect app.js", "const a = $PATH").unwrap().contains("in node script: app.js:1."));
    }

    #[test]
    fn other_commands_and_other_dollars_pass() {
        let table = [
            ("python3 run.py", "cost = '$5 and $a and $A'"),
            ("python3 -c pass", "$HOME"),
            ("ls run.py", "$HOME"),
            ("node app.mjs", "$HOME"),
            ("node app.js", "NODES = 1"),
            ("python3 app.py", "NODE\n"),
            ("node app.js", "$1AB $9"),
        ];
        for (command, text) in table {
            assert_eq!(check(command, text), None, "{command}: {text}");
        }
        assert!(preflight("python3 run.py", |_| None).is_ok());
        assert_eq!(check("python3 run.py", &"$HOME ".repeat(100_000)), None);
    }
}

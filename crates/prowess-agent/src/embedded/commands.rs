//! Commands: what does a code block tell a shell to do, one command at a time?

use prowess_policy::script::{DoubtKind, Script, Word};

use super::sections::{Code, Section, looks_like_command};
use super::words::stems;

/// How many commands of one section are looked at, and how long one may be, in bytes and lines.
const MAX_COMMANDS: usize = 60;
const MAX_COMMAND: usize = 4 * 1024;
const MAX_LINES: usize = 24;

/// A command, as a skill writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Command {
    /// The command, on one line where that means the same; without comments.
    pub text: String,
    /// What the skill says about it.
    pub note: String,
    /// Whether it stood in a sentence rather than in a block.
    pub is_inline: bool,
}

/// The commands of a section: those of its blocks, then those within its sentences.
pub(crate) fn commands(section: &Section<'_>) -> Vec<Command> {
    let blocks = section.blocks.iter().filter(|block| block.is_shell()).flat_map(split);
    let inline = section.inline.iter().filter(|text| looks_like_command(text));
    let inline = inline.map(|text| Command { text: text.trim().to_owned(), note: String::new(), is_inline: true });
    blocks.chain(inline).filter(|command| command.text.len() <= MAX_COMMAND).take(MAX_COMMANDS).collect()
}

/// The words of a command that change something and that the request does not say, by their stems in `asked`.
///
/// Whoever asks to read an issue must not get a comment on it. A list of words is coarse, but the policy comes after it.
pub(crate) fn unasked_changes(text: &str, asked: &[String]) -> Vec<String> {
    let script = Script::parse(text);
    let words = script.segments.iter().flat_map(|segment| &segment.words).filter_map(Word::literal);
    let pieces = words.filter(|word| !word.contains("://") && !word.contains(char::is_whitespace));
    let pieces = pieces.flat_map(|word| word.split(|c: char| !c.is_alphanumeric()));
    let changes = pieces.map(str::to_lowercase).filter(|piece| CHANGES.binary_search(&piece.as_str()).is_ok());
    // Who wants something new wants its folder.
    let wants_new = MAKING.iter().any(|stem| asked.iter().any(|asked| asked == stem));
    let is_asked =
        |piece: &str| (wants_new && piece == "mkdir") || stems(piece).iter().all(|stem| asked.contains(stem));
    let mut found: Vec<String> = changes.filter(|piece| !is_asked(piece)).collect();
    found.dedup();
    found
}

/// Stems of words that ask for something new.
const MAKING: [&str; 4] = ["creat", "mak", "new", "writ"];

fn split(block: &Code) -> Vec<Command> {
    let lines: Vec<&str> = block.text.lines().collect();
    // With prompts in it, a block is a recording: what has no prompt is output.
    let is_recording = lines.iter().any(|line| line.trim_start().starts_with("$ "));
    let mut found = Vec::new();
    let mut note = String::new();
    let mut place = 0;
    while place < lines.len() && found.len() < MAX_COMMANDS {
        let line = lines[place].trim();
        if line.is_empty() {
            note.clear();
        } else if let Some(comment) = line.strip_prefix('#') {
            comment.trim().clone_into(&mut note);
        } else if !is_recording || line.starts_with("$ ") {
            let (piece, taken) = whole(&lines[place..]);
            found.push(command(&piece, &note));
            place += taken;
            continue;
        }
        place += 1;
    }
    found
}

/// The first command of `lines`, however many lines it has, and how many those are.
fn whole(lines: &[&str]) -> (String, usize) {
    let first = lines[0].trim();
    let mut text = first.strip_prefix("$ ").unwrap_or(first).to_owned();
    let mut taken = 1;
    for line in lines[1..].iter().take(MAX_LINES) {
        if !goes_on(&text) {
            return (text, taken);
        }
        text.push('\n');
        text.push_str(line);
        taken += 1;
    }
    // One that does not end takes the rest of its block with it.
    if goes_on(&text) { (lines.join("\n"), lines.len()) } else { (text, taken) }
}

/// Whether a shell would wait for more.
fn goes_on(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " -_./:=,@%+~".contains(c);
    let opens = ["if ", "for ", "while ", "until ", "case ", "select ", "function "];
    if text.chars().all(is_plain) && !opens.iter().any(|word| text.starts_with(word)) {
        return false;
    }
    let joined = join(text);
    joined.ends_with('\\') || Script::parse(&joined.text()).doubts.iter().any(|doubt| doubt.kind == DoubtKind::Syntax)
}

fn command(text: &str, above: &str) -> Command {
    let joined = join(text);
    let note = [above, joined.comment.as_str()].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>();
    Command { text: joined.text(), note: note.join("; "), is_inline: false }
}

/// A text with its continued lines joined and the comment at its end taken off.
struct Joined {
    code: String,
    comment: String,
}

impl Joined {
    fn text(&self) -> String {
        self.code.trim().to_owned()
    }

    fn ends_with(&self, c: char) -> bool {
        self.code.trim_end().ends_with(c)
    }
}

/// Joins lines that end in a backslash, outside quotes that keep it. A comment is taken off only at the very end.
fn join(text: &str) -> Joined {
    let mut joined = Joined { code: String::new(), comment: String::new() };
    let mut quote = None;
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match (c, quote) {
            ('\\', None | Some('"')) if rest.peek() == Some(&'\n') => {
                rest.next();
                while quote.is_none() && rest.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
                if quote.is_none() && !joined.code.ends_with(' ') {
                    joined.code.push(' ');
                }
                continue;
            }
            ('\\', None | Some('"')) => {
                joined.code.push(c);
                joined.code.extend(rest.next());
                continue;
            }
            ('#', None) if joined.code.is_empty() || joined.code.ends_with(char::is_whitespace) => {
                let comment: String = std::iter::from_fn(|| rest.next_if(|c| *c != '\n')).collect();
                if rest.peek().is_none() {
                    comment.trim().clone_into(&mut joined.comment);
                    return joined;
                }
                joined.code.push(c);
                joined.code.push_str(&comment);
                continue;
            }
            ('\'' | '"', None) => quote = Some(c),
            (_, Some(open)) if c == open => quote = None,
            _ => {}
        }
        joined.code.push(c);
    }
    joined
}

/// Words in commands that change something; sorted.
#[rustfmt::skip]
const CHANGES: &[&str] = &[
    "add", "append", "apply", "approve", "archive", "attach", "buy", "cancel", "chmod", "chown", "clear", "close",
    "comment", "commit", "copy", "create", "dd", "delete", "deploy", "destroy", "disable", "drop", "edit", "enable",
    "erase", "format", "import", "install", "invite", "kill", "lock", "login", "logout", "merge", "mkdir", "mkfs",
    "mount", "move", "mv", "order", "patch", "pay", "play", "post", "publish", "purge", "push", "put", "reboot",
    "remove", "rename", "reopen", "reply", "rerun", "reset", "restart", "restore", "revoke", "rm", "rmdir", "save",
    "send", "set", "share", "shutdown", "start", "stop", "submit", "sync", "transfer", "trash", "truncate",
    "uninstall", "unlock", "unset", "update", "upgrade", "upload", "write",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn check(block: &str) -> Vec<(String, String)> {
        let code = Code { language: "bash".to_owned(), text: block.to_owned() };
        split(&code).into_iter().map(|command| (command.text, command.note)).collect()
    }

    fn texts(block: &str) -> Vec<String> {
        check(block).into_iter().map(|(text, _)| text).collect()
    }

    #[test]
    fn notes_are_kept_apart() {
        let found = check("# updates\napt list  # stale\ndnf check\n\nls '#no' a#b\n");
        let want = [("apt list", "updates; stale"), ("dnf check", "updates"), ("ls '#no' a#b", "")];
        assert_eq!(found, want.map(|(text, note)| (text.to_owned(), note.to_owned())));
    }

    #[test]
    fn a_command_may_have_many_lines() {
        for (block, want) in [
            ("curl a \\\n  -d b\nls\n", vec!["curl a -d b", "ls"]),
            ("gh list \\\n  --jq '.[] |\n  x'\nls", vec!["gh list --jq '.[] |\n  x'", "ls"]),
            ("for f in *; do\n  cat \"$f\"\ndone\nls", vec!["for f in *; do\n  cat \"$f\"\ndone", "ls"]),
            ("cat <<'E'\n# a\nE\nls", vec!["cat <<'E'\n# a\nE", "ls"]),
            ("echo 'a\\\nb'", vec!["echo 'a\\\nb'"]),
            ("echo \"a\\\nb\"", vec!["echo \"ab\""]),
            ("$ ls -l\ntotal 0\n$ pwd\n/", vec!["ls -l", "pwd"]),
            ("", vec![]),
            ("# only a comment", vec![]),
        ] {
            assert_eq!(texts(block), want, "{block:?}");
        }
    }

    #[test]
    fn what_changes_something_has_to_be_asked_for() {
        assert!(CHANGES.is_sorted());
        for (command, request, changes) in [
            ("gh issue view 7", "read issue 7", ""),
            ("gh issue comment 7", "read issue 7", "comment"),
            ("gh issue comment 7", "comment on issue 7", ""),
            ("gh issue edit 7 --add-label x", "edit issue 7", "add"),
            ("curl -X POST https://x/delete", "get it", "post"),
            ("say 'add this'", "say it", ""),
            ("a | xargs rm", "list it", "rm"),
            ("mkdir -p x && make-it x", "create it", ""),
            ("mkdir -p x && make-it x", "show it", "mkdir"),
        ] {
            assert_eq!(unasked_changes(command, &stems(request)).join(" "), changes, "{command} | {request}");
        }
    }

    #[test]
    fn what_never_ends_is_cut() {
        let open = format!("echo '\n{}", "x\n".repeat(1_000));
        assert!(texts(&open).len() <= MAX_COMMANDS);
        assert_eq!(texts(&"ls\n".repeat(1_000)).len(), MAX_COMMANDS);
    }
}

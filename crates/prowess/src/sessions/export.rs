//! `sessions export`: a session as a file.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use prowess_agent::message::{Block, Message};

use prowess_host::Failure;

use super::list::time;
use super::show::shape;
use super::told::{Told, ending, typed};
use crate::cli::Format;
use crate::output::{Report, cleaned, count, json, safe};

/// The conversation in `format`.
pub(crate) fn render(told: &Told, format: Format) -> Result<String, Failure> {
    match format {
        Format::Markdown => Ok(markdown(told)),
        Format::Json => Report::json(&shape(told)).map(|report| report.text),
        Format::Jsonl => {
            let line = |line: &super::told::Line| json::line(&line.message).map(|line| line + "\n");
            told.lines.iter().map(line).collect::<Result<String, _>>().map_err(Failure::ours)
        }
    }
}

/// Writes it to a new file that only its owner can read: conversations are private.
pub(crate) fn save(text: &str, path: &Path) -> Result<(), Failure> {
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    made.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| {
        Failure::input(format!("cannot write {}: {error}", path.display()))
            .hint("choose a file that does not exist yet")
    })
}

/// What was done, for the person.
pub(crate) fn done(told: &Told, path: &Path) -> Report {
    Report::text(format!("wrote {} to {}\n", count(told.lines.len(), "message"), path.display()))
}

fn markdown(told: &Told) -> String {
    let name = told.key.as_deref().map_or_else(|| safe(&told.id), safe);
    let mut text = format!("# Session {name}\n\n- id: {}\n", safe(&told.id));
    let skills = told.skills();
    if !skills.is_empty() {
        let _ = writeln!(text, "- skills: {}", safe(&skills.join(", ")));
    }
    let _ = writeln!(text, "- tokens: {}", told.usage().total_tokens);
    for line in &told.lines {
        match &line.message {
            Message::User(user) => {
                let _ = writeln!(text, "\n## User, {}\n", time(user.timestamp));
                let _ = writeln!(text, "{}", cleaned(&typed(user)).trim_end());
                let pictures = user.content.iter().filter(|block| block.as_text().is_none()).count();
                if pictures > 0 {
                    let _ = writeln!(text, "\n({})", count(pictures, "attachment"));
                }
            }
            Message::Assistant(assistant) => {
                let who = safe(&format!("{}/{}", assistant.provider, assistant.model));
                let _ = writeln!(text, "\n## Model {who}, {}\n", time(assistant.timestamp));
                blocks(&mut text, &assistant.content);
                if let Some((_, why)) = ending(assistant) {
                    let _ = writeln!(text, "*{}*", safe(why));
                }
            }
            Message::ToolResult(reply) => {
                let word = if reply.is_error { "failed" } else { "returned" };
                let _ = writeln!(text, "\n`{}` {word}:\n\n{}", safe(&reply.tool_name), fenced(&reply.text(), ""));
            }
        }
    }
    text
}

fn blocks(text: &mut String, blocks: &[Block]) {
    for block in blocks {
        match block {
            Block::Text { text: words, .. } => {
                let _ = writeln!(text, "{}", cleaned(words).trim_end());
            }
            Block::Thinking { thinking, .. } => {
                for line in cleaned(thinking).lines() {
                    let _ = writeln!(text, "> {line}");
                }
                // Without it what is said next would count as thought, too.
                text.push('\n');
            }
            Block::ToolCall(call) => {
                let arguments = serde_json::to_string_pretty(&call.arguments).unwrap_or_default();
                let _ = writeln!(text, "\nCalls `{}`:\n\n{}", safe(&call.name), fenced(&arguments, "json"));
            }
            Block::Image(image) => {
                let _ = writeln!(text, "(an image: {}, {} bytes)", safe(&image.mime_type), image.bytes());
            }
            Block::Other(_) => text.push_str("(an attachment)\n"),
        }
    }
}

/// A block of code whose fence is longer than any in it.
fn fenced(code: &str, language: &str) -> String {
    let code = cleaned(code);
    let longest = code.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}", code.trim_end())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::sessions::tests::weather;

    #[test]
    fn markdown_has_everything_that_was_said() {
        let text = render(&weather(), Format::Markdown).expect("text");
        for wanted in [
            "# Session agent:main:main",
            "- skills: weather",
            "## User, 1970-01-01 00:00\n\ncheck the weather\n",
            "## Model local/m, ",
            "Calls `exec`:\n\n```json\n{\n  \"command\": \"curl wttr.in\"\n}\n```",
            "`read` returned:\n\n````\n```sh\ncurl wttr.in\n```\n````",
            "It is sunny.",
        ] {
            assert!(text.contains(wanted), "{wanted}\n---\n{text}");
        }
        assert!(!text.contains('\u{1b}'), "what a command printed cannot reach a terminal");
    }

    #[test]
    fn a_thought_ends_before_what_is_said() {
        let thought = Block::Thinking { thinking: "Hm.".to_owned(), thinking_signature: None, redacted: false };
        let mut text = String::new();
        blocks(&mut text, &[thought, Block::text("Yes.")]);
        assert_eq!(text, "> Hm.\n\nYes.\n");
    }

    #[test]
    fn lines_of_json_can_be_read_back() {
        let mut told = weather();
        let Message::User(user) = &mut told.lines[0].message else { panic!("a person speaks first") };
        user.content = vec![Block::text("\u{202e}gpj.exe")];
        let text = render(&told, Format::Jsonl).expect("text");
        let back: Vec<Message> = text.lines().map(|line| serde_json::from_str(line).expect("a message")).collect();
        assert!(!text.contains('\u{202e}') && text.contains("\\u202e"), "{text}");
        assert_eq!(back, told.lines.into_iter().map(|line| line.message).collect::<Vec<_>>());
    }

    #[test]
    fn a_file_is_private_and_never_written_over() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("talk.md");
        save("one", &path).expect("saved");
        assert!(save("two", &path).expect_err("there already").message.contains("talk.md"));
        assert_eq!(std::fs::read_to_string(&path).expect("text"), "one");
        assert_eq!(std::fs::metadata(&path).expect("a file").permissions().mode() & 0o777, 0o600);
    }
}

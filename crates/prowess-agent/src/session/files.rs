//! Session files: which transcripts are in a folder, and what do they say at a glance?

use std::fs::{File, OpenOptions};
use std::io::{BufReader, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};
use std::time::UNIX_EPOCH;

use rustix::fs::OFlags;
use serde_json::Value;

use super::lines;
use crate::slash::typed;

/// The longest session id.
const MAX_ID: usize = 128;

/// The longest title, in characters.
const MAX_TITLE: usize = 80;

/// How much of a line tells what it is: its kind and the role of its message come first.
const GLANCE: usize = 256;

/// What the name of a transcript ends with.
const EXTENSION: &str = ".jsonl";

/// A transcript.
#[derive(Debug, Clone)]
pub(crate) struct SessionFile {
    pub(crate) id: String,
    pub(crate) path: PathBuf,
    /// When it was last written, in milliseconds since 1970.
    pub(crate) changed: u64,
}

/// What a glance at a transcript tells.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Glance {
    pub(crate) messages: u64,
    pub(crate) title: Option<String>,
    pub(crate) model: Option<String>,
}

/// Whether it is a session id: a name, and nothing that leads anywhere.
#[must_use]
pub(crate) fn is_id(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    text.len() <= MAX_ID && text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.chars().all(allowed)
}

/// The name of the file of a session.
pub(crate) fn name(id: &str) -> String {
    format!("{id}{EXTENSION}")
}

/// The file of a session: the one that the index names, if it is in `folder`, and else the one named after it.
pub(crate) fn path_of(folder: &Path, id: &str, named: Option<&str>) -> PathBuf {
    let named = named.map(Path::new).and_then(|named| {
        let rest = named.strip_prefix(folder).ok().or_else(|| named.is_relative().then_some(named))?;
        let mut parts = rest.components();
        let (Some(Component::Normal(part)), None) = (parts.next(), parts.next()) else { return None };
        let part = part.to_str()?;
        part.strip_suffix(EXTENSION).filter(|stem| is_id(stem))?;
        Some(folder.join(part))
    });
    named.unwrap_or_else(|| folder.join(name(id)))
}

/// Opens a file to read it. What is no file, a pipe say, would never end or never begin, so it is refused.
pub(crate) fn open(path: &Path) -> std::io::Result<File> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(std::io::Error::new(ErrorKind::InvalidInput, "it is not a regular file; move it elsewhere"));
    }
    Ok(file)
}

/// All transcripts in `folder`; none when it cannot be read.
pub(crate) fn list(folder: &Path) -> Vec<SessionFile> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let id = name.strip_suffix(EXTENSION).filter(|id| is_id(id))?.to_owned();
            // What is linked from elsewhere would be refused anyway.
            let metadata = entry.metadata().ok().filter(std::fs::Metadata::is_file)?;
            let since = metadata.modified().ok()?.duration_since(UNIX_EPOCH).unwrap_or_default();
            Some(SessionFile { id, path: entry.path(), changed: u64::try_from(since.as_millis()).unwrap_or(u64::MAX) })
        })
        .collect()
}

/// The key that the first line of a transcript names.
pub(crate) fn key_of(path: &Path) -> Option<String> {
    let mut from = BufReader::new(open(path).ok()?);
    let mut line = Vec::new();
    lines::next(&mut from, &mut line).ok()?;
    let header: Value = serde_json::from_slice(&line).ok()?;
    header.get("sessionKey")?.as_str().map(str::to_owned)
}

/// Looks through a transcript without reading all of what was said. Lines are told apart by how they begin.
pub(crate) fn glance(path: &Path) -> std::io::Result<Glance> {
    let mut from = BufReader::with_capacity(1 << 16, open(path)?);
    let (mut line, mut answer) = (Vec::new(), Vec::new());
    let mut glance = Glance::default();
    while lines::next(&mut from, &mut line)? {
        let start = &line[..line.len().min(GLANCE)];
        if !starts_message(start) {
            continue;
        }
        glance.messages += 1;
        if glance.title.is_none() && has(start, b"\"role\":\"user\"") {
            glance.title = serde_json::from_slice(&line).ok().as_ref().and_then(title);
        }
        if has(start, b"\"role\":\"assistant\"") {
            std::mem::swap(&mut line, &mut answer);
        }
    }
    if let Ok(answer) = serde_json::from_slice::<Value>(&answer) {
        glance.model = answer["message"]["model"].as_str().map(str::to_owned);
    }
    Ok(glance)
}

fn starts_message(start: &[u8]) -> bool {
    has(start, b"{\"type\":\"message\",")
}

fn has(text: &[u8], what: &[u8]) -> bool {
    text.windows(what.len()).any(|window| window == what)
}

/// The first words of what a person said.
fn title(entry: &Value) -> Option<String> {
    let content = &entry["message"]["content"];
    let text = match content {
        Value::String(text) => text.as_str(),
        _ => content.as_array()?.iter().find_map(|block| block["text"].as_str())?,
    };
    let words: Vec<&str> =
        typed(text).split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()).collect();
    let text = words.join(" ");
    if text.is_empty() {
        return None;
    }
    if text.chars().count() <= MAX_TITLE {
        return Some(text);
    }
    let short: String = text.chars().take(MAX_TITLE - 1).collect();
    Some(format!("{}…", short.trim_end()))
}

#[cfg(test)]
mod tests {
    use prowess_testkit::Tree;

    use super::*;

    #[test]
    fn the_index_may_name_a_file_only_in_its_folder() {
        let folder = Path::new("/s/agents/main/sessions");
        let table = [
            (None, "id.jsonl"),
            (Some("/s/agents/main/sessions/id-topic-7.jsonl"), "id-topic-7.jsonl"),
            (Some("other.jsonl"), "other.jsonl"),
            (Some("/s/agents/main/sessions/../../x.jsonl"), "id.jsonl"),
            (Some("../x.jsonl"), "id.jsonl"),
            (Some("/etc/passwd"), "id.jsonl"),
            (Some("sessions.json"), "id.jsonl"),
            (Some(""), "id.jsonl"),
            (Some(".hidden.jsonl"), "id.jsonl"),
        ];
        for (named, expected) in table {
            assert_eq!(path_of(folder, "id", named), folder.join(expected), "{named:?}");
        }
    }

    #[test]
    fn a_glance_tells_what_a_list_shows() {
        let long = "word ".repeat(40);
        let lines = [
            r#"{"type":"session","version":3,"id":"a"}"#.to_owned(),
            r#"{"type":"message","id":"1","parentId":null,"timestamp":"t","message":{"role":"user","content":[{"type":"text","text":"  "}]}}"#.to_owned(),
            format!(r#"{{"type":"message","id":"2","parentId":"1","timestamp":"t","message":{{"role":"user","content":"hi\u001b[2J\n{long}"}}}}"#),
            r#"{"type":"message","id":"3","parentId":"2","timestamp":"t","message":{"role":"assistant","model":"m1","content":[]}}"#.to_owned(),
            r#"{"type":"custom","id":"4","parentId":"3","timestamp":"t","data":{"x":{"type":"message"}}}"#.to_owned(),
            r#"{"type":"message","id":"5","parentId":"4","timestamp":"t","message":{"role":"assistant","model":"m2","content":[]}}"#.to_owned(),
            r#"{"type":"message","id":"6","par"#.to_owned(),
        ];
        let tree = Tree::new().file("a.jsonl", lines.join("\n"));
        let glance = glance(&tree.path("a.jsonl")).expect("a file");
        assert_eq!((glance.messages, glance.model.as_deref()), (5, Some("m2")));
        let title = glance.title.expect("a title");
        assert!(title.starts_with("hi [2J word word") && title.ends_with('…'), "{title:?}");
        assert!(title.chars().count() <= MAX_TITLE);
    }
}

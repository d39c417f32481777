//! The edit tool: how is one passage of a file replaced by another?

use std::fmt::Write as _;
use std::future::Future;
use std::io::Read;
use std::pin::Pin;
use std::sync::Arc;

use prowess_exec::ToolResult;
use prowess_exec::approver::{Change, Passage};
use serde_json::{Value, json};

use super::permission::Wish;
use super::place::{Fences, Opened, Standing};
use super::store::MAX_FILE_BYTES;
use super::write::{check_size, consent, store, target};
use crate::tool::{Call, Scope, Tool, ToolSpec};

/// The tool's name.
const NAME: &str = "edit";

/// What some editors put in front of a text.
const BOM: char = '\u{feff}';

/// Lines around a change that are shown with it.
const CONTEXT: usize = 3;

/// The most lines of a change that are shown.
const MAX_DIFF_LINES: usize = 200;

/// Replaces passages.
#[derive(Debug)]
pub struct EditTool {
    spec: ToolSpec,
    fences: Arc<Fences>,
}

impl EditTool {
    pub(crate) fn new(fences: Arc<Fences>) -> Self {
        let spec = ToolSpec {
            name: NAME.to_owned(),
            description:
                "Replace one passage of a file. oldText must be in it exactly once, with all its spaces; take in \
                          more lines around it to make it so."
                    .to_owned(),
            parameters: json!({
                "type": "object",
                "required": ["path", "oldText", "newText"],
                "properties": {
                    "path": {"type": "string", "description": "The file."},
                    "oldText": {"type": "string", "description": "The existing text."},
                    "newText": {"type": "string", "description": "The new text; empty to remove the passage."}
                }
            }),
        };
        Self { spec, fences }
    }

    async fn edit(&self, call: Call<'_>, scope: &Scope<'_>) -> Result<ToolResult, ToolResult> {
        let text = |name: &str| call.arguments.get(name).and_then(Value::as_str).unwrap_or_default();
        let path = text("path");
        let real = target(NAME, path, scope)?;
        let failed = |why: &str| ToolResult::error(NAME, why);
        let opened = Opened::find(&real)
            .map_err(|error| failed(&format!("{path} cannot be edited: {error}. To make a new file, use write.")))?;
        // Nobody learns from an edit what they may not read.
        if let Standing::Refused(why) = self.fences.reading(&opened, &real, scope) {
            return Err(failed(&format!("edit denied: {why}.")));
        }
        let wish = || {
            let passage = |change, name| Passage { change, text: text(name).to_owned() };
            let passages = vec![passage(Change::Removed, "oldText"), passage(Change::Added, "newText")];
            Wish::new(NAME, format!("edit {}", real.display())).writing(passages)
        };
        consent(NAME, &self.fences, &real, wish, scope).await?;
        let was = opened.metadata.clone();
        let order = Editing { opened, old: text("oldText").to_owned(), new: text("newText").to_owned() };
        let edited = tokio::task::spawn_blocking(move || order.run()).await;
        let edited = edited.map_err(|_| failed("Editing the file failed; try again."))?;
        let Edited { content, diff, line } = edited.map_err(|why| failed(&format!("{path} {why}")))?;
        check_size(NAME, content.len())?;
        store(NAME, path, real.clone(), content, Some(was)).await?;
        let details = json!({"path": real, "diff": diff, "firstChangedLine": line});
        Ok(ToolResult::done(format!("Replaced the passage in {path}, from line {line}."), details))
    }
}

impl Tool for EditTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        call: Call<'a>,
        scope: &'a Scope<'a>,
    ) -> Pin<Box<dyn Future<Output = ToolResult> + Send + 'a>> {
        Box::pin(async move { self.edit(call, scope).await.unwrap_or_else(|answer| answer) })
    }
}

/// All that is needed to change a file, in a thread that may wait.
struct Editing {
    opened: Opened,
    old: String,
    new: String,
}

/// A file as it is to be.
struct Edited {
    content: String,
    /// What is different, and from which line on.
    diff: String,
    line: usize,
}

impl Editing {
    fn run(self) -> Result<Edited, String> {
        let before = read(&self.opened).map_err(|why| format!("cannot be edited: {why}."))?;
        let content = replace(&before, &self.old, &self.new).map_err(|why| format!("was not changed: {why}"))?;
        let (diff, line) = diff(&before, &content);
        Ok(Edited { content, diff, line })
    }
}

fn read(opened: &Opened) -> Result<String, String> {
    if !opened.metadata.is_file() {
        return Err("it is not a file".to_owned());
    }
    let most = MAX_FILE_BYTES as u64;
    if opened.metadata.len() > most {
        return Err(format!("it has more than {most} bytes"));
    }
    let mut text = String::new();
    let file = opened.reader().map_err(|error| error.to_string())?;
    file.take(most + 1).read_to_string(&mut text).map_err(|error| error.to_string())?;
    Ok(text)
}

/// `content` with the one `old` in it replaced by `new`. Where the file ends its lines with CR LF, a passage with plain
/// ends means those.
fn replace(content: &str, old: &str, new: &str) -> Result<String, String> {
    let (mark, body) = match content.strip_prefix(BOM) {
        Some(body) => (&content[..BOM.len_utf8()], body),
        None => ("", content),
    };
    let old = old.strip_prefix(BOM).unwrap_or(old);
    if old.is_empty() {
        return Err("oldText is empty. Give the text to replace; to write a whole file, use write.".to_owned());
    }
    if old == new {
        return Err("oldText and newText are the same.".to_owned());
    }
    let long_ends = |text: &str| text.replace("\r\n", "\n").replace('\n', "\r\n");
    let (old, new) = if !body.contains(old) && body.contains("\r\n") {
        (long_ends(old), long_ends(new))
    } else {
        (old.to_owned(), new.to_owned())
    };
    let Some(at) = body.find(&old) else {
        return Err("oldText is not in the file. Read the file again and copy the text exactly.".to_owned());
    };
    if is_again(body, &old, at) {
        return Err("oldText is in the file more than once. Include more of the surrounding text.".to_owned());
    }
    let (before, after) = (&body[..at], &body[at + old.len()..]);
    Ok(format!("{mark}{before}{new}{after}"))
}

/// Whether `part`, which is in `text` at `first`, is there once more, perhaps overlapping itself.
fn is_again(text: &str, part: &str, first: usize) -> bool {
    let step = part.chars().next().map_or(1, char::len_utf8);
    text[first + step..].contains(part)
}

/// The change between two texts as a unified diff, and the line it begins at.
fn diff(before: &str, after: &str) -> (String, usize) {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let same = old.iter().zip(&new).take_while(|(one, other)| one == other).count();
    let left = old.len().min(new.len()) - same;
    let tail = old.iter().rev().zip(new.iter().rev()).take(left).take_while(|(one, other)| one == other).count();
    let start = same.saturating_sub(CONTEXT);
    let (old_end, new_end) = (old.len() - tail, new.len() - tail);
    let shown_tail = tail.min(CONTEXT);
    let mut diff = format!(
        "@@ -{},{} +{},{} @@\n",
        start + 1,
        old_end + shown_tail - start,
        start + 1,
        new_end + shown_tail - start
    );
    let context = |lines: &[&str]| lines.iter().map(|line| (' ', (*line).to_owned())).collect::<Vec<_>>();
    let mut lines = context(&old[start..same]);
    lines.extend(old[same..old_end].iter().map(|line| ('-', (*line).to_owned())));
    lines.extend(new[same..new_end].iter().map(|line| ('+', (*line).to_owned())));
    lines.extend(context(&old[old_end..old_end + shown_tail]));
    for (sign, line) in lines.iter().take(MAX_DIFF_LINES) {
        let _ = writeln!(diff, "{sign}{line}");
    }
    if lines.len() > MAX_DIFF_LINES {
        let _ = writeln!(diff, "… {} more lines", lines.len() - MAX_DIFF_LINES);
    }
    (diff, same + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{diff, replace};

    #[test]
    fn one_passage_is_replaced_and_the_rest_stays() {
        let table = [
            ("a b c", "b", "x", "a x c"),
            ("a b c", "b ", "", "a c"),
            ("a\r\nb\r\nc\r\n", "a\nb", "x\ny", "x\r\ny\r\nc\r\n"),
            ("a\r\nb\nc", "b\nc", "x\ny", "a\r\nx\ny"),
            ("\u{feff}a b", "a", "x", "\u{feff}x b"),
            ("\u{feff}a b", "\u{feff}a", "x", "\u{feff}x b"),
            ("$1 a", "a", "$1", "$1 $1"),
        ];
        for (content, old, new, expected) in table {
            assert_eq!(replace(content, old, new).as_deref(), Ok(expected), "{content:?} {old:?}");
        }
    }

    #[test]
    fn what_is_not_there_exactly_once_is_told() {
        let table = [
            ("a", "b", "c", "is not in the file"),
            ("a a a", "a", "c", "more than once"),
            ("aaa", "aa", "c", "more than once"),
            ("ääää", "ää", "c", "more than once"),
            ("a", "", "c", "is empty"),
            ("a", "a", "a", "are the same"),
            ("a\nb", "a\r\nb", "c", "is not in the file"),
        ];
        for (content, old, new, why) in table {
            let told = replace(content, old, new).expect_err("it is not changed");
            assert!(told.contains(why), "{content:?} {old:?}: {told}");
        }
    }

    #[test]
    fn a_change_is_shown_with_what_is_around_it() {
        let before = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let after = "1\n2\n3\n4\nfive\nmore\n6\n7\n8\n9\n";
        assert_eq!(diff(before, after), ("@@ -2,7 +2,8 @@\n 2\n 3\n 4\n-5\n+five\n+more\n 6\n 7\n 8\n".to_owned(), 5));
        assert_eq!(diff("a\na\n", "a\n").0, "@@ -1,2 +1,1 @@\n a\n-a\n");
        assert_eq!(diff("", "a").0, "@@ -1,0 +1,1 @@\n+a\n");
    }

    proptest! {
        #[test]
        fn a_diff_of_anything_is_made(before in "[ab\n]{0,20}", after in "[ab\n]{0,20}") {
            let (shown, line) = diff(&before, &after);
            prop_assert!(line >= 1 && shown.starts_with("@@ "));
            let removed = shown.lines().filter(|line| line.starts_with('-')).count();
            let added = shown.lines().filter(|line| line.starts_with('+')).count();
            prop_assert_eq!(before.lines().count() + added, after.lines().count() + removed);
        }
    }
}

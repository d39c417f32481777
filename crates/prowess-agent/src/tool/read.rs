//! The read tool: what does a file say?
//!
//! This is how a model takes up a skill: it reads the `SKILL.md`. So the folders of skills can always be read, the file
//! itself comes whole, and reading it is what makes a skill the one in use.

mod page;

use std::fmt::Write as _;
use std::fs::File;
use std::future::Future;
use std::io::{self, Read, Seek};
use std::os::unix::fs::FileTypeExt;
use std::pin::Pin;
use std::sync::Arc;

use prowess_exec::ToolResult;
use prowess_exec::tool::Content;
use prowess_skills::Skill;
use serde_json::{Value, json};

use self::page::{Page, Window, page};
use super::permission::{Wish, ask};
use super::place::{Fences, Opened, Standing, absolute, skill_at};
use crate::event::{Event, How};
use crate::image::{self, Image, ImageError};
use crate::ledger::{self, Mark, Marked};
use crate::tool::{Call, Order, Scope, Tool, ToolSpec};

/// The tool's name.
const NAME: &str = "read";

/// How many lines one call gives.
const MAX_LINES: usize = 2_000;

/// How many bytes one call gives.
const MAX_BYTES: usize = 50 * 1024;

/// How many bytes of a `SKILL.md` one call gives; longer ones are no skills.
const MAX_SKILL_BYTES: usize = 256 * 1024;

/// How many names of a folder are shown, and how many are looked at.
const MAX_NAMES: (usize, usize) = (500, 20_000);

/// How much is looked at to tell what kind of file it is.
const HEAD_BYTES: u64 = 8 * 1024;

/// Reads files.
#[derive(Debug)]
pub struct ReadTool {
    spec: ToolSpec,
    fences: Arc<Fences>,
}

impl ReadTool {
    pub(crate) fn new(fences: Arc<Fences>) -> Self {
        let spec = ToolSpec {
            name: NAME.to_owned(),
            description: format!(
                "Read a file, look at an image, or list a directory. Gives up to {MAX_LINES} lines or {} KiB; go on with \
                 offset. Relative paths start at the workspace; the folders of skills can be read wherever they are.",
                MAX_BYTES / 1024
            ),
            parameters: json!({
                "type": "object",
                "required": ["path"],
                "properties": {
                    "path": {"type": "string", "description": "The file or directory."},
                    "offset": {"type": "number", "description": "The first line, from 1."},
                    "limit": {"type": "number", "description": "How many lines."}
                }
            }),
        };
        Self { spec, fences }
    }

    async fn read(&self, call: Call<'_>, scope: &Scope<'_>) -> Result<ToolResult, ToolResult> {
        let path = call.arguments.get("path").and_then(Value::as_str).unwrap_or_default();
        if path.trim().is_empty() {
            return Err(failed("Provide a path to read."));
        }
        let asked = absolute(path, scope.workspace, scope.home);
        let opened = Opened::find(&asked).map_err(|error| failed(&not_found(path, &error)))?;
        match self.fences.reading(&opened, &asked, scope) {
            Standing::Free => {}
            Standing::Ask(why) => {
                let wish = Wish::new(NAME, format!("read {}", opened.real.display()));
                ask(scope, wish, &why).await?;
            }
            Standing::Refused(why) => return Err(failed(&format!("read denied: {why}."))),
        }
        let skill = skill_at(scope.skills, &asked, &opened.real).cloned();
        let order =
            Reading { opened, path: path.to_owned(), window: window(call, skill.as_deref()), skill: skill.clone() };
        let read = tokio::task::spawn_blocking(move || order.run()).await;
        let result = read.map_err(|_| failed("Reading the file failed; try again."))??;
        if let Some(skill) = skill.filter(|skill| scope.uses.note(skill, How::Read)) {
            let used = Event::SkillUsed { skill: skill.name.to_string(), path: skill.file.clone(), how: How::Read };
            scope.events.tell(used);
        }
        Ok(result)
    }
}

impl Tool for ReadTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn order(&self) -> Order {
        Order::Beside
    }

    fn call<'a>(
        &'a self,
        call: Call<'a>,
        scope: &'a Scope<'a>,
    ) -> Pin<Box<dyn Future<Output = ToolResult> + Send + 'a>> {
        Box::pin(async move { self.read(call, scope).await.unwrap_or_else(|answer| answer) })
    }
}

/// The lines that a call is for. A `SKILL.md` comes whole unless lines are named.
fn window(call: Call<'_>, skill: Option<&Skill>) -> Window {
    let number = |name: &str| {
        let number = call.arguments.get(name).and_then(Value::as_f64)?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is brought into range before")]
        Some(number.clamp(1.0, 1e12) as usize)
    };
    let (offset, limit) = (number("offset"), number("limit"));
    if skill.is_some() && offset.is_none() && limit.is_none() {
        return Window { first: 1, lines: usize::MAX, bytes: MAX_SKILL_BYTES, line_bytes: MAX_SKILL_BYTES };
    }
    Window {
        first: offset.unwrap_or(1),
        lines: limit.unwrap_or(MAX_LINES).min(MAX_LINES),
        bytes: MAX_BYTES,
        line_bytes: page::MAX_LINE_BYTES,
    }
}

/// All that is needed to read a file, in a thread that may wait.
struct Reading {
    opened: Opened,
    path: String,
    window: Window,
    skill: Option<Arc<Skill>>,
}

impl Reading {
    fn run(self) -> Result<ToolResult, ToolResult> {
        let kind = self.opened.metadata.file_type();
        if kind.is_dir() {
            return self.list().map_err(|error| failed(&not_read(&self.path, &error)));
        }
        if !kind.is_file() {
            let what = if kind.is_fifo() || kind.is_socket() { "a pipe or a socket" } else { "a device" };
            return Err(failed(&format!("{} is {what}, not a file, and cannot be read.", self.path)));
        }
        self.file().unwrap_or_else(|error| Err(failed(&not_read(&self.path, &error))))
    }

    fn file(&self) -> io::Result<Result<ToolResult, ToolResult>> {
        let mut file: File = self.opened.reader()?;
        let size = self.opened.metadata.len();
        let mut head = Vec::new();
        file.by_ref().take(HEAD_BYTES).read_to_end(&mut head)?;
        if image::kind(&head).is_some() {
            file.rewind()?;
            return Ok(self.image(file));
        }
        if head.contains(&0) {
            let text = format!("{} is a binary file of {size} bytes, not text.", self.path);
            return Ok(Ok(ToolResult::done(text, json!({"path": self.opened.real, "bytes": size, "binary": true}))));
        }
        file.rewind()?;
        let page = page(file, self.window)?;
        if page.is_beyond(self.window) {
            let lines = page.total.unwrap_or_default();
            return Ok(Err(failed(&format!(
                "Offset {} is beyond the end of {}, which has {lines} lines.",
                self.window.first, self.path
            ))));
        }
        Ok(Ok(self.shown(&page)))
    }

    /// An image, for the model to look at.
    fn image(&self, file: File) -> Result<ToolResult, ToolResult> {
        let mut bytes = Vec::new();
        let most = u64::try_from(image::MAX_BYTES).unwrap_or(u64::MAX).saturating_add(1);
        let read = file.take(most).read_to_end(&mut bytes);
        read.map_err(|error| failed(&not_read(&self.path, &error)))?;
        let size = self.opened.metadata.len();
        let image = Image::from_bytes(&bytes).map_err(|error| match error {
            ImageError::TooLarge { .. } => failed(&format!(
                "{} is an image of {size} bytes; the limit is {}. Make a smaller copy and read that.",
                self.path,
                image::MAX_BYTES
            )),
            other => failed(&format!("{}: {other}.", self.path)),
        })?;
        let text = format!("{} is an image ({}, {size} bytes).", self.path, image.mime_type);
        let details = json!({"path": self.opened.real, "type": image.mime_type, "bytes": size});
        let mut result = ToolResult::done(text, details);
        result.content.push(Content::Image { data: image.data, mime_type: image.mime_type });
        Ok(result)
    }

    fn shown(&self, page: &Page) -> ToolResult {
        let mut details = json!({
            "path": self.opened.real,
            "bytes": self.opened.metadata.len(),
            "lines": {"first": page.first, "last": page.last, "total": page.total},
            "truncated": page.next().is_some(),
        });
        let mut text = page.text.clone();
        if let Some(skill) = &self.skill {
            text = text.replace("{baseDir}", &skill.dir().to_string_lossy());
            details[ledger::MARK] = Mark { skill: skill.name.to_string(), what: Marked::File }.render();
        }
        if let Some(note) = page.note() {
            let _ = write!(text, "\n\n[{note}]");
        }
        if text.is_empty() {
            "(empty file)".clone_into(&mut text);
        }
        ToolResult::done(text, details)
    }

    /// The names in a folder; folders with a slash behind.
    fn list(&self) -> io::Result<ToolResult> {
        let folder: File = self.opened.reader()?;
        let mut names = Vec::new();
        let mut is_cut = false;
        for entry in rustix::fs::Dir::read_from(&folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if matches!(name.as_str(), "." | "..") {
                continue;
            }
            if names.len() == MAX_NAMES.1 {
                is_cut = true;
                break;
            }
            names.push(if entry.file_type() == rustix::fs::FileType::Directory { format!("{name}/") } else { name });
        }
        names.sort_unstable();
        let count = names.len();
        names.truncate(MAX_NAMES.0);
        let mut text = if names.is_empty() { "(empty directory)".to_owned() } else { names.join("\n") };
        if is_cut || count > names.len() {
            let more = if is_cut { "more than " } else { "" };
            let _ = write!(text, "\n\n[{} of {more}{count} names]", names.len());
        }
        Ok(ToolResult::done(text, json!({"path": self.opened.real, "directory": true, "names": count})))
    }
}

fn not_found(path: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => format!("There is no file {path}. Relative paths start at the workspace."),
        _ => not_read(path, error),
    }
}

fn not_read(path: &str, error: &io::Error) -> String {
    format!("{path} cannot be read: {error}.")
}

fn failed(why: &str) -> ToolResult {
    ToolResult::error(NAME, why)
}

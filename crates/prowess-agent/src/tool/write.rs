//! The write tool: how does a file come to be, or get a new content?

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use prowess_exec::ToolResult;
use prowess_exec::approver::{Change, Passage};
use serde_json::{Value, json};

use super::permission::{Wish, ask};
use super::place::{Fences, Standing, absolute, settle};
use super::store::{MAX_FILE_BYTES, save};
use crate::tool::{Call, Scope, Tool, ToolSpec};

/// The tool's name.
const NAME: &str = "write";

/// Writes files.
#[derive(Debug)]
pub struct WriteTool {
    spec: ToolSpec,
    fences: Arc<Fences>,
}

impl WriteTool {
    pub(crate) fn new(fences: Arc<Fences>) -> Self {
        let spec = ToolSpec {
            name: NAME.to_owned(),
            description:
                "Write a file, with the directories above it; what was in it is replaced. Relative paths start \
                          at the workspace. To change a part of a file, use edit."
                    .to_owned(),
            parameters: json!({
                "type": "object",
                "required": ["path", "content"],
                "properties": {
                    "path": {"type": "string", "description": "The file."},
                    "content": {"type": "string", "description": "The whole content of the file."}
                }
            }),
        };
        Self { spec, fences }
    }

    async fn write(&self, call: Call<'_>, scope: &Scope<'_>) -> Result<ToolResult, ToolResult> {
        let text = |name: &str| call.arguments.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (path, content) = (text("path"), text("content"));
        check_size(NAME, content.len())?;
        let real = target(NAME, &path, scope)?;
        let wish = || {
            let added = Passage { change: Change::Added, text: content.clone() };
            Wish::new(NAME, format!("write {} bytes to {}", content.len(), real.display())).writing(vec![added])
        };
        consent(NAME, &self.fences, &real, wish, scope).await?;
        let bytes = content.len();
        store(NAME, &path, real.clone(), content, None).await?;
        Ok(ToolResult::done(format!("Wrote {bytes} bytes to {path}."), json!({"path": real, "bytes": bytes})))
    }
}

impl Tool for WriteTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        call: Call<'a>,
        scope: &'a Scope<'a>,
    ) -> Pin<Box<dyn Future<Output = ToolResult> + Send + 'a>> {
        Box::pin(async move { self.write(call, scope).await.unwrap_or_else(|answer| answer) })
    }
}

/// The file that is to be changed, as a path without links.
pub(super) fn target(tool: &str, path: &str, scope: &Scope<'_>) -> Result<PathBuf, ToolResult> {
    if path.trim().is_empty() {
        return Err(ToolResult::error(tool, "Provide the path of a file."));
    }
    if path.ends_with('/') {
        return Err(ToolResult::error(tool, &format!("{path} names a directory; name a file.")));
    }
    settle(&absolute(path, scope.workspace, scope.home))
        .ok_or_else(|| ToolResult::error(tool, &format!("Cannot resolve {path}; use a plain path without `..`.")))
}

/// Asks about what `tool` would do at `real`, where that is not free.
pub(super) async fn consent<'a>(
    tool: &str,
    fences: &Fences,
    real: &Path,
    wish: impl FnOnce() -> Wish<'a>,
    scope: &Scope<'_>,
) -> Result<(), ToolResult> {
    match fences.writing(real, scope) {
        Standing::Free => Ok(()),
        Standing::Ask(why) => ask(scope, wish(), &why).await.inspect(|()| fences.approved.note(real)),
        Standing::Refused(why) => Err(ToolResult::error(tool, &format!("{tool} denied: {why}."))),
    }
}

pub(super) fn check_size(tool: &str, bytes: usize) -> Result<(), ToolResult> {
    if bytes <= MAX_FILE_BYTES {
        return Ok(());
    }
    let why = format!("The file would have {bytes} bytes; the limit is {MAX_FILE_BYTES}.");
    Err(ToolResult::error(tool, &why))
}

/// Puts `content` at `real`, in a thread that may wait.
pub(super) async fn store(
    tool: &str,
    path: &str,
    real: PathBuf,
    content: String,
    was: Option<std::fs::Metadata>,
) -> Result<(), ToolResult> {
    let saved = tokio::task::spawn_blocking(move || save(&real, content.as_bytes(), was.as_ref())).await;
    let failed = |why: String| ToolResult::error(tool, &format!("{path} was not written: {why}."));
    saved.map_err(|error| failed(error.to_string()))?.map_err(|error| failed(error.to_string()))
}

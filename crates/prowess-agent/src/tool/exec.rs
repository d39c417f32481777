//! The exec tool in a conversation: with which skills does a command run, and what is seen of it meanwhile?
//!
//! Each run gets a setting of its own: what the operator set, and what the skills in use bring. A skill that this turn
//! has not used brings nothing, so its keys reach nobody.

use std::collections::HashSet;
use std::convert::Infallible;
use std::future::Future;
use std::hash::BuildHasher;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use prowess_exec::exec_tool::{self, Background, ExecCall, NAME};
use prowess_exec::job::{Job, Outcome, Runner, State};
use prowess_exec::{Exec, Setting, Terms, ToolResult, network};
use serde_json::Value;

use super::secrets::Secrets;
use crate::event::{Event, Events};
use crate::ledger::{self, Mark, Marked};
use crate::news::News;
use crate::skills::SkillSet;
use crate::tool::{Call, Scope, Tool, ToolSet, ToolSpec};

/// How often the newest output is told, at most.
const UPDATE_EVERY: Duration = Duration::from_millis(150);

/// How many folders of skills every command may read. With more skills than that, those beyond are read only by the
/// commands of the turn that uses them: a sandbox has a rule for each folder, and the folder above them may hold more
/// than skills.
const MAX_FOLDERS: usize = 512;

/// How much of the end of an output goes into an announcement, before and after white space is taken out.
const SNIPPET: (usize, usize) = (400, 180);

/// How much of a job's name goes into an announcement.
const ID_CHARS: usize = 8;

/// Runs commands.
pub struct ExecTool {
    spec: ToolSpec,
    exec: Arc<Exec>,
    setting: Setting,
    background: Background,
    secrets: Arc<Secrets>,
}

impl ExecTool {
    pub(crate) fn new(exec: Arc<Exec>, setting: Setting, background: Background, secrets: Arc<Secrets>) -> Self {
        let mut parameters = exec_tool::schema();
        let mut description =
            "Run a shell command in the workspace. Commands that the rules do not cover are put to a \
                               person first."
                .to_owned();
        match background {
            Background::Allowed => {
                description.push_str(" A long command continues in the background; use process to manage it.");
            }
            Background::NotAllowed => {
                if let Some(properties) = parameters["properties"].as_object_mut() {
                    properties.retain(|name, _| !matches!(name.as_str(), "yieldMs" | "background"));
                }
            }
        }
        for share in &setting.skills {
            secrets.note(share, None);
        }
        let spec = ToolSpec { name: NAME.to_owned(), description, parameters };
        Self { spec, exec, setting, background, secrets }
    }

    async fn run(&self, call: Call<'_>, scope: &Scope<'_>) -> Result<ToolResult, ToolResult> {
        let asked = ExecCall::parse(&Value::Object(call.arguments.clone()))?;
        let setting = self.setting(scope)?;
        if let Some(remote) = self.exec.elsewhere(&asked, &setting) {
            let progress = |mut tail: String| {
                self.secrets.conceal(&mut tail);
                scope.events.tell(Event::CallUpdate { id: call.id.to_owned(), tool: NAME.to_owned(), tail });
            };
            let setting = self.exec.for_remote(&asked, &setting).await?;
            return Ok(remote.run(&asked, &setting, scope.approver, &progress).await);
        }
        let terms = Terms { approver: scope.approver, background: self.background };
        let (handle, plan) = self.exec.start_on(&asked, &setting, terms).await?;
        let updates = self.tell(self.exec.runner.find(&setting.session, &handle.job().id), call.id, scope.events);
        // Whoever stops waiting ends the command, for then its handle is gone.
        let result = tokio::select! {
            biased;
            result = exec_tool::wait(handle, &plan) => result,
            never = updates => match never {},
        };
        Ok(network::explain(&asked.command, result, &setting))
    }

    /// Tells the newest of what a job says as long as there is some, and then nothing for ever.
    async fn tell(&self, job: Option<Arc<Job>>, id: &str, events: &Events) -> Infallible {
        if let Some(job) = job {
            let mut state = job.watch();
            while state.changed().await.is_ok() {
                if matches!(*state.borrow_and_update(), State::Finished(_)) {
                    break;
                }
                let mut tail = job.tail().await;
                self.secrets.conceal(&mut tail);
                events.tell(Event::CallUpdate { id: id.to_owned(), tool: NAME.to_owned(), tail });
                tokio::time::sleep(UPDATE_EVERY).await;
            }
        }
        std::future::pending().await
    }

    /// The setting of one run.
    fn setting(&self, scope: &Scope<'_>) -> Result<Setting, ToolResult> {
        let used = scope.uses.skills();
        let mut skills = self.setting.skills.clone();
        for skill in &used {
            let share = scope.skills.share(skill).map_err(|why| {
                let why = format!(
                    "The command was not run: what the skill `{0}` needs cannot be had: {why}. The operator can set it \
                     under skills.entries.{1}, or switch the skill off there.",
                    skill.name,
                    skill.key()
                );
                ToolResult::error(NAME, &why)
            })?;
            self.secrets.note(&share, skill.metadata.primary_env.as_deref());
            skills.push(share);
        }
        let mut readable = self.setting.readable.clone();
        readable.extend(used.iter().map(|skill| skill.dir().to_owned()));
        readable.extend(folders(scope.skills, scope.workspace));
        Ok(Setting {
            agent: scope.agent.to_owned(),
            session: scope.session.to_owned(),
            workspace: scope.workspace.to_owned(),
            home: scope.home.to_owned(),
            skills,
            readable,
            ..self.setting.clone()
        })
    }
}

impl std::fmt::Debug for ExecTool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExecTool").field("setting", &self.setting).finish_non_exhaustive()
    }
}

impl Tool for ExecTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn conceal(&self, text: &mut String) {
        self.secrets.conceal(text);
    }

    fn call<'a>(
        &'a self,
        call: Call<'a>,
        scope: &'a Scope<'a>,
    ) -> Pin<Box<dyn Future<Output = ToolResult> + Send + 'a>> {
        Box::pin(async move {
            let mut result = self.secrets.redact(self.run(call, scope).await.unwrap_or_else(|answer| answer));
            if let (Some(skill), Value::Object(details)) = (scope.uses.names().pop(), &mut result.details) {
                details.insert(ledger::MARK.to_owned(), Mark { skill, what: Marked::Output }.render());
            }
            result
        })
    }
}

/// The folders of skills outside the workspace, as many as every command may read.
fn folders(skills: &SkillSet, workspace: &Path) -> impl Iterator<Item = PathBuf> {
    let all = skills.snapshot.skills().iter().map(|skill| skill.dir());
    all.filter(move |dir| !dir.starts_with(workspace)).take(MAX_FOLDERS).map(Path::to_owned)
}

/// What there is to say about commands of `scope` that went on in the background and are over, for each that was not
/// announced before. One that did well and said nothing needs no words. What `tools` handed out to commands and
/// nobody may learn is left out.
pub fn finished_since<S: BuildHasher>(
    runner: &Runner,
    scope: &str,
    announced: &mut HashSet<String, S>,
    tools: &ToolSet,
) -> Vec<News> {
    let jobs = runner.list(scope);
    announced.retain(|id| jobs.iter().any(|job| job.id == *id));
    let mut news = Vec::new();
    // The oldest first, as they would have been told.
    for job in jobs.iter().rev() {
        let Some(outcome) = job.outcome() else { continue };
        if announced.insert(job.id.clone()) {
            let text = announcement(&job.id, &outcome, &tools.conceal(outcome.tail.clone()));
            news.extend(text.map(|text| {
                let arguments = [("action", "poll"), ("sessionId", job.id.as_str())];
                let arguments = arguments.map(|(name, value)| (name.to_owned(), value.into())).into_iter().collect();
                News { arguments, ..News::of("process", text) }
            }));
        }
    }
    news
}

fn announcement(id: &str, outcome: &Outcome, tail: &str) -> Option<String> {
    let snippet = snippet(tail);
    if snippet.is_empty() && outcome.code == Some(0) {
        return None;
    }
    let status = if outcome.exit.is_completed() { "completed" } else { "failed" };
    let ending = match (&outcome.signal, outcome.code) {
        (Some(signal), _) => format!("signal {signal}"),
        (None, Some(code)) => format!("code {code}"),
        (None, None) => "no exit code".to_owned(),
    };
    let id: String = id.chars().take(ID_CHARS).collect();
    let said = if snippet.is_empty() { String::new() } else { format!(" :: {snippet}") };
    Some(format!("Exec {status} ({id}, {ending}){said}"))
}

/// The end of an output on one line.
fn snippet(tail: &str) -> String {
    let count = tail.chars().count();
    let end: String = tail.chars().skip(count.saturating_sub(SNIPPET.0)).collect();
    let words = end.split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(SNIPPET.1 - 1) {
        Some((cut, last)) if cut + last.len_utf8() < words.len() => format!("{}…", &words[..cut]),
        _ => words,
    }
}

#[cfg(test)]
mod tests {
    use super::snippet;

    #[test]
    fn the_end_of_an_output_fits_on_a_line() {
        assert_eq!(snippet(" a\n\n b\t c \n"), "a b c");
        assert_eq!(snippet(&"x".repeat(180)), "x".repeat(180));
        assert_eq!(snippet(&"x".repeat(181)), format!("{}…", "x".repeat(179)));
        assert_eq!(snippet(&format!("{}end", "a ".repeat(500))).chars().count(), 180);
        let long = format!("{}{}", "a".repeat(500), "ä".repeat(10));
        assert!(snippet(&long).starts_with("aaa") && snippet(&long).ends_with('…'));
    }
}

//! Approvers: who says yes or no, and how are they asked?

mod line;
mod tool_question;

use std::fmt::Write as _;
use std::fs::File;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prowess_policy::{Answer, Cover, Denied, Judgment, Objection, Question, is_read_only, shown};

use line::Line;

pub use tool_question::{Change, MAX_SHOWN, NETWORK, Passage, ToolQuestion, heading};

/// How long a question stays open.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// From how many lines on the question says how many there are, lest some scroll away unseen.
const MANY_LINES: usize = 10;

/// The same for bytes.
const MANY_BYTES: usize = 1000;

/// Somebody who can be asked. No answer is no.
pub trait Approver: Send + Sync {
    /// Puts the question, and waits for the answer.
    fn ask<'a>(&'a self, question: &'a Question) -> Pin<Box<dyn Future<Output = Option<Answer>> + Send + 'a>>;

    /// The same for a call of another tool. Who is not made for such questions does not answer them.
    fn ask_tool<'a>(&'a self, question: &'a ToolQuestion) -> Pin<Box<dyn Future<Output = Option<Answer>> + Send + 'a>> {
        let _ = question;
        Box::pin(std::future::ready(None))
    }

    /// The same for a command on another machine. An approver that cannot ask such questions gives no answer.
    fn ask_remote<'a>(
        &'a self,
        question: &'a RemoteQuestion,
    ) -> Pin<Box<dyn Future<Output = Option<RemoteAnswer>> + Send + 'a>> {
        let _ = question;
        Box::pin(std::future::ready(None))
    }

    /// Why there is nobody who could be asked, if that is so.
    fn nobody(&self) -> Option<&'static str> {
        None
    }
}

/// Why what needs approval is denied when no answer came.
#[must_use]
pub fn unanswered(approver: &dyn Approver) -> String {
    match approver.nobody() {
        Some(why) => format!("it needs approval, and there is nobody to ask because {why}"),
        None => Denied::Unanswered.to_string(),
    }
}

/// A question about a command that another machine would run.
#[derive(Debug, Clone, PartialEq)]
pub struct RemoteQuestion {
    /// What people are shown, and what the answer is bound to.
    pub request: serde_json::Value,
    /// Why it cannot be allowed for good, if it cannot.
    pub once_only: Option<String>,
}

/// The answer to a [`RemoteQuestion`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteAnswer {
    /// The id under which the question was answered.
    pub id: String,
    /// What was answered.
    pub answer: Answer,
}

/// Nobody: every question stays unanswered.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nobody;

impl Approver for Nobody {
    fn ask<'a>(&'a self, _question: &'a Question) -> Pin<Box<dyn Future<Output = Option<Answer>> + Send + 'a>> {
        Box::pin(std::future::ready(None))
    }

    fn nobody(&self) -> Option<&'static str> {
        Some("this program has no terminal")
    }
}

/// Says yes, once, to commands that [only read](is_read_only), and leaves all else to somebody else.
#[derive(Debug, Clone, Copy)]
pub struct ReadOnly<A>(pub A);

impl<A: Approver> Approver for ReadOnly<A> {
    fn ask<'a>(&'a self, question: &'a Question) -> Pin<Box<dyn Future<Output = Option<Answer>> + Send + 'a>> {
        if is_read_only(question.judgment()) {
            return Box::pin(std::future::ready(Some(Answer::Once)));
        }
        self.0.ask(question)
    }

    fn ask_tool<'a>(&'a self, question: &'a ToolQuestion) -> Pin<Box<dyn Future<Output = Option<Answer>> + Send + 'a>> {
        self.0.ask_tool(question)
    }

    fn ask_remote<'a>(
        &'a self,
        question: &'a RemoteQuestion,
    ) -> Pin<Box<dyn Future<Output = Option<RemoteAnswer>> + Send + 'a>> {
        self.0.ask_remote(question)
    }

    fn nobody(&self) -> Option<&'static str> {
        self.0.nobody()
    }
}

impl<T: Approver + ?Sized> Approver for Arc<T> {
    fn ask<'a>(&'a self, question: &'a Question) -> Pin<Box<dyn Future<Output = Option<Answer>> + Send + 'a>> {
        self.as_ref().ask(question)
    }

    fn ask_tool<'a>(&'a self, question: &'a ToolQuestion) -> Pin<Box<dyn Future<Output = Option<Answer>> + Send + 'a>> {
        self.as_ref().ask_tool(question)
    }

    fn ask_remote<'a>(
        &'a self,
        question: &'a RemoteQuestion,
    ) -> Pin<Box<dyn Future<Output = Option<RemoteAnswer>> + Send + 'a>> {
        self.as_ref().ask_remote(question)
    }

    fn nobody(&self) -> Option<&'static str> {
        self.as_ref().nobody()
    }
}

/// The person at a terminal.
#[derive(Debug)]
pub struct Terminal {
    /// Where answers come from and questions go, one question at a time.
    line: Arc<Mutex<(File, File)>>,
    patience: Duration,
    scope: Scope,
}

/// What a terminal's questions are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// The commands of a conversation.
    Session,
    /// One command. Nothing is left of a session once it has ended.
    Command,
}

/// All that is said to a person about one call, ready before they are asked. Nothing in it is obeyed by a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spoken {
    /// The question.
    pub asked: String,
    /// What is told to who asks why; empty if the question says it all.
    pub why: String,
    /// What may be said besides no.
    pub offer: Offer,
}

/// What a person may say to a question about a command, besides no.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer {
    /// Nothing else.
    Nothing,
    /// Yes, this once.
    Once,
    /// Yes, this once or for good.
    Always,
    /// Yes, this once, for the conversation or for good.
    Session,
}

impl Terminal {
    /// The terminal of this process, if it has one.
    pub fn open() -> std::io::Result<Self> {
        let tty = File::options().read(true).write(true).open("/dev/tty")?;
        Ok(Self::over(tty.try_clone()?, tty, PATIENCE))
    }

    /// Asks over these files.
    #[must_use]
    pub fn over(input: File, output: File, patience: Duration) -> Self {
        Self { line: Arc::new(Mutex::new((input, output))), patience, scope: Scope::Session }
    }

    /// Asks about one command only, so that nothing can be allowed for a session.
    #[must_use]
    pub fn for_one_command(self) -> Self {
        Self { scope: Scope::Command, ..self }
    }

    /// Puts a question that somebody else has, for example a gateway, and waits for the answer.
    #[must_use]
    pub fn put(&self, mut spoken: Spoken) -> Pin<Box<dyn Future<Output = Option<Answer>> + Send + 'static>> {
        if self.scope == Scope::Command && spoken.offer == Offer::Session {
            spoken.offer = Offer::Always;
        }
        self.talk(move |line| converse(&spoken, line))
    }

    /// Waits until no question has the terminal. One that was dropped a moment ago may still be about to read from it.
    pub async fn released(&self) {
        let files = Arc::clone(&self.line);
        // It is released, too, if the thread that had it panicked.
        let _ = tokio::task::spawn_blocking(move || drop(files.lock().unwrap_or_else(PoisonError::into_inner))).await;
    }

    /// Has the terminal for one conversation, in a thread that may wait. The time for an answer begins when the question
    /// can be seen. Whoever drops the question ends the conversation, and what is typed then is not touched.
    fn talk<T: Send + 'static>(
        &self,
        talk: impl FnOnce(&mut Line<'_>) -> Option<T> + Send + 'static,
    ) -> Pin<Box<dyn Future<Output = Option<T>> + Send + 'static>> {
        let (files, patience) = (Arc::clone(&self.line), self.patience);
        Box::pin(async move {
            // The other end of the pipe tells when this one is gone.
            let (dropped, _alive) = std::io::pipe().ok()?;
            let talking = tokio::task::spawn_blocking(move || {
                let mut files = files.lock().unwrap_or_else(PoisonError::into_inner);
                let (input, output) = &mut *files;
                talk(&mut Line::begin(input, output, &dropped, patience)?)
            });
            talking.await.ok().flatten()
        })
    }
}

impl Approver for Terminal {
    fn ask<'a>(&'a self, question: &'a Question) -> Pin<Box<dyn Future<Output = Option<Answer>> + Send + 'a>> {
        let judgment = question.judgment();
        let offer = match (judgment.grants().is_ok(), judgment.lacks().is_empty()) {
            (false, _) => Offer::Once,
            (true, true) => Offer::Always,
            (true, false) => Offer::Session,
        };
        self.put(Spoken { asked: asked(judgment), why: why(judgment), offer })
    }

    fn ask_tool<'a>(&'a self, question: &'a ToolQuestion) -> Pin<Box<dyn Future<Output = Option<Answer>> + Send + 'a>> {
        let Some(asked) = question.text() else { return Box::pin(std::future::ready(None)) };
        self.put(Spoken { asked, why: String::new(), offer: question.offer })
    }
}

fn converse(talk: &Spoken, line: &mut Line<'_>) -> Option<Answer> {
    line.say(&talk.asked)?;
    let can_explain = !talk.why.is_empty();
    loop {
        line.say(match talk.offer {
            Offer::Nothing => "You can only refuse it. [n]o",
            Offer::Once => "Allow it? [y]es, once / [n]o",
            Offer::Always => "Allow it? [y]es, once / [a]lways / [n]o",
            Offer::Session => "Allow it? [y]es, once / for this [s]ession / [a]lways / [n]o",
        })?;
        line.say(if can_explain { " / [w]hy: " } else { ": " })?;
        match line.hear()?.trim().to_lowercase().as_str() {
            "y" | "yes" if talk.offer != Offer::Nothing => return Some(Answer::Once),
            "n" | "no" | "" => return Some(Answer::No),
            "s" | "session" if talk.offer == Offer::Session => return Some(Answer::Session),
            "a" | "always" if matches!(talk.offer, Offer::Always | Offer::Session) => return Some(Answer::Always),
            "w" | "why" if can_explain => line.say(&talk.why)?,
            _ => line.say("Please answer with one of these letters or words.\n")?,
        }
    }
}

/// The question: the exact words, where they would run, and why it is asked.
fn asked(judgment: &Judgment) -> String {
    let binding = &judgment.request().binding;
    let mut text = String::from("\nA command wants to run:\n\n");
    for line in binding.command.split('\n') {
        let _ = writeln!(text, "    {}", shown(line));
    }
    let lines = binding.command.split('\n').count();
    if lines > MANY_LINES || binding.command.len() > MANY_BYTES {
        let _ =
            writeln!(text, "\n  The command has {lines} lines and {} bytes; read all of it.", binding.command.len());
    }
    let _ = writeln!(text, "\n  in       {}", shown(&binding.cwd.path.to_string_lossy()));
    let _ = writeln!(text, "  agent    {} (session {})", shown(&binding.agent), shown(&binding.session));
    for (name, value) in &judgment.request().variables {
        let _ = writeln!(text, "  with     {}={}", shown(name), shown(value));
    }
    for objection in judgment.all_objections().filter(|one| !matches!(one, Objection::Leaves(_))) {
        let _ = writeln!(text, "  because  {}", shown(&objection.to_string()));
    }
    for phrase in judgment.requests() {
        let _ = writeln!(text, "  wants to {}", shown(&phrase));
    }
    if let Ok(grants) = judgment.grants() {
        for grant in grants {
            let argv = grant.argv.iter().map(|arg| prowess_policy::quote(arg)).collect::<Vec<_>>().join(" ");
            let _ = writeln!(
                text,
                "  always   would allow {} as `{}` in {}",
                shown(&grant.program.to_string_lossy()),
                shown(&argv),
                shown(&grant.cwd.to_string_lossy())
            );
        }
    }
    text
}

/// All that is known about the command.
fn why(judgment: &Judgment) -> String {
    let mut text = String::new();
    for segment in judgment.segments() {
        let _ = writeln!(text, "\n  {}", shown(&segment.text));
        for program in &segment.starts {
            let _ = writeln!(text, "    starts   {}", shown(&program.real.to_string_lossy()));
        }
        match &segment.standing {
            Ok(Cover::Sandbox) => text.push_str("    runs in the sandbox\n"),
            Ok(_) => text.push_str("    covered by a rule\n"),
            Err(objections) => {
                for objection in objections {
                    let _ = writeln!(text, "    but      {}", shown(&objection.to_string()));
                }
            }
        }
    }
    for request in judgment.requests() {
        let _ = writeln!(text, "  it would leave the sandbox to {}", shown(&request));
    }
    for remedy in judgment.all_objections().filter_map(Objection::remedy) {
        let _ = writeln!(text, "  to change that: {}", shown(&remedy));
    }
    if let Err(never) = judgment.grants() {
        let _ = writeln!(text, "  cannot always be allowed: {never}");
    }
    text.push('\n');
    text
}

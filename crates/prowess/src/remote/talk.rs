//! A conversation with an agent of a gateway: what `run` and `chat` talk to with `--gateway`.

use std::io::IsTerminal;
use std::time::Duration;

use prowess_agent::event::{End, Event, Events};
use prowess_agent::image::Image;
use prowess_agent::message::Usage;
use prowess_agent::model::Thinking;
use prowess_agent::session::{MAIN, SessionKey};
use prowess_gateway::client::{self, Answers, Backoff, CallError, Client};
use prowess_host::Failure;
use prowess_policy::Answer;
use serde_json::{Value, json};
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use super::feed::Feed;
use super::questions::{Desk, Pending, resolve, unanswered, word};
use super::session::{SessionWatch, Typed};
use super::target::Target;
use super::{call, refused};
use crate::chat::complete::Words;
use crate::chat::line::Lines;
use crate::chat::{Chat, tell};
use crate::cli::{Globals, MessageArgs, TalkArgs};
use crate::output::{DIM, Report, paint, safe};
use crate::partner::{Callable, Offer, Partner, code, turn};
use crate::show::{Detail, Printer};
use crate::wish::Wish;

/// How often a gateway is looked for again that is gone in the middle of a turn; about half a minute.
const AGAIN: usize = 5;

/// How long a turn that is to be stopped may take to end.
const STOPPING: Duration = Duration::from_secs(20);

/// A conversation that is kept elsewhere.
pub(crate) struct RemoteTalk {
    target: Target,
    client: Client,
    key: SessionKey,
    printer: Printer,
    thinking: Option<&'static str>,
    seconds: Option<u64>,
    model: String,
    offer: Offer,
    /// What the last turn led to, as the gateway says it.
    outcome: Option<Value>,
    /// What the next message shows.
    images: Vec<Image>,
    /// What each event is told as, where somebody wants to have them as they come.
    lines: Option<fn(&Value)>,
    /// What the gateway tells, in turns and between them.
    heard: broadcast::Receiver<client::Event>,
    watch: SessionWatch,
    listener: Listener,
}

/// Who reads what the turns say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Listener {
    /// Whoever started one turn.
    Turn,
    /// A program that holds a conversation.
    Program,
    /// A person at a prompt, who can answer questions there.
    Person,
}

impl RemoteTalk {
    /// Opens it as the command line says.
    pub(crate) async fn open(
        target: Target,
        globals: &Globals,
        args: &TalkArgs,
        printer: &Printer,
    ) -> Result<Self, Failure> {
        let client = target.connect().await?;
        let known = &client.hello()["snapshot"]["sessionDefaults"]["defaultAgentId"];
        let agent = globals.agent.as_deref().or(known.as_str()).unwrap_or(MAIN).to_owned();
        let key = super::sessions::chosen(&client, args, &agent).await?;
        let mut talk = Self {
            target,
            heard: client.events(),
            watch: SessionWatch::new(key.to_string()),
            listener: Listener::Turn,
            client,
            key,
            printer: printer.clone(),
            thinking: args.thinking.map(thinking),
            seconds: args.timeout,
            model: String::new(),
            offer: Offer::default(),
            outcome: None,
            images: Vec::new(),
            lines: None,
        };
        if args.new {
            talk.renew().await?;
        }
        if let Some(model) = &args.model {
            talk.choose(model).await?;
        }
        Ok(talk)
    }

    /// Looks at which skills there are, which model answers and which questions are open; what cannot be found out is
    /// left out. From then on the gateway tells what happens in the session.
    async fn look(&mut self) {
        // A gateway that does not know the method tells of every session.
        let _ = self.client.call("sessions.subscribe", json!({"keys": [self.key.to_string()]})).await;
        if let Ok(open) = self.client.call("exec.approval.list", json!({})).await {
            self.watch.add_open(&open["approvals"]);
        }
        let agent = json!({"agentId": self.key.agent()});
        if let Ok(status) = self.client.call("skills.status", agent).await {
            self.offer = offer(&status);
        }
        if self.model.is_empty()
            && let Ok(status) = self.client.call("status", json!({})).await
        {
            let model = status["sessions"]["defaults"]["model"].as_str();
            model.unwrap_or("the agent's model").clone_into(&mut self.model);
        }
    }

    fn ask(&self, params: &Value) -> Result<Answers, CallError> {
        self.client.ask("agent", params)
    }

    fn params(&self, message: &str, run: &str) -> Value {
        let mut params = json!({
            "message": message,
            "sessionKey": self.key.to_string(),
            "agentId": self.key.agent(),
            "idempotencyKey": run,
        });
        if !self.images.is_empty() {
            let attachment =
                |image: &Image| json!({"type": "image", "mimeType": image.mime_type, "content": image.data});
            params["attachments"] = self.images.iter().map(attachment).collect();
        }
        if let Some(thinking) = self.thinking {
            params["thinking"] = thinking.into();
        }
        if let Some(seconds) = self.seconds {
            params["timeout"] = seconds.into();
        }
        params
    }

    /// Finds a gateway again that is gone, so that the same run can be asked for under its own name.
    async fn find_again(&mut self, events: &Events, stop: &CancellationToken) -> Result<(), CallError> {
        let mut last = CallError::Gone("the connection was closed".to_owned());
        let mut backoff = Backoff::default();
        for _ in 0..AGAIN {
            let why = "lost the gateway; reconnecting".to_owned();
            events.tell(Event::Notice(why));
            tokio::select! {
                () = tokio::time::sleep(backoff.pause()) => {}
                () = stop.cancelled() => return Err(last),
            }
            match self.target.dial().await {
                Ok(client) => {
                    self.heard = client.events();
                    self.client = client;
                    return Ok(());
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// One attempt at a run: until it has ended, or the connection has.
    async fn attempt(&mut self, run: &mut Running<'_>) -> Result<End, CallError> {
        let mut answers = self.ask(&run.params)?;
        run.desk.clear();
        let mut is_stopping = false;
        loop {
            tokio::select! {
                // What was told before the answer is heard before it.
                biased;
                event = self.heard.recv() => match event {
                    Ok(event) => self.hear(&event.name, &event.payload, run),
                    Err(broadcast::error::RecvError::Lagged(_)) => {
                        run.events.tell(Event::Notice("some events were skipped because they arrived too fast".to_owned()));
                        run.feed.begin_again();
                    }
                    Err(broadcast::error::RecvError::Closed) => {
                        return Err(CallError::Gone("the connection was closed".to_owned()));
                    }
                },
                answer = answers.next() => match answer {
                    Ok(answer) if answer["status"] == "accepted" => {}
                    Ok(answer) => return Ok(self.ended(run, answer)),
                    Err(error) => {
                        let CallError::Refused { error, payload } = error else { return Err(error) };
                        let why = error["message"].as_str().unwrap_or("the gateway refused it").to_owned();
                        self.outcome = Some(payload.map_or_else(|| json!({"status": "error", "summary": why}), |payload| *payload));
                        return Ok(if is_stopping { End::Interrupted } else { End::Failed(why) });
                    }
                },
                (id, answer) = run.desk.answered() => match answer {
                    // It is put again at the prompt.
                    None if self.listener == Listener::Person => {}
                    None => run.events.tell(Event::Notice(unanswered(&id, &self.target.url))),
                    Some(answer) => {
                        if let Err(error) = resolve(&self.client, &id, word(answer)).await {
                            run.events.tell(Event::Notice(format!("the gateway did not accept the answer: {error}")));
                        }
                    }
                },
                () = run.stop.cancelled(), if !is_stopping => {
                    is_stopping = true;
                    let params = json!({"sessionKey": self.key.to_string(), "runId": run.id});
                    // Whether it worked is seen by the run's end.
                    let _ = self.client.ask("chat.abort", &params);
                    run.limit = Some(tokio::time::Instant::now() + STOPPING);
                }
                () = over(run.limit) => return Ok(End::Interrupted),
            }
        }
    }

    fn hear(&mut self, name: &str, payload: &Value, run: &mut Running<'_>) {
        match name {
            "agent" if payload["runId"] == run.id.as_str() => {
                if let Some(print) = self.lines {
                    print(payload);
                }
                for event in run.feed.take(payload) {
                    run.events.tell(event);
                }
                return;
            }
            "exec.approval.requested" => self.put(payload, run),
            // Somebody else was faster, or nobody was; the question is taken back.
            "exec.approval.resolved" => run.desk.take_away(payload["id"].as_str().unwrap_or_default()),
            _ => {}
        }
        for event in self.watch.hear(name, payload) {
            // Who started one turn wants to hear of that one.
            if self.listener != Listener::Turn {
                run.events.tell(event);
            }
        }
    }

    /// Puts a question of this session to the person.
    fn put(&self, payload: &Value, run: &mut Running<'_>) {
        let Some(pending) = Pending::read(payload) else { return };
        if pending.session() != Some(self.key.to_string().as_str()) {
            return;
        }
        let id = safe(&pending.id);
        if !run.desk.put(pending) {
            let text = format!("{id} is waiting for approval; for details: prowess approvals watch");
            run.events.tell(Event::Notice(text));
        }
    }

    fn ended(&mut self, run: &mut Running<'_>, answer: Value) -> End {
        for event in run.feed.finish(&answer) {
            run.events.tell(event);
        }
        let meta = &answer["result"]["meta"];
        if let (Some(provider), Some(model)) =
            (meta["agentMeta"]["provider"].as_str(), meta["agentMeta"]["model"].as_str())
        {
            self.model = format!("{provider}/{model}");
        }
        if self.listener != Listener::Person {
            for waiting in waiting(&answer) {
                run.events.tell(Event::Notice(waiting));
            }
        }
        let is_aborted = meta["aborted"] == true || answer["summary"] == "aborted";
        let end = match answer["status"].as_str() {
            _ if is_aborted => End::Interrupted,
            Some("error") => End::Failed(answer["summary"].as_str().unwrap_or("the run failed").to_owned()),
            _ => End::Answered,
        };
        self.outcome = Some(answer);
        end
    }
}

/// What is said of each command of a turn that still waits for a person.
fn waiting(answer: &Value) -> Vec<String> {
    let commands = answer["waiting"].as_array().into_iter().flatten();
    let said = |one: &Value| {
        let text = |name: &str| safe(one[name].as_str().unwrap_or_default());
        let (id, command) = (text("approvalSlug"), text("command"));
        format!(
            "waiting for approval, not run yet: {command}; answer with: prowess approvals resolve {id} allow-once|deny"
        )
    };
    commands.map(said).collect()
}

/// A run that is under way.
struct Running<'a> {
    id: String,
    params: Value,
    events: &'a Events,
    stop: &'a CancellationToken,
    feed: Feed,
    desk: Desk,
    /// When not to wait any longer for its end.
    limit: Option<tokio::time::Instant>,
}

async fn over(limit: Option<tokio::time::Instant>) {
    match limit {
        Some(limit) => tokio::time::sleep_until(limit).await,
        None => std::future::pending().await,
    }
}

impl Partner for RemoteTalk {
    async fn turn(&mut self, message: &str, events: Events, stop: CancellationToken) -> End {
        let id = uuid::Uuid::new_v4().to_string();
        let params = self.params(message, &id);
        self.outcome = None;
        let desk = Desk::new(Some(&self.printer));
        events.tell(Event::Started);
        let mut run = Running { id, params, events: &events, stop: &stop, feed: Feed::default(), desk, limit: None };
        let end = loop {
            match self.attempt(&mut run).await {
                Ok(end) => break end,
                Err(error) => match self.find_again(&events, &stop).await {
                    // Whoever is told of it takes what was said before for given up.
                    Ok(()) => run.feed.begin_again(),
                    Err(_) if stop.is_cancelled() => break End::Interrupted,
                    Err(_) => break End::Failed(format!("{error}; the run may still be running")),
                },
            }
        };
        // The next line that is typed is not for a question of this turn.
        run.desk.close().await;
        events.tell(Event::Ended(end.clone()));
        end
    }

    async fn renew(&mut self) -> Result<(), Failure> {
        call(&self.client, "sessions.reset", json!({"key": self.key.to_string()})).await.map(drop)
    }

    fn model(&self) -> String {
        self.model.clone()
    }

    async fn choose(&mut self, model: &str) -> Result<(), Failure> {
        let params = json!({"key": self.key.to_string(), "model": model});
        self.client.call("sessions.patch", params).await.map_err(|error| refused("sessions.patch", &error))?;
        model.clone_into(&mut self.model);
        Ok(())
    }

    fn skills(&self) -> Offer {
        self.offer.clone()
    }

    async fn usage(&self) -> Usage {
        let key = self.key.to_string();
        if let Ok(answer) = self.client.call("usage.session", json!({"sessionKey": key})).await {
            return serde_json::from_value(answer["usage"].clone()).unwrap_or_default();
        }
        // OpenClaw's gateway knows the last turn.
        let Ok(listed) = self.client.call("sessions.list", json!({})).await else { return Usage::default() };
        let rows = listed["sessions"].as_array().into_iter().flatten();
        let row = rows.into_iter().find(|row| row["key"] == key.as_str());
        let number = |name: &str| row.and_then(|row| row[name].as_u64()).unwrap_or(0);
        Usage { input: number("inputTokens"), output: number("outputTokens"), ..Usage::default() }.totalled()
    }

    async fn between_turns(&mut self) -> Vec<Event> {
        loop {
            match self.heard.recv().await {
                Ok(event) => return self.watch.hear(&event.name, &event.payload),
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
            }
        }
    }

    fn next_question(&mut self) -> Option<String> {
        if self.listener == Listener::Person { self.watch.next_question() } else { None }
    }

    async fn answer_question(&mut self, typed: &str) -> Option<String> {
        let (id, answer) = match self.watch.typed(typed)? {
            Typed::Why(text) => return Some(text),
            Typed::Answer(id, answer) => (id, answer),
        };
        let told = match (resolve(&self.client, &id, word(answer)).await, answer) {
            (Ok(()), Answer::No) => "refused; it does not run".to_owned(),
            (Ok(()), Answer::Once) => "approved; its result is shown when it is done".to_owned(),
            (Ok(()), Answer::Session) => "allowed for this session; its result is shown when it is done".to_owned(),
            (Ok(()), Answer::Always) => "always allowed from now on; its result is shown when it is done".to_owned(),
            (Err(error @ CallError::Refused { .. }), _) => {
                format!("the gateway did not accept the answer: {}", safe(&error.to_string()))
            }
            // It is still open.
            (Err(error), _) => return Some(safe(&error.to_string())),
        };
        self.watch.forget(&id);
        Some(told)
    }
}

/// A level by its name on the wire.
fn thinking(level: Thinking) -> &'static str {
    match level {
        Thinking::Off => "off",
        Thinking::Minimal => "minimal",
        Thinking::Low => "low",
        Thinking::Medium => "medium",
        Thinking::High => "high",
        Thinking::XHigh => "xhigh",
    }
}

/// The skills that can be called on, from an answer to `skills.status`.
fn offer(status: &Value) -> Offer {
    let ready: Vec<&Value> =
        status["skills"].as_array().into_iter().flatten().filter(|skill| skill["eligible"] == true).collect();
    let text = |skill: &Value, name: &str| skill[name].as_str().unwrap_or_default().to_owned();
    let commands = ready.iter().filter(|skill| skill["userInvocable"] != false).map(|skill| Callable {
        command: text(skill, "name").to_lowercase().replace(['-', ' '], "_"),
        skill: text(skill, "name"),
        about: text(skill, "description"),
    });
    Offer { count: ready.len(), commands: commands.collect() }
}

/// `prowess run` at a gateway.
pub(crate) fn run(args: &MessageArgs, globals: &Globals, target: Target) -> Result<Report, Failure> {
    let message = crate::run::message(&args.words, &args.image)?;
    let images = crate::run::images(&args.image)?;
    let printer = printer(&args.talk);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(Failure::ours)?;
    let report = runtime.block_on(async {
        let target = target.delivering(crate::run::delivery(args, globals));
        let mut talk = RemoteTalk::open(target, globals, &args.talk, &printer).await?;
        talk.images = images;
        let mut wish = Wish::listen().map_err(Failure::ours)?;
        let events = match (globals.json, args.events) {
            (false, false) => printer.events(),
            (_, true) => {
                talk.lines = Some(crate::run::print_line);
                Events::nobody()
            }
            (true, false) => Events::nobody(),
        };
        let end = turn(&mut talk, &message, &events, &mut wish).await;
        let report = match (&talk.outcome, &end) {
            _ if !globals.json => Report::text(""),
            (Some(outcome), _) => Report::json(outcome)?,
            (None, End::Failed(why)) => return Err(Failure::input(why)),
            (None, End::Answered | End::Interrupted) => {
                Report::json(&Failure::input("the turn was stopped").to_json())?
            }
        };
        Ok(report.code(code(&end)))
    });
    // A thread may still wait for an answer that nobody will type.
    runtime.shutdown_background();
    report
}

/// `prowess chat` with an agent of a gateway.
pub(crate) fn chat(args: &TalkArgs, globals: &Globals, target: Target) -> Result<Report, Failure> {
    if globals.json {
        return Err(Failure::usage("chat has no --json").hint("for programs: prowess run --json"));
    }
    let state_dir = globals.ground()?.locations()?.state_dir;
    let printer = printer(args);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(Failure::ours)?;
    let code = runtime.block_on(async {
        let url = target.url.clone();
        let mut talk = RemoteTalk::open(target, globals, args, &printer).await?;
        talk.look().await;
        let is_person = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        talk.listener = if is_person { Listener::Person } else { Listener::Program };
        let mut lines = if is_person {
            let who = format!("{} at {} answers; type /help for help", safe(&talk.model()), safe(&url));
            tell(&paint(DIM, &who));
            Lines::person(&state_dir, Words::of(&talk.skills()))?
        } else {
            Lines::Pipe
        };
        let above = lines.above();
        Chat { lines, printer: &printer, above }.hold(&mut talk).await
    });
    runtime.shutdown_background();
    code.map(|code| Report::text("").code(code))
}

fn printer(args: &TalkArgs) -> Printer {
    let detail = if args.verbose { Detail::Verbose } else { Detail::Normal };
    // Paths are those of another machine, where this home means nothing.
    Printer::new(detail, std::path::Path::new("/nonexistent"))
}

//! Who answers, as the command line sees them; and one turn with them that a person can stop.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use prowess_agent::embedded::MODEL;
use prowess_agent::event::{End, Event, Events};
use prowess_agent::message::Usage;
use prowess_agent::skills::SkillSet;
use prowess_host::Failure;
use tokio_util::sync::CancellationToken;

use crate::show::failure;
use crate::wish::Wish;

/// A conversation.
pub(crate) trait Partner {
    /// Says `message`, and waits for the end of the turn. Cancelling `stop` brings it about early, in good order.
    fn turn(&mut self, message: &str, events: Events, stop: CancellationToken) -> impl Future<Output = End>;

    /// Begins anew under the same key.
    fn renew(&mut self) -> impl Future<Output = Result<(), Failure>>;

    /// The model that answers, as in provider/name.
    fn model(&self) -> String;

    /// Lets another model answer from now on.
    fn choose(&mut self, model: &str) -> impl Future<Output = Result<(), Failure>>;

    /// The newest skills.
    fn skills(&self) -> Offer;

    /// The tokens of the conversation so far.
    fn usage(&self) -> impl Future<Output = Usage>;

    /// Waits for something that happens in the conversation between turns. Waiting can be given up and begun again.
    fn between_turns(&mut self) -> impl Future<Output = Vec<Event>> {
        std::future::pending()
    }

    /// A question that somebody has to answer and has not seen yet, in full.
    fn next_question(&mut self) -> Option<String> {
        None
    }

    /// Takes what was typed as the answer to the question that was shown. Says what came of it; nothing if it is no answer.
    fn answer_question(&mut self, typed: &str) -> impl Future<Output = Option<String>> {
        let _ = typed;
        std::future::ready(None)
    }
}

/// The skills of a conversation, as a person can call on them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Offer {
    /// How many skills there are, those without a command included.
    pub(crate) count: usize,
    pub(crate) commands: Vec<Callable>,
}

/// A skill that can be called on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Callable {
    /// Its slash command, without the slash.
    pub(crate) command: String,
    pub(crate) skill: String,
    pub(crate) about: String,
}

impl From<&SkillSet> for Offer {
    fn from(skills: &SkillSet) -> Self {
        let callable = skills.commands.iter().map(|command| Callable {
            command: command.name.clone(),
            skill: command.skill.as_str().to_owned(),
            about: command.description.clone(),
        });
        Self { count: skills.snapshot.skills().len(), commands: callable.collect() }
    }
}

/// One turn that ends when the model is done or the user stops it. A second signal ends it without waiting for the model.
///
/// A turn whose last command was refused or failed has failed, unless a language model has had the last word on it: the
/// embedded planner only repeats what the command said, and a dispatched command is all there is.
pub(crate) async fn turn(partner: &mut impl Partner, message: &str, events: &Events, wish: &mut Wish) -> End {
    let stop = CancellationToken::new();
    let watch = Arc::new(Mutex::new(LastCall::default()));
    let watched = watching(events.clone(), &watch);
    let end = run(partner, message, watched, &stop, wish).await;
    let last = std::mem::take(&mut *watch.lock().unwrap_or_else(PoisonError::into_inner));
    let is_planner = partner.model().ends_with(MODEL);
    match (end, last.failure) {
        (End::Answered, Some(why)) if is_planner || !last.is_answered => End::Failed(why),
        (end, _) => end,
    }
}

/// How the last tool call of a turn ended.
#[derive(Default)]
struct LastCall {
    /// Why it failed, if it did.
    failure: Option<String>,
    /// Whether a model replied after it.
    is_answered: bool,
}

/// Passes events on, and notes how calls end.
fn watching(events: Events, watch: &Arc<Mutex<LastCall>>) -> Events {
    let watch = Arc::clone(watch);
    Events::to(move |event| {
        let mut last = watch.lock().unwrap_or_else(PoisonError::into_inner);
        match &event {
            Event::CallEnded { result, .. } => *last = LastCall { failure: failure(result), is_answered: false },
            Event::Replied { .. } => last.is_answered = true,
            _ => {}
        }
        drop(last);
        events.tell(event);
    })
}

async fn run(
    partner: &mut impl Partner,
    message: &str,
    events: Events,
    stop: &CancellationToken,
    wish: &mut Wish,
) -> End {
    let running = partner.turn(message, events.clone(), stop.clone());
    let mut running = std::pin::pin!(running);
    loop {
        tokio::select! {
            end = &mut running => return end,
            () = wish.comes() => {
                if stop.is_cancelled() {
                    events.tell(Event::Ended(End::Interrupted));
                    return End::Interrupted;
                }
                stop.cancel();
            }
        }
    }
}

/// The exit code of a turn: done, failed, or stopped, which is what a shell says of Ctrl-C.
pub(crate) fn code(end: &End) -> u8 {
    match end {
        End::Answered => 0,
        End::Failed(_) => 1,
        End::Interrupted => 130,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::time::Duration;

    use prowess_agent::message::StopReason;
    use prowess_exec::ToolResult;
    use serde_json::json;

    /// Says what it heard, or waits to be stopped when it hears `wait`.
    pub(crate) struct Echo {
        pub(crate) heard: Vec<String>,
        pub(crate) model: String,
    }

    impl Echo {
        pub(crate) fn new() -> Self {
            Self { heard: Vec::new(), model: "test/echo".to_owned() }
        }
    }

    impl Partner for Echo {
        async fn turn(&mut self, message: &str, events: Events, stop: CancellationToken) -> End {
            self.heard.push(message.to_owned());
            events.tell(Event::Started);
            if message.starts_with("run") {
                let code = if message == "run badly" { 6 } else { 0 };
                events.tell(Event::CallEnded {
                    id: "1".to_owned(),
                    tool: "exec".to_owned(),
                    result: ToolResult::done("", json!({"status": "completed", "exitCode": code})),
                    took: Duration::ZERO,
                    summary: String::new(),
                });
            }
            let end = if message == "wait" {
                stop.cancelled().await;
                End::Interrupted
            } else {
                events.tell(Event::Text { delta: format!("heard: {message}") });
                events.tell(Event::Replied { stop: StopReason::Stop, usage: Usage::default() });
                End::Answered
            };
            events.tell(Event::Ended(end.clone()));
            end
        }

        async fn renew(&mut self) -> Result<(), Failure> {
            self.heard.clear();
            Ok(())
        }

        fn model(&self) -> String {
            self.model.clone()
        }

        async fn choose(&mut self, model: &str) -> Result<(), Failure> {
            if model == "nope" {
                return Err(Failure::input("there is no model `nope`").hint("prowess models lists them"));
            }
            self.model = model.to_owned();
            Ok(())
        }

        fn skills(&self) -> Offer {
            Offer::default()
        }

        async fn usage(&self) -> Usage {
            Usage { input: 7, output: 3, ..Usage::default() }.totalled()
        }
    }

    #[tokio::test]
    async fn a_failed_command_fails_the_turn_of_the_planner_and_not_that_of_a_model() {
        let mut wish = Wish::listen().expect("signals");
        let mut echo = Echo::new();
        assert_eq!(turn(&mut echo, "run badly", &Events::nobody(), &mut wish).await, End::Answered);
        echo.model = "prowess/embedded".to_owned();
        assert_eq!(turn(&mut echo, "run well", &Events::nobody(), &mut wish).await, End::Answered);
        let failed = turn(&mut echo, "run badly", &Events::nobody(), &mut wish).await;
        assert_eq!(failed, End::Failed("exit code 6".to_owned()));
    }

    #[tokio::test]
    async fn whoever_wishes_ends_the_turn_in_good_order() {
        let mut wish = Wish::listen().expect("signals");
        let mut echo = Echo::new();
        assert_eq!(turn(&mut echo, "hi", &Events::nobody(), &mut wish).await, End::Answered);
        let pid = rustix::process::getpid();
        rustix::process::kill_process(pid, rustix::process::Signal::HUP).expect("a signal to ourselves");
        assert_eq!(turn(&mut echo, "wait", &Events::nobody(), &mut wish).await, End::Interrupted);
        assert_eq!([End::Answered, End::Failed("no".to_owned()), End::Interrupted].map(|end| code(&end)), [0, 1, 130]);
    }
}

//! Who answers, as the command line sees them; and one turn with them that a person can stop.

use std::future::Future;

use prowess_agent::event::{End, Event, Events};
use prowess_agent::message::Usage;
use prowess_agent::skills::SkillSet;
use prowess_host::Failure;
use tokio_util::sync::CancellationToken;

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

/// One turn that ends when the model is done or when `wish` comes. Whoever wishes twice does not want to wait for the
/// good order either.
pub(crate) async fn turn(partner: &mut impl Partner, message: &str, events: &Events, wish: &mut Wish) -> End {
    let stop = CancellationToken::new();
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

/// The exit code of a turn that ended so: done, failed on what was put in, or stopped as a shell says it.
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
    use prowess_agent::message::StopReason;

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
                return Err(Failure::input("there is no model `nope`").hint("prowess models shows what there is"));
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

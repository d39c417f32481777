//! Attempts: what does a client hear of an answer that breaks?

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, BoxStream, StreamExt};
use prowess_agent::event::{End, Event};
use prowess_agent::message::{Message, StopReason};
use prowess_agent::model::{About, Delta, Model, ModelError, Request};
use prowess_agent::{Delivery, Run};

use crate::stage::{Puppet, Stage, says};
use crate::turns::told;

/// Longer than much text is held.
const PAUSE: Duration = Duration::from_millis(400);

/// More text than is held back.
fn long() -> String {
    "word ".repeat(60)
}

/// What those who listen have heard, and how the last reply ended.
fn told_of(stage: &Stage) -> (String, Option<StopReason>) {
    let mut heard = (String::new(), None);
    for event in stage.seen() {
        match event {
            Event::Text { delta } => heard.0.push_str(&delta),
            Event::Replied { stop, .. } => heard.1 = Some(stop),
            _ => {}
        }
    }
    heard
}

#[tokio::test]
async fn what_breaks_early_is_never_told() {
    let stage = Stage::new();
    let failing = |time, _: &[Message]| match time {
        1 => vec![Ok(Delta::Thinking { block: 0, text: "hm".to_owned() }), Ok(Delta::Text { block: 1, text: long() })],
        _ => vec![
            Ok(Delta::Text { block: 0, text: "Halb".to_owned() }),
            Err(ModelError::Malformed { provider: "p".into(), why: "no".into() }),
        ],
    };
    let model = Puppet::new(failing);
    let stand_in = Puppet::of(("puppet", "spare"), 200_000, |_, _| says("Hello"));
    let agent = Arc::new(stage.agent(model.clone(), &[]).fallbacks(vec![stand_in]));
    let mut conversation = agent.open("main").unwrap();
    let outcome = conversation.say("hi", &stage.run()).await.unwrap();
    assert_eq!((outcome.texts, model.times()), (vec!["Hello".to_owned()], 2));
    let seen = stage.seen();
    assert!(!seen.iter().any(|event| matches!(event, Event::Thinking { .. })), "nor what was thought: {seen:?}");
    let texts: Vec<&Event> = seen.iter().filter(|event| matches!(event, Event::Text { .. })).collect();
    assert_eq!(texts, [&Event::Text { delta: "Hello".to_owned() }]);
    assert_eq!(told(conversation.messages()), ["user hi", "assistant Hello"]);

    let alone = Arc::new(stage.agent(Puppet::new(move |_, messages| failing(2, messages)), &[]));
    let outcome = alone.open("other").unwrap().say("hi", &stage.run()).await.unwrap();
    assert_eq!(outcome.texts, [""; 0], "a failure says nothing of what nobody has heard");
    assert_eq!(told_of(&stage), (String::new(), None));
}

/// A model that pauses after what it says, and then breaks the first time it is asked.
struct Breaking(Arc<Puppet>, Duration);

impl Model for Breaking {
    fn about(&self) -> &About {
        self.0.about()
    }

    fn stream<'a>(&'a self, request: Request<'a>) -> BoxStream<'a, Result<Delta, ModelError>> {
        let pieces = self.0.stream(request);
        if self.0.times() > 1 {
            return pieces;
        }
        let pause = self.1;
        let breaks = stream::once(async move {
            tokio::time::sleep(pause).await;
            Err(ModelError::Cut { provider: "p".to_owned() })
        });
        pieces.chain(breaks).boxed()
    }
}

#[tokio::test]
async fn what_was_told_is_not_taken_back() {
    let answers = |time, _: &[Message]| match time {
        1 => vec![Ok(Delta::Text { block: 0, text: long() })],
        _ => says("Hello"),
    };
    let stage = Stage::new();
    let (model, stand_in) = (Puppet::new(answers), Puppet::new(|_, _| says("instead")));
    let agent = stage.agent(Arc::new(Breaking(model.clone(), PAUSE)), &[]).fallbacks(vec![stand_in.clone()]);
    let agent = Arc::new(agent);
    let mut conversation = agent.open("main").unwrap();
    let outcome = conversation.say("hi", &stage.run()).await.unwrap();
    assert_eq!((model.times(), stand_in.times()), (1, 0), "neither asked again nor replaced");
    assert!(matches!(&outcome.end, End::Failed(why) if why.contains("was cut off")), "{:?}", outcome.end);
    assert_eq!((outcome.texts, told_of(&stage)), (vec![long()], (long(), Some(StopReason::Error))));
    drop(conversation);
    let kept = agent.open("main").unwrap();
    let Some(Message::Assistant(said)) = kept.messages().last() else { panic!("a reply") };
    assert_eq!((said.text(), said.stop_reason), (long(), StopReason::Error));
    assert!(said.error_message.as_deref().is_some_and(|why| why.contains("was cut off")));

    // A client that receives only whole replies has received nothing, so the model can be asked again.
    let model = Puppet::new(answers);
    let agent = Arc::new(stage.agent(Arc::new(Breaking(model.clone(), PAUSE)), &[]));
    let run = Run { delivery: Delivery::Whole, ..stage.run() };
    let outcome = agent.open("whole").unwrap().say("hi", &run).await.unwrap();
    assert_eq!((outcome.texts, model.times()), (vec!["Hello".to_owned()], 2));
    assert_eq!(told_of(&stage), ("Hello".to_owned(), Some(StopReason::Stop)));
}

/// A little text that nothing follows is held for longer, but not for ever.
#[tokio::test]
async fn a_model_that_stalls_is_heard() {
    let answers = |time, _: &[Message]| match time {
        1 => vec![Ok(Delta::Text { block: 0, text: "Half".to_owned() })],
        _ => says("Hello"),
    };
    for (pause, expected) in [(PAUSE, "Hello"), (Duration::from_millis(2_200), "Half")] {
        let stage = Stage::new();
        let model = Arc::new(Breaking(Puppet::new(answers), pause));
        let agent = Arc::new(stage.agent(model, &[]));
        agent.open("main").unwrap().say("hi", &stage.run()).await.unwrap();
        assert_eq!(told_of(&stage).0, expected);
    }
}

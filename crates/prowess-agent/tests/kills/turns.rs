//! Kills during whole turns: is every turn there that was over, and does every conversation go on?

use std::collections::HashSet;
use std::future::Future;
use std::io::{BufReader, Write};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::stream::{self, BoxStream, StreamExt};
use prowess_agent::event::End;
use prowess_agent::message::{Message, StopReason, Usage};
use prowess_agent::model::{About, Api, Delta, Model, ModelError, Request};
use prowess_agent::tool::{Call, Order, Scope, Tool, ToolSet, ToolSpec};
use prowess_agent::{Agent, Run};
use prowess_exec::ToolResult;
use prowess_testkit::{Dice, Tree};
use serde_json::{Value, json};

use super::{ACK, given, next_ack, start};

/// How many processes are killed, over how many conversations.
const SESSIONS: u64 = 50;
const KILLS_EACH: u64 = 20;

/// How many turns a child takes if nobody kills it.
const MAX_TURNS: u64 = 100;

/// Calls two tools for every message, and answers with what was said. All of it comes in pieces, and between any two of
/// them somebody may be killed.
struct Talker(About);

impl Talker {
    fn new() -> Arc<Self> {
        let (provider, model) = ("puppet".to_owned(), "m".to_owned());
        Arc::new(Self(About {
            provider,
            model,
            api: Api::Chat,
            context_window: 0,
            max_tokens: 1_000,
            takes_images: false,
        }))
    }
}

impl Model for Talker {
    fn about(&self) -> &About {
        &self.0
    }

    fn stream<'a>(&'a self, request: Request<'a>) -> BoxStream<'a, Result<Delta, ModelError>> {
        let is_asked = matches!(request.messages.last(), Some(Message::User(_)));
        let label = request.messages.iter().rev().find_map(label_of).expect("somebody said something");
        let mut pieces = Vec::new();
        if is_asked {
            for (block, id) in [(1, "call_1"), (2, "call_2")] {
                pieces.push(Delta::Call { block, id: id.to_owned(), name: "echo".to_owned() });
                pieces.push(Delta::Arguments { block, json: json!({"label": label, "call": id}).to_string() });
            }
        } else {
            let words = ["answer", " ", "to", " ", label];
            pieces.extend(words.map(|text| Delta::Text { block: 0, text: text.to_owned() }));
        }
        pieces.push(Delta::Usage(Usage { input: 10, output: 5, ..Usage::default() }));
        pieces.push(Delta::Stop(if is_asked { StopReason::ToolUse } else { StopReason::Stop }));
        stream::iter(pieces)
            .then(async |piece| {
                tokio::task::yield_now().await;
                Ok(piece)
            })
            .boxed()
    }
}

/// Says what it was given, after a moment; sometimes with so much around it that a kill can hit within one write.
struct Echo(ToolSpec);

impl Tool for Echo {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn order(&self) -> Order {
        Order::Beside
    }

    fn call<'a>(
        &'a self,
        call: Call<'a>,
        _scope: &'a Scope<'a>,
    ) -> Pin<Box<dyn Future<Output = ToolResult> + Send + 'a>> {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_micros(200)).await;
            let label = call.arguments["label"].as_str().unwrap_or_default();
            let padding = if label.ends_with('3') { "x".repeat(50_000) } else { String::new() };
            ToolResult::done(format!("{label} {padding}"), Value::Null)
        })
    }
}

fn agent(state: &Path) -> Arc<Agent> {
    let spec = ToolSpec {
        name: "echo".to_owned(),
        description: "Says it again.".to_owned(),
        parameters: json!({"type": "object"}),
    };
    let tools = ToolSet::new(vec![Arc::new(Echo(spec)) as Arc<dyn Tool>]);
    Arc::new(Agent::new(Talker::new(), state, state).tools(tools))
}

/// What a message of a person begins with; nothing else has a label.
fn label_of(message: &Message) -> Option<&str> {
    match message {
        Message::User(user) => user.content.first().and_then(|block| block.as_text()),
        Message::Assistant(_) | Message::ToolResult(_) => None,
    }
}

#[test]
#[ignore = "a child of the test below"]
fn talker() {
    let Some((state, word)) = given() else { return };
    let (key, round) = word.split_once('/').expect("a key and a round");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let mut conversation = agent(&state).open(key).expect("a session");
        for number in 0..MAX_TURNS {
            let label = format!("{round}.{number}");
            let outcome = conversation.say(&label, &Run::default()).await.expect("room on the disk");
            assert_eq!((outcome.end, outcome.texts), (End::Answered, vec![format!("answer to {label}")]));
            let mut out = std::io::stdout().lock();
            out.write_all(format!("{ACK}{label}\n").as_bytes()).and_then(|()| out.flush()).expect("a pipe");
        }
    });
}

#[test]
fn a_thousand_kills_lose_no_turn_that_was_over() {
    let tree = Tree::new();
    let state = tree.path("");
    let broken = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for worker in 0..2 {
            let (state, broken) = (&state, &broken);
            scope.spawn(move || {
                let mut dice = Dice::new(100 + worker);
                for session in (worker..SESSIONS).step_by(2) {
                    // A place for each: that many share one index is tried elsewhere, and takes time.
                    let key = format!("t{session}");
                    let found = kill_over_and_over(&state.join(&key), &key, &mut dice);
                    broken.fetch_add(found, Ordering::Relaxed);
                }
            });
        }
    });
    assert!(broken.into_inner() > 0, "no turn was ever killed in its middle");
}

/// Says how many turns were killed in their middle.
fn kill_over_and_over(state: &Path, key: &str, dice: &mut Dice) -> usize {
    let mut over: Vec<String> = Vec::new();
    for round in 0..KILLS_EACH {
        let mut child = start("turns::talker", state, &format!("{key}/{round}"));
        let mut from = BufReader::new(child.stdout.take().expect("a pipe"));
        if dice.below(8) == 0 {
            // While it starts, or opens the conversation.
            std::thread::sleep(Duration::from_micros(dice.below(8_000)));
        } else {
            for _ in 0..dice.below(2) {
                over.extend(next_ack(&mut from));
            }
            // Anywhere within a turn.
            std::thread::sleep(Duration::from_micros(dice.below(9_000)));
        }
        child.kill().expect("it is ours");
        child.wait().expect("it is ours");
        over.extend(std::iter::from_fn(|| next_ack(&mut from)));

        let conversation = agent(state).open(key).expect("the dead block nobody");
        let turns = turns(conversation.messages());
        let labels: Vec<&str> = turns.iter().map(|(label, _)| *label).collect();
        assert_eq!(labels.iter().collect::<HashSet<_>>().len(), labels.len(), "{key}: something is there twice");
        let mut rest = turns.iter();
        for one in &over {
            let found = rest.find(|(label, _)| label == one);
            let (_, whole) = found.unwrap_or_else(|| panic!("{key}: {one} is lost; found {labels:?}"));
            assert!(*whole, "{key}: {one} was over and is not whole");
        }
        let start = format!("{round}.");
        let (there, known) = (labels.iter().filter(|label| label.starts_with(&start)), over.iter());
        let unknown = there.count() - known.filter(|label| label.starts_with(&start)).count();
        assert!(unknown <= 1, "{key}: more than the unfinished turn is in doubt: {labels:?}");
    }
    assert!(!over.is_empty(), "{key}: no child ever finished a turn");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut conversation = agent(state).open(key).expect("it opens");
    let outcome = runtime.block_on(conversation.say("last", &Run::default())).expect("it goes on");
    assert_eq!(outcome.text(), "answer to last", "{key}");
    turns(conversation.messages()).iter().filter(|(_, whole)| !whole).count()
}

/// The turns of a conversation: what was said, and whether all of it is there. What is not whole still makes sense: calls
/// are followed by their results, and nothing stands where it does not belong.
fn turns(messages: &[Message]) -> Vec<(&str, bool)> {
    let mut turns = Vec::new();
    let mut rest = messages;
    while let Some((first, after)) = rest.split_first() {
        let label = label_of(first).unwrap_or_else(|| panic!("a turn begins with {first:?}"));
        let end = after.iter().position(|message| label_of(message).is_some()).unwrap_or(after.len());
        let (turn, next) = after.split_at(end);
        turns.push((label, is_whole(label, turn)));
        rest = next;
    }
    turns
}

fn is_whole(label: &str, turn: &[Message]) -> bool {
    let [calls, results @ ..] = turn else { return false };
    let Message::Assistant(said) = calls else { panic!("{label}: answered by {calls:?}") };
    let ids: Vec<&str> = said.calls().map(|call| call.id.as_str()).collect();
    assert_eq!(ids, ["call_1", "call_2"], "{label}");
    let [Message::ToolResult(one), Message::ToolResult(two), answer @ ..] = results else {
        panic!("{label}: calls without results: {results:?}")
    };
    assert_eq!((one.tool_call_id.as_str(), two.tool_call_id.as_str()), ("call_1", "call_2"), "{label}");
    let is_said = |reply: &prowess_agent::message::ToolReply| reply.text().starts_with(&format!("{label} "));
    match answer {
        [] => false,
        [Message::Assistant(said)] => {
            assert!(is_said(one) && is_said(two), "{label}: it was answered without its results");
            said.text() == format!("answer to {label}")
        }
        more => panic!("{label}: more than an answer: {more:?}"),
    }
}

//! The loop: what a turn does with what a model says, and what is left when it is broken off.

#[path = "turns/attempts.rs"]
mod attempts;

use crate::stage;
use std::sync::Arc;
use std::time::Duration;

use prowess_agent::Input;
use prowess_agent::agent::Limits;
use prowess_agent::event::{End, Event, How};
use prowess_agent::image::Image;
use prowess_agent::message::{Block, Message, StopReason};
use prowess_agent::model::{Delta, ModelError};
use prowess_agent::tool::Order;
use prowess_exec::ToolResult;
use prowess_exec::tool::Content;
use serde_json::{Value, json};
use stage::{Prop, Puppet, Stage, calls, heard, says, skills};
use tokio::sync::{Barrier, Notify};

/// Roles and what was said, a line each.
fn told(messages: &[Message]) -> Vec<String> {
    let line = |message: &Message| match message {
        Message::User(_) => format!("user {}", heard(std::slice::from_ref(message))),
        Message::Assistant(said) => {
            let calls: Vec<String> = said.calls().map(|call| format!("{}#{}", call.name, call.id)).collect();
            format!("assistant {}{}", said.text(), calls.join(" "))
        }
        Message::ToolResult(reply) => {
            let mark = if reply.is_error { "!" } else { "" };
            format!("result{mark} {} {}", reply.tool_call_id, reply.text())
        }
    };
    messages.iter().map(line).collect()
}

fn ended(stage: &Stage) -> Option<End> {
    stage.seen().into_iter().find_map(|event| match event {
        Event::Ended(end) => Some(end),
        _ => None,
    })
}

#[tokio::test]
async fn an_answer_is_kept_and_the_next_turn_sees_it() {
    let stage = Stage::new();
    let model = Puppet::new(|_, messages| says(&format!("you said: {}", heard(messages))));
    let agent = Arc::new(stage.agent(model.clone(), &[]));
    let outcome = agent.open("main").unwrap().say("hello", &stage.run()).await.unwrap();
    assert_eq!((outcome.text(), &outcome.end), ("you said: hello", &End::Answered));

    let mut again = agent.open("main").unwrap();
    again.say("and?", &stage.run()).await.unwrap();
    assert_eq!(told(&model.last()), ["user hello", "assistant you said: hello", "user and?"]);
    assert_eq!(again.mended(), &[] as &[String]);
}

#[tokio::test]
async fn calls_are_answered_until_there_are_none() {
    let stage = Stage::new();
    let model = Puppet::new(|_, messages| match heard(messages).as_str() {
        "go" => calls(&[("call_1", "echo", r#"{"n":1}"#)]),
        r#"{"n":1}"# => calls(&[("call_1", " ECHO ", r#"{"n":2}"#)]),
        r#"{"n":2}"# => says("done"),
        other => says(&format!("lost: {other}")),
    });
    let echo = Prop::echo("echo");
    let agent = Arc::new(stage.agent(model.clone(), &[Arc::clone(&echo)]));
    let mut conversation = agent.open("main").unwrap();
    let outcome = conversation.say("go", &stage.run()).await.unwrap();
    assert_eq!((outcome.text(), echo.times(), outcome.calls.len()), ("done", 2, 2));
    // A provider that counts anew in each reply is no reason to lose a result.
    let expected = [
        "user go",
        "assistant echo#call_1",
        r#"result call_1 {"n":1}"#,
        "assistant echo#call_1",
        r#"result call_1 {"n":2}"#,
        "assistant done",
    ];
    assert_eq!(told(conversation.messages()), expected);
    drop(conversation);
    assert_eq!(told(agent.open("main").unwrap().messages()), expected, "and so it is on disk");
}

#[tokio::test]
async fn what_was_cut_off_is_not_carried_out() {
    let stage = Stage::new();
    let model = Puppet::new(|time, _| {
        let mut pieces = calls(&[("a", "echo", r#"{"n":1}"#), ("b", "echo", r#"{"n":2"#)]);
        match time {
            1 => *pieces.last_mut().unwrap() = Ok(Delta::Stop(StopReason::Length)),
            2 => {}
            _ => return says("sorry"),
        }
        pieces
    });
    let echo = Prop::echo("echo");
    let agent = Arc::new(stage.agent(model.clone(), &[Arc::clone(&echo)]));
    let mut conversation = agent.open("main").unwrap();
    let outcome = conversation.say("go", &stage.run()).await.unwrap();
    assert_eq!((outcome.text(), echo.times()), ("sorry", 0), "neither half a call nor its neighbour runs");
    let results: Vec<String> =
        told(conversation.messages()).into_iter().filter(|line| line.starts_with("result!")).collect();
    assert_eq!(results.len(), 4);
    assert!(results.iter().all(|line| line.contains("Not run: ")), "{results:?}");
}

#[tokio::test]
async fn a_tool_that_is_not_there_is_answered() {
    let stage = Stage::new();
    let model = Puppet::new(|time, _| if time == 1 { calls(&[("a", "fly", "{}")]) } else { says("I cannot fly") });
    let agent = Arc::new(stage.agent(model.clone(), &[Prop::echo("echo")]));
    let outcome = agent.open("main").unwrap().say("fly", &stage.run()).await.unwrap();
    assert_eq!(outcome.text(), "I cannot fly");
    let line = told(&model.last()).pop().unwrap();
    assert!(line.starts_with("result! a ") && line.contains("fly") && line.contains("echo"), "{line}");
}

#[tokio::test]
async fn calls_run_side_by_side_where_all_of_them_may() {
    let stage = Stage::new();
    let model = Puppet::new(|time, _| match time {
        1 => calls(&[("a", "meet", r#"{"n":1}"#), ("b", "meet", r#"{"n":2}"#)]),
        _ => says("met"),
    });
    // Each waits for the other: one after the other they would wait for ever.
    let barrier = Arc::new(Barrier::new(2));
    let meet = Prop::new("meet", Order::Beside, move |arguments| {
        let barrier = Arc::clone(&barrier);
        async move {
            barrier.wait().await;
            ToolResult::done(arguments["n"].to_string(), Value::Null)
        }
    });
    let agent = Arc::new(stage.agent(model.clone(), &[meet]));
    let mut conversation = agent.open("main").unwrap();
    conversation.say("meet", &stage.run()).await.unwrap();
    assert_eq!(
        told(conversation.messages())[2..4],
        ["result a 1", "result b 2"],
        "results stand in the order of calls"
    );
}

#[tokio::test]
async fn one_that_may_not_makes_all_of_them_wait() {
    let stage = Stage::new();
    let model = Puppet::new(|time, _| match time {
        1 => calls(&[("a", "echo", r#"{"n":1}"#), ("b", "alone", "{}"), ("c", "echo", r#"{"n":3}"#)]),
        _ => says("done"),
    });
    let alone = Prop::new("alone", Order::InTurn, |_| async { ToolResult::done("alone", Value::Null) });
    let agent = Arc::new(stage.agent(model, &[Prop::echo("echo"), alone]));
    agent.open("main").unwrap().say("go", &stage.run()).await.unwrap();
    let order: Vec<String> = stage
        .seen()
        .into_iter()
        .filter_map(|event| match event {
            Event::CallStarted { id, .. } => Some(format!("+{id}")),
            Event::CallEnded { id, .. } => Some(format!("-{id}")),
            _ => None,
        })
        .collect();
    assert_eq!(order, ["+a", "-a", "+b", "-b", "+c", "-c"]);
}

#[tokio::test]
async fn interrupting_the_model_keeps_what_it_said() {
    let stage = Stage::new();
    let run = stage.run();
    let model = {
        let cancel = run.cancel.clone();
        Puppet::new(move |time, _| {
            if time > 1 {
                return says("again");
            }
            // Cancelled while the reply is on its way: the first piece is there, the rest never comes.
            cancel.cancel();
            vec![Ok(Delta::Text { block: 0, text: "I was ab".to_owned() })]
        })
    };
    // The token is only looked at between pieces, so one more piece may or may not be heard; nothing may be invented.
    let agent = Arc::new(stage.agent(model.clone(), &[]));
    let mut conversation = agent.open("main").unwrap();
    let outcome = conversation.say("tell me", &run).await.unwrap();
    assert_eq!(outcome.end, End::Interrupted);
    assert_eq!(ended(&stage), Some(End::Interrupted));
    drop(conversation);
    let mut conversation = agent.open("main").unwrap();
    let outcome = conversation.say("go on", &stage.run()).await.unwrap();
    assert_eq!(outcome.text(), "again");
    let history = told(&model.last());
    assert_eq!(history.first().map(String::as_str), Some("user tell me"), "{history:?}");
    assert_eq!(history.last().map(String::as_str), Some("user go on"), "{history:?}");
}

#[tokio::test]
async fn interrupting_a_call_answers_it() {
    let stage = Stage::new();
    let run = stage.run();
    let model = Puppet::new(|time, _| match time {
        1 => calls(&[("a", "echo", r#"{"n":1}"#), ("b", "hang", "{}"), ("c", "echo", "{}")]),
        _ => says("fine"),
    });
    let cancel = run.cancel.clone();
    let hang = Prop::new("hang", Order::InTurn, move |_| {
        cancel.cancel();
        std::future::pending()
    });
    let agent = Arc::new(stage.agent(model.clone(), &[Prop::echo("echo"), hang]));
    let mut conversation = agent.open("main").unwrap();
    assert_eq!(conversation.say("go", &run).await.unwrap().end, End::Interrupted);
    let lines = told(conversation.messages());
    assert_eq!(lines[..3], ["user go", "assistant echo#a hang#b echo#c", r#"result a {"n":1}"#]);
    assert!(lines[3].starts_with("result! b ") && lines[4].starts_with("result! c ") && lines.len() == 5, "{lines:?}");
    assert_eq!(conversation.say("and now?", &stage.run()).await.unwrap().text(), "fine");
}

#[tokio::test]
async fn a_turn_that_was_dropped_is_gone_on_from() {
    let stage = Stage::new();
    let model = Puppet::new(|time, _| if time == 1 { calls(&[("a", "hang", "{}")]) } else { says("fine") });
    let started = Arc::new(Notify::new());
    let signal = Arc::clone(&started);
    let hang = Prop::new("hang", Order::InTurn, move |_| {
        signal.notify_one();
        std::future::pending()
    });
    let agent = Arc::new(stage.agent(model.clone(), &[hang]));
    let mut conversation = agent.open("main").unwrap();
    {
        let run = stage.run();
        let say = conversation.say("go", &run);
        tokio::pin!(say);
        tokio::select! {
            _ = &mut say => panic!("the tool hangs"),
            () = started.notified() => {}
        }
    }
    assert_eq!(conversation.say("and now?", &stage.run()).await.unwrap().text(), "fine");
    let lines = told(&model.last());
    assert!(lines[2].starts_with("result! a The turn was interrupted"), "{lines:?}");
}

#[tokio::test]
async fn what_passes_is_tried_again_and_what_does_not_is_told() {
    let busy = || ModelError::Busy { provider: "p".into(), status: 529, said: "later".into(), after: None };
    let cut = || vec![Ok(Delta::Text { block: 0, text: "Hal".to_owned() })];
    let stage = Stage::new();
    let model = Puppet::new(move |time, _| match time {
        1 => vec![Err(busy())],
        2 => cut(),
        _ => says("Hello"),
    });
    let agent = Arc::new(stage.agent(model.clone(), &[]));
    let outcome = agent.open("main").unwrap().say("hi", &stage.run()).await.unwrap();
    assert_eq!((outcome.texts, model.times()), (vec!["Hello".to_owned()], 3));
    let retries = stage.seen().into_iter().filter(|event| matches!(event, Event::Retrying { .. })).count();
    assert_eq!(retries, 2);

    let model = Puppet::new(|_, _| vec![Err(ModelError::Key { provider: "p".into(), said: "who are you?".into() })]);
    let agent = Arc::new(stage.agent(model.clone(), &[]));
    let mut conversation = agent.open("other").unwrap();
    let outcome = conversation.say("hi", &stage.run()).await.unwrap();
    assert_eq!(model.times(), 1);
    assert!(matches!(&outcome.end, End::Failed(why) if why.contains("who are you?")), "{:?}", outcome.end);
    assert!(matches!(outcome.error, Some(ModelError::Key { .. })));

    let model = Puppet::new(move |_, _| vec![Err(busy())]);
    let agent = Arc::new(stage.agent(model.clone(), &[]));
    agent.open("third").unwrap().say("hi", &stage.run()).await.unwrap();
    assert_eq!(model.times(), 4, "one try and three more");
}

#[tokio::test]
async fn a_turn_has_limits() {
    let forever = || Puppet::new(|time, _| calls(&[("a", "echo", &format!(r#"{{"n":{time}}}"#))]));
    let stage = Stage::new();
    let limits = Limits { rounds: 5, ..Limits::default() };
    let agent = Arc::new(stage.agent(forever(), &[Prop::echo("echo")]).limits(limits));
    let outcome = agent.open("rounds").unwrap().say("go", &stage.run()).await.unwrap();
    assert!(matches!(&outcome.end, End::Failed(why) if why.contains("5 rounds")), "{:?}", outcome.end);

    let limits = Limits { tokens: 1_000, ..Limits::default() };
    let agent = Arc::new(stage.agent(forever(), &[Prop::echo("echo")]).limits(limits));
    let outcome = agent.open("tokens").unwrap().say("go", &stage.run()).await.unwrap();
    assert!(matches!(&outcome.end, End::Failed(why) if why.contains("1000 tokens")), "{:?}", outcome.end);
    assert_eq!(outcome.calls.len(), 5, "227 tokens a time");

    let limits = Limits { time: Some(Duration::from_millis(20)), ..Limits::default() };
    let hang = Prop::new("echo", Order::Beside, |_| std::future::pending());
    let agent = Arc::new(stage.agent(forever(), &[hang]).limits(limits));
    let outcome = agent.open("time").unwrap().say("go", &stage.run()).await.unwrap();
    assert!(matches!(&outcome.end, End::Failed(why) if why.contains("longer than")), "{:?}", outcome.end);
}

#[tokio::test]
async fn going_round_in_circles_is_told_and_then_ended() {
    let stage = Stage::new();
    let model = Puppet::new(|_, _| calls(&[("a", "echo", "{}")]));
    let agent = Arc::new(stage.agent(model.clone(), &[Prop::echo("echo")]));
    let outcome = agent.open("main").unwrap().say("go", &stage.run()).await.unwrap();
    assert!(matches!(&outcome.end, End::Failed(why) if why.contains("20 times")), "{:?}", outcome.end);
    assert_eq!(model.times(), 20);
    assert!(told(&model.last()).iter().any(|line| line.contains("Do something else")));
}

#[tokio::test]
async fn every_token_is_on_an_account() {
    let stage = Stage::new();
    stage.store.replace(skills(&stage.path("skills"), &[("weather", ""), ("tea", "")]));
    let model = Puppet::new(|time, _| if time == 1 { calls(&[("a", "echo", "{}")]) } else { says("done") });
    let agent = Arc::new(stage.agent(model, &[Prop::echo("echo")]));
    let outcome = agent.open("main").unwrap().say("/weather Shanghai", &stage.run()).await.unwrap();
    assert_eq!(outcome.usage.total_tokens, 337);
    assert_eq!(outcome.ledger.total().total(), 337);
    let costs = outcome.ledger.skills();
    assert!(costs["weather"].catalog > 0 && costs["tea"].catalog > 0, "{costs:?}");
    assert!(costs["weather"].output >= 30 && costs["tea"].output == 0, "the called skill is spoken for: {costs:?}");
    let noted: u64 = stage
        .lines()
        .iter()
        .filter(|line| line["customType"] == "prowess:usage")
        .map(|line| prowess_agent::ledger::Ledger::parse(&line["data"]).total().total())
        .sum();
    assert_eq!(noted, 337, "and written down");
}

#[tokio::test]
async fn skills_are_frozen_and_refreshed_by_fingerprint() {
    let stage = Stage::new();
    stage.store.replace(skills(&stage.path("a"), &[("tea", "")]));
    let model = Puppet::new(|_, _| says("ok"));
    let agent = Arc::new(stage.agent(model.clone(), &[]));
    let mut conversation = agent.open("main").unwrap();
    let notes = || stage.lines().iter().filter(|line| line["customType"] == "prowess:skills").count();
    conversation.say("one", &stage.run()).await.unwrap();
    std::fs::remove_dir_all(stage.path("a")).unwrap();
    conversation.say("two", &stage.run()).await.unwrap();
    assert_eq!(notes(), 1, "the second turn did not look at the disk");
    let prompts: Vec<bool> =
        model.asked.lock().unwrap().iter().map(|(system, _)| system.contains("<name>tea</name>")).collect();
    assert_eq!(prompts, [true, true]);

    assert!(!stage.seen().iter().any(|event| matches!(event, Event::SkillsChanged { .. })));
    stage.store.replace(skills(&stage.path("b"), &[("coffee", "")]));
    conversation.say("three", &stage.run()).await.unwrap();
    assert_eq!(notes(), 2);
    assert!(stage.seen().contains(&Event::SkillsChanged { count: 1 }));
    assert!(model.asked.lock().unwrap().last().unwrap().0.contains("<name>coffee</name>"));

    drop(conversation);
    agent.open("main").unwrap().say("four", &stage.run()).await.unwrap();
    assert_eq!(notes(), 2, "the session remembers its skills across openings");
}

#[tokio::test]
async fn a_command_goes_through_the_model_with_the_location_of_its_skill() {
    let stage = Stage::new();
    let hidden = "disable-model-invocation: true";
    stage.store.replace(skills(&stage.path("skills"), &[("tea", ""), ("secret", hidden)]));
    let model = Puppet::new(|_, messages| says(&heard(messages)));
    let agent = Arc::new(stage.agent(model, &[]));
    let mut conversation = agent.open("main").unwrap();
    for message in ["/secret now", "/skill secret now", "use $secret now"] {
        let outcome = conversation.say(message, &stage.run()).await.unwrap();
        assert!(outcome.text().contains("~/skills/secret/SKILL.md"), "{}", outcome.text());
        assert!(outcome.text().contains("now"));
        assert_eq!(outcome.uses.len(), 1);
        assert_eq!((outcome.uses[0].skill.as_str(), outcome.uses[0].how), ("secret", How::Called));
    }
    let outcome = conversation.say("/nothing of the kind", &stage.run()).await.unwrap();
    assert_eq!(outcome.text(), "/nothing of the kind");
}

#[tokio::test]
async fn a_command_that_goes_to_a_tool_never_meets_the_model() {
    let stage = Stage::new();
    let dispatch = "command-dispatch: tool\ncommand-tool: echo";
    let gone = "command-dispatch: tool\ncommand-tool: gone";
    stage.store.replace(skills(&stage.path("skills"), &[("shout", dispatch), ("lost", gone)]));
    let model = Puppet::new(|_, _| says("hm"));
    let echo = Prop::echo("echo");
    let agent = Arc::new(stage.agent(model.clone(), &[Arc::clone(&echo)]));
    let mut conversation = agent.open("main").unwrap();
    let outcome = conversation.say("/shout  hi there ", &stage.run()).await.unwrap();
    let given = json!({"command": "hi there", "commandName": "shout", "skillName": "shout"});
    assert_eq!(Value::Object(echo.calls.lock().unwrap()[0].clone()), given);
    assert_eq!((outcome.text(), model.times()), (given.to_string().as_str(), 0));
    assert_eq!(outcome.uses[0].how, How::Dispatched);

    let outcome = conversation.say("/lost x", &stage.run()).await.unwrap();
    assert!(matches!(&outcome.end, End::Failed(why) if why.contains("gone")), "{:?}", outcome.end);

    conversation.say("what was that?", &stage.run()).await.unwrap();
    let lines = told(&model.last());
    assert_eq!(lines.len(), 7, "the model sees what was done without it: {lines:?}");
}

#[tokio::test]
async fn a_conversation_that_grows_too_long_is_summarised_and_keeps_its_skill() {
    let stage = Stage::new();
    let body = "# Weather\nAlways say the unit.";
    let model = Puppet::with_window(8_000, move |_, messages| {
        if heard(messages).contains("<conversation>") {
            return says("They talked about rain.");
        }
        match heard(messages).as_str() {
            "read it" => calls(&[("a", "read", r#"{"path":"weather/SKILL.md"}"#)]),
            _ => says(&"rain ".repeat(300)),
        }
    });
    let read = Prop::new("read", Order::Beside, move |_| async move {
        ToolResult::done(body, json!({"skill": {"name": "weather", "file": true}}))
    });
    let agent = Arc::new(stage.agent(model.clone(), &[read]));
    let mut conversation = agent.open("main").unwrap();
    conversation.say("read it", &stage.run()).await.unwrap();
    let mut compacted = 0;
    for round in 0..20 {
        conversation.say(&format!("more {round}"), &stage.run()).await.unwrap();
        compacted += stage.seen().iter().filter(|event| matches!(event, Event::Compacted { .. })).count();
    }
    assert!(compacted > 1, "again and again");
    let first = heard(&model.last()[..1]);
    assert!(first.contains("They talked about rain."), "{first}");
    assert!(first.contains(body), "{first}");
    let expected = told(conversation.messages());
    drop(conversation);
    assert_eq!(told(agent.open("main").unwrap().messages()), expected, "on disk as in memory");
    let stored = stage.lines().iter().filter(|line| line["type"] == "message").count();
    assert_eq!(stored, 44, "nothing is lost on disk");
}

#[tokio::test]
async fn a_model_that_says_it_is_too_much_is_asked_again_with_less() {
    let stage = Stage::new();
    let model = Puppet::new(|_, messages| {
        if heard(messages).contains("<conversation>") {
            return says("In short.");
        }
        let size: usize = messages.iter().map(|message| heard(std::slice::from_ref(message)).len()).sum();
        if size > 150_000 { vec![Err(ModelError::Overflow { said: "too long".into() })] } else { says("ok") }
    });
    let agent = Arc::new(stage.agent(model, &[]));
    let mut conversation = agent.open("main").unwrap();
    for _ in 0..4 {
        let outcome = conversation.say(&"x".repeat(60_000), &stage.run()).await.unwrap();
        assert_eq!(outcome.end, End::Answered);
    }
    assert!(stage.seen().iter().any(|event| matches!(event, Event::Compacted { .. })));
}

#[tokio::test]
async fn a_session_has_one_owner() {
    let stage = Stage::new();
    let agent = Arc::new(stage.agent(Puppet::new(|_, _| says("ok")), &[]));
    let held = agent.open("main").unwrap();
    assert!(agent.open("main").is_err());
    assert!(agent.open("other").is_ok());
    drop(held);
    assert!(agent.open("main").is_ok());
}

#[tokio::test]
async fn whoever_ends_a_turn_while_it_is_summarised_loses_nothing() {
    let stage = Stage::new();
    let run = stage.run();
    let cancel = run.cancel.clone();
    let model = Puppet::with_window(8_000, move |_, messages| {
        if heard(messages).contains("<conversation>") {
            cancel.cancel();
            return vec![Ok(Delta::Text { block: 0, text: "They talk".to_owned() })];
        }
        says(&"rain ".repeat(300))
    });
    let agent = Arc::new(stage.agent(model, &[]));
    let mut conversation = agent.open("main").unwrap();
    let mut end = End::Answered;
    for round in 0..30 {
        end = conversation.say(&format!("more {round}"), &run).await.unwrap().end;
        if end != End::Answered {
            break;
        }
    }
    assert_eq!(end, End::Interrupted);
    assert!(!stage.lines().iter().any(|line| line["type"] == "compaction"), "the history is as it was");
}

#[tokio::test]
async fn another_model_stands_in_and_says_so() {
    let stage = Stage::new();
    let broken = Puppet::new(|_, _| vec![Err(ModelError::Key { provider: "p".into(), said: "no".into() })]);
    let stand_in =
        Puppet::of(
            ("puppet", "spare"),
            200_000,
            |time, _| if time == 1 { calls(&[("a", "echo", "{}")]) } else { says("hi") },
        );
    let agent = stage.agent(broken.clone(), &[Prop::echo("echo")]).fallbacks(vec![stand_in.clone()]);
    let outcome = Arc::new(agent).open("main").unwrap().say("hello", &stage.run()).await.unwrap();
    assert_eq!((outcome.text(), outcome.model.as_str()), ("hi", "spare"));
    assert_eq!((broken.times(), stand_in.times()), (1, 2), "who failed is not asked again in the same turn");
    assert!(stage.seen().iter().any(|event| matches!(event, Event::Notice(told) if told.contains("spare instead"))));
}

#[tokio::test]
async fn tokens_of_answers_that_were_broken_off_are_on_an_account_too() {
    let stage = Stage::new();
    let usage = || Ok(Delta::Usage(prowess_agent::message::Usage { input: 50, output: 5, ..Default::default() }));
    let model = Puppet::new(move |time, _| match time {
        1 => vec![Ok(Delta::Text { block: 0, text: "Hal".to_owned() }), usage()],
        2 => says("Hello"),
        _ => vec![usage(), Err(ModelError::Refused { provider: "p".into(), said: "no".into() })],
    });
    let agent = Arc::new(stage.agent(model, &[]));
    let mut conversation = agent.open("main").unwrap();
    for (message, total) in [("hi", 165), ("again", 55)] {
        let outcome = conversation.say(message, &stage.run()).await.unwrap();
        assert_eq!((outcome.usage.total_tokens, outcome.ledger.total().total()), (total, total), "{message}");
    }
}

#[tokio::test]
async fn a_name_that_no_provider_takes_does_not_come_back_to_it() {
    let stage = Stage::new();
    let model = Puppet::new(|time, _| match time {
        1 => calls(&[("a", "", "{}"), ("b", "a b;c\u{1b}[31m", "{}")]),
        _ => says("sorry"),
    });
    let agent = Arc::new(stage.agent(model.clone(), &[Prop::echo("echo")]));
    agent.open("main").unwrap().say("go", &stage.run()).await.unwrap();
    assert_eq!(told(&model.last())[1], "assistant unknown#a a_b_c__31m#b");
}

#[tokio::test]
async fn what_is_not_carried_out_is_seen() {
    let stage = Stage::new();
    let model = Puppet::new(|time, _| if time == 1 { calls(&[("a", "echo", "{")]) } else { says("sorry") });
    let agent = Arc::new(stage.agent(model, &[Prop::echo("echo")]));
    agent.open("main").unwrap().say("/nosuch thing", &stage.run()).await.unwrap();
    let seen = stage.seen();
    assert!(seen.iter().any(|event| matches!(event, Event::CallEnded { result, .. } if result.is_error)));
    assert!(seen.iter().any(|event| matches!(event, Event::Notice(told) if told.contains("/nosuch"))));
}

#[tokio::test]
async fn images_are_seen_by_the_model_and_kept() {
    let stage = Stage::new();
    let image = Image::from_bytes(b"GIF89a").expect("an image");
    let model = Puppet::new(|time, _| if time == 1 { calls(&[("a", "look", "{}")]) } else { says("a cat") });
    let look = Prop::new("look", Order::Beside, |_| async {
        let mut result = ToolResult::done("here", Value::Null);
        result.content.push(Content::Image { data: "R0lGODlh".to_owned(), mime_type: "image/gif".to_owned() });
        result
    });
    let agent = Arc::new(stage.agent(model.clone(), &[look]));
    let mut conversation = agent.open("main").unwrap();
    let input = Input::from("what is it?").with_images(vec![image.clone()]).expect("one image");
    conversation.say(input, &stage.run()).await.unwrap();
    let (Message::User(user), Message::ToolResult(reply)) = (&model.last()[0], &model.last()[2]) else {
        panic!("a question and a result")
    };
    assert_eq!(user.content, [Block::text("what is it?"), Block::Image(image.clone())]);
    assert_eq!(reply.content, [Block::text("here"), Block::Image(image.clone())]);
    let stored = stage.lines();
    let stored = stored.iter().find(|line| line["message"]["role"] == "user").expect("a message");
    let written = json!({"type": "image", "data": "R0lGODlh", "mimeType": "image/gif"});
    assert_eq!(stored["message"]["content"][1], written, "as OpenClaw stores it");
    drop(conversation);
    let expected = model.last().len() + 1;
    assert_eq!(agent.open("main").unwrap().messages().len(), expected);
    let alone = Input::from("").with_images(vec![image.clone()]).expect("one image");
    agent.open("main").unwrap().say(alone, &stage.run()).await.unwrap();
    let Some(Message::User(user)) = model.last().pop() else { panic!("a question") };
    assert_eq!(user.content, [Block::Image(image)]);
}

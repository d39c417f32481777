//! Repair: can every stored conversation be shown to a model, and is it mended as OpenClaw mends it?

use std::collections::HashSet;

use proptest::prelude::*;
use prowess_agent::message::Message;
use prowess_agent::repair::ids::{Ids, Rule, sanitize};
use prowess_agent::repair::{Loaded, Mended, inputs, load, pairing};
use prowess_testkit::{assert_documented, cases, cases_in, check_all, check_all_but};
use serde_json::{Value, json};

const REDACTED: &str = "attachments in a stored call";
const ORDER: &str = "results out of order or doubled";
const REUSED: &str = "ids that come again";
const LATE: &str = "results behind a later reply";
const BROKEN_OFF: &str = "results of a reply that was broken off";

/// Where 2026.3.2 is wrong and we do as 2026.9.6.
const PAIRING: &[(&str, &str)] = &[
    ("results out of order", ORDER),
    ("duplicate results", ORDER),
    ("duplicate result later turn same id", REUSED),
    ("result after next assistant is orphan", LATE),
    ("aborted assistant with result", BROKEN_OFF),
];
/// Where 2026.9.6 is worse and we do as 2026.3.2.
const NEWER_INPUTS: &[(&str, &str)] = &[("sessions_spawn redaction", REDACTED)];

#[test]
fn calls_are_kept_and_dropped_as_in_openclaw() {
    assert_documented(NEWER_INPUTS);
    check_all(cases(include_str!("golden/transcript-inputs.json")), same_inputs);
    check_all_but(NEWER_INPUTS, cases(include_str!("golden/transcript-inputs.newer.json")), same_inputs);
}

fn same_inputs(case: &Value) -> Result<(), String> {
    let known: Option<Vec<String>> = serde_json::from_value(case["known"].clone()).expect("names");
    let given = list(&case["messages"]);
    let made = inputs(given.clone(), known.as_deref());
    same(&case["unchanged"], &json!(made.messages == given))?;
    same(&case["output"], &json!(made.messages))?;
    // The newer one does not say how many.
    let dropped = json!([made.dropped_calls, made.dropped_messages]);
    case.get("dropped").map_or(Ok(()), |wanted| same(wanted, &dropped))
}

#[test]
fn results_are_brought_to_their_calls_as_in_openclaw() {
    assert_documented(PAIRING);
    check_all_but(PAIRING, cases(include_str!("golden/transcript-pairing.json")), same_pairing);
    check_all(cases(include_str!("golden/transcript-pairing.newer.json")), same_pairing);
}

fn same_pairing(case: &Value) -> Result<(), String> {
    let given = list(&case["messages"]);
    let made = pairing(given.clone());
    same(&json!(made.moved), &json!(made.messages != given))?;
    let messages: Vec<Value> = made.messages.into_iter().map(masked).collect();
    let output = json!({
        "messages": messages,
        "unchanged": !made.moved,
        "added": made.added,
        "duplicates": made.dropped_duplicates,
        "orphans": made.dropped_orphans,
    });
    same(&case["output"], &output)
}

/// A result that was added, without what is said in it and when.
fn masked(message: Value) -> Value {
    if message.pointer("/details/openclawSyntheticMissingToolResult").is_none() {
        return message;
    }
    let text = message["content"][0]["text"].as_str().expect("a text");
    assert!(text.contains(message["toolName"].as_str().expect("a name")), "{text}");
    json!({
        "role": message["role"], "toolCallId": message["toolCallId"], "toolName": message["toolName"],
        "isError": message["isError"], "synthetic": true
    })
}

#[test]
fn ids_are_rewritten_as_in_openclaw() {
    let file = include_str!("golden/tool-call-id.json");
    check_all(cases(file), |case| {
        let made = sanitize(case["input"].as_str().expect("an id"), rule(&case["mode"]));
        same(&case["output"], &json!(made))
    });
    check_all(cases_in(file, "collisions"), |case| {
        let mut ids = Ids::new(rule(&case["mode"]));
        let made: Vec<String> = list(&case["ids"]).iter().map(|id| ids.rewrite(id.as_str().expect("an id"))).collect();
        same(&case["output"], &json!(made))
    });
}

fn rule(mode: &Value) -> Rule {
    match mode.as_str() {
        Some("strict") => Rule::Strict,
        Some("strict9") => Rule::Strict9,
        other => panic!("what is {other:?}?"),
    }
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().expect("a list").clone()
}

fn same(wanted: &Value, got: &Value) -> Result<(), String> {
    if wanted == got { Ok(()) } else { Err(format!("wanted {wanted}, got {got}")) }
}

fn reply(ids: &[&str], stop: &str) -> Value {
    let calls = ids.iter().map(|id| json!({"type": "toolCall", "id": id, "name": "exec", "arguments": {}}));
    json!({"role": "assistant", "content": calls.collect::<Vec<_>>(), "stopReason": stop, "timestamp": 7})
}

fn result(id: &str, text: &str) -> Value {
    json!({"role": "toolResult", "toolCallId": id, "toolName": "exec", "content": text, "timestamp": 8})
}

fn said(text: &str) -> Value {
    json!({"role": "user", "content": text, "timestamp": 9})
}

/// The conversation in short: `[ids]` for a reply, `id=text` for a result, `-id` for one that was added.
fn short(messages: &[Message]) -> Vec<String> {
    let one = |message: &Message| match message {
        Message::User(_) => "user".to_owned(),
        Message::Assistant(reply) => {
            format!("[{}]", reply.calls().map(|call| call.id.as_str()).collect::<Vec<_>>().join(" "))
        }
        Message::ToolResult(result) if result.details.is_some() => format!("-{}", result.tool_call_id),
        Message::ToolResult(result) => format!("{}={}", result.tool_call_id, result.text()),
    };
    messages.iter().map(one).collect()
}

#[test]
fn conversations_are_mended() {
    let table: [(&str, Vec<Value>, &[&str]); 9] = [
        (
            "an id that comes again is another call",
            vec![
                reply(&["call_1"], "toolUse"),
                result("call_1", "1"),
                reply(&["call_1"], "toolUse"),
                said("x"),
                result("call_1", "2"),
            ],
            &["[call_1]", "call_1=1", "[call_1]", "call_1=2", "user"],
        ),
        (
            "a late result does not go to a newer call of the same id twice",
            vec![reply(&["a"], "toolUse"), reply(&["a"], "toolUse"), result("a", "1"), result("a", "2")],
            &["[a]", "-a", "[a]", "a=1"],
        ),
        (
            "a result before its call belongs to nobody",
            vec![result("a", "1"), reply(&["a"], "toolUse")],
            &["[a]", "-a"],
        ),
        (
            "two calls of one id in one reply are two calls",
            vec![reply(&["a", "a"], "toolUse"), result("a", "1"), result("a", "2"), result("a", "3")],
            &["[a call_auto_1]", "a=1", "call_auto_1=2"],
        ),
        (
            "a reply that was broken off keeps the calls that were answered",
            vec![reply(&["a", "b", "c"], "aborted"), said("x"), result("b", "1")],
            &["[b]", "b=1", "user"],
        ),
        ("and goes when none was", vec![reply(&["a"], "error"), said("x")], &["user"]),
        ("ids are trimmed on both sides", vec![reply(&[" a"], "toolUse"), result("a ", "1")], &["[a]", "a=1"]),
        (
            "what is no message goes",
            vec![json!(null), said("x"), json!("text"), json!({"role": "system", "content": "x"})],
            &["user"],
        ),
        (
            "results that are lost say so in the order of the calls",
            vec![reply(&["a", "b", "c"], "toolUse"), result("b", "1"), said("x")],
            &["[a b c]", "-a", "b=1", "-c", "user"],
        ),
    ];
    for (why, given, wanted) in table {
        assert_eq!(short(&load(given, None).messages), wanted, "{why}");
    }
}

#[test]
fn each_message_says_where_it_was_stored() {
    // All at the same moment, so that nothing but the place tells them apart.
    let given = vec![
        json!({"role": "user", "content": "one", "timestamp": 7}),
        json!({"role": "nobody", "content": "?", "timestamp": 7}),
        json!({"role": "assistant", "timestamp": 7, "content": [
            {"type": "toolCall", "id": "a", "name": "exec", "arguments": {}},
            {"type": "toolCall", "id": "b", "name": "exec", "arguments": {}},
        ]}),
        json!({"role": "user", "content": "two", "timestamp": 7}),
        json!({"role": "toolResult", "toolCallId": "b", "toolName": "exec", "content": "done", "timestamp": 7}),
    ];
    let Loaded { messages, sources, .. } = load(given, None);
    assert_eq!(messages.len(), sources.len());
    assert_eq!(sources, [Some(0), Some(2), None, Some(4), Some(3)]);
}

#[test]
fn it_is_said_what_was_done() {
    assert_eq!(Mended::default().sentence(), None);
    let given = vec![json!(null), reply(&["a"], "toolUse"), result("x", "1")];
    let Loaded { mended, .. } = load(given, None);
    let wanted = Mended { dropped_messages: 1, added: 1, dropped_orphans: 1, moved: true, ..Mended::default() };
    assert_eq!(mended, wanted);
    assert!(mended.sentence().expect("a sentence").contains("marked missing results (1)"));
    let given = vec![reply(&["a"], "toolUse"), said("x"), result("a", "1")];
    assert!(load(given, None).mended.sentence().expect("a sentence").contains("moved results after their calls"));
}

#[test]
fn long_conversations_and_long_replies_are_mended_alike() {
    let turns = (0..5_000).flat_map(|_| [reply(&["call_1"], "toolUse"), said("x"), result("call_1", "1")]);
    let Loaded { messages, mended, .. } = load(turns.collect(), None);
    assert_eq!((messages.len(), mended.added, mended.dropped_duplicates), (15_000, 0, 0));
    let ids: Vec<String> = (0..10_000).map(|index| format!("id{}", index / 2)).collect();
    let many = reply(&ids.iter().map(String::as_str).collect::<Vec<_>>(), "toolUse");
    let results = ids.iter().rev().map(|id| result(id, "1"));
    let Loaded { messages, mended, .. } = load(std::iter::once(many).chain(results).collect(), None);
    assert_eq!((messages.len(), mended.added), (10_001, 0));
    let mut wire = Ids::new(Rule::Strict9);
    let made: HashSet<String> = (0..10_000)
        .map(|_| {
            wire.begin_reply();
            wire.rewrite("call_1")
        })
        .collect();
    assert_eq!(made.len(), 10_000);
}

/// Any JSON, not very deep.
fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((word(), inner), 0..5).prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

/// The words that messages are made of, and some that they are not.
fn word() -> impl Strategy<Value = String> {
    let words = [
        "role",
        "assistant",
        "user",
        "toolResult",
        "content",
        "type",
        "toolCall",
        "toolUse",
        "functionCall",
        "text",
        "thinking",
        "id",
        "name",
        "arguments",
        "input",
        "toolCallId",
        "toolUseId",
        "toolName",
        "isError",
        "timestamp",
        "stopReason",
        "aborted",
        "error",
        "usage",
        "details",
        "a",
        "b",
        " a",
        "",
        "exec",
        "{}",
        "call_auto_1",
        "über",
    ];
    prop_oneof![8 => prop::sample::select(words.to_vec()).prop_map(str::to_owned), 1 => any::<String>()]
}

/// Something near a message: the right fields, now and then with something else in them.
fn near_message() -> impl Strategy<Value = Value> {
    let or_odd = |right: BoxedStrategy<Value>| prop_oneof![9 => right, 1 => json_value()].boxed();
    let id = || or_odd(prop::sample::select(vec!["a", "b", " a", "", "call_auto_1"]).prop_map(Value::from).boxed());
    let kind = or_odd(prop::sample::select(vec!["toolCall", "toolUse", "text"]).prop_map(Value::from).boxed());
    let name = or_odd(prop::sample::select(vec!["exec", "read ", "no name"]).prop_map(Value::from).boxed());
    let arguments = or_odd(prop::sample::select(vec![json!({}), json!("{\"a\":1}"), json!("{")]).boxed());
    let block = (kind, id(), name, arguments.clone(), prop::option::of(arguments)).prop_map(
        |(kind, id, name, arguments, input)| {
            let mut block = json!({"type": kind, "id": id, "name": name, "arguments": arguments, "text": "t"});
            if let Some(input) = input {
                block["input"] = input;
            }
            block
        },
    );
    let content = or_odd(prop::collection::vec(or_odd(block.boxed()), 0..4).prop_map(Value::from).boxed());
    let stop = or_odd(prop::sample::select(vec!["stop", "toolUse", "aborted", "error"]).prop_map(Value::from).boxed());
    let stamp = or_odd(any::<u32>().prop_map(Value::from).boxed());
    let role = or_odd(prop::sample::select(vec!["user", "assistant", "toolResult"]).prop_map(Value::from).boxed());
    (role, content, id(), stop, stamp).prop_map(|(role, content, id, stop, stamp)| {
        json!({"role": role, "content": content, "toolCallId": id, "stopReason": stop, "timestamp": stamp})
    })
}

fn history() -> impl Strategy<Value = Vec<Value>> {
    prop::collection::vec(prop_oneof![6 => near_message(), 1 => json_value()], 0..12)
}

/// A conversation in which nothing is wrong, with ids that come again in every reply.
fn sound_history() -> impl Strategy<Value = Vec<Value>> {
    let turn = (0_usize..4, any::<bool>()).prop_map(|(calls, has_text)| {
        let ids: Vec<String> = (0..calls).map(|index| format!("call_{index}")).collect();
        let mut reply = reply(&ids.iter().map(String::as_str).collect::<Vec<_>>(), "toolUse");
        if has_text {
            let text = json!({"type": "text", "text": "t"});
            reply["content"].as_array_mut().expect("a list").insert(0, text);
        }
        let mut turn = vec![said("x"), reply];
        turn.extend(ids.iter().map(|id| result(id, "ok")));
        turn
    });
    prop::collection::vec(turn, 0..6).prop_map(|turns| turns.concat())
}

/// Whether every reply is followed at once by the results of its calls, and no result stands elsewhere.
fn is_paired(messages: &[Message]) -> Result<(), String> {
    let mut waiting: Vec<&str> = Vec::new();
    for message in messages {
        match message {
            Message::ToolResult(result) => {
                if waiting.is_empty() || waiting.remove(0) != result.tool_call_id {
                    return Err(format!("{:?} is not what comes next", result.tool_call_id));
                }
            }
            Message::User(_) | Message::Assistant(_) if !waiting.is_empty() => return Err(format!("{waiting:?} wait")),
            Message::User(_) => {}
            Message::Assistant(reply) => {
                waiting = reply.calls().map(|call| call.id.as_str()).collect();
                if waiting.iter().collect::<HashSet<_>>().len() < waiting.len() {
                    return Err(format!("{waiting:?} are not different"));
                }
            }
        }
    }
    if waiting.is_empty() { Ok(()) } else { Err(format!("{waiting:?} wait at the end")) }
}

fn stored(messages: &[Message]) -> Vec<Value> {
    messages.iter().map(|message| serde_json::to_value(message).expect("JSON")).collect()
}

proptest! {
    #[test]
    fn whatever_is_stored_can_be_shown_to_a_model(given in history()) {
        let Loaded { messages, mended, .. } = load(given.clone(), None);
        prop_assert_eq!(is_paired(&messages), Ok(()));
        let results = messages.iter().filter(|message| matches!(message, Message::ToolResult(_))).count();
        let others = messages.len() - results;
        prop_assert!(others + mended.dropped_messages <= given.len());
    }

    #[test]
    fn what_is_mended_stays_as_it_is(given in history()) {
        let Loaded { messages, .. } = load(given, None);
        let Loaded { messages: again, mended, .. } = load(stored(&messages), None);
        prop_assert_eq!(again, messages);
        prop_assert_eq!(mended, Mended::default());
    }

    #[test]
    fn what_is_sound_is_not_touched(given in sound_history()) {
        let made = pairing(given.clone());
        prop_assert_eq!(&made.messages, &given);
        prop_assert!(!made.moved);
        prop_assert_eq!(inputs(given.clone(), None).messages, given.clone());
        let Loaded { messages, mended, .. } = load(given.clone(), Some(&["exec".to_owned()]));
        prop_assert_eq!((messages.len(), mended), (given.len(), Mended::default()));
    }

    #[test]
    fn pairing_twice_is_pairing_once(given in history()) {
        let once = pairing(given);
        let twice = pairing(once.messages.clone());
        prop_assert!(!twice.moved && twice.added + twice.dropped_duplicates + twice.dropped_orphans == 0);
        prop_assert_eq!(twice.messages, once.messages);
    }

    #[test]
    fn no_call_of_an_unknown_tool_is_left(given in history()) {
        let Loaded { messages, .. } = load(given, Some(&["exec".to_owned()]));
        prop_assert_eq!(is_paired(&messages), Ok(()));
        for message in &messages {
            if let Message::Assistant(reply) = message {
                prop_assert!(reply.calls().all(|call| call.name == "exec"));
            }
        }
    }
}

//! The claims of `docs/conformance.md` about conversations: what a turn is made of, and what it does.

use crate::stage;
use std::future::Future;
use std::os::unix::fs::PermissionsExt;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use prowess_agent::agent::PromptSettings;
use prowess_agent::event::{Event, Events, How};
use prowess_agent::message::{Block, Message};
use prowess_agent::model::{Api, Delta};
use prowess_agent::prompt::BootstrapFile;
use prowess_agent::provider::{Endpoint, Remote};
use prowess_agent::session::Sessions;
use prowess_agent::tool::{Call, Scope, Tool, ToolSpec};
use prowess_agent::{Run, repair};
use prowess_exec::ToolResult;
use prowess_skills::{Filter, Filters};
use prowess_testkit::{Answer, ModelServer, RecordedRequest, Turn};
use serde_json::{Value, json};
use stage::{Prop, Puppet, Stage, calls, filtered_skills, heard, says, skills};

const APIS: [Api; 3] = [Api::Anthropic, Api::Chat, Api::Responses];

/// The system prompts that a model was given, in order.
fn prompts(model: &Puppet) -> Vec<String> {
    model.asked.lock().expect("no panic").iter().map(|(system, _)| system.clone()).collect()
}

fn weather(stage: &Stage) {
    stage.store.replace(skills(&stage.path("skills"), &[("weather", ""), ("tea", "")]));
}

/// A model on this machine, over its wire.
fn remote(api: Api, server: &ModelServer) -> Arc<Remote> {
    Arc::new(Remote::new(Endpoint::new("loopback", server.base_url(), api, "m")).expect("a model"))
}

/// The texts of a request that name the skill `weather`.
fn naming(request: &RecordedRequest) -> Vec<&str> {
    request.texts().into_iter().filter(|text| text.contains("weather")).collect()
}

#[tokio::test]
async fn m_loop_02_a_message_goes_to_one_session_of_one_agent() {
    let stage = Stage::new();
    let model = Puppet::new(|_, messages| says(&format!("after {} messages", messages.len())));
    let agent = Arc::new(stage.agent(model, &[]));
    let answer = async |name: &str| {
        let mut conversation = agent.open(name).expect("a conversation");
        let outcome = conversation.say("hello", &stage.run()).await.expect("a turn");
        (conversation.key().to_string(), outcome.text().to_owned())
    };
    let told = |key: &str, text: &str| (key.to_owned(), text.to_owned());
    assert_eq!(answer("main").await, told("agent:main:main", "after 1 messages"));
    assert_eq!(answer("Telegram:Group:42").await, told("agent:main:telegram:group:42", "after 1 messages"));
    assert_eq!(answer("agent:main:main").await, told("agent:main:main", "after 3 messages"));
    // What was said is for the owner's eyes only, and one at a time may go on with it.
    let folder = stage.path("state/agents/main/sessions");
    assert_eq!(std::fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    for entry in std::fs::read_dir(&folder).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o077, 0, "{:?}", entry.file_name());
    }
    let _held = agent.open("main").unwrap();
    assert!(agent.open("agent:main:main").is_err());
    assert_eq!(Sessions::new(&stage.path("state"), "other").list().unwrap().len(), 0, "another agent has its own");
}

#[tokio::test]
async fn m_loop_03_04_the_prompt_is_made_of_files_tools_and_then_skills() {
    let stage = Stage::new();
    weather(&stage);
    std::fs::write(stage.path("ws/SOUL.md"), "Speak like a sailor.").unwrap();
    std::fs::write(stage.path("ws/IDENTITY.md"), "Your name is Jonas.").unwrap();
    std::fs::write(stage.path("ws/MEMORY.md"), "They like tea.").unwrap();
    let model = Puppet::new(|_, _| says("aye"));
    let agent = Arc::new(stage.agent(model.clone(), &[Prop::echo("echo")]));
    agent.open("main").unwrap().say("ahoy", &stage.run()).await.unwrap();
    let prompt = prompts(&model).remove(0);
    let place = |text: &str| prompt.find(text).unwrap_or_else(|| panic!("no {text:?} in {prompt}"));
    let [tool, skill, memory] = ["- echo: A prop.", "<name>weather</name>", "They like tea."].map(place);
    assert!(tool < skill && skill < memory, "{prompt}");
    assert!(place("Speak like a sailor.") > 0 && place("Your name is Jonas.") > 0);
}

// M-SNAP-05, M-SNAP-06, M-SNAP-07, M-SNAP-09
#[tokio::test]
async fn m_loop_05_m_snap_05_06_07_09_a_session_keeps_its_snapshot_until_there_is_a_newer_one() {
    let stage = Stage::new();
    weather(&stage);
    let model = Puppet::new(|_, _| says("ok"));
    let agent = Arc::new(stage.agent(model.clone(), &[]));
    let mut conversation = agent.open("main").unwrap();
    let noted =
        || -> Vec<Value> { stage.lines().into_iter().filter(|line| line["customType"] == "prowess:skills").collect() };
    conversation.say("one", &stage.run()).await.unwrap();
    let first = noted();
    assert_eq!(first.len(), 1, "the first turn takes a snapshot");
    assert_eq!(first[0]["data"]["skills"][0]["name"], "weather");
    assert!(prompts(&model)[0].contains(first[0]["data"]["prompt"].as_str().unwrap()), "and the run has it from there");

    std::fs::remove_dir_all(stage.path("skills")).unwrap();
    conversation.say("two", &stage.run()).await.unwrap();
    assert_eq!((noted().len(), &prompts(&model)[1]), (1, &prompts(&model)[0]), "the disk is not looked at again");

    let kept = stage.store.current();
    weather(&stage);
    assert!(Arc::ptr_eq(&kept, &stage.store.current()), "an equal snapshot does not replace the one that is there");
    conversation.say("three", &stage.run()).await.unwrap();
    assert_eq!((noted().len(), &prompts(&model)[2]), (1, &prompts(&model)[0]), "and is not noted again");

    stage.store.replace(skills(&stage.path("more"), &[("coffee", "")]));
    conversation.say("four", &stage.run()).await.unwrap();
    assert_ne!(noted()[1]["data"]["fingerprint"], first[0]["data"]["fingerprint"]);
    assert!(prompts(&model)[3].contains("<name>coffee</name>") && !prompts(&model)[3].contains("weather"));
}

#[tokio::test]
async fn m_loop_06_skills_reach_a_model_as_text_only() {
    for api in APIS {
        let stage = Stage::new();
        weather(&stage);
        let server = ModelServer::script([Turn::text("ok")]);
        let agent = Arc::new(stage.agent_with(remote(api, &server), vec![Prop::echo("echo")]));
        agent.open("main").unwrap().say("hello", &stage.run()).await.unwrap();
        let request = server.requests().remove(0);
        let texts = naming(&request);
        assert!(texts.len() == 1 && texts[0].contains("<available_skills>"), "{api:?}: {texts:?}");
        assert_eq!(request.body["tools"].as_array().map(Vec::len), Some(1), "{api:?}");
    }
}

#[tokio::test]
async fn m_loop_07_replies_of_all_providers_have_one_shape() {
    let said = Answer {
        text: "Let me look.".to_owned(),
        calls: vec![("call_1".to_owned(), "echo".to_owned(), json!({"n": 1}))],
        ..Answer::default()
    };
    let mut shapes = Vec::new();
    for api in APIS {
        let stage = Stage::new();
        let server = ModelServer::script([Turn::Answer(said.clone()), Turn::text("done")]);
        let agent = Arc::new(stage.agent_with(remote(api, &server), vec![Prop::echo("echo")]));
        agent.open("main").unwrap().say("go", &stage.run()).await.unwrap();
        let replies = stage.lines().into_iter().filter(|line| line["message"]["role"] == "assistant");
        let blocks = replies.flat_map(|line| line["message"]["content"].as_array().expect("a list").clone());
        shapes.push(blocks.map(unmarked).collect::<Vec<_>>());
    }
    let call = json!({"type": "toolCall", "id": "call_1", "name": "echo", "arguments": {"n": 1}});
    let text = |text: &str| json!({"type": "text", "text": text});
    let expected = vec![text("Let me look."), call, text("done")];
    assert_eq!(shapes, [expected.clone(), expected.clone(), expected]);
}

/// A block without the marks that a provider wants back as they are.
fn unmarked(mut block: Value) -> Value {
    let object = block.as_object_mut().expect("a block");
    object.retain(|key, _| !matches!(key.as_str(), "textSignature" | "thoughtSignature"));
    block
}

// M-LOOP-08, M-LOOP-09, M-LOOP-12
#[test]
fn m_loop_08_09_12_what_a_call_is_and_which_result_is_its_own() {
    let block = |kind: &str, id: &Value| json!({"type": kind, "id": id, "name": "echo", "arguments": {}});
    let stored = |content: Value| json!({"role": "assistant", "content": content, "stopReason": "toolUse"});
    let result = |id: &str| json!({"role": "toolResult", "toolCallId": id, "toolName": "echo", "content": id});
    let ids = |content: Value| -> Vec<String> {
        let messages = repair::load(vec![stored(content)], None).messages;
        let calls = messages.iter().filter_map(|message| match message {
            Message::Assistant(said) => Some(said.calls().map(|call| call.id.clone()).collect::<Vec<_>>()),
            Message::User(_) | Message::ToolResult(_) => None,
        });
        calls.flatten().collect()
    };
    for kind in ["toolCall", "toolUse", "functionCall"] {
        assert_eq!(ids(json!([block(kind, &json!("a"))])), ["a"], "{kind}");
        let kept = repair::load(vec![stored(json!([block(kind, &json!("a"))]))], None).messages;
        let kept = serde_json::to_value(&kept[0]).unwrap();
        assert_eq!(kept["content"], json!([block("toolCall", &json!("a"))]), "{kind}");
        for not_an_id in [json!(""), json!(7), Value::Null] {
            assert_eq!(ids(json!([block(kind, &not_an_id)])), [] as [&str; 0], "{kind} {not_an_id}");
        }
    }
    assert_eq!(ids(json!([block("image", &json!("a"))])), [] as [&str; 0]);
    for no_list in [json!("toolCall a"), block("toolCall", &json!("a")), Value::Null] {
        assert_eq!(ids(no_list.clone()), [] as [&str; 0], "{no_list}");
    }

    let both = stored(json!([block("toolCall", &json!("a")), block("toolCall", &json!("b"))]));
    let messages = repair::load(vec![both, result("b"), result("a"), result("of nobody")], None).messages;
    let answered = messages.iter().filter_map(|message| match message {
        Message::ToolResult(reply) => Some((reply.tool_call_id.as_str(), reply.text())),
        Message::User(_) | Message::Assistant(_) => None,
    });
    assert_eq!(answered.collect::<Vec<_>>(), [("a", "a".to_owned()), ("b", "b".to_owned())]);
}

/// A tool that doubles a number, and says for which call.
struct Double(ToolSpec);

fn double() -> Arc<dyn Tool> {
    let parameters = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    Arc::new(Double(ToolSpec { name: "double".to_owned(), description: "Twice as much.".to_owned(), parameters }))
}

impl Tool for Double {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn call<'a>(
        &'a self,
        call: Call<'a>,
        _scope: &'a Scope<'a>,
    ) -> Pin<Box<dyn Future<Output = ToolResult> + Send + 'a>> {
        let twice = call.arguments["n"].as_u64().expect("what the schema says") * 2;
        Box::pin(std::future::ready(ToolResult::done(format!("{}: {twice}", call.id), Value::Null)))
    }
}

// M-LOOP-10, M-LOOP-11, M-LOOP-12, M-LOOP-13, M-LOOP-14
#[tokio::test]
async fn m_loop_10_11_12_13_14_calls_are_answered_by_their_tools_until_there_are_none() {
    let stage = Stage::new();
    let model = Puppet::new(|time, messages| match time {
        1 => calls(&[("a", "double", r#"{"n":2}"#), ("b", "echo", r#"{"n":3}"#)]),
        2 => calls(&[("c", "double", r#"{"m":4}"#)]),
        3 => calls(&[("d", "double", r#"{"n":4}"#)]),
        _ => says(&format!("{}!", heard(messages))),
    });
    let agent = Arc::new(stage.agent_with(model.clone(), vec![double(), Prop::echo("echo")]));
    let mut conversation = agent.open("main").unwrap();
    let outcome = conversation.say("go", &stage.run()).await.unwrap();
    assert_eq!((outcome.text(), model.times()), ("d: 8!", 4), "the last reply has no calls and is the answer");
    let results: Vec<[&str; 2]> =
        outcome.calls.iter().map(|call| [call.tool.as_str(), call.summary.as_str()]).collect();
    let called = [["double", r#"{"n":2}"#], ["echo", r#"{"n":3}"#], ["double", r#"{"m":4}"#], ["double", r#"{"n":4}"#]];
    assert_eq!(results, called);
    let results: Vec<(&str, String, bool)> = conversation
        .messages()
        .iter()
        .filter_map(|message| match message {
            Message::ToolResult(reply) => Some((reply.tool_call_id.as_str(), reply.text(), reply.is_error)),
            Message::User(_) | Message::Assistant(_) => None,
        })
        .collect();
    assert_eq!(results[..2], [("a", "a: 4".to_owned(), false), ("b", r#"{"n":3}"#.to_owned(), false)]);
    assert!(results[2].0 == "c" && results[2].2, "what does not fit the schema does not reach the tool: {results:?}");
    assert_eq!(results[3], ("d", "d: 8".to_owned(), false));
}

#[tokio::test]
async fn m_loop_16_sub_agents_get_a_minimal_prompt() {
    let stage = Stage::new();
    weather(&stage);
    std::fs::write(stage.path("ws/HEARTBEAT.md"), "Look at the oven.").unwrap();
    let model = Puppet::new(|_, _| says("ok"));
    let agent = Arc::new(stage.agent(model.clone(), &[Prop::echo("echo")]));
    for name in ["main", "subagent:42"] {
        agent.open(name).unwrap().say("hello", &stage.run()).await.unwrap();
    }
    let has = |text: &str| prompts(&model).iter().map(|prompt| prompt.contains(text)).collect::<Vec<_>>();
    assert_eq!(has("<available_skills>"), [true, false]);
    assert_eq!(has("Look at the oven."), [true, false]);
    assert_eq!(has("- echo: A prop."), [true, true]);
}

// M-LOOP-17, M-LOOP-18
#[tokio::test]
async fn m_loop_17_18_20_hooks_hear_of_events_and_replace_starter_files_but_not_skills() {
    let stage = Stage::new();
    weather(&stage);
    std::fs::write(stage.path("ws/SOUL.md"), "Speak like a sailor.").unwrap();
    let replace = |files: Vec<BootstrapFile>| -> Vec<BootstrapFile> {
        let text = |file: &BootstrapFile| file.text.as_ref().map(|_| "Speak like a poet.".to_owned());
        files.into_iter().map(|file| BootstrapFile { text: text(&file), ..file }).collect()
    };
    let prompt = PromptSettings { on_files: Some(Arc::new(replace)), ..PromptSettings::default() };
    let model = Puppet::new(|_, _| says("ok"));
    let agent = Arc::new(stage.agent(model.clone(), &[]).prompt(prompt));
    // A listener that answers the start of a session with other skills.
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (heard, store, folder) = (Arc::clone(&seen), stage.store.clone(), stage.path("late"));
    let run = Run::new(Events::to(move |event| match event {
        Event::Started => {
            store.replace(skills(&folder, &[("late", "")]));
            heard.lock().unwrap().push("start".to_owned());
        }
        Event::SkillUsed { skill, how, .. } => heard.lock().unwrap().push(format!("{skill} {how:?}")),
        Event::Ended(end) => heard.lock().unwrap().push(format!("{end:?}")),
        _ => {}
    }));
    let mut conversation = agent.open("main").unwrap();
    conversation.say("/weather", &run).await.unwrap();
    assert_eq!(*seen.lock().unwrap(), ["start", "weather Called", "Answered"], "the command, and all around it");
    assert!(prompts(&model)[0].contains("Speak like a poet.") && !prompts(&model)[0].contains("sailor"));
    assert!(prompts(&model)[0].contains("<name>weather</name>") && !prompts(&model)[0].contains("<name>late</name>"));
    conversation.say("again", &stage.run()).await.unwrap();
    assert!(prompts(&model)[1].contains("<name>late</name>"), "in the next turn");
}

#[tokio::test]
async fn m_snap_10_a_run_has_the_prompt_of_its_snapshot_or_none() {
    let stage = Stage::new();
    let model = Puppet::new(|_, _| says("ok"));
    let agent = Arc::new(stage.agent(model.clone(), &[]));
    let hidden = "disable-model-invocation: true";
    let turns: [&[(&str, &str)]; 3] = [&[("tea", "")], &[("tea", hidden)], &[]];
    for (turn, list) in turns.into_iter().enumerate() {
        stage.store.replace(skills(&stage.path(&format!("skills{turn}")), list));
        agent.open("main").unwrap().say("hello", &stage.run()).await.unwrap();
    }
    // Emptied by a filter, although there is a skill that could be shown.
    let filters = Filters { agent: Filter::only(["coffee"]), ..Filters::default() };
    stage.store.replace(filtered_skills(&stage.path("skills3"), &[("tea", "")], &filters));
    agent.open("main").unwrap().say("hello", &stage.run()).await.unwrap();
    let sections: Vec<bool> = prompts(&model).iter().map(|prompt| prompt.contains("## Skills")).collect();
    assert_eq!(sections, [true, false, false, false]);
    assert!(!prompts(&model)[3].contains("tea"));
}

#[tokio::test]
async fn m_cmd_15_a_dispatched_command_never_involves_the_model() {
    let stage = Stage::new();
    let dispatch = "command-dispatch: tool\ncommand-tool: echo\ncommand-arg-mode: raw";
    stage.store.replace(skills(&stage.path("skills"), &[("shout", dispatch)]));
    let model = Puppet::new(|_, _| vec![Ok(Delta::Text { block: 0, text: "never".to_owned() })]);
    let echo = Prop::echo("echo");
    let agent = Arc::new(stage.agent(model.clone(), &[Arc::clone(&echo)]));
    let outcome = agent.open("main").unwrap().say("/shout a  'b' $c", &stage.run()).await.unwrap();
    let given = json!({"command": "a  'b' $c", "commandName": "shout", "skillName": "shout"});
    assert_eq!((model.times(), outcome.text()), (0, given.to_string().as_str()));
}

#[tokio::test]
async fn m_cmd_16_m_loop_01_a_command_asks_the_model_for_the_skill_with_what_was_said() {
    let stage = Stage::new();
    weather(&stage);
    let model = Puppet::new(|_, _| says("ok"));
    let agent = Arc::new(stage.agent(model.clone(), &[]));
    let outcome = agent.open("main").unwrap().say("/weather Shanghai tomorrow", &stage.run()).await.unwrap();
    let asked = heard(&model.last());
    for part in ["\"weather\"", "~/skills/weather/SKILL.md", "Shanghai tomorrow"] {
        assert!(asked.contains(part), "{asked}");
    }
    assert_eq!(outcome.uses[0].how, How::Called);
    let Some(Message::User(user)) = model.last().pop() else { panic!("a message of the person") };
    assert!(matches!(user.content[..], [Block::Text { .. }]));
}

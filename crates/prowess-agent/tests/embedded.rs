//! The embedded planner: does it pick, read, show and run what the skills say, and say what it is?

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::StreamExt;
use proptest::prelude::*;
use prowess_agent::embedded::{Act, Embedded, Forecast, Foreseen};
use prowess_agent::message::{Assistant, Block, Message, StopReason, ToolReply, User};
use prowess_agent::model::{Delta, Draft, Model, Request, Thinking};
use prowess_agent::skills::{SkillSet, SkillStore};
use prowess_agent::tool::ToolSpec;
use prowess_exec::SkillShare;
use prowess_skills::{
    Budget, Catalog, Filters, Gate, Limits, Machine, Places, RESERVED, Reach, SkillsConfig, Snapshot, World, commands,
};
use prowess_testkit::Tree;
use serde_json::{Value, json};

/// The skills in `dir`, on a machine with these programs.
fn store(dir: &Path, bins: &[&str]) -> SkillStore {
    let places = Places { extra: vec![dir.to_owned()], ..Places::default() };
    let catalog = Catalog::load(&places.roots(), &Reach::default());
    let machine = Machine { os: "linux".into(), bins: bins.iter().map(|&bin| bin.to_owned()).collect() };
    let world = World { machines: vec![machine], ..World::default() };
    let (config, filters) = (SkillsConfig::default(), Filters::default());
    let gate = Gate { world: &world, config: &config, filters: &filters };
    let snapshot = Snapshot::take(&catalog, &gate, None, &Budget::from(&Limits::default()));
    let commands = commands(snapshot.skills().iter().map(AsRef::as_ref), RESERVED);
    SkillStore::new(SkillSet::new(snapshot, commands, Arc::new(|_| Ok(SkillShare::default()))))
}

fn bundled() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../skills").canonicalize().expect("the bundled skills")
}

fn all_bundled() -> SkillStore {
    store(&bundled(), &["curl", "gh", "jq", "rg", "tmux"])
}

fn tools(names: &[&str]) -> Vec<ToolSpec> {
    let spec = |name: &&str| ToolSpec { name: (*name).to_owned(), description: String::new(), parameters: json!({}) };
    names.iter().map(spec).collect()
}

/// A turn, with a reader that really reads and a runner that answers as it is told.
struct Talk {
    store: SkillStore,
    act: Act,
    tools: Vec<ToolSpec>,
    exec: fn(&str) -> (String, bool, Value),
}

impl Talk {
    fn new(store: SkillStore, act: Act) -> Self {
        let exec = |_: &str| ("ran it".to_owned(), false, json!({"status": "completed", "exitCode": 0}));
        Self { store, act, tools: tools(&["read", "exec"]), exec }
    }

    fn say(&self, text: &str) -> Vec<Message> {
        self.with(&Embedded::new(self.store.clone(), self.act), text)
    }

    fn with(&self, model: &Embedded, text: &str) -> Vec<Message> {
        let mut messages = vec![Message::User(User { content: vec![Block::text(text)], timestamp: 0 })];
        let system = self.store.current().snapshot.prompt().text.clone();
        for _ in 0..6 {
            let reply = ask(model, &system, &messages, &self.tools);
            let calls: Vec<_> = reply.calls().cloned().collect();
            messages.push(Message::Assistant(reply));
            if calls.is_empty() {
                return messages;
            }
            for call in calls {
                let (text, is_error, details) = match call.name.as_str() {
                    "read" => match std::fs::read_to_string(call.arguments["path"].as_str().expect("a path")) {
                        Ok(text) => (text, false, Value::Null),
                        Err(error) => (error.to_string(), true, Value::Null),
                    },
                    _ => (self.exec)(call.arguments["command"].as_str().expect("a command")),
                };
                messages.push(Message::ToolResult(ToolReply {
                    tool_call_id: call.id,
                    tool_name: call.name,
                    content: vec![Block::text(text)],
                    details: Some(details),
                    is_error,
                    timestamp: 0,
                }));
            }
        }
        panic!("the turn does not end: {messages:?}");
    }
}

fn deltas(model: &Embedded, system: &str, messages: &[Message], tools: &[ToolSpec]) -> Vec<Delta> {
    let request = Request { system, messages, tools, max_tokens: None, thinking: Thinking::Off, session: "s" };
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(model.stream(request).map(|delta| delta.expect("no error")).collect())
}

fn ask(model: &Embedded, system: &str, messages: &[Message], tools: &[ToolSpec]) -> Assistant {
    let mut draft = Draft::new(model.about());
    for delta in deltas(model, system, messages, tools) {
        draft.apply(&delta);
    }
    draft.finish().message
}

/// What was called, in order: the tool and its argument.
fn called(messages: &[Message]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for message in messages {
        if let Message::Assistant(assistant) = message {
            found.extend(assistant.calls().map(|call| {
                let argument = call.arguments.values().next().and_then(Value::as_str).unwrap_or_default();
                (call.name.clone(), argument.to_owned())
            }));
        }
    }
    found
}

fn last(messages: &[Message]) -> String {
    match messages.last() {
        Some(Message::Assistant(assistant)) => assistant.text(),
        other => panic!("no answer: {other:?}"),
    }
}

fn picked(messages: &[Message]) -> Option<String> {
    let (tool, path) = called(messages).first()?.clone();
    assert_eq!(tool, "read");
    Some(Path::new(&path).parent()?.file_name()?.to_string_lossy().into_owned())
}

#[test]
fn the_bundled_skills_are_picked_by_what_they_are_for() {
    let talk = Talk::new(all_bundled(), Act::Show);
    for (request, skill) in [
        ("check the weather in Shanghai", Some("weather")),
        ("What's the temperature in Porto right now?", Some("weather")),
        ("will it rain in Berlin tomorrow", Some("weather")),
        ("do I need an umbrella tomorrow in Porto?", Some("weather")),
        ("上海天气怎么样", Some("weather")),
        ("list the open pull requests of cli/cli", Some("github")),
        ("why did the CI check fail on my pull request", Some("github")),
        ("create a GitHub issue about the login", Some("github")),
        ("start a tmux session with a python REPL", Some("tmux")),
        ("audit and harden this server", Some("healthcheck")),
        ("is the firewall on, and is the disk encrypted?", Some("healthcheck")),
        ("what did we decide in the session last week? search the transcripts", Some("session-logs")),
        ("make a new skill for our deploy", Some("skill-creator")),
        ("Use the \"tmux\" skill for this request.\n\nUser input:\nthe weather", Some("tmux")),
        ("/weather Shanghai", Some("weather")),
        ("/skill session-logs what failed", Some("session-logs")),
        ("look at this with $github please", Some("github")),
        ("hello", None),
        ("what is 2+2", None),
        ("thanks, that was perfect!", None),
        ("write a poem about the sea", None),
        ("你好", None),
        ("Guten Morgen, wie geht es dir?", None),
        ("", None),
    ] {
        assert_eq!(picked(&talk.say(request)).as_deref(), skill, "{request}");
    }
}

#[test]
fn the_weather_in_shanghai_is_shown() {
    let messages = Talk::new(all_bundled(), Act::Show).say("check the weather in Shanghai");
    let file = bundled().join("weather/SKILL.md").to_string_lossy().into_owned();
    assert_eq!(called(&messages), [("read".to_owned(), file)]);
    let Message::Assistant(first) = &messages[1] else { panic!("an answer") };
    assert_eq!(first.text(), "The skill \"weather\" fits: \"weather\" in its name or description.");
    assert_eq!(first.stop_reason, StopReason::ToolUse);
    let answer = last(&messages);
    for part in [
        "section \"Quick answer: wttr.in\"",
        "```bash\ncurl -fsS --max-time 15 'https://wttr.in/Shanghai?m&format=",
        "replaced `Porto,Portugal` with `Shanghai`",
        "Nothing was run. With `--act`",
        "not a language model",
    ] {
        assert!(answer.contains(part), "{part} is not in:\n{answer}");
    }
}

#[test]
fn a_request_in_chinese_says_where() {
    let messages = Talk::new(all_bundled(), Act::Run).say("上海天气怎么样");
    let (tool, command) = called(&messages).pop().expect("a command");
    assert_eq!(tool, "exec", "{}", last(&messages));
    assert!(command.contains("wttr.in/%E4%B8%8A%E6%B5%B7?"), "{command}");
}

#[test]
fn it_says_in_one_line_and_once_what_it_is() {
    let talk = Talk::new(all_bundled(), Act::Show);
    let mut messages = talk.say("hello");
    let first = last(&messages);
    let line = first.lines().find(|line| line.contains("not a language model")).expect("it says so");
    assert!(line.len() <= 100 && first.ends_with(line), "{first}");
    messages.push(Message::User(User { content: vec![Block::text("hello again")], timestamp: 0 }));
    let system = talk.store.current().snapshot.prompt().text.clone();
    let again = ask(&Embedded::new(talk.store.clone(), talk.act), &system, &messages, &talk.tools);
    assert!(!again.text().is_empty() && !again.text().contains("not a language model"), "{}", again.text());
}

#[test]
fn what_must_not_be_done_is_never_the_answer_and_blanks_are_never_run() {
    let tree = prowess_testkit::Tree::new().file(
        "skills/lark/SKILL.md",
        "---\nname: lark\ndescription: Send and reply to Lark messages.\n---\n# Lark\n\n## MUST NOT DO\n\n\
         Never reply to a Lark message twice.\n\n```bash\nlark reply --all\n```\n\n## Reply\n\n\
         ```bash\nlark reply om_xxx\n```\n",
    );
    let talk = Talk::new(store(&tree.path("skills"), &[]), Act::Run);
    let messages = talk.say("reply to the lark message");
    let answer = last(&messages);
    assert!(called(&messages).iter().all(|(tool, _)| tool != "exec"), "{answer}");
    assert!(answer.contains("does not say what to use for `om_xxx`") && !answer.contains("twice"), "{answer}");
}

#[test]
fn it_is_run_when_it_may() {
    let talk = Talk::new(all_bundled(), Act::Run);
    let messages = talk.say("check the weather in Shanghai");
    let calls = called(&messages);
    assert_eq!(calls.len(), 2);
    assert_eq!(calls[1].0, "exec");
    assert!(calls[1].1.starts_with("curl ") && calls[1].1.contains("wttr.in/Shanghai?"), "{}", calls[1].1);
    assert!(last(&messages).contains("Ran:\n\n```bash\ncurl") && last(&messages).contains("```text\nran it\n```"));
    // The same by its slash command, as it is typed and as it reaches a model.
    for request in [
        "/weather Shanghai",
        "Use the \"weather\" skill for this request.\n\nUser input:\nShanghai",
        "The user calls a skill. Read it first:\n- \"weather\" at ~/weather/SKILL.md\n\nUser request:\n/weather Shanghai",
        "Use these skills:\n- weather\n\nUser request:\nwith $weather, look at the sky in Shanghai",
    ] {
        assert_eq!(called(&talk.say(request)), calls, "{request}");
    }
}

#[test]
fn an_example_is_never_run_for_what_was_asked() {
    let messages = Talk::new(all_bundled(), Act::Run).say("how is the weather");
    assert_eq!(called(&messages).len(), 1);
    assert!(last(&messages).contains("does not say what to use for `Porto,Portugal`"), "{}", last(&messages));
}

#[test]
fn a_refusal_says_what_would_allow_it() {
    let refused = |_: &str| {
        ("exec denied: the rules do not allow it\ncurl: no rule".to_owned(), true, json!({"status": "error"}))
    };
    let messages = Talk { exec: refused, ..Talk::new(all_bundled(), Act::Run) }.say("weather in Shanghai");
    let answer = last(&messages);
    assert!(
        answer.contains("was refused and did not run") && answer.contains("prowess approvals allow curl"),
        "{answer}"
    );
    let no = |_: &str| ("exec denied: the user said no.".to_owned(), true, json!({"status": "error"}));
    let answer = last(&Talk { exec: no, ..Talk::new(all_bundled(), Act::Run) }.say("weather in Shanghai"));
    assert!(answer.starts_with("You refused the command, so it did not run:") && !answer.contains("allow"), "{answer}");
    let by_list = |_: &str| {
        ("exec denied: it needs approval, and nobody answered.".to_owned(), true, json!({"rule": "allowed-tools"}))
    };
    let messages = Talk { exec: by_list, ..Talk::new(all_bundled(), Act::Run) }.say("weather in Shanghai");
    let answer = last(&messages);
    assert!(answer.contains("was refused and did not run") && !answer.contains("approvals allow"), "{answer}");
    let pending = |_: &str| {
        let details = json!({"status": "approval-pending", "approvalSlug": "0a1b2c3d"});
        ("The command waits for a person. Do not run it again.".to_owned(), false, details)
    };
    let messages = Talk { exec: pending, ..Talk::new(all_bundled(), Act::Run) }.say("weather in Shanghai");
    let answer = last(&messages);
    let is_for_people =
        answer.contains("prowess approvals resolve 0a1b2c3d") && !answer.contains("Do not run it again");
    assert!(answer.contains("is waiting for your approval") && is_for_people, "{answer}");
}

#[test]
fn what_is_missing_is_said() {
    let without = Talk::new(store(&bundled(), &[]), Act::Show).say("check the weather in Shanghai");
    assert_eq!(called(&without), []);
    assert!(last(&without).contains("programs not found: curl"), "{}", last(&without));
    let no_exec = Talk { tools: tools(&["read"]), ..Talk::new(all_bundled(), Act::Run) }.say("weather in Shanghai");
    assert_eq!(called(&no_exec).len(), 1);
    assert!(last(&no_exec).contains("no `exec` tool"));
    let no_read = Talk { tools: tools(&["exec"]), ..Talk::new(all_bundled(), Act::Run) }.say("weather in Shanghai");
    assert_eq!(called(&no_read), []);
    assert!(last(&no_read).contains("no `read` tool"));
    let nothing = Talk::new(all_bundled(), Act::Show).say("tell me about the history of the open seas");
    assert!(last(&nothing).starts_with("No skill fits this request."), "{}", last(&nothing));
    assert!(last(&nothing).contains("Ready here: github, healthcheck, "), "{}", last(&nothing));
    let empty = Talk::new(SkillStore::new(SkillSet::default()), Act::Show).say("hello");
    assert!(last(&empty).contains("No skill is ready here"), "{}", last(&empty));
}

#[test]
fn it_follows_the_skill_into_its_sections() {
    let talk = Talk::new(all_bundled(), Act::Run);
    for (request, command) in [
        ("show me the diff of pull request 123 in cli/cli on GitHub", "gh pr diff 123 -R cli/cli"),
        ("read issue 7 of cli/cli on github", "gh issue view 7 -R cli/cli"),
    ] {
        let calls = called(&talk.say(request));
        assert!(calls.len() == 2 && calls[1].1.starts_with(command), "{request}: {calls:?}");
    }
}

#[test]
fn a_path_is_not_shown_as_a_command() {
    let answer = last(&Talk::new(all_bundled(), Act::Show).say("where do skills go? make a new skill"));
    assert!(!answer.contains("```bash\n~/"), "{answer}");
}

#[cfg(target_os = "linux")]
#[test]
fn what_is_short_and_for_this_system_comes_first() {
    let body = "---\nname: look\ndescription: Look at the machine.\n---\n## Look\n```bash\n\
                # version of the machine\nsw_vers\n# version of the machine\nfor a in 1 2 3; do\n  uname -r $a\ndone\n\
                # version of the machine\nuname -r\n```\n### macOS\n```bash\n# machine version\nversion machine\n```\n";
    let tree = Tree::new().file("skills/look/SKILL.md", body);
    let answer = last(&Talk::new(store(&tree.path("skills"), &[]), Act::Show).say("look: version of the machine"));
    let places = ["```bash\nuname -r\n", "for a in", "sw_vers"]
        .map(|text| answer.find(text).unwrap_or_else(|| panic!("{answer}")));
    assert!(places.is_sorted(), "{answer}");
}

#[test]
fn of_commands_that_fit_one_that_may_run_is_run() {
    let body = "---\nname: look\ndescription: Look at the machine.\n---\n## Look\n```bash\n\
                # space of the machine\ndf -h; systemctl --failed; free -h\n# space of the machine\ndu -s .\n```\n";
    let tree = Tree::new().file("skills/look/SKILL.md", body);
    let talk = Talk::new(store(&tree.path("skills"), &[]), Act::Run);
    let run = |allowed: &'static [&'static str]| {
        let forecast =
            Forecast::new(|text, _| if allowed.contains(&text) { Foreseen::Runs } else { Foreseen::Asks(Vec::new()) });
        let model = Embedded::new(talk.store.clone(), Act::Run).preferring(forecast);
        called(&talk.with(&model, "look: space of the machine"))[1].1.clone()
    };
    assert_eq!(run(&[]), "df -h; systemctl --failed; free -h", "a person is asked about the best one");
    assert_eq!(run(&["du -s ."]), "du -s .");
    assert_eq!(run(&["df -h", "du -s ."]), "df -h");
    assert_eq!(run(&["free -h", "df -h; systemctl --failed; free -h"]), "df -h; systemctl --failed; free -h");
}

#[test]
fn what_is_shown_is_what_is_run() {
    let body = "---\nname: look\ndescription: Look at the machine.\n---\n## Look\n```bash\n\
                # space of the machine\ndf -h; systemctl --failed; free -h\n# space of the machine\ndu -s .\n```\n";
    let tree = Tree::new().file("skills/look/SKILL.md", body);
    let talk = Talk::new(store(&tree.path("skills"), &[]), Act::Run);
    for allowed in [&[] as &[&str], &["du -s ."], &["df -h", "du -s ."]] {
        let say = |act: Act| {
            let foresee = |text: &str, _: Option<&prowess_skills::Skill>| {
                if allowed.contains(&text) { Foreseen::Runs } else { Foreseen::Asks(Vec::new()) }
            };
            talk.with(
                &Embedded::new(talk.store.clone(), act).preferring(Forecast::new(foresee)),
                "look: space of the machine",
            )
        };
        let ran = called(&say(Act::Run))[1].1.clone();
        let shown = last(&say(Act::Show));
        assert!(shown.contains(&format!("```bash\n{ran}\n")), "{allowed:?}: {ran}\n{shown}");
    }
}

#[test]
fn what_the_sandbox_hides_is_left_to_the_person() {
    let body = "---\nname: look\ndescription: Look at the machine.\n---\n## Look\n```bash\n\
                # open ports of the machine\nss -tln\n# space of the machine\ndu -s .\n```\n";
    let tree = Tree::new().file("skills/look/SKILL.md", body);
    let talk = Talk::new(store(&tree.path("skills"), &[]), Act::Run);
    for act in [Act::Run, Act::Show] {
        let foresee = |text: &str, skill: Option<&prowess_skills::Skill>| {
            assert_eq!(skill.map(|skill| skill.name.as_str()), Some("look"));
            if text.starts_with("ss") {
                Foreseen::Blind("`ss` sees another network".to_owned())
            } else {
                Foreseen::Runs
            }
        };
        let model = Embedded::new(talk.store.clone(), act).preferring(Forecast::new(foresee));
        let messages = talk.with(&model, "look: open ports of the machine");
        assert_eq!(called(&messages).len(), 1, "only the skill is read");
        let answer = last(&messages);
        assert!(answer.contains("```bash\nss -tln\n") && answer.contains("in your own terminal"), "{answer}");
    }
}

#[test]
fn what_is_not_installed_gives_way_to_what_is() {
    let body = "---\nname: look\ndescription: Look at the machine.\n---\n## Look\n```bash\n\
                # updates of the machine\ndnf check-update\napt list\n```\n";
    let tree = Tree::new().file("skills/look/SKILL.md", body);
    let talk = Talk::new(store(&tree.path("skills"), &[]), Act::Run);
    let say = |installed: &'static [&'static str]| {
        let forecast = Forecast::new(|text, _| {
            let program = text.split(' ').next().unwrap_or_default();
            if installed.contains(&program) { Foreseen::Runs } else { Foreseen::Missing(program.to_owned()) }
        });
        talk.with(&Embedded::new(talk.store.clone(), Act::Run).preferring(forecast), "look: updates of the machine")
    };
    assert_eq!(called(&say(&["dnf", "apt"]))[1].1, "dnf check-update");
    assert_eq!(called(&say(&["apt"]))[1].1, "apt list");
    let answer = last(&say(&[]));
    assert!(answer.contains("`dnf` is not installed here"), "{answer}");
}

#[test]
fn a_misspelt_request_is_given_back_corrected() {
    let answer = last(&Talk::new(all_bundled(), Act::Show).say("wether in Lisbon"));
    assert!(answer.contains("`prowess run 'weather in Lisbon'`"), "{answer}");
}

#[test]
fn variables_that_a_command_needs_come_with_it() {
    let body = "---\nname: notes\ndescription: Search my notes.\n---\n## Where\n```bash\nROOT=$HOME\nDIR=\"$ROOT/notes\"\n\
                OTHER=1\n```\n## Search notes\n```bash\ngrep -r todo \"$DIR\"\n```\n";
    let tree = Tree::new().file("skills/notes/SKILL.md", body);
    let calls = called(&Talk::new(store(&tree.path("skills"), &[]), Act::Run).say("search my notes"));
    assert_eq!(calls[1].1, "ROOT=$HOME\nDIR=\"$ROOT/notes\"\ngrep -r todo \"$DIR\"");
}

#[test]
fn the_location_is_the_one_the_prompt_shows() {
    let tree = Tree::new().plant("home/skills/kites: Fly kites. Use when the user asks about kites.");
    let store = store(&tree.path("home/skills"), &[]);
    let home = tree.path("home");
    let model = Embedded::new(store, Act::Show).at_home(&home);
    let messages = [Message::User(User { content: vec![Block::text("fly kites")], timestamp: 0 })];
    let path = |system: &str| {
        let reply = ask(&model, system, &messages, &tools(&["read"]));
        reply.calls().next().and_then(|call| call.arguments["path"].as_str().map(str::to_owned))
    };
    assert_eq!(path("… ~/skills/kites/SKILL.md …").as_deref(), Some("~/skills/kites/SKILL.md"));
    assert_eq!(path(""), Some(home.join("skills/kites/SKILL.md").to_string_lossy().into_owned()));
}

#[test]
fn hidden_skills_are_used_only_when_they_are_named() {
    let tree = Tree::new().skill("s/secret-kites", "Fly kites.", "disable-model-invocation: true");
    let talk = Talk::new(store(&tree.path("s"), &[]), Act::Show);
    assert_eq!(picked(&talk.say("fly kites")), None);
    assert_eq!(picked(&talk.say("/secret_kites high")).as_deref(), Some("secret-kites"));
}

#[test]
fn a_summary_is_a_digest() {
    let mut messages = Talk::new(all_bundled(), Act::Show).say("check the weather in Shanghai");
    messages.push(Message::User(User { content: vec![Block::text("Summarize the conversation.")], timestamp: 0 }));
    let model = Embedded::new(all_bundled(), Act::Show);
    let digest = ask(&model, "", &messages, &[]).text();
    assert!(digest.contains("- asked: check the weather in Shanghai") && digest.contains("- called read"), "{digest}");
    let long = format!("Summarize this.\n{}\nthe end", "é".repeat(100_000));
    let messages = [Message::User(User { content: vec![Block::text(long)], timestamp: 0 })];
    let digest = ask(&model, "", &messages, &[]).text();
    assert!(digest.len() < 8_000 && digest.ends_with("the end"));
}

#[test]
fn tokens_are_counted_and_text_comes_in_words() {
    let model = Embedded::new(all_bundled(), Act::Show);
    let messages = [Message::User(User { content: vec![Block::text("hello there")], timestamp: 0 })];
    let deltas = deltas(&model, "12345678", &messages, &[]);
    let texts = deltas.iter().filter(|delta| matches!(delta, Delta::Text { .. })).count();
    assert!(texts > 10, "{texts}");
    let reply = ask(&model, "12345678", &messages, &[]);
    assert_eq!(
        (reply.usage.input, reply.usage.output),
        (2 + 3, u64::try_from(reply.text().len().div_ceil(4)).unwrap_or(0))
    );
    let request = Request {
        system: "",
        messages: &messages,
        tools: &[],
        max_tokens: Some(8),
        thinking: Thinking::Off,
        session: "s",
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let short: Vec<_> = runtime.block_on(model.stream(request).collect());
    assert!(short.contains(&Ok(Delta::Stop(StopReason::Length))));
}

#[test]
fn hostile_skills_stay_within_bounds() {
    let head = "---\nname: trap\ndescription: Traps. Use when the user asks about traps.\n---\n";
    let bodies = [
        String::new(),
        "```bash\necho never closed".to_owned(),
        "```bash\necho a\n```\n".repeat(10_000),
        format!("# x\n```bash\n{}\n```\n", "echo 'open\n".repeat(5_000)),
        format!("# x\n```bash\ncurl {}\n```\n", "<city>".repeat(2_000)),
        format!("# x\n```bash\n{}\n```\n", "(".repeat(5_000)),
        "# a\n\n".repeat(20_000),
        format!("{}\u{0}\u{1b}[31m\n```sh\nrm \u{202e}x\n```\n", "> ".repeat(3_000)),
        "x".repeat(1_000_000),
        "`".repeat(100_000),
    ];
    for (number, body) in bodies.iter().enumerate() {
        let tree = Tree::new().file("s/trap/SKILL.md", head);
        let talk = Talk::new(store(&tree.path("s"), &[]), Act::Run);
        std::fs::write(tree.path("s/trap/SKILL.md"), format!("{head}{body}")).expect("a file");
        let messages = talk.say("show me traps in Paris");
        assert_eq!(picked(&messages).as_deref(), Some("trap"), "{number}");
        assert!(last(&messages).len() < 64 * 1024, "{number}");
    }
}

#[test]
fn a_skill_that_cannot_be_read_is_said() {
    let tree = Tree::new().plant("s/kites: Fly kites.");
    let talk = Talk::new(store(&tree.path("s"), &[]), Act::Run);
    std::fs::remove_file(tree.path("s/kites/SKILL.md")).expect("a file");
    let messages = talk.say("fly kites");
    assert_eq!(called(&messages).len(), 1);
    assert!(last(&messages).contains("could not be read"), "{}", last(&messages));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn laws(request in "(weather|github|pull request|tmux|session|上海|Köln|/weather|\\$tmux|in Paris|#12|<x>|`|\"| |\n|[a-zé'$(;|]{1,6}){0,12}") {
        let store = all_bundled();
        for act in [Act::Show, Act::Run] {
            let talk = Talk::new(store.clone(), act);
            let messages = talk.say(&request);
            let calls = called(&messages);
            prop_assert!(calls.iter().filter(|(tool, _)| tool == "read").count() <= 1);
            let ran = calls.iter().filter(|(tool, _)| tool == "exec").count();
            prop_assert!(ran <= usize::from(act == Act::Run));
            prop_assert!(last(&messages).contains("not a language model"));
            prop_assert_eq!(called(&talk.say(&request)), calls);
        }
    }
}

//! A gateway elsewhere, asked from the command line: it says what a real one was recorded to say.

use crate::desk;
use crate::stage;
use desk::{CTRL_C, CTRL_D, Desk, ENTER};
use prowess_testkit::{Prowess, eventually};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use stage::{Act, Stage, TOKEN};

fn prowess() -> Prowess {
    Prowess::new(env!("CARGO_BIN_EXE_prowess")).env("OPENCLAW_GATEWAY_TOKEN", TOKEN)
}

fn golden() -> Value {
    serde_json::from_str(include_str!("golden/remote.o3.json")).expect("golden facts")
}

/// What a recorded run does, under the name that it is asked for.
fn recorded(params: &Value) -> Vec<Act> {
    let frames = golden()["run"].as_array().expect("frames").clone();
    let run = params["idempotencyKey"].clone();
    frames.into_iter().filter_map(|frame| act(frame, &run)).collect()
}

fn act(mut frame: Value, run: &Value) -> Option<Act> {
    frame["payload"]["runId"] = run.clone();
    let payload = frame["payload"].clone();
    match (frame["type"].as_str()?, frame["event"].as_str()) {
        ("res", _) => Some(Act::Answer(payload)),
        (_, Some("agent")) => Some(Act::Tell("agent", payload)),
        (_, Some("chat")) => Some(Act::Tell("chat", payload)),
        _ => None,
    }
}

fn nothing(method: &str) -> Vec<Act> {
    match method {
        "skills.status" => vec![Act::Answer(json!({"skills": []}))],
        "status" => vec![Act::Answer(json!({"sessions": {"defaults": {"model": "m"}}}))],
        _ => vec![Act::Refuse("unknown method: nothing")],
    }
}

#[test]
fn a_run_elsewhere_is_shown_like_one_here() {
    let stage = Stage::play(|method, params| if method == "agent" { recorded(params) } else { nothing(method) });
    let home = prowess();
    let told = home.run(&format!("run --session main --gateway {} 'please run it'", stage.url)).ok();
    let text = told.stdout().replace('\n', " ");
    assert!(text.starts_with("Let me run it. ") && text.contains("All done: out"), "{told}");
    assert!(told.stderr().contains("echo out; echo err"), "{told}");
    let asked = stage.asked("agent");
    assert_eq!((&asked[0]["message"], &asked[0]["sessionKey"]), (&json!("please run it"), &json!("agent:main:main")));
    assert_eq!(asked[0]["idempotencyKey"].as_str().map(str::len), Some(36));
}

#[test]
fn a_program_gets_the_result_or_each_event() {
    let stage = Stage::play(|method, params| if method == "agent" { recorded(params) } else { nothing(method) });
    let home = prowess();
    let result = home.run(&format!("run --gateway {} --json hi", stage.url)).ok().json();
    assert_eq!((&result["status"], &result["summary"]), (&json!("ok"), &json!("completed")), "{result}");
    assert_eq!(result["result"]["payloads"].as_array().map(Vec::len), Some(2));
    let lines = home.run(&format!("run --gateway {} --events hi", stage.url)).ok();
    let events: Vec<Value> = lines.stdout().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!((events.len(), &events[0]["stream"]), (10, &json!("lifecycle")), "{lines}");
}

#[test]
fn a_run_that_is_refused_fails_with_the_reason() {
    let stage = Stage::play(|method, _| match method {
        "agent" => vec![Act::Refuse("unknown agent id \"nobody\"")],
        other => nothing(other),
    });
    let home = prowess();
    home.run(&format!("run --gateway {} hi", stage.url)).code(1).err_has("unknown agent id");
    home.run(&format!("run --gateway {} --token wrong hi", stage.url)).code(1).err_has("refused the connection");
}

#[test]
fn a_run_goes_on_when_the_gateway_comes_back() {
    let mut attempts = 0;
    let stage = Stage::play(move |method, params| {
        if method != "agent" {
            return nothing(method);
        }
        attempts += 1;
        let mut acts = recorded(params);
        if attempts == 1 {
            acts.truncate(4);
            acts.push(Act::HangUp);
        }
        acts
    });
    let told = prowess().run(&format!("run --gateway {} hi", stage.url)).ok().err_has("reconnecting");
    assert_eq!(told.stdout().matches("All done: out").count(), 1, "{told}");
    assert_eq!(told.stdout().matches("Let me run it.").count(), 1, "{told}");
    let asked = stage.asked("agent");
    assert_eq!((asked.len(), &asked[0]["idempotencyKey"]), (2, &asked[1]["idempotencyKey"]));
}

#[test]
fn who_wishes_so_stops_a_run_elsewhere() {
    let stage = Stage::play(|method, params| match method {
        "agent" => {
            let mut acts = recorded(params);
            acts.truncate(3);
            acts
        }
        "chat.abort" => {
            let run = params["runId"].clone();
            // The answer to the run itself would come under its own id; its end is told as an event all the same.
            vec![Act::Answer(json!({"ok": true, "aborted": true, "runIds": [run]})), Act::HangUp]
        }
        other => nothing(other),
    });
    let home = prowess();
    let running = home.start(&format!("run --session main --gateway {} --events hi", stage.url));
    eventually("it has begun", || running.stdout().contains("lifecycle"));
    let pid = i32::try_from(running.id()).ok().and_then(Pid::from_raw).expect("a process");
    kill_process(pid, Signal::INT).expect("it is ours");
    let _ = running.wait().code(130);
    let aborted = stage.asked("chat.abort");
    assert_eq!((aborted.len(), &aborted[0]["sessionKey"]), (1, &json!("agent:main:main")));
}

/// A run that asks about a command, and goes on when it has an answer.
fn asking() -> Stage {
    let mut rest: Vec<Act> = Vec::new();
    Stage::play(move |method, params| match method {
        "agent" => {
            let mut question = golden()["approval"][0]["payload"].clone();
            question["request"]["sessionKey"] = params["sessionKey"].clone();
            let mut acts = recorded(params);
            rest = acts.split_off(3);
            acts.push(Act::Tell("exec.approval.requested", question));
            acts
        }
        "exec.approval.resolve" => {
            let mut told = golden()["approval"][1]["payload"].clone();
            told["decision"] = params["decision"].clone();
            let mut acts = vec![Act::Tell("exec.approval.resolved", told), Act::Answer(json!({"ok": true}))];
            acts.extend(rest.drain(..).filter(|act| matches!(act, Act::Tell(..))));
            acts
        }
        "chat.abort" => vec![Act::HangUp],
        other => nothing(other),
    })
}

#[test]
fn a_question_from_elsewhere_is_put_at_the_terminal() {
    let stage = asking();
    let home = prowess();
    let mut desk = Desk::sit(&home, &["run", "--gateway", &stage.url, "hi"]);
    desk.see("uname -a | head -n 1").see("Allow it?").type_in(&["w", ENTER]);
    desk.see("allowlist").see("Allow it?").type_in(&["y", ENTER]).see("All done: out");
    let resolved = stage.asked("exec.approval.resolve");
    let id = golden()["approval"][0]["payload"]["id"].clone();
    assert_eq!(resolved, [json!({"id": id, "decision": "allow-once"})]);
    // The answer to the run never comes here; the person has seen enough.
    desk.type_in(&[CTRL_C]);
    assert_eq!(desk.leave().status.code(), Some(130));
}

#[test]
fn who_leaves_a_question_is_told_how_it_is_answered() {
    let stage = asking();
    let home = prowess();
    let mut desk = Desk::sit(&home, &["run", "--gateway", &stage.url, "hi"]);
    let id = golden()["approval"][0]["payload"]["id"].as_str().expect("an id").to_owned();
    desk.see("Allow it?").see("hy: ").type_in(&[CTRL_D]);
    desk.see("can no longer be answered here")
        .see(&format!("prowess approvals resolve {id} allow-once|deny --gateway {}", stage.url));
    assert!(stage.asked("exec.approval.resolve").is_empty());
    desk.type_in(&[CTRL_C]);
    assert_eq!(desk.leave().status.code(), Some(130));
}

#[test]
fn a_chat_is_held_elsewhere() {
    let stage = Stage::play(|method, params| match method {
        "agent" => recorded(params),
        "skills.status" => vec![Act::Answer(json!({"skills": [
            {"name": "web-search", "description": "Searches.", "eligible": true}, {"name": "off", "eligible": false},
        ]}))],
        "sessions.reset" => vec![Act::Answer(json!({"ok": true}))],
        other => nothing(other),
    });
    let home = prowess();
    let mut desk = Desk::sit(&home, &["chat", "--session", "main", "--gateway", &stage.url]);
    desk.see("answers; type /help").say("please").see("All done: out");
    desk.say("/skills").see("1 skill").see("/web_search").say("/new").see("new conversation started");
    desk.say("/quit");
    desk.leave().well();
    assert_eq!(stage.asked("sessions.reset"), [json!({"key": "agent:main:main"})]);
}

#[test]
fn questions_are_watched_and_answered_by_programs() {
    let payload = golden()["approval"][0]["payload"].clone();
    let id = payload["id"].as_str().expect("an id").to_owned();
    let waiting = payload.clone();
    let stage = Stage::play(move |method, _| match method {
        "exec.approval.list" => vec![Act::Answer(json!({"approvals": [waiting]}))],
        "exec.approval.resolve" => vec![Act::Answer(json!({"ok": true}))],
        other => nothing(other),
    });
    let home = prowess();
    let watching = home.start(&format!("approvals watch --json --gateway {}", stage.url));
    eventually("the question is there", || watching.stdout().contains('\n'));
    let line: Value = serde_json::from_str(watching.stdout().lines().next().expect("a line")).expect("JSON");
    assert_eq!((&line["event"], &line["payload"]["id"]), (&json!("exec.approval.requested"), &payload["id"]));
    let pid = i32::try_from(watching.id()).ok().and_then(Pid::from_raw).expect("a process");
    kill_process(pid, Signal::TERM).expect("it is ours");
    watching.wait().ok();
    home.run(&format!("approvals resolve {} deny --gateway {}", &id[..8], stage.url)).ok().out_has("deny");
    assert_eq!(stage.asked("exec.approval.resolve"), [json!({"id": id, "decision": "deny"})]);
    home.run("approvals resolve x perhaps").code(2).err_has("allow-once");
}

#[test]
fn logs_of_a_gateway_are_read_from_here() {
    let stage = Stage::play(|method, _| match method {
        "exec.approval.log" => vec![Act::Answer(json!({"entries": [
            {"id": "a1", "decision": "deny", "at": 1, "command": "make release", "by": {"name": "Anna"}}
        ]}))],
        "egress.log" => vec![Act::Answer(json!({"entries": [
            {"id": "c2", "at": 2, "skill": "weather", "host": "wttr.in", "port": 443, "up": 517, "down": 6340,
                "outcome": "served", "command": "curl -s wttr.in"},
            {"id": "c1", "at": 1, "skill": null, "host": "evil.example", "port": 80, "up": 0, "down": 0,
                "outcome": "refused", "reason": "not allowed: no rule", "command": "python3 x.py"}
        ], "nextCursor": null, "open": [], "openCount": 0}))],
        other => nothing(other),
    });
    let home = prowess();
    let url = &stage.url;
    home.run(&format!("approvals log --gateway {url}")).ok().out_has("make release").out_has("Anna");
    let log = home.run(&format!("egress log --host wttr.in --skill weather --refused --gateway {url}")).ok();
    let asked = json!({"limit": 50, "host": "wttr.in", "skill": "weather", "outcome": "refused"});
    assert_eq!(stage.asked("egress.log"), [asked]);
    let rows: Vec<&str> = log.stdout().lines().collect();
    assert!(rows[1].ends_with("evil.example:80\t0 B\t0 B\trefused: not allowed: no rule\tpython3 x.py"), "{log}");
    assert!(rows[2].ends_with("weather\twttr.in:443\t517 B\t6.3 kB\tserved\tcurl -s wttr.in"), "{log}");
}

#[test]
fn a_person_answers_questions_as_they_come() {
    let payload = golden()["approval"][0]["payload"].clone();
    let stage = Stage::play(move |method, _| match method {
        "exec.approval.list" => vec![Act::Answer(json!({"approvals": [payload]}))],
        "exec.approval.resolve" => vec![Act::Answer(json!({"ok": true}))],
        other => nothing(other),
    });
    let home = prowess();
    let mut desk = Desk::sit(&home, &["approvals", "watch", "--gateway", &stage.url]);
    desk.see("uname -a | head -n 1").see("[a]lways").type_in(&["a", ENTER]);
    eventually("the answer is told", || !stage.asked("exec.approval.resolve").is_empty());
    assert_eq!(stage.asked("exec.approval.resolve")[0]["decision"], "allow-always");
    desk.terminate();
    assert!(desk.leave().status.success());
}

#[test]
fn conversations_elsewhere_are_listed_and_shown() {
    let stage = Stage::play(|method, params| match method {
        "sessions.list" => vec![Act::Answer(json!({"sessions": [{
            "key": "agent:main:main", "sessionId": "515fb3d1", "updatedAt": 1_794_709_331_913_u64, "model": "m",
            "derivedTitle": "hello\u{1b}[2J there",
        }]}))],
        "chat.history" if params["sessionKey"] == "agent:main:main" => vec![Act::Answer(golden()["history"].clone())],
        "chat.history" => vec![Act::Answer(json!({"messages": []}))],
        other => nothing(other),
    });
    let home = prowess();
    let url = &stage.url;
    let listed = home.run(&format!("sessions list --gateway {url}")).ok();
    listed.out_has("main\t").out_has("hello[2J there").lacks("Messages");
    let listed = home.run(&format!("sessions list --json --gateway {url}")).ok().json();
    assert!(listed["sessions"][0].get("messages").is_none(), "{listed}");
    let shown = home.run(&format!("sessions show main --gateway {url}")).ok();
    shown.out_has("hello there").out_has("All done:").lacks("tokens read");
    let shown = home.run(&format!("sessions show main --json --gateway {url}")).ok().json();
    assert!(shown["messages"].is_array() && shown.get("usage").is_none(), "{shown}");
    home.run(&format!("sessions show other --gateway {url}")).code(1).err_has("agent:main:other");
    home.run(&format!("sessions reset main --gateway {url}")).code(2).err_has("does not work over a gateway");
}

#[test]
fn skills_models_and_prompts_elsewhere_are_shown() {
    let lists = json!({"bins": ["jq"], "anyBins": [], "env": [], "config": [], "os": []});
    let stage = Stage::play(move |method, params| match method {
        "skills.status" => vec![Act::Answer(json!({"workspaceDir": "/w", "skills": [
            {"name": "weather", "description": "Forecasts.", "source": "workspace", "eligible": true, "skillKey": "weather"},
            {"name": "parse", "description": "Parses.", "source": "bundled", "eligible": false, "missing": lists},
        ]}))],
        "models.list" => {
            vec![Act::Answer(json!({"models": [{"id": "m", "name": "M", "provider": "p", "contextWindow": 8}]}))]
        }
        "prompt.preview" => vec![Act::Answer(json!({
            "prompt": format!("You are {}.", params["mode"].as_str().unwrap_or("none")), "skills": {"count": 1},
            "parts": [{"name": "skills", "text": "<available_skills>", "chars": 18, "tokens": 5}],
        }))],
        other => nothing(other),
    });
    let home = prowess();
    let url = &stage.url;
    home.run(&format!("skills --gateway {url}")).ok().out_has("Skills (1/2 ready)").out_has("weather");
    home.run(&format!("skills list --eligible --gateway {url}")).ok().out_has("weather").lacks("Parses.");
    home.run(&format!("skills list -v --gateway {url}")).ok().out_has("bins: jq");
    home.run(&format!("skills info parse --gateway {url}")).ok().out_has("Missing: bins: jq");
    home.run(&format!("skills info none --gateway {url}")).code(1).err_has("no skill `none`");
    let checked = home.run(&format!("skills check --json --gateway {url}")).ok().json();
    assert_eq!(
        checked["summary"],
        json!({"total": 2, "eligible": 1, "disabled": 0, "blocked": 0, "missingRequirements": 1})
    );
    home.run(&format!("models --gateway {url}")).ok().out_has("p/m");
    home.run(&format!("prompt --mode minimal --gateway {url}")).ok().out_has("You are minimal.");
    home.run(&format!("skills prompt --gateway {url}")).ok().out_has("<available_skills>");
}

#[test]
fn machines_are_listed_and_let_in() {
    let stage = Stage::play(|method, params| match method {
        "node.list" => vec![Act::Answer(json!({"ts": 1, "nodes": [
            {"nodeId": "0123456789abcdef", "displayName": "box", "platform": "linux", "connected": true, "paired": true,
             "commands": ["system.run"]},
        ]}))],
        "device.pair.list" => vec![Act::Answer(json!({"pending": [
            {"requestId": "req-1234-5678", "displayName": "new box", "role": "operator", "scopes": ["operator.admin"]},
        ], "paired": []}))],
        "device.pair.approve" => {
            vec![Act::Answer(json!({"requestId": params["requestId"], "device": {"displayName": "new box"}}))]
        }
        other => nothing(other),
    });
    let home = prowess();
    let url = &stage.url;
    let asks = "new box asks for access as operator with operator.admin";
    home.run(&format!("node list --gateway {url}")).ok().out_has("box").out_has(asks);
    home.run(&format!("node approve req-1 --gateway {url}")).ok().out_has("new box has access");
    assert_eq!(stage.asked("device.pair.approve"), [json!({"requestId": "req-1234-5678"})]);
    home.run(&format!("node approve nobody --gateway {url}")).code(1).err_has("prowess devices list");
}

#[test]
fn devices_are_listed_approved_and_refused() {
    let stage = Stage::play(|method, params| match method {
        "device.pair.list" => vec![Act::Answer(json!({
            "pending": [
                {"requestId": "aaaa-1", "deviceId": "d1", "displayName": "phone", "role": "operator", "scopes": ["operator.read"]},
                {"requestId": "bbbb-2", "deviceId": "d2", "displayName": "evil\u{1b}[2J", "role": "operator", "scopes": ["operator.admin"]},
            ],
            "paired": [{"deviceId": "0123456789abcdef", "displayName": "tablet", "role": "operator", "platform": "web"}],
        }))],
        "device.pair.approve" => vec![Act::Answer(json!({"device": {"displayName": "phone", "role": "operator"}}))],
        "device.pair.reject" => vec![Act::Answer(json!({"requestId": params["requestId"], "deviceId": "d2"}))],
        other => nothing(other),
    });
    let (home, url) = (prowess(), &stage.url);
    let list = home.run(&format!("devices list --gateway {url}")).ok().out_has("0123456789ab").out_has("tablet");
    let list = list.out_has("? phone asks for access as operator").out_has("prowess devices approve aaaa-1");
    let _ = list.out_has("! full control: evil[2J asks");
    home.run(&format!("devices approve --gateway {url}")).code(1).err_has("several devices ask");
    home.run(&format!("devices approve aaaa --gateway {url}")).ok().out_has("phone has access as operator");
    home.run(&format!("devices reject bbbb --gateway {url}")).ok().out_has("refused access to device d2");
    assert_eq!(stage.asked("device.pair.approve"), [json!({"requestId": "aaaa-1"})]);
    assert_eq!(stage.asked("device.pair.reject"), [json!({"requestId": "bbbb-2"})]);
}

#[test]
fn a_machine_is_removed_by_its_id_or_name() {
    let stage = Stage::play(|method, params| match method {
        "node.list" => vec![Act::Answer(json!({"ts": 1, "nodes": [
            {"nodeId": "0123456789abcdef", "displayName": "box", "connected": true, "paired": true, "commands": []},
        ]}))],
        "device.pair.list" => vec![Act::Answer(json!({"pending": [], "paired": [
            {"deviceId": "0123456789abcdef", "displayName": "box", "role": "node"}, {"deviceId": "fedcba9876543210"},
        ]}))],
        "device.pair.remove" => vec![Act::Answer(json!({"deviceId": params["deviceId"]}))],
        other => nothing(other),
    });
    let home = prowess();
    let url = &stage.url;
    home.run(&format!("node remove box --gateway {url}")).ok().out_has("removed box (0123456789abcdef)");
    let told = home.run(&format!("node remove fedc --json --gateway {url}")).ok().json();
    assert_eq!(told["deviceId"], "fedcba9876543210", "{told}");
    home.run(&format!("node remove 012 --gateway {url}")).code(1).err_has("no device `012`");
    let ids = ["0123456789abcdef", "fedcba9876543210"].map(|id| json!({"deviceId": id}));
    assert_eq!(stage.asked("device.pair.remove"), ids);
}

#[test]
fn a_variable_names_the_gateway_too() {
    let stage = Stage::play(|method, _| match method {
        "models.list" => vec![Act::Answer(json!({"models": [{"id": "far", "provider": "p"}]}))],
        other => nothing(other),
    });
    let home = prowess().env("OPENCLAW_GATEWAY_URL", &stage.url);
    home.run("models").ok().out_has("p/far");
    // What works only here does so as ever.
    home.run("config path").ok().out_has("openclaw.json");
}

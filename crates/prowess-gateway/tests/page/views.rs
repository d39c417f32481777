//! Overview, configuration, logs, audit, rules and agents: do they show what is, and do what they say?

use serde_json::{Value, json};

use crate::browser::Browser;
use crate::demo;
use crate::room::{Room, TOKEN};
use crate::stage::{Script, Stage};

async fn enter(at: &str, script: Script) -> (Stage, Browser) {
    let stage = Stage::open(Room::open(demo::home()).await, script).await;
    let browser = Browser::open().await;
    browser.visit(&stage.url().replace("/skills", at)).await;
    browser.reads("#state", "connected").await;
    (stage, browser)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_overview_says_what_to_look_at_and_leads_there() {
    let (_stage, browser) = enter("/overview", demo::script).await;
    browser.reads("#panel-overview .todo", "No model is available yet").await;
    browser.reads("#panel-overview .todo", "2 devices request access").await;
    browser.reads("#panel-overview .todo", "1 skill folder could not be read").await;
    browser.reads("#panel-overview .tiles", "Skills ready").await;
    browser.reads("#panel-overview", "Sandbox").await;
    browser.click("#panel-overview a[href='#/sessions/agent%3Amain%3Arelease']").await;
    browser.reads("#panel-sessions .detail h2", "Notes for the next release").await;
    browser.is_unharmed().await;
    browser.close().await;
}

/// The configuration as the real gateway reads and writes it.
async fn config(tree: prowess_testkit::Tree) -> (Room, Browser) {
    let room = Room::open(tree).await;
    let browser = Browser::open().await;
    browser.visit(&format!("http://{}/#token={TOKEN}&at=/config/skills", room.running.address)).await;
    // Without the right to change anything, what is set can be read, and it is said why no more is possible.
    browser.reads("#panel-config .locked", "do not have the right to change settings").await;
    assert_eq!(browser.ask("[...document.querySelectorAll('#panel-config .setting :is(input, select, textarea)')].every((field) => field.disabled)").await, true);
    browser.click("#panel-config .locked button").await;
    browser.click("dialog.rights .main").await;
    browser.find("[data-setting='skills.load.watch']").await;
    (room, browser)
}

fn written(room: &Room) -> Value {
    let text = std::fs::read_to_string(room.tree.path(".openclaw/openclaw.json")).expect("the configuration");
    serde_json::from_str(&text).expect("JSON")
}

/// Puts a value into the field of a setting, as a person does.
async fn put(browser: &Browser, name: &str, value: &str) {
    let field = format!("document.getElementById('set-{name}')");
    browser.ask(&format!("({field}.value = {value:?}, {field}.dispatchEvent(new Event('change')))")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_setting_is_changed_after_its_difference_was_shown() {
    let (room, browser) = config(demo::home()).await;
    browser.reads("[data-setting='skills.load.watch']", "default").await;
    browser.reads("[data-setting='skills.entries.standup.enabled']", "set in the file").await;
    put(&browser, "skills.load.watch", "false").await;
    put(&browser, "skills.entries.standup.enabled", "true").await;
    browser.reads(".savebar", "2 changes not saved").await;
    assert_eq!(
        written(&room)["skills"]["entries"]["standup"]["enabled"],
        false,
        "nothing is saved before it was shown"
    );
    browser.click(".savebar .main").await;
    browser.reads(".review", "skills.load.watch").await;
    browser.reads(".review .removed:nth-of-type(1)", "not set").await;
    browser.click("#config-save").await;
    browser.reads("#say", "Saved").await;
    let now = written(&room);
    assert_eq!(
        (&now["skills"]["load"]["watch"], &now["skills"]["entries"]["standup"]["enabled"]),
        (&json!(false), &json!(true))
    );
    browser.until("document.querySelector('.savebar').hidden").await;
    browser.is_unharmed().await;
    browser.close().await;
    room.running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_cannot_be_is_marked_where_it_is_and_secrets_stay_hidden() {
    let tree = demo::home().file(
        ".openclaw/openclaw.json",
        r#"{"skills": {"allowBundled": [], "entries": {"speech": {"apiKey": "key-that-nobody-may-see"}}}}"#,
    );
    let (room, browser) = config(tree).await;
    put(&browser, "skills.limits.maxSkillsInPrompt", "-5").await;
    browser.reads("[data-setting='skills.limits.maxSkillsInPrompt'] .issue", "At least").await;
    browser.until("document.querySelector('.savebar .main').disabled").await;
    let secret = "document.getElementById('set-skills.entries.speech.apiKey')";
    assert_eq!(
        browser.ask(&format!("[{secret}.type, {secret}.value, {secret}.placeholder].join()")).await,
        "password,,Set. Type to replace it"
    );
    let page = browser.ask("document.documentElement.outerHTML").await;
    assert!(!page.as_str().is_some_and(|page| page.contains("key-that-nobody-may-see")));
    browser.find("#panel-config input[type=search]").await.send_keys("watch").await.expect("typed");
    browser.until("document.querySelectorAll('#panel-config .setting').length > 0 && !document.querySelector('[data-setting=\"skills.limits.maxSkillsInPrompt\"]')").await;
    browser.is_unharmed().await;
    browser.close().await;
    room.running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_is_followed_and_filtered() {
    fn script(method: &str, params: &Value) -> Option<Value> {
        let line = |level: &str, text: &str| {
            json!({"timestamp": "2026-01-01T10:00:00Z", "level": level, "fields": {"message": text}}).to_string()
        };
        match (method, params["cursor"].as_u64()) {
            ("logs.tail", None) => Some(
                json!({"file": "/x/gateway.log", "cursor": 10, "lines": [line("INFO", "listening"), line("WARN", "a short token"), "no JSON at all"]}),
            ),
            ("logs.tail", Some(10)) => {
                Some(json!({"file": "/x/gateway.log", "cursor": 20, "lines": [line("ERROR", "the disk is full")]}))
            }
            ("logs.tail", Some(_)) => Some(json!({"file": "/x/gateway.log", "cursor": 20, "lines": []})),
            _ => demo::script(method, params),
        }
    }
    let (stage, browser) = enter("/logs", script).await;
    browser.reads(".tail", "the disk is full").await;
    browser.reads(".tail", "no JSON at all").await;
    let lines = "document.querySelectorAll('.tail .entry').length";
    browser.until(&format!("{lines} === 4")).await;
    browser.ask("(document.getElementById('logs-level').value = 'warn', document.getElementById('logs-level').dispatchEvent(new Event('change')))").await;
    browser.until(&format!("{lines} === 2")).await;
    browser.find("#panel-logs input[type=search]").await.send_keys("disk").await.expect("typed");
    browser.until(&format!("{lines} === 1")).await;
    browser.until("location.hash === '#/logs?q=disk&level=warn'").await;
    assert_eq!(stage.asked("logs.tail")[1]["cursor"], 10, "it goes on where it was");
    browser.is_unharmed().await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_says_who_decided_what_on_which_device() {
    let (_stage, browser) = enter("/audit/a1", demo::script).await;
    browser.reads("#panel-audit .target", "git push origin main").await;
    for text in ["allowed once", "Anna", "Pixel 9", "9f86d081884c7d65"] {
        browser.reads("#panel-audit .target", text).await;
    }
    browser.find("#panel-audit input[type=search]").await.send_keys("make release").await.expect("typed");
    browser.until("document.querySelectorAll('#panel-audit article').length === 1").await;
    browser.reads("#panel-audit article", "timed out").await;
    browser.is_unharmed().await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_and_devices_are_removed_with_two_presses() {
    let (stage, browser) = enter("/rules", demo::script).await;
    browser.reads("[data-rule=r1]", "/usr/bin/git").await;
    browser.click("[data-act=rule-r1]").await;
    browser.reads("[data-act=rule-r1]", "sure?").await;
    assert!(stage.asked("exec.approvals.set").is_empty());
    browser.click("[data-act=rule-r1]").await;
    browser.reads("#say", "The rule is removed").await;
    let asked = &stage.asked("exec.approvals.set")[0];
    assert_eq!(asked["baseHash"], "h1");
    let left = &asked["file"]["agents"]["main"]["allowlist"];
    assert_eq!((left[0]["id"].as_str(), left.as_array().map(Vec::len)), (Some("r2"), Some(1)), "the other stays");
    // Two devices of one name are told apart.
    let names = "[...document.querySelectorAll('[data-device] .strong')].map((node) => node.textContent)";
    assert_eq!(browser.ask(names).await, json!(["laptop 2b1c1abb", "laptop 60303ae2"]));
    let device = "2b1c1abb05d119c14567a217437d08ac0c103a4d5dd743ad68ae7c9bc716f910";
    for act in [format!("revoke-{device}-operator"), format!("device-{device}")] {
        browser.click(&format!("[data-act='{act}']")).await;
        browser.reads(&format!("[data-act='{act}']"), "sure?").await;
        browser.click(&format!("[data-act='{act}']")).await;
    }
    browser.reads("#say", "The device is removed").await;
    assert_eq!(stage.asked("device.token.revoke")[0], json!({"deviceId": device, "role": "operator"}));
    assert_eq!(stage.asked("device.pair.remove")[0], json!({"deviceId": device}));
    browser.is_unharmed().await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_chosen_for_the_whole_page() {
    fn script(method: &str, params: &Value) -> Option<Value> {
        match method {
            "agents.list" => Some(
                json!({"defaultId": "main", "agents": [{"id": "main"}, {"id": "writer", "name": "Writer", "identity": {"emoji": "✍"}}]}),
            ),
            "skills.status" if params["agentId"] == "writer" => {
                Some(json!({"agentId": "writer", "skills": [], "counts": {"skills": 7}}))
            }
            _ => demo::script(method, params),
        }
    }
    let (stage, browser) = enter("/agents", script).await;
    browser.reads("[data-agent=writer]", "7").await;
    browser.click("[data-act=select-writer]").await;
    browser.reads("[data-agent=writer]", "selected").await;
    assert_eq!(browser.ask("document.getElementById('agent').value").await, "writer");
    browser.click("#tab-sessions").await;
    browser.until("document.querySelector('#panel-sessions .row')").await;
    assert_eq!(stage.asked("sessions.list").last().map(|asked| asked["agentId"].clone()), Some(json!("writer")));
    browser.is_unharmed().await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_loaded_says_why_and_can_be_tried_again() {
    let (stage, browser) = enter("/skills", demo::script).await;
    browser.find("[data-skill=weather]").await;
    stage.go_away();
    browser.reads("#state", "reconnecting").await;
    browser.ask("location.hash = '/audit'").await;
    browser.reads("#panel-audit .failure", "The audit trail could not be loaded").await;
    stage.come_back();
    browser.reads("#panel-audit", "git push origin main").await;
    browser.close().await;
}

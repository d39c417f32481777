//! Is a conversation shown while it happens, and does an answer reach the gateway?

use serde_json::{Value, json};

use crate::browser::Browser;
use crate::demo;
use crate::room::Room;
use crate::stage::Stage;

async fn enter(view: &str) -> (Stage, Browser) {
    let stage = Stage::open(Room::open(demo::home()).await, demo::script).await;
    let browser = Browser::open().await;
    browser.visit(&stage.url()).await;
    browser.reads("#state", "connected").await;
    browser.click(&format!("#tab-{view}")).await;
    (stage, browser)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_shown_while_it_is_written() {
    let (stage, browser) = enter("chat").await;
    browser.reads("#panel-chat .log", "umbrella at home").await;
    browser.find("#chat-input").await.send_keys("And tomorrow?\u{e007}").await.expect("typed");
    browser.reads(".said.person:last-of-type", "And tomorrow?").await;
    browser.until("!document.querySelector('.stop').hidden").await;
    assert_eq!(stage.asked("chat.send")[0]["message"], "And tomorrow?");
    stage.tell("agent", &demo::turn("lifecycle", &json!({"phase": "start"})));
    stage.tell("agent", &demo::turn("assistant", &json!({"text": "Let me", "delta": "Let me"})));
    browser.until("document.querySelector('[aria-busy=true] .text')?.textContent === 'Let me'").await;
    stage.tell("agent", &demo::turn("skill", &json!({"phase": "read", "name": "weather", "path": "p"})));
    browser.reads(".used", "Skill weather read").await;
    let call = json!({"phase": "start", "name": "exec", "toolCallId": "t1", "args": {"command": "curl wttr.in"}});
    stage.tell("agent", &demo::turn("tool", &call));
    browser.reads(".call:last-of-type summary", "running").await;
    let result = json!({"content": [{"type": "text", "text": "sunny"}]});
    let done = json!({"phase": "result", "name": "exec", "toolCallId": "t1", "isError": false, "result": result});
    stage.tell("agent", &demo::turn("tool", &done));
    browser.reads(".call:last-of-type summary", "done").await;
    stage.tell("chat", &demo::answer("final", "Tomorrow is sunny."));
    browser.reads("#panel-chat .log", "Tomorrow is sunny.").await;
    browser.until("document.querySelector('.stop').hidden && !document.querySelector('[aria-busy=true]')").await;
    browser.is_unharmed().await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_is_stopped_by_a_button() {
    let (stage, browser) = enter("chat").await;
    browser.reads("#panel-chat .log", "umbrella at home").await;
    stage.tell("agent", &demo::turn("lifecycle", &json!({"phase": "start"})));
    browser.until("!document.querySelector('.stop').hidden").await;
    browser.click(".stop").await;
    stage.tell("chat", &demo::answer("aborted", ""));
    browser.reads("#panel-chat .log", "Stopped.").await;
    assert_eq!(stage.asked("chat.abort"), [json!({"sessionKey": "agent:main:main", "runId": "run-1"})]);
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slash_offers_the_commands_of_skills() {
    let (_stage, browser) = enter("chat").await;
    browser.reads("#panel-chat .log", "umbrella at home").await;
    let input = browser.find("#chat-input").await;
    // The commands may arrive a moment later than the first key.
    for _ in 0..600 {
        input.clear().await.expect("cleared");
        input.send_keys("/wea").await.expect("typed");
        if browser.ask("document.getElementById('chat-menu').hidden").await == false {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    browser.reads("#chat-menu [aria-selected=true]", "/weather").await;
    input.send_keys("\u{e004}").await.expect("typed");
    browser.until("document.getElementById('chat-input').value === '/weather '").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_shown_as_it_is_and_answered_by_one_click() {
    let (stage, browser) = enter("skills").await;
    stage.tell("exec.approval.requested", &demo::question("q1", demo::TRICKY));
    browser.reads("#asking", "A command waits").await;
    browser.click("#asking button").await;
    let command = browser.find(".question .command").await.text().await.expect("text");
    assert!(command.contains("U+202E") && !command.contains('\u{202e}'), "{command}");
    assert_eq!(browser.ask("document.querySelector('.question .foreign').title").await, "U+0435");
    browser.until("/^\\d:\\d\\d$/.test(document.querySelector('.question .left').textContent)").await;
    browser.click("[data-decision=allow-once]").await;
    browser.reads(".answered", "allowed once").await;
    assert_eq!(stage.asked("exec.approval.resolve"), [json!({"id": "q1", "decision": "allow-once"})]);
    browser.is_unharmed().await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_somebody_else_answered_is_seen_by_all() {
    let (stage, browser) = enter("approvals").await;
    stage.tell("exec.approval.requested", &demo::question("q1", "uname -a"));
    stage.tell("exec.approval.requested", &demo::question("q2", "id"));
    browser.until("document.querySelectorAll('.question[data-id]').length === 2").await;
    stage.tell("exec.approval.resolved", &json!({"id": "q2", "decision": "deny", "resolvedBy": "the terminal"}));
    browser.reads(".answered", "denied").await;
    browser.reads(".answered", "by the terminal").await;
    let mut old = demo::question("q3", "date");
    old["expiresAtMs"] = json!(1);
    stage.tell("exec.approval.requested", &old);
    stage.tell("exec.approval.resolved", &json!({"id": "q1", "decision": "allow-always", "resolvedBy": "x"}));
    browser.reads("#panel-approvals", "No command waits").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_is_let_in_by_one_click() {
    let (stage, browser) = enter("nodes").await;
    browser.reads("#panel-nodes", "studio").await;
    // Somebody who would be let in for everything does not look like a machine.
    browser.reads("#panel-nodes .question:nth-child(1)", "build-box as node").await;
    browser.reads("#panel-nodes .question:nth-child(2)", "laptop as operator").await;
    browser.reads("#panel-nodes .question:nth-child(2) .scopes", "operator.read, operator.admin").await;
    browser.click("#panel-nodes .question button.main").await;
    browser.until("document.querySelector('#panel-nodes .grid')").await;
    let asked = || stage.asked("device.pair.approve");
    prowess_testkit::eventually("the gateway is told", || asked() == [json!({"requestId": "r1"})]);
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_is_read_and_gone_on_with() {
    let (stage, browser) = enter("sessions").await;
    browser.reads("#panel-sessions .row", "What is the weather in Berlin?").await;
    browser.click("#panel-sessions .rows li:nth-child(2) .row").await;
    browser.reads("#panel-sessions .log", "umbrella at home").await;
    browser.click("#panel-sessions .detail .main").await;
    browser.until("document.getElementById('chat-session').value === 'agent:main:release'").await;
    browser.until("document.activeElement.id === 'chat-input'").await;
    let keys: Vec<Value> = stage.asked("chat.history").into_iter().map(|asked| asked["sessionKey"].clone()).collect();
    assert!(keys.contains(&json!("agent:main:release")), "{keys:?}");
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_is_a_picture_and_a_table() {
    let (_stage, browser) = enter("usage").await;
    browser.reads("#panel-usage table", "git-tidy").await;
    browser.until("document.querySelectorAll('#panel-usage svg.chart rect').length >= 15").await;
    browser.close().await;
}

//! Does a command that waits for approval look like it, everywhere and until it has run?

use prowess_agent::message::now;
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::demo;
use crate::page::talk::enter;
use crate::room::Room;
use crate::stage::Stage;

const CALL: &str = "document.querySelector('#panel-chat .call:last-of-type .badge')";

fn call() -> Value {
    demo::turn("tool", &json!({"phase": "start", "name": "exec", "toolCallId": "t1", "args": {"command": "uname -a"}}))
}

/// The result of a call that waits, as a gateway tells it.
fn waits() -> Value {
    let approval = json!({"toolCallId": "t1", "approvalId": "q1"});
    let data = json!({
        "phase": "result", "name": "exec", "toolCallId": "t1", "meta": "uname -a", "isError": false, "status": "waiting", "approval": approval,
    });
    demo::turn("tool", &data)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_is_approved_in_the_chat_and_its_late_output_takes_its_place() {
    let (stage, browser) = enter("chat").await;
    browser.reads("#panel-chat .log", "umbrella at home").await;
    stage.tell("agent", &call());
    stage.tell("exec.approval.requested", &demo::question("q1", "uname -a"));
    browser.until("document.querySelector('#panel-chat .call:last-of-type + .question')").await;
    assert_eq!(browser.ask(&format!("{CALL}.textContent")).await, "Waiting for approval");
    browser.reads(".working", "Waiting for your approval").await;
    // The turn ends, and the command still has not run.
    stage.tell("agent", &waits());
    stage.tell("chat", &demo::answer("final", "It waits."));
    browser.reads("#panel-chat .log", "It waits.").await;
    browser.until("document.querySelector('.stop').hidden").await;
    assert_eq!(
        browser.ask(&format!("[{CALL}.textContent, {CALL}.className]")).await,
        json!(["Waiting for approval", "badge warn"])
    );
    // Everything that the answer is about is there, and so are all answers.
    browser.reads("#panel-chat .question .facts", "no rule covers /usr/bin/curl").await;
    let offered =
        "[...document.querySelectorAll('#panel-chat .question [data-decision]')].map((one) => one.dataset.decision)";
    assert_eq!(browser.ask(offered).await, json!(["allow-once", "allow-always", "deny"]));
    browser.click("#panel-chat [data-decision=allow-once]").await;
    browser.reads("#panel-chat .verdict", "Allowed once").await;
    assert_eq!(stage.asked("exec.approval.resolve"), [json!({"id": "q1", "decision": "allow-once"})]);
    assert_eq!(browser.ask(&format!("{CALL}.textContent")).await, "Allowed, running");
    let late = json!({
        "phase": "result", "name": "exec", "toolCallId": "t1", "meta": "uname -a", "isError": false, "late": true, "status": "approved",
        "approvalId": "q1", "result": {"content": [{"type": "text", "text": "Linux attic"}], "details": {"exitCode": 0}},
    });
    stage.tell("agent", &demo::turn("tool", &late));
    browser.until(&format!("{CALL}.textContent === 'Done'")).await;
    assert_eq!(
        browser.ask("document.querySelector('#panel-chat .call:last-of-type .result').textContent").await,
        "Linux attic"
    );
    assert_eq!(browser.ask("document.querySelector('.stop').hidden").await, true, "no turn goes on");
    browser.is_unharmed().await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denied_and_an_unanswered_command_never_look_done() {
    let (stage, browser) = enter("chat").await;
    browser.reads("#panel-chat .log", "umbrella at home").await;
    stage.tell("agent", &call());
    stage.tell("exec.approval.requested", &demo::question("q1", "uname -a"));
    browser.until("document.querySelector('#panel-chat .question')").await;
    stage.tell(
        "exec.approval.resolved",
        &json!({"id": "q1", "decision": "deny", "by": {"name": "Anna", "deviceName": "Pixel 9"}, "ts": now()}),
    );
    browser.reads("#panel-chat .verdict", "by Anna on Pixel 9").await;
    assert_eq!(browser.ask(&format!("{CALL}.textContent")).await, "Denied");
    let mut other = call();
    other["data"]["toolCallId"] = "t2".into();
    stage.tell("agent", &other);
    let mut question = demo::question("q2", "uname -a");
    question["expiresInMs"] = json!(1500);
    stage.tell("exec.approval.requested", &question);
    browser.until(&format!("{CALL}.textContent === 'Not answered in time'")).await;
    assert_eq!(browser.ask(&format!("{CALL}.className")).await, "badge dim");
    browser.close().await;
}

/// Two conversations in which a command was approved late: as they are stored today, and as they were before.
fn late(method: &str, params: &Value) -> Option<Value> {
    if method != "chat.history" {
        return demo::script(method, params);
    }
    let call = |id: &str, text: &str| json!({"role": "assistant", "content": [{"type": "toolCall", "id": id, "name": "exec", "arguments": {"command": text}}]});
    let result = |id: &str, text: &str| json!({"role": "toolResult", "toolCallId": id, "toolName": "exec", "isError": false, "content": [{"type": "text", "text": text}]});
    let mut waits = result("c1", "It waits.");
    waits["approval"] = json!({"status": "waiting", "approvalId": "aaaa1111-0"});
    let mut came = result("news_1", "Linux attic");
    came["approval"] = json!({"status": "approved", "approvalId": "aaaa1111-0", "toolCallId": "c1"});
    let old = "The command waits for a person to approve it (id bbbb2222). Nobody has answered yet, so it has not run.";
    let open =
        "The command waits for a person to approve it (id cccc3333). Nobody has answered yet, so it has not run.";
    let news = "System: Exec finished (gateway id=bbbb2222, code 0): id\nSystem: uid=1000\n\nThank you.";
    Some(json!({"runIds": [], "messages": [
        {"role": "user", "content": "Which system?"}, call("c1", "uname -a"), waits, call("news_1", "uname -a"), came,
        {"role": "user", "content": "Who am I?"}, call("c2", "id"), result("c2", old), {"role": "user", "content": news},
        call("c3", "date"), result("c3", open), {"role": "assistant", "content": [{"type": "text", "text": "It waits."}]},
    ]}))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_result_is_a_result_and_not_something_a_person_said() {
    let stage = Stage::open(Room::open(demo::home()).await, late).await;
    let browser = Browser::open().await;
    browser.visit(&stage.url()).await;
    browser.reads("#state", "connected").await;
    browser.click("#tab-chat").await;
    browser.reads("#panel-chat .log", "Who am I?").await;
    let calls = "[...document.querySelectorAll('#panel-chat .call')].map((one) => [one.querySelector('.brief').textContent, one.querySelector('.badge').textContent, one.querySelector('.result').textContent])";
    assert_eq!(
        browser.ask(calls).await,
        json!([["uname -a", "Done", "Linux attic"], ["id", "Done", "uid=1000"], ["date", "Waiting for approval", ""]])
    );
    let said = "[...document.querySelectorAll('#panel-chat .said.person .text')].map((one) => one.textContent)";
    assert_eq!(browser.ask(said).await, json!(["Which system?", "Who am I?", "Thank you."]));
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_clock_hides_no_question() {
    let stage = Stage::open(Room::open(demo::home()).await, demo::script).await;
    for skew in ["1800000", "-1800000"] {
        let browser = Browser::open().await;
        let source = format!("const real = Date.now; Date.now = () => real() + {skew};");
        browser.cdp("Page.addScriptToEvaluateOnNewDocument", json!({"source": source})).await;
        browser.visit(&stage.url()).await;
        browser.reads("#state", "connected").await;
        browser.click("#tab-approvals").await;
        let mut question = demo::question("q1", "uname -a");
        question["expiresInMs"] = json!(300_000);
        stage.tell("exec.approval.requested", &question);
        browser
            .until("/^(5:00|4:5\\d)$/.test(document.querySelector('#panel-approvals .question .left')?.textContent)")
            .await;
        browser.click("#panel-approvals [data-decision=deny]").await;
        browser.reads(".answered", "denied").await;
        browser.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_answered_is_known_after_a_refresh() {
    let (_stage, browser) = enter("approvals").await;
    for _ in 0..2 {
        browser.reads("#panel-approvals .answered", "git push origin main").await;
        browser.reads("#panel-approvals .answered", "by Anna on Pixel 9 9f86d081").await;
        browser.reads("#panel-approvals .answered:nth-child(2)", "Not answered in time").await;
        browser.client.refresh().await.expect("loaded again");
        browser.reads("#state", "connected").await;
    }
    browser.is_unharmed().await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_phone_the_answers_are_in_sight() {
    let (stage, browser) = enter("chat").await;
    let phone = json!({"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": true});
    browser.cdp("Emulation.setDeviceMetricsOverride", phone).await;
    browser.reads("#panel-chat .log", "umbrella at home").await;
    stage.tell("agent", &call());
    let mut question = demo::question("q1", &"uname -a\n".repeat(60));
    question["request"]["variables"] = (0..40).map(|number| format!("NAME{number}=value")).collect();
    stage.tell("exec.approval.requested", &question);
    for view in ["chat", "approvals"] {
        browser.click(&format!("#tab-{view}")).await;
        browser.until(&format!("document.querySelector('#panel-{view} .question')?.checkVisibility()")).await;
        let seen = format!(
            "[...document.querySelectorAll('#panel-{view} .question [data-decision], #panel-{view} .ask')].every((one) => {{
                const {{ left, right, top, bottom }} = one.getBoundingClientRect();
                const [x, y] = [(left + right) / 2, (top + bottom) / 2];
                return top >= 0 && bottom <= innerHeight && left >= 0 && right <= innerWidth && one.contains(document.elementFromPoint(x, y));
            }})"
        );
        browser.until(&seen).await;
        assert_eq!(browser.ask("document.documentElement.scrollWidth <= innerWidth").await, true, "{view}");
        // Between the buttons and the edge of what scrolls, nothing of the question shows.
        let below = format!(
            "(() => {{
                const answers = document.querySelector('#panel-{view} .answers');
                const {{ left, bottom }} = answers.getBoundingClientRect();
                const edge = document.querySelector('#panel-{view} .log, #panel-{view}').closest('main').getBoundingClientRect().bottom;
                const seen = [];
                for (let y = bottom + 1; y < Math.min(edge, innerHeight); y += 2) seen.push(document.elementFromPoint(left + 20, y));
                return seen.filter((one) => one?.closest('.question')).length;
            }})()"
        );
        assert_eq!(browser.ask(&below).await, 0, "{view}");
    }
    browser.click("#tab-chat").await;
    browser.until("(() => { const { bottom, height } = document.getElementById('chat-input').getBoundingClientRect(); return bottom <= innerHeight && height > 20; })()").await;
    browser.click("#panel-chat [data-decision=deny]").await;
    browser.reads("#panel-chat .verdict", "Denied").await;
    browser.is_unharmed().await;
    browser.close().await;
}

//! What is left of a turn when the gateway goes away in the middle of it, and how is it tried again? And what goes with a
//! message besides its text?

use prowess_testkit::{ModelServer, Tree, Turn};
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::demo;
use crate::page::talk::enter;
use crate::room::{Room, TOKEN};
use crate::stage::Stage;

const LOG: &str = "#panel-chat .log";

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_was_cut_off_says_so_and_can_be_tried_again() {
    let (stage, browser) = enter("chat").await;
    browser.reads(LOG, "umbrella at home").await;
    browser.find("#chat-input").await.send_keys("And tomorrow?\u{e007}").await.expect("typed");
    browser.until("!document.querySelector('.stop').hidden").await;
    stage.tell("agent", &demo::turn("assistant", &json!({"text": "Tomorrow it will be", "delta": "be"})));
    let call = json!({"phase": "start", "name": "exec", "toolCallId": "t1", "args": {"command": "uname -a"}});
    stage.tell("agent", &demo::turn("tool", &call));
    stage.tell("exec.approval.requested", &demo::question("q1", "uname -a"));
    browser.until("document.querySelector('#panel-chat .question')").await;
    stage.go_away();
    browser.reads("#state", "reconnecting").await;
    browser.reads("#panel-chat .cut", "The connection to the gateway was lost").await;
    // Nothing works on, nothing is being written, and nothing asks for an answer that nobody would hear.
    browser
        .until("document.querySelector('.working').textContent === '' && document.querySelector('.stop').hidden")
        .await;
    assert_eq!(browser.ask("document.querySelector('[aria-busy=true]')").await, Value::Null);
    assert_eq!(browser.ask("document.getElementById('asking').hidden").await, true);
    let disabled =
        "[...document.querySelectorAll('#panel-chat .question [data-decision]')].every((one) => one.disabled)";
    assert_eq!(browser.ask(disabled).await, true);
    stage.come_back();
    browser.reads("#state", "connected").await;
    // The gateway has nothing of it, so what the page knows stays.
    browser.reads("#panel-chat .cut", "The gateway stopped during this answer").await;
    browser.reads(LOG, "And tomorrow?").await;
    browser.reads(LOG, "Tomorrow it will be").await;
    browser.until("!document.querySelector('#panel-chat .question')").await;
    browser.click("#panel-chat button.retry").await;
    prowess_testkit::eventually("it is sent again", || stage.asked("chat.send").len() == 2);
    assert_eq!(stage.asked("chat.send")[1]["message"], "And tomorrow?");
    assert_ne!(stage.asked("chat.send")[1]["idempotencyKey"], stage.asked("chat.send")[0]["idempotencyKey"]);
    browser.is_unharmed().await;
    browser.close().await;
}

/// The gateway sends pieces of a text only once, so a page that comes in the middle has to ask for what was said before.
#[tokio::test(flavor = "multi_thread")]
async fn a_reload_during_a_running_turn_catches_up_with_the_text() {
    let said = format!("First of all: {}", "word ".repeat(200));
    let model = ModelServer::script([Turn::Stall { turn: Box::new(Turn::text(&said)), after: 12_000 }]);
    let config = json!({
        "models": {"providers": {"fake": {
            "baseUrl": model.base_url(), "api": "openai-completions", "apiKey": "k", "models": [{"id": "m"}],
        }}},
        "agents": {"defaults": {"model": "fake/m"}},
    });
    let room = Room::open(Tree::new().file(".openclaw/openclaw.json", config.to_string())).await;
    let browser = Browser::open().await;
    browser.visit(&format!("http://{}/#token={TOKEN}&at=/chat", room.running.address)).await;
    browser.reads("#state", "connected").await;
    browser.find("#chat-input").await.send_keys("Tell me everything\u{e007}").await.expect("typed");
    browser.reads(LOG, "First of all: word").await;
    let shown = format!("document.querySelector('{LOG} [aria-busy=true] .text')?.textContent");
    let before = browser.ask(&shown).await;
    browser.client.refresh().await.expect("loaded again");
    browser.reads("#state", "connected").await;
    browser.reads(LOG, "Tell me everything").await;
    browser.reads(LOG, "First of all: word").await;
    let (before, after) = (before.as_str().unwrap_or_default().to_owned(), browser.ask(&shown).await);
    assert!(after.as_str().is_some_and(|after| after.starts_with(&before)), "{before}\n{after}");
    let times = format!("document.querySelector('{LOG}').textContent.split('First of all').length - 1");
    assert_eq!(browser.ask(&times).await, 1, "it is there once");
    // It is the same turn, which goes on and can be stopped.
    browser.until("!document.querySelector('.stop').hidden").await;
    browser.click(".stop").await;
    browser.reads(LOG, "Stopped").await;
    browser.is_unharmed().await;
    browser.close().await;
}

/// Conversations that a gateway left when it died.
fn left_behind(method: &str, params: &Value) -> Option<Value> {
    if method != "chat.history" {
        return demo::script(method, params);
    }
    let mut messages = vec![json!({"role": "user", "content": "And tomorrow?"})];
    if params["sessionKey"] == "agent:main:release" {
        let said = json!([{"type": "text", "text": "Tomorrow it will"}]);
        messages.push(json!({"role": "assistant", "content": said, "stopReason": "aborted", "interrupted": true}));
    }
    // Of the third nobody knows whether it goes on.
    Some(
        json!({"messages": messages, "runIds": if params["sessionKey"] == "agent:main:tidy" { json!(["run-9"]) } else { json!([]) }}),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_restart_an_unfinished_answer_is_marked() {
    let stage = Stage::open(Room::open(demo::home()).await, left_behind).await;
    let browser = Browser::open().await;
    browser.visit(&stage.url()).await;
    browser.reads("#state", "connected").await;
    browser.click("#tab-chat").await;
    browser.reads("#panel-chat .cut", "No answer was stored").await;
    let choose = |key: &str| {
        format!(
            "(() => {{ const pick = document.getElementById('chat-session'); pick.value = '{key}'; pick.dispatchEvent(new Event('change')); }})()"
        )
    };
    browser.until("document.querySelector('#chat-session option[value=\"agent:main:release\"]')").await;
    browser.ask(&choose("agent:main:release")).await;
    browser.reads(LOG, "Tomorrow it will").await;
    browser.reads("#panel-chat .cut", "The gateway stopped during this answer").await;
    browser.ask(&choose("agent:main:tidy")).await;
    // A turn that goes on is not marked, and can be stopped.
    browser.until("!document.querySelector('.stop').hidden && !document.querySelector('#panel-chat .cut')").await;
    browser.reads(".working", "Working").await;
    browser.ask(&choose("agent:main:main")).await;
    browser.reads("#panel-chat .cut", "No answer was stored").await;
    browser.click("#panel-chat button.retry").await;
    prowess_testkit::eventually("it is sent again", || !stage.asked("chat.send").is_empty());
    assert_eq!(stage.asked("chat.send")[0]["message"], "And tomorrow?");
    browser.is_unharmed().await;
    browser.close().await;
}

/// Puts an image of one pixel where `event` says, and a file that is none.
fn give(event: &str) -> String {
    format!(
        "(() => {{
            const bytes = Uint8Array.from(atob('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=='), (one) => one.charCodeAt(0));
            const data = new DataTransfer();
            data.items.add(new File([bytes], 'dot.png', {{ type: 'image/png' }}));
            data.items.add(new File(['<svg/>'], 'evil.svg', {{ type: 'image/svg+xml' }}));
            const input = document.getElementById('chat-input');
            input.dispatchEvent({event});
        }})()"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn images_are_pasted_dropped_sent_and_shown() {
    let (stage, browser) = enter("chat").await;
    browser.reads(LOG, "umbrella at home").await;
    browser.ask(&give("new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true })")).await;
    browser.until("document.querySelectorAll('.thumbs img').length === 1").await;
    browser.reads("#say", "Use a PNG, JPEG, GIF or WebP image").await;
    browser.ask(&give("new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true })")).await;
    browser.until("document.querySelectorAll('.thumbs img').length === 2").await;
    browser.click(".thumbs li:first-child .remove").await;
    browser.until("document.querySelectorAll('.thumbs img').length === 1").await;
    browser.find("#chat-input").await.send_keys("What is this?\u{e007}").await.expect("typed");
    browser.until("document.querySelector('.said.person:last-of-type img.shown')?.naturalWidth === 1").await;
    prowess_testkit::eventually("it is sent", || !stage.asked("chat.send").is_empty());
    let sent = &stage.asked("chat.send")[0];
    assert_eq!(sent["message"], "What is this?");
    let [image] = sent["attachments"].as_array().map(Vec::as_slice).unwrap_or_default() else { panic!("{sent}") };
    assert_eq!([&image["type"], &image["mimeType"], &image["fileName"]], ["image", "image/png", "dot.png"]);
    assert!(image["content"].as_str().is_some_and(|content| content.starts_with("iVBOR")), "{image}");
    assert_eq!(browser.ask("document.querySelector('.thumbs').hidden").await, true);
    browser.is_unharmed().await;
    browser.close().await;
}

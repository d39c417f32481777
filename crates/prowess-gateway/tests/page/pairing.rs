//! A phone: how does the page get in from another device?

use fantoccini::wd::WindowHandle;
use prowess_gateway::{Gateway, Options};
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::demo;
use crate::room::{Room, TOKEN, ground};

/// An address that no machine has. The browser is told that it leads here, so the gateway sees it as from elsewhere.
const ELSEWHERE: &str = "203.0.113.77";

fn encrypted(port: u16) -> Options {
    Options { tls: Some(true), port: Some(port), ..Options::default() }
}

/// A browser in the hand of somebody who goes to [`ELSEWHERE`].
async fn phone() -> Browser {
    let rule = format!("--host-resolver-rules=MAP {ELSEWHERE} 127.0.0.1");
    let phone = Browser::open_with(&["--ignore-certificate-errors", &rule]).await;
    phone
        .cdp(
            "Emulation.setDeviceMetricsOverride",
            json!({"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": true}),
        )
        .await;
    phone
}

/// Opens the page of the gateway's own machine in another window, does something there, and comes back.
async fn at_the_desk(browser: &Browser, url: &str, work: impl AsyncFnOnce(&Browser)) {
    let phone: WindowHandle = browser.client.window().await.expect("a window");
    let desk = browser.client.new_window(false).await.expect("another window").handle;
    browser.client.switch_to_window(desk).await.expect("there");
    browser.visit(url).await;
    work(browser).await;
    browser.client.close_window().await.expect("closed");
    browser.client.switch_to_window(phone).await.expect("back");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_phone_is_approved_on_a_page_and_comes_back_without_the_token() {
    let room = Room::open_with(demo::home(), encrypted(0)).await;
    let port = room.running.address.port();
    let (there, here) = (format!("https://{ELSEWHERE}:{port}/"), format!("https://127.0.0.1:{port}/#token={TOKEN}"));
    let browser = phone().await;
    browser.visit(&format!("{there}#token={TOKEN}")).await;
    browser.reads("#door-wait", "Approve this device").await;
    browser.reads("#door-wait", "prowess devices approve").await;
    let print = room.running.fingerprint().expect("a certificate").to_string();
    browser.reads("#door-wait .print", &print).await;
    browser.reads("#door-wait", "waiting for approval").await;
    at_the_desk(&browser, &here, async |desk| {
        desk.reads("#state", "connected").await;
        desk.click("#tab-nodes").await;
        desk.reads("#panel-nodes .question", "operator.approvals").await;
        assert_eq!(desk.ask("document.querySelectorAll('.question.admin').length").await, 0);
        desk.click("#panel-nodes .question [data-act=approve]").await;
        desk.until("!document.querySelector('#panel-nodes .question')").await;
    })
    .await;
    browser.reads("#state", "connected").await;
    assert_eq!(browser.ask("sessionStorage.getItem('prowess.token')").await, json!(null), "it has one of its own");
    // The key never leaves the browser.
    let script = "const done = arguments[0]; const open = indexedDB.open('prowess', 1); open.onsuccess = () => {
        const get = open.result.transaction('device').objectStore('device').get('own');
        get.onsuccess = () => done([get.result.privateKey.extractable, get.result.scopes]); };";
    let kept = browser.client.execute_async(script, Vec::new()).await.expect("a device");
    assert_eq!(kept, json!([false, ["operator.approvals", "operator.read", "operator.write"]]));
    browser.visit(&there).await;
    browser.reads("#state", "connected").await;
    chat(&room, &browser).await;
    restart(room, port, &browser).await;
    browser.is_unharmed().await;
    browser.close().await;
}

/// Talks to an agent.
async fn chat(room: &Room, phone: &Browser) {
    phone.ask("location.hash = '#/chat'").await;
    phone.find("#chat-input").await.send_keys("hello from the phone").await.expect("typed");
    phone.keys("\u{e007}").await;
    phone.reads("#panel-chat", "hello from the phone").await;
    let operator = room.operator().await;
    let key = phone.ask("document.getElementById('chat-session').value").await;
    loop {
        let history = operator.call("chat.history", json!({"sessionKey": key})).await.expect("a history");
        let said = |message: &Value| message["role"] == "assistant";
        if history["messages"].as_array().is_some_and(|messages| messages.iter().any(said)) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

/// The gateway is started again, and the phone finds it.
async fn restart(room: Room, port: u16, phone: &Browser) {
    let Room { tree, running } = room;
    running.end().await;
    phone.reads("#state", "reconnecting").await;
    let running = Gateway::start(ground(&tree), encrypted(port)).await.expect("a gateway");
    phone.reads("#state", "connected").await;
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_phone_that_is_refused_asks_again_only_when_somebody_wants_it_to() {
    let room = Room::open_with(demo::home(), encrypted(0)).await;
    let port = room.running.address.port();
    let browser = phone().await;
    browser.visit(&format!("https://{ELSEWHERE}:{port}/#token={TOKEN}&access=read")).await;
    browser.reads("#door-wait", "Approve this device").await;
    let operator = room.operator().await;
    let list = async || operator.call("device.pair.list", json!({})).await.expect("a list");
    let pending = list().await["pending"][0].clone();
    assert_eq!((&pending["scopes"], &pending["displayName"]), (&json!(["operator.read"]), &json!("Chrome on Linux")));
    operator.call("device.pair.reject", json!({"requestId": pending["requestId"]})).await.expect("rejected");
    browser.reads("#door-error", "An operator rejected the request.").await;
    assert_eq!(list().await["pending"], json!([]));
    assert_eq!(browser.ask("sessionStorage.getItem('prowess.token')").await, TOKEN, "the token was right");
    browser.is_unharmed().await;
    browser.close().await;
    room.running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_rights_for_a_phone_are_approved_elsewhere() {
    let room = Room::open_with(demo::home(), encrypted(0)).await;
    let port = room.running.address.port();
    let operator = room.operator().await;
    let browser = phone().await;
    let approve = async |scope: &str| {
        let list = operator.call("device.pair.list", json!({})).await.expect("a list");
        let pending = &list["pending"][0];
        assert!(pending["scopes"].as_array().is_some_and(|scopes| scopes.contains(&json!(scope))), "{pending}");
        operator.call("device.pair.approve", json!({"requestId": pending["requestId"]})).await.expect("approved");
    };
    browser.visit(&format!("https://{ELSEWHERE}:{port}/#token={TOKEN}")).await;
    browser.reads("#door-wait", "Approve this device").await;
    approve("operator.write").await;
    browser.reads("#state", "connected").await;
    browser.ask("location.hash = '#/nodes'").await;
    browser.click("#panel-nodes button.small").await;
    browser.click("dialog.rights .main").await;
    browser.reads("dialog.rights", "prowess devices approve").await;
    approve("operator.pairing").await;
    browser.until("!document.querySelector('dialog.rights')").await;
    // It keeps what it was given.
    browser.visit(&format!("https://{ELSEWHERE}:{port}/#/nodes")).await;
    browser.reads("#state", "connected").await;
    browser.is_unharmed().await;
    browser.close().await;
    room.running.end().await;
}

//! Who gets in?

use prowess_testkit::Tree;
use serde_json::json;

use crate::browser::Browser;
use crate::demo;
use crate::room::{Room, TOKEN};
use crate::stage::Stage;

#[tokio::test(flavor = "multi_thread")]
async fn the_token_is_asked_for_once_and_kept_for_the_tab_only() {
    let room = Room::open(demo::home()).await;
    let browser = Browser::open().await;
    let url = format!("http://{}/", room.running.address);
    browser.visit(&url).await;
    browser.reads("#door-why", "prowess config get gateway.auth.token --show-secrets").await;
    browser.find("#door-secret").await.send_keys("wrong").await.expect("typed");
    browser.click("#door button[type=submit]").await;
    browser.reads("#door-error", "unauthorized").await;
    browser.find("#door-secret").await.send_keys(TOKEN).await.expect("typed");
    browser.click("#door button[type=submit]").await;
    browser.reads("#state", "connected").await;
    assert_eq!(browser.ask("localStorage.getItem('prowess.token')").await, json!(null));
    // The same tab is let in again.
    browser.visit(&url).await;
    browser.reads("#state", "connected").await;
    browser.click("#leave").await;
    browser.until("!document.getElementById('door').hidden").await;
    assert_eq!(browser.ask("sessionStorage.getItem('prowess.token')").await, json!(null));
    browser.is_unharmed().await;
    browser.close().await;
    room.running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nothing_is_asked_for_the_page_opens_by_itself() {
    let tree = Tree::new().file(".openclaw/openclaw.json", "{ gateway: { auth: { mode: 'none' } } }");
    let room = Room::open(tree).await;
    let browser = Browser::open().await;
    browser.visit(&format!("http://{}/", room.running.address)).await;
    browser.reads("#state", "connected").await;
    browser.is_unharmed().await;
    browser.close().await;
    room.running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_in_the_address_is_taken_out_of_it() {
    let room = Room::open(demo::home()).await;
    let browser = Browser::open().await;
    browser.visit(&format!("http://{}/#token={TOKEN}&at=/skills", room.running.address)).await;
    browser.reads("#state", "connected").await;
    let address = browser.ask("location.href").await;
    assert!(!address.as_str().is_some_and(|address| address.contains(TOKEN)), "{address}");
    assert_eq!(browser.ask("document.documentElement.innerHTML.includes('a-token-for-tests')").await, false);
    browser.close().await;
    room.running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_lost_on_the_way_in_is_made_again() {
    let stage = Stage::open(Room::open(demo::home()).await, demo::script).await;
    stage.hang_up(2);
    let browser = Browser::open().await;
    browser.visit(&stage.url()).await;
    browser.reads("#state", "connected").await;
    assert_eq!(browser.ask("document.getElementById('door').hidden").await, true);
    browser.is_unharmed().await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_brings_another_token_finds_what_they_wrote() {
    let stage = Stage::open(Room::open(demo::home()).await, demo::script).await;
    let browser = Browser::open().await;
    browser.visit(&stage.url()).await;
    browser.reads("#state", "connected").await;
    browser.click("#tab-sessions").await;
    browser.click("[data-session='agent:main:release']").await;
    browser.click("#panel-sessions .detail .main").await;
    browser.until("document.activeElement.id === 'chat-input'").await;
    browser.keys("not sent yet").await;
    browser.ask("window.__old = document.getElementById('chat-input')").await;
    browser.ask("location.hash = 'token=another'").await;
    let there =
        "document.getElementById('chat-input') !== window.__old && !document.getElementById('panel-chat').hidden";
    browser.until(there).await;
    assert_eq!(browser.ask("document.getElementById('chat-input').value").await, "not sent yet");
    browser.until("document.getElementById('chat-session').value === 'agent:main:release'").await;
    // It is of no concern to whoever comes after them.
    browser.click("#leave").await;
    browser.find("#door-secret").await.send_keys("a third").await.expect("typed");
    browser.click("#door button[type=submit]").await;
    browser.reads("#state", "connected").await;
    browser.until("document.getElementById('chat-input').value === ''").await;
    browser.is_unharmed().await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_way_back_leads_to_the_view_before() {
    let stage = Stage::open(Room::open(demo::home()).await, demo::script).await;
    let browser = Browser::open().await;
    browser.visit(&stage.url()).await;
    let shows = |view: &str| format!("document.getElementById('panel-{view}')?.checkVisibility()");
    browser.until(&shows("skills")).await;
    browser.click("#tab-usage").await;
    browser.click("#tab-nodes").await;
    for (step, view) in [("back", "usage"), ("back", "skills"), ("forward", "usage")] {
        browser.ask(&format!("history.{step}()")).await;
        browser.until(&shows(view)).await;
        let address = browser.ask("location.hash").await;
        assert!(address.as_str().is_some_and(|address| address.starts_with(&format!("#/{view}"))), "{address}");
        assert_eq!(browser.ask(&format!("document.getElementById('tab-{view}').ariaCurrent")).await, "page");
    }
    browser.is_unharmed().await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_wrong_token_is_forgotten() {
    let config = "{ gateway: { auth: { rateLimit: { maxAttempts: 2 } } } }";
    let room = Room::open(Tree::new().file(".openclaw/openclaw.json", config)).await;
    let browser = Browser::open().await;
    let url = format!("http://{}/", room.running.address);
    for _ in 0..2 {
        browser.visit("about:blank").await;
        browser.visit(&format!("{url}#token=wrong")).await;
        browser.reads("#door-error", "token mismatch").await;
        assert_eq!(browser.ask("sessionStorage.getItem('prowess.token')").await, json!(null));
        assert_eq!(browser.ask("document.getElementById('door-again')").await, json!(null));
    }
    // It is right, but nobody looks at it for a while.
    browser.visit("about:blank").await;
    browser.visit(&format!("{url}#token={TOKEN}")).await;
    browser.reads("#door-error", "too many failed attempts").await;
    assert_eq!(browser.ask("sessionStorage.getItem('prowess.token')").await, TOKEN);
    browser.click("#door-again").await;
    browser.reads("#door-error", "too many failed attempts").await;
    assert_eq!(browser.ask("sessionStorage.getItem('prowess.token')").await, TOKEN);
    browser.is_unharmed().await;
    browser.close().await;
    room.running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_signs_in_to_read_changes_nothing_until_they_ask_for_more() {
    let room = Room::open(demo::home()).await;
    let browser = Browser::open().await;
    browser.visit(&format!("http://{}/#/skills", room.running.address)).await;
    browser.find("#door-secret").await.send_keys(TOKEN).await.expect("typed");
    browser.click("#door-read").await;
    browser.click("#door button[type=submit]").await;
    browser.reads("#state", "connected").await;
    let config = || std::fs::read_to_string(room.tree.path(".openclaw/openclaw.json")).expect("a file");
    let before = config();
    browser.click("[data-skill=weather]").await;
    browser.click(".switch").await;
    browser.reads("dialog.rights", "administrator rights").await;
    browser.reads("dialog.rights", "read only").await;
    browser.click("dialog.rights button:not(.main)").await;
    browser.until("!document.querySelector('dialog.rights')").await;
    browser.reads("#say", "needs more rights").await;
    assert_eq!(config(), before, "nothing was changed");
    browser.click(".switch").await;
    browser.click("dialog.rights [data-rights='operator.admin']").await;
    browser.until("document.querySelector('.switch').ariaChecked === 'false'").await;
    assert_ne!(config(), before);
    // It asks once per sign-in.
    browser.click(".switch").await;
    browser.until("document.querySelector('.switch').ariaChecked === 'true'").await;
    assert_eq!(browser.ask("document.querySelector('dialog.rights')").await, json!(null));
    browser.is_unharmed().await;
    browser.close().await;
    room.running.end().await;
}

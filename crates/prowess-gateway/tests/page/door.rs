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
    browser.visit(&format!("http://{}/#token={TOKEN}", room.running.address)).await;
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

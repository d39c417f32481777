//! Does every place have an address, and does a refresh keep it?

use serde_json::json;

use crate::browser::Browser;
use crate::demo;
use crate::room::Room;
use crate::stage::Stage;

async fn enter(at: &str) -> (Stage, Browser) {
    let stage = Stage::open(Room::open(demo::home()).await, demo::script).await;
    let browser = Browser::open().await;
    browser.visit(&stage.url().replace("/skills", at)).await;
    browser.reads("#state", "connected").await;
    (stage, browser)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_skill_has_an_address_and_a_refresh_keeps_the_place() {
    let (_stage, browser) = enter("/skills/sql-look?show=needs").await;
    browser.reads("#panel-skills .detail h2", "sql-look").await;
    browser.until("document.querySelector('.chip[data-id=needs]').ariaPressed === 'true'").await;
    browser.find("#panel-skills input[type=search]").await.send_keys("database").await.expect("typed");
    browser.until("location.hash === '#/skills/sql-look?q=database&show=needs'").await;
    browser.client.refresh().await.expect("the page again");
    browser.reads("#panel-skills .detail h2", "sql-look").await;
    assert_eq!(browser.ask("document.querySelector('#panel-skills input[type=search]').value").await, "database");
    assert_eq!(browser.ask("document.querySelector('.chip[data-id=needs]').ariaPressed").await, "true");
    browser.is_unharmed().await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn back_and_forward_lead_from_skill_to_skill() {
    let (_stage, browser) = enter("/skills/weather").await;
    browser.reads("#panel-skills .detail h2", "weather").await;
    browser.click("[data-skill=standup]").await;
    browser.reads("#panel-skills .detail h2", "standup").await;
    browser.click("#tab-sessions").await;
    browser.click("[data-session='agent:main:tidy']").await;
    browser.until("location.hash === '#/sessions/agent%3Amain%3Atidy'").await;
    browser.reads("#panel-sessions .detail h2", "Tidy the branch").await;
    for name in ["standup", "weather"] {
        let place = format!("location.hash.startsWith('#/skills/{name}')");
        while browser.ask(&place).await != true {
            let before = browser.ask("location.hash").await;
            browser.ask("history.back()").await;
            browser.until(&format!("location.hash !== {before}")).await;
        }
        browser.reads("#panel-skills .detail h2", name).await;
    }
    browser.ask("history.forward()").await;
    browser.reads("#panel-skills .detail h2", "standup").await;
    browser.is_unharmed().await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_leads_nowhere_says_so() {
    let (_stage, browser) = enter("/skills/no-such-skill").await;
    browser.reads("#panel-skills .detail", "There is no skill named “no-such-skill”").await;
    browser.ask("location.hash = '/sessions/agent:main:gone'").await;
    browser.reads("#panel-sessions .detail", "Session not found").await;
    browser.ask("location.hash = '/nodes/gone'").await;
    browser.reads("#say", "There is no node with the id gone").await;
    browser.ask("location.hash = '/no-such-view'").await;
    browser.reads("#panel-lost", "There is no view named “no-such-view”").await;
    browser.is_unharmed().await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_continued_at_its_own_address() {
    let (_stage, browser) = enter("/chat/agent:main:release").await;
    browser.until("document.getElementById('chat-session')?.value === 'agent:main:release'").await;
    browser.client.refresh().await.expect("the page again");
    browser.until("document.getElementById('chat-session')?.value === 'agent:main:release'").await;
    browser.until("location.hash === '#/chat/agent%3Amain%3Arelease'").await;
    browser.is_unharmed().await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_phone_shows_a_list_or_one_of_it_and_all_views() {
    let (_stage, browser) = enter("/skills").await;
    let phone = json!({"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": true});
    browser.cdp("Emulation.setDeviceMetricsOverride", phone).await;
    browser.client.refresh().await.expect("the page again");
    browser.ask("location.hash = '/skills'").await;
    browser.click("[data-skill=weather]").await;
    browser.until("!document.querySelector('#panel-skills .rows').checkVisibility()").await;
    browser.reads("#panel-skills .detail h2", "weather").await;
    browser.click("#panel-skills .back").await;
    browser.until("document.querySelector('#panel-skills .rows').checkVisibility() && !document.querySelector('#panel-skills .detail').checkVisibility()").await;
    browser.click("#more").await;
    browser.click("#sheet a[href='#/usage']").await;
    browser.until("!document.getElementById('panel-usage').hidden && !document.getElementById('sheet').open").await;
    browser.until("document.getElementById('more').matches('.current')").await;
    browser.is_unharmed().await;
    browser.close().await;
}

//! Are skills shown as they are, and changed as the person wants?

use serde_json::Value;

use crate::browser::Browser;
use crate::demo;
use crate::room::{Room, TOKEN};

async fn enter() -> (Room, Browser) {
    let room = Room::open(demo::home()).await;
    let browser = Browser::open().await;
    browser.visit(&format!("http://{}/#token={TOKEN}&at=/skills", room.running.address)).await;
    browser.find("[data-skill=weather]").await;
    (room, browser)
}

fn config(room: &Room) -> Value {
    let text = std::fs::read_to_string(room.tree.path(".openclaw/openclaw.json")).expect("the configuration");
    serde_json::from_str(&text).expect("JSON")
}

#[tokio::test(flavor = "multi_thread")]
async fn skills_appear_with_what_keeps_them_back() {
    let (room, browser) = enter().await;
    browser.reads("#panel-skills .head", "ready").await;
    browser.click("[data-skill=sql-look]").await;
    browser.reads("#panel-skills .detail", "programs not found: no-such-database-client").await;
    browser.reads("#panel-skills .detail .fix", "brew install db-client").await;
    browser.click("[data-skill=weather]").await;
    browser.reads("#panel-skills .detail", "shadows other skills with this name").await;
    browser.reads("#panel-skills .detail", ".openclaw/skills/weather/SKILL.md").await;
    browser.click(".chip[data-id=problems]").await;
    browser.reads(".problem", "unfinished/SKILL.md").await;
    browser.click(".chip[data-id=needs]").await;
    browser
        .until("!document.querySelector('[data-skill=weather]') && document.querySelector('[data-skill=speech]')")
        .await;
    browser.click(".chip[data-id=all]").await;
    browser.find("#panel-skills input[type=search]").await.send_keys("database").await.expect("typed");
    browser.until("document.querySelectorAll('#panel-skills .row').length === 1").await;
    browser.is_unharmed().await;
    browser.close().await;
    room.running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_skill_is_switched_off_and_on() {
    let (room, browser) = enter().await;
    browser.click("[data-skill=weather]").await;
    browser.until("document.querySelector('.switch').ariaChecked === 'true'").await;
    browser.click(".switch").await;
    browser.click("dialog.rights .main").await;
    browser.until("document.querySelector('.switch').ariaChecked === 'false'").await;
    browser.reads("[data-skill=weather]", "off").await;
    assert_eq!(config(&room)["skills"]["entries"]["weather"]["enabled"], false);
    browser.click(".switch").await;
    browser.until("document.querySelector('.switch').ariaChecked === 'true'").await;
    assert_eq!(config(&room)["skills"]["entries"]["weather"]["enabled"], true);
    browser.is_unharmed().await;
    browser.close().await;
    room.running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_set_and_never_shown() {
    const KEY: &str = "key-that-nobody-may-see-4711";
    let (room, browser) = enter().await;
    browser.click("[data-skill=speech]").await;
    browser.reads("#panel-skills .detail .key", "not set").await;
    browser.find("#skill-key").await.send_keys(KEY).await.expect("typed");
    browser.click("[data-act=save]").await;
    browser.click("dialog.rights .main").await;
    browser.until("document.querySelector('#panel-skills .detail .key .badge').textContent === 'set'").await;
    browser.reads("[data-skill=speech]", "ready").await;
    assert_eq!(config(&room)["skills"]["entries"]["speech"]["apiKey"], KEY);
    let kept = "JSON.stringify([document.documentElement.outerHTML, ...[...document.querySelectorAll('input')].map((input) => input.value), {...sessionStorage}, {...localStorage}])";
    let kept = browser.ask(kept).await;
    assert!(!kept.as_str().is_some_and(|kept| kept.contains(KEY)), "{kept}");
    browser.click("[data-act=remove]").await;
    browser.reads("#panel-skills .detail .key", "not set").await;
    assert_eq!(config(&room)["skills"]["entries"]["speech"].get("apiKey"), None);
    browser.is_unharmed().await;
    browser.close().await;
    room.running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_change_is_shown_without_a_reload() {
    let (room, browser) = enter().await;
    browser.reads("[data-skill=standup]", "off").await;
    browser.ask("window.__same = true").await;
    let params = serde_json::json!({"skillKey": "standup", "enabled": true});
    room.operator().await.call("skills.update", params).await.expect("done");
    browser.reads("[data-skill=standup]", "ready").await;
    assert_eq!(browser.ask("window.__same").await, true);
    browser.close().await;
    room.running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_on_disk_is_shown_without_a_reload() {
    let (room, browser) = enter().await;
    browser.ask("window.__same = true").await;
    let file = ".openclaw/workspace/skills/weather/SKILL.md";
    std::fs::write(room.tree.path(file), "---\nname: weather\ndescription: An edited text.\n---\n").expect("written");
    browser.reads("[data-skill=weather]", "An edited text.").await;
    std::fs::create_dir_all(room.tree.path(".openclaw/workspace/skills/brand-new")).expect("a folder");
    let text = "---\nname: brand-new\ndescription: It was not there before.\n---\n";
    std::fs::write(room.tree.path(".openclaw/workspace/skills/brand-new/SKILL.md"), text).expect("written");
    browser.reads("[data-skill=brand-new]", "It was not there before.").await;
    assert_eq!(browser.ask("window.__same").await, true);
    browser.close().await;
    room.running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_prompt_is_shown_word_for_word_with_its_budget() {
    let (room, browser) = enter().await;
    browser.click("#tab-prompt").await;
    browser.reads("#panel-prompt", "Skill budget").await;
    browser.until("document.querySelectorAll('#panel-prompt svg[role=img] rect.part').length > 6").await;
    let prompt = room.operator().await.call("prompt.preview", serde_json::json!({})).await.expect("an answer");
    let shown = browser
        .ask("[...document.querySelectorAll('#panel-prompt pre')].map((pre) => pre.textContent).join('\\n\\n')")
        .await;
    assert_eq!(shown, prompt["prompt"]);
    browser.is_unharmed().await;
    browser.close().await;
    room.running.end().await;
}

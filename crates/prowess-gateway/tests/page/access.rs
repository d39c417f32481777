//! Can it be used without a mouse, without eyes, and in the dark?

use serde_json::{Value, json};

use crate::browser::Browser;
use crate::demo;
use crate::page::VIEWS;
use crate::room::Room;
use crate::stage::Stage;

async fn enter() -> (Stage, Browser) {
    let stage = Stage::open(Room::open(demo::home()).await, demo::script).await;
    let browser = Browser::open().await;
    browser.visit(&stage.url()).await;
    browser.find("[data-skill=weather]").await;
    (stage, browser)
}

const DOWN: &str = "\u{e015}";
const ENTER: &str = "\u{e007}";
const TAB: &str = "\u{e004}";
const ESCAPE: &str = "\u{e00c}";

#[tokio::test(flavor = "multi_thread")]
async fn everything_is_reached_with_the_keyboard() {
    let (stage, browser) = enter().await;
    // From the top: the first stop leads past the menu.
    browser.ask("document.activeElement.blur()").await;
    browser.keys("/").await;
    browser.until("document.activeElement.type === 'search'").await;
    browser.keys("weather").await;
    browser.keys(DOWN).await;
    browser.until("document.activeElement.dataset.skill === 'weather'").await;
    browser.keys(ENTER).await;
    browser.keys(TAB).await;
    browser.until("document.querySelector('#panel-skills .detail').contains(document.activeElement)").await;
    browser.ask("document.querySelector('.switch').focus()").await;
    browser.keys(" ").await;
    browser.until("document.querySelector('.switch').ariaChecked === 'false'").await;
    browser.until("document.activeElement.dataset.act === 'switch'").await;
    // By letters to another view, and by the links of the menu.
    browser.keys("gu").await;
    browser.until("!document.getElementById('panel-usage').hidden").await;
    for view in VIEWS {
        browser.ask(&format!("document.getElementById('tab-{view}').focus()")).await;
        browser.keys(ENTER).await;
        browser.until(&format!("document.activeElement.id === 'panel-{view}'")).await;
    }
    browser.keys("?").await;
    browser.until("document.getElementById('help').open").await;
    browser.keys(ESCAPE).await;
    browser.until("!document.getElementById('help').open").await;
    // A question is answered without a mouse, too.
    stage.tell("exec.approval.requested", &demo::question("q1", "uname"));
    browser.reads("#asking", "A command is waiting").await;
    browser.ask("document.querySelector('#asking button').focus()").await;
    browser.keys(ENTER).await;
    browser.until("document.activeElement.id === 'panel-approvals'").await;
    for _ in 0..20 {
        if browser.ask("document.activeElement.dataset.decision ?? ''").await == "deny" {
            break;
        }
        browser.keys(TAB).await;
    }
    browser.keys(ENTER).await;
    browser.reads(".answered", "denied").await;
    browser.is_unharmed().await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_has_the_keyboard_shows_it() {
    let (_stage, browser) = enter().await;
    browser.ask("document.activeElement.blur()").await;
    for _ in 0..12 {
        browser.keys(TAB).await;
        let shown = browser.ask("getComputedStyle(document.activeElement).outlineStyle !== 'none' || document.activeElement.matches('body, .view, main, article')").await;
        assert_eq!(shown, true, "{}", browser.ask("document.activeElement.outerHTML").await);
    }
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_has_a_name() {
    let (stage, browser) = enter().await;
    stage.tell("exec.approval.requested", &demo::question("q1", "uname"));
    for view in VIEWS {
        browser.click(&format!("#tab-{view}")).await;
        browser.until(&format!("document.querySelector('#panel-{view}').textContent.length > 40")).await;
    }
    browser.cdp("Accessibility.enable", json!({})).await;
    for view in VIEWS {
        browser.click(&format!("#tab-{view}")).await;
        let tree = browser.cdp("Accessibility.getFullAXTree", json!({})).await;
        let nodes = tree["nodes"].as_array().expect("nodes");
        let nameless: Vec<&Value> =
            nodes.iter().filter(|node| is_used(node) && is_blank(&node["name"]["value"])).collect();
        assert!(nameless.is_empty(), "{view}: {nameless:#?}");
        assert!(nodes.len() > 20, "{view}: {}", nodes.len());
    }
    browser.close().await;
}

/// Whether a person does something with it, or is to hear of it.
fn is_used(node: &Value) -> bool {
    const ROLES: [&str; 14] = [
        "button",
        "checkbox",
        "combobox",
        "dialog",
        "image",
        "img",
        "link",
        "listbox",
        "log",
        "searchbox",
        "switch",
        "textbox",
        "region",
        "navigation",
    ];
    node["ignored"] == false && node["role"]["value"].as_str().is_some_and(|role| ROLES.contains(&role))
}

fn is_blank(name: &Value) -> bool {
    name.as_str().is_none_or(|name| name.trim().is_empty())
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_dark_where_people_want_it_dark() {
    let (_stage, browser) = enter().await;
    let light = "getComputedStyle(document.documentElement).backgroundColor";
    for (scheme, color) in [("dark", "rgb(14, 17, 22)"), ("light", "rgb(245, 246, 248)")] {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        browser.cdp("Emulation.setEmulatedMedia", json!({"features": features})).await;
        browser.until(&format!("{light} === '{color}'")).await;
    }
    // What the person chooses here counts more.
    browser.click("#theme").await;
    browser.click("#theme").await;
    browser.reads("#theme", "dark").await;
    browser.until(&format!("{light} === 'rgb(14, 17, 22)'")).await;
    browser.close().await;
}

/// The texts in sight that do not stand out from what is behind them, by the measure of WCAG 2.2 AA.
const FAINT: &str = r"(() => {
    const channels = (color) => (color.match(/[\d.]+/g) ?? []).map(Number);
    const light = (color) => channels(color).slice(0, 3)
        .map((part) => part / 255)
        .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
        .reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0);
    const behind = (node) => {
        const color = getComputedStyle(node).backgroundColor;
        return !node.parentElement || (color.startsWith('rgb(') && channels(color).length === 3) ? color : behind(node.parentElement);
    };
    const own = (node) => [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
    return [...document.querySelectorAll('#house *')]
        .filter((node) => own(node) && !node.closest('svg, .emoji, option, .quiet') && node.checkVisibility())
        .map((node) => {
            const [a, b] = [light(getComputedStyle(node).color), light(behind(node))].sort((one, other) => other - one);
            return [node.className, node.textContent.slice(0, 40), (a + 0.05) / (b + 0.05)];
        })
        .filter(([, , ratio]) => ratio < 4.5);
})()";

#[tokio::test(flavor = "multi_thread")]
async fn every_text_stands_out_from_what_is_behind_it() {
    let (stage, browser) = enter().await;
    browser.click("[data-skill=sql-look]").await;
    stage.tell("exec.approval.requested", &demo::question("q1", demo::TRICKY));
    browser.reads("#asking", "A command is waiting").await;
    let still = json!([{"name": "prefers-reduced-motion", "value": "reduce"}, {"name": "prefers-color-scheme", "value": "light"}]);
    browser.cdp("Emulation.setEmulatedMedia", json!({"features": still})).await;
    browser.click("#theme").await;
    for theme in ["light", "dark"] {
        browser.reads("#theme", theme).await;
        for view in VIEWS {
            browser.click(&format!("#tab-{view}")).await;
            browser.until(&format!("document.querySelector('#panel-{view}').textContent.length > 60")).await;
            assert_eq!(browser.ask(FAINT).await, json!([]), "{view} in the {theme}");
        }
        browser.click("#theme").await;
    }
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_fits_a_small_screen() {
    let (_stage, browser) = enter().await;
    let narrow = json!({"width": 360, "height": 700, "deviceScaleFactor": 1, "mobile": true});
    browser.cdp("Emulation.setDeviceMetricsOverride", narrow).await;
    for view in VIEWS {
        browser.ask(&format!("document.getElementById('tab-{view}').click()")).await;
        browser.until(&format!("!document.getElementById('panel-{view}').hidden")).await;
        browser.until("[document.documentElement, document.querySelector('.top'), document.querySelector('.view:not([hidden])')].every((node) => node.scrollWidth <= innerWidth)").await;
    }
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_out_of_sight_on_the_smallest_screen() {
    let (_stage, browser) = enter().await;
    let narrow = json!({"width": 340, "height": 700, "deviceScaleFactor": 1, "mobile": true});
    browser.cdp("Emulation.setDeviceMetricsOverride", narrow).await;
    browser.until("innerWidth === 340").await;
    browser.ask("document.getElementById('tab-chat').click()").await;
    let outside = "[...document.querySelectorAll('.side .first a, .more, .tools button:not(#keys), .composer > :not([hidden])')]
        .filter((node) => !node.checkVisibility() || node.getBoundingClientRect().left < 0 || node.getBoundingClientRect().right > innerWidth)
        .map((node) => node.id)";
    assert_eq!(browser.ask(outside).await, json!([]));
    let rows = "new Set([...document.querySelectorAll('.side .first a, .more')].map((node) => node.getBoundingClientRect().top)).size";
    assert_eq!(browser.ask(rows).await, 1, "the views are in one row");
    // What stands in an empty field has room in it.
    let fits = "(() => {
        const input = document.getElementById('chat-input');
        const style = getComputedStyle(input);
        const pen = document.createElement('canvas').getContext('2d');
        pen.font = style.font;
        return pen.measureText(input.placeholder).width <= input.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    })()";
    assert_eq!(browser.ask(fits).await, true);
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_keyboard_goes_on_to_the_next_question() {
    let (stage, browser) = enter().await;
    browser.click("#tab-approvals").await;
    stage.tell("exec.approval.requested", &demo::question("q1", "uname"));
    stage.tell("exec.approval.requested", &demo::question("q2", "id"));
    browser.until("document.querySelectorAll('.question[data-id]').length === 2").await;
    for (id, next) in [("q1", ".question[data-id=q2]"), ("q2", "#panel-approvals h1")] {
        browser.ask(&format!("document.querySelector('[data-id={id}] [data-decision=deny]').focus()")).await;
        browser.keys(ENTER).await;
        browser.until(&format!("!document.querySelector('[data-id={id}]')")).await;
        assert_eq!(browser.ask(&format!("document.activeElement.matches('{next}')")).await, true, "{next}");
    }
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_leaves_the_keyboard_where_it_is() {
    let (stage, browser) = enter().await;
    browser.ask("document.querySelector('[data-skill=standup]').focus()").await;
    let node = "document.querySelector('[data-skill=standup]')";
    browser.ask(&format!("window.__old = {node}")).await;
    stage.tell("skills.changed", &json!({}));
    browser.until(&format!("{node} && {node} !== window.__old && document.activeElement === {node}")).await;
    browser.close().await;
}

//! Does axe-core find anything wrong, in any view, in the light, in the dark, at a desk and on a phone?

use std::io::Read;

use flate2::read::GzDecoder;
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::demo;
use crate::page::{VIEWS, promised};
use crate::room::Room;
use crate::stage::Stage;

fn axe() -> String {
    let packed = include_bytes!("../fixtures/axe-core-4.14.0.min.js.gz");
    let mut source = String::new();
    GzDecoder::new(&packed[..]).read_to_string(&mut source).expect("a script");
    source
}

const FOUND: &str = "axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) =>
    violations.map(({ id, nodes }) => [id, ...nodes.slice(0, 5).map((node) => `${node.html.slice(0, 200)} ${node.any[0]?.message ?? ''}`)]))";

/// What axe finds in every view on a screen of that size.
async fn check(width: u32, height: u32, scheme: &str) {
    let stage = Stage::open(Room::open(demo::home()).await, demo::script).await;
    let browser = Browser::open().await;
    let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500});
    browser.cdp("Emulation.setDeviceMetricsOverride", size).await;
    let features = json!([{"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": "reduce"}]);
    browser.cdp("Emulation.setEmulatedMedia", json!({"features": features})).await;
    browser.visit(&stage.url()).await;
    browser.reads("#panel-skills", "weather").await;
    stage.tell("exec.approval.requested", &demo::question("q1", demo::TRICKY));
    browser.cdp("Runtime.evaluate", json!({"expression": axe()})).await;
    for view in VIEWS {
        browser.ask(&format!("location.hash = '/{view}'")).await;
        browser.until(&format!("!document.getElementById('panel-{view}').hidden && document.getElementById('panel-{view}').innerText.length > 40 && !document.querySelector('#panel-{view} .loading')?.checkVisibility()")).await;
        let found = promised(&browser, FOUND).await;
        assert_eq!(found, json!([]), "{view} at {width}×{height} in {scheme}: {found:#}");
    }
    browser.ask("location.hash = '/skills/sql-look'").await;
    browser.reads("#panel-skills .detail", "What keeps it back").await;
    assert_eq!(promised(&browser, FOUND).await, Value::Array(Vec::new()), "a skill at {width}×{height} in {scheme}");
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_wrong_at_a_desk_in_the_light() {
    check(1280, 800, "light").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_wrong_at_a_desk_in_the_dark() {
    check(1280, 800, "dark").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_wrong_on_a_phone_in_the_light() {
    check(390, 844, "light").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_wrong_on_a_phone_in_the_dark() {
    check(390, 844, "dark").await;
}

//! Pictures of the page for the documentation.
//!
//! `cargo nextest run -p prowess-gateway --run-ignored all -E 'test(pictures_of_every_view)'` renews them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;

use crate::browser::Browser;
use crate::demo;
use crate::room::Room;
use crate::stage::Stage;

const LIGHT: [&str; 12] = [
    "overview",
    "chat",
    "approvals",
    "sessions",
    "skills",
    "prompt",
    "usage",
    "nodes",
    "rules",
    "audit",
    "network",
    "config",
];
const DARK: [&str; 4] = ["overview", "chat", "skills", "usage"];
const SMALL: [&str; 4] = ["overview", "approvals", "chat", "skills"];

#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes files; run it by name to renew the pictures"]
async fn pictures_of_every_view() {
    let folder = std::env::var_os("PROWESS_SCREENSHOTS_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/screenshots"), PathBuf::from);
    std::fs::create_dir_all(&folder).expect("a folder");
    let stage = Stage::open(Room::open(demo::home()).await, demo::script).await;
    let browser = Browser::open().await;
    let small = json!({"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": true});
    let sets: [(&str, &str, &[&str]); 3] =
        [("light", "light", &LIGHT), ("dark", "dark", &DARK), ("small", "dark", &SMALL)];
    for (name, scheme, views) in sets {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        browser.cdp("Emulation.setEmulatedMedia", json!({"features": features})).await;
        if name == "small" {
            browser.cdp("Emulation.setDeviceMetricsOverride", small.clone()).await;
        }
        browser.visit("about:blank").await;
        browser.visit(&stage.url()).await;
        browser.reads("#panel-skills", "weather").await;
        for view in views {
            if *view == "approvals" {
                stage.tell("exec.approval.requested", &demo::question("q1", demo::TRICKY));
            }
            let place = if *view == "config" { "/config/gateway" } else { view };
            browser.ask(&format!("location.hash = '/{}'", place.trim_start_matches('/'))).await;
            browser.until(&format!("!document.getElementById('panel-{view}').hidden")).await;
            prepare(&browser, view).await;
            // Only for the looks: whatever moves has come to rest.
            tokio::time::sleep(Duration::from_millis(400)).await;
            let picture = browser.client.screenshot().await.expect("a picture");
            assert!(picture.len() < 200_000, "{view}: {}", picture.len());
            std::fs::write(folder.join(format!("{view}-{name}.png")), picture).expect("written");
        }
    }
    browser.is_unharmed().await;
    browser.close().await;
}

/// Waits for what a view shows, and chooses what is worth a picture.
async fn prepare(browser: &Browser, view: &str) {
    match view {
        "skills" => {
            browser.click("[data-skill='sql-look']").await;
            browser.reads("#panel-skills .detail", "What keeps it back").await;
        }
        "prompt" => browser.reads("#panel-prompt", "Skill budget").await,
        "chat" => browser.reads("#panel-chat .log", "umbrella at home").await,
        "approvals" => browser.reads("#panel-approvals", "Allow this command?").await,
        "nodes" => browser.reads("#panel-nodes", "attic").await,
        "sessions" => {
            browser.click("#panel-sessions .row").await;
            browser.reads("#panel-sessions .log", "umbrella at home").await;
        }
        "usage" => browser.reads("#panel-usage", "Table").await,
        "overview" => browser.reads("#panel-overview", "Recent sessions").await,
        "config" => browser.reads("#panel-config", "gateway.port").await,
        _ => browser.until(&format!("document.getElementById('panel-{view}').innerText.length > 100")).await,
    }
}

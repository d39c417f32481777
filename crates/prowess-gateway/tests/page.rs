//! What does a person see in a browser, and what can they do there?
//!
//! These drive Debian's Chromium. `cargo xtask test` installs it where it can.

#[path = "page/access.rs"]
mod access;
#[path = "page/axe.rs"]
mod axe;
#[path = "page/door.rs"]
mod door;
#[path = "page/hostile.rs"]
mod hostile;
#[path = "page/interrupted.rs"]
mod interrupted;
#[path = "page/lists.rs"]
mod lists;
#[path = "page/markdown.rs"]
mod markdown;
#[path = "page/network.rs"]
mod network;
#[path = "page/pairing.rs"]
mod pairing;
#[path = "page/places.rs"]
mod places;
#[path = "page/questions.rs"]
mod questions;
#[path = "page/screenshots.rs"]
mod screenshots;
#[path = "page/served.rs"]
mod served;
#[path = "page/skills.rs"]
mod skills;
#[path = "page/talk.rs"]
mod talk;
#[path = "page/views.rs"]
mod views;
#[path = "page/waiting.rs"]
mod waiting;

/// All views of the page.
const VIEWS: [&str; 14] = [
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
    "agents",
    "config",
    "logs",
];

/// What a promise on the page comes to.
async fn promised(browser: &browser::Browser, expression: &str) -> serde_json::Value {
    let script = format!(
        "const done = arguments[arguments.length - 1]; Promise.resolve({expression}).then(done, (error) => done(`${{error}}`));"
    );
    browser.client.execute_async(&script, Vec::new()).await.expect("a value")
}
use crate::browser;

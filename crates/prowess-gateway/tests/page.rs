//! What does a person see in a browser, and what can they do there?
//!
//! These drive Debian's Chromium. `cargo xtask test` installs it where it can.

#[path = "support/browser.rs"]
mod browser;
#[path = "support/demo.rs"]
mod demo;
#[path = "support/machine.rs"]
mod machine;
#[path = "support/room.rs"]
mod room;
#[path = "support/stage.rs"]
mod stage;

#[path = "page/access.rs"]
mod access;
#[path = "page/door.rs"]
mod door;
#[path = "page/hostile.rs"]
mod hostile;
#[path = "page/interrupted.rs"]
mod interrupted;
#[path = "page/markdown.rs"]
mod markdown;
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
#[path = "page/waiting.rs"]
mod waiting;

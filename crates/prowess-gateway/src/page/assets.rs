//! The files of the page, as they are in the program.

use super::Asset;

/// The page itself.
pub(super) const INDEX: &str = include_str!("index.html");

const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

/// A file beside this one, under its own name.
macro_rules! asset {
    ($name:literal, $kind:expr) => {
        Asset { name: $name, kind: $kind, text: include_str!($name) }
    };
}

/// All other files, as they are asked for below `/assets/`.
pub(crate) const ASSETS: &[Asset] = &[
    asset!("style.css", STYLE),
    asset!("views.css", STYLE),
    asset!("chat.css", STYLE),
    asset!("icon.svg", "image/svg+xml"),
    asset!("app.js", SCRIPT),
    asset!("settings.js", SCRIPT),
    asset!("rules.js", SCRIPT),
    asset!("parts.js", SCRIPT),
    asset!("overview.js", SCRIPT),
    asset!("logs.js", SCRIPT),
    asset!("list.js", SCRIPT),
    asset!("config.js", SCRIPT),
    asset!("audit.js", SCRIPT),
    asset!("agents.js", SCRIPT),
    asset!("approvals.js", SCRIPT),
    asset!("chat.js", SCRIPT),
    asset!("device.js", SCRIPT),
    asset!("dom.js", SCRIPT),
    asset!("door.js", SCRIPT),
    asset!("question.js", SCRIPT),
    asset!("past.js", SCRIPT),
    asset!("markdown.js", SCRIPT),
    asset!("inline.js", SCRIPT),
    asset!("images.js", SCRIPT),
    asset!("highlight.js", SCRIPT),
    asset!("copy.js", SCRIPT),
    asset!("link.js", SCRIPT),
    asset!("nav.js", SCRIPT),
    asset!("network.js", SCRIPT),
    asset!("nodes.js", SCRIPT),
    asset!("picture.js", SCRIPT),
    asset!("prompt.js", SCRIPT),
    asset!("route.js", SCRIPT),
    asset!("sessions.js", SCRIPT),
    asset!("skills.js", SCRIPT),
    asset!("skill.js", SCRIPT),
    asset!("talk.js", SCRIPT),
    asset!("trail.js", SCRIPT),
    asset!("usage.js", SCRIPT),
];

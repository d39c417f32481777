//! Shell completion: the names that only this machine knows, and the script that asks for them.
//!
//! The script of a shell calls prowess itself with the words typed so far, so that what it offers is never out of date.

use std::ffi::OsStr;

use clap_complete::engine::CompletionCandidate;
use clap_complete::env::Shells;
use prowess_agent::session::{SessionKey, Sessions};
use prowess_config::LocationFlags;
use prowess_config::schema;
use prowess_host::{Context, Failure, Flags, Ground, View, model_settings};
use prowess_skills::text::shorten;

use crate::output::Report;

/// The variable by which a completion script asks.
pub(crate) const VARIABLE: &str = "PROWESS_COMPLETE";

/// How much of a description stands beside a name, in UTF-16 units.
const MAX_ABOUT: usize = 60;

/// How many sessions are offered, the newest first.
const MAX_SESSIONS: usize = 50;

/// The script for a shell.
pub(crate) fn script(shell: clap_complete::Shell) -> Result<Report, Failure> {
    let shells = Shells::builtins();
    let name = shell.to_string();
    let completer = shells.completer(&name).ok_or_else(|| Failure::usage(format!("{name} has no completion")))?;
    let mut script = Vec::new();
    completer.write_registration(VARIABLE, "prowess", "prowess", "prowess", &mut script).map_err(Failure::ours)?;
    String::from_utf8(script).map(Report::text).map_err(Failure::ours)
}

/// Names of skills.
pub(crate) fn skills(typed: &OsStr) -> Vec<CompletionCandidate> {
    let Some(view) = context().and_then(|context| View::load(context, None).ok()) else { return Vec::new() };
    let all =
        view.catalog.skills().iter().map(|skill| (skill.name.to_string(), shorten(&skill.description, MAX_ABOUT)));
    offered(typed, all)
}

/// Keys of sessions, the newest first.
pub(crate) fn sessions(typed: &OsStr) -> Vec<CompletionCandidate> {
    let Some(context) = context() else { return Vec::new() };
    let agent = context.agent.id.as_str();
    let sessions = Sessions::new(&context.locations.state_dir, agent);
    let keys = sessions.keys().into_iter().flatten();
    let short = |key: String| match SessionKey::parse(&key) {
        Some(parsed) if parsed.agent() == agent => parsed.rest().to_owned(),
        _ => key,
    };
    offered(typed, keys.take(MAX_SESSIONS).map(|key| (short(key), String::new())))
}

/// Ids of agents.
pub(crate) fn agents(typed: &OsStr) -> Vec<CompletionCandidate> {
    let Some(context) = context() else { return Vec::new() };
    let agents = context.config.agents();
    offered(typed, agents.list().iter().map(|agent| (agent.id.to_string(), String::new())))
}

/// Names of models.
pub(crate) fn models(typed: &OsStr) -> Vec<CompletionCandidate> {
    let Some(context) = context() else { return Vec::new() };
    let settings = model_settings(&context);
    let names = settings.models.iter().map(|model| (model.id(), String::new()));
    offered(typed, names.chain([("embedded".to_owned(), "the planner in this program".to_owned())]))
}

/// Keys of the configuration. Below `skills.entries` the name of each skill stands for the key.
pub(crate) fn config_keys(typed: &OsStr) -> Vec<CompletionCandidate> {
    const ENTRY: &str = "skills.entries.<key>";
    let plain = schema::KEYS.iter().filter(|key| !key.path.contains(['<', '*']));
    let mut all: Vec<(String, String)> = plain.map(|key| (key.path.to_owned(), key.meaning.to_owned())).collect();
    if typed.to_str().is_some_and(|typed| typed.starts_with("skills.entries.")) {
        let Some(view) = context().and_then(|context| View::load(context, None).ok()) else { return Vec::new() };
        let below = schema::KEYS.iter().filter(|key| key.path.starts_with(ENTRY));
        let below: Vec<&schema::Key> = below.filter(|key| !key.path[ENTRY.len()..].contains(['<', '*'])).collect();
        for skill in view.catalog.skills() {
            let entry = format!("skills.entries.{}", skill.key());
            all.extend(below.iter().map(|key| (key.path.replacen(ENTRY, &entry, 1), key.meaning.to_owned())));
        }
    }
    offered(typed, all.into_iter())
}

/// Those that begin with what was typed.
fn offered(typed: &OsStr, all: impl Iterator<Item = (String, String)>) -> Vec<CompletionCandidate> {
    let Some(typed) = typed.to_str() else { return Vec::new() };
    // A name with control characters would not come through the shell as it is.
    let fits = |name: &str| name.starts_with(typed) && !name.chars().any(char::is_control);
    let candidate = |(name, about): (String, String)| {
        CompletionCandidate::new(name).help(Some(about).filter(|about| !about.is_empty()).map(Into::into))
    };
    all.filter(|(name, _)| fits(name)).map(candidate).collect()
}

/// The context that the flags typed so far would give; completion says nothing where there is none.
fn context() -> Option<Context> {
    let words: Vec<String> = std::env::args_os().filter_map(|word| word.into_string().ok()).collect();
    let flag = |name: &str| {
        words.iter().enumerate().find_map(|(at, word)| match word.strip_prefix(name)? {
            "" => words.get(at + 1).cloned(),
            rest => rest.strip_prefix('=').map(str::to_owned),
        })
    };
    let locations = LocationFlags {
        profile: flag("--profile"),
        dev: words.iter().any(|word| word == "--dev"),
        config: flag("--config").map(Into::into),
    };
    let flags = Flags { agent: flag("--agent"), workspace: flag("--workspace").map(Into::into), locations };
    let ground = Ground::of_process(flags.clone()).ok()?;
    let of = |flags: Flags| Context::load(&Ground { flags, ..ground.clone() }).ok();
    // An agent that is only half typed is none yet.
    of(flags.clone()).or_else(|| of(Flags { agent: None, ..flags }))
}

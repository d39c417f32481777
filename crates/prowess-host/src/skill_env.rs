//! Variables for skills: what do the names that skills declare stand for?
//!
//! The process comes first, then `.env` of the state directory, which is the operator's. `.env` of the current directory
//! came with whatever was cloned or unpacked there. It gives a value only to a name that some skill declares, and never to
//! one that configures this program, names a credential of ours, or steers which program runs and which host it talks to.

use std::cell::RefCell;
use std::collections::BTreeSet;

use prowess_agent::settings::Settings;
use prowess_config::{Env, VariableSource};
use prowess_skills::env::hijacks;
use prowess_skills::{Catalog, Problem, ProblemKind};

use crate::context::Context;

/// The variables, and what was ignored of `.env` in the current directory although someone would use it.
pub(crate) fn resolve(context: &Context, catalog: &Catalog) -> (Env, Option<Problem>) {
    let mut env = context.env.clone();
    let provided = context.config.config_env();
    for (name, variable) in &provided.variables {
        if matches!(variable.source, VariableSource::Dotenv(_)) {
            env.insert(name, variable.value.expose());
        }
    }
    if provided.project.is_empty() {
        return (env, None);
    }
    let declared = declared(catalog);
    let ours = ours(context);
    let mut ignored = Vec::new();
    for (name, value) in &provided.project {
        let is_free = env.text(name).is_none();
        let is_safe = !(ours.contains(name) || hijacks(name) || redirects(name));
        if declared.contains(name.as_str()) && is_safe && is_free {
            env.insert(name, value.expose());
        } else if !is_safe && is_free && (ours.contains(name) || is_our_name(name) || declared.contains(name.as_str()))
        {
            ignored.push(name.as_str());
        }
    }
    let problem = (!ignored.is_empty()).then(|| told(context, &ignored));
    (env, problem)
}

/// The names that skills declare.
fn declared(catalog: &Catalog) -> BTreeSet<&str> {
    let metadata = catalog.skills().iter().map(|skill| &skill.metadata);
    metadata.flat_map(prowess_skills::Metadata::declared_env).collect()
}

/// The names that are looked up to find a model, its host and its key.
fn ours(context: &Context) -> BTreeSet<String> {
    let asked = RefCell::new(BTreeSet::new());
    let record = |name: &str| {
        asked.borrow_mut().insert(name.to_owned());
        None
    };
    let _ = Settings::read(context.config.tree(), Some(context.agent.id.as_str()), record);
    asked.into_inner()
}

fn is_our_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    ["OPENCLAW_", "CLAWDBOT_", "MOLTBOT_", "MOLDBOT_", "PROWESS_"].iter().any(|prefix| name.starts_with(prefix))
}

/// Whether a name says which host is talked to.
fn redirects(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let ends =
        ["URL", "URI", "HOST", "HOSTNAME", "ENDPOINT", "API_BASE", "SERVER", "ADDR", "ADDRESS", "DOMAIN", "PROXY"];
    ends.iter().any(|end| name.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('_')))
        || name.ends_with("BASE_URL")
        || is_our_name(&name)
}

fn told(context: &Context, ignored: &[&str]) -> Problem {
    const SHOWN: usize = 8;
    let mut names = ignored.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    if ignored.len() > SHOWN {
        names = format!("{names} and {} more", ignored.len() - SHOWN);
    }
    let file = context.locations.cwd.join(".env");
    let reason = format!("ignored {names}: a .env file in the current directory cannot configure prowess");
    let fix = format!("if you trust them, move them to {}", context.locations.state_dir.join(".env").display());
    Problem::new(ProblemKind::Setting, &file, reason, fix)
}

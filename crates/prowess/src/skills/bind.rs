//! `skills bind`: this skill, too, gets what the entry with its key gives.

use prowess_host::{EntryOwner, Failure, View, bind};
use serde_json::{Value, json};

use super::find;
use crate::output::{Report, safe, short_path};

pub(super) fn run(view: &View, name: &str, json: bool) -> Result<Report, Failure> {
    let skill = find(view, name)?;
    let changed = view.bindings.owner(skill) != EntryOwner::This;
    if changed {
        bind(view, skill)?;
    }
    let entry = &view.context.config.tree()["skills"]["entries"][skill.key()];
    let gives = gives(entry);
    let source = view.bindings.source(skill);
    if json {
        return Report::json(&json!({
            "ok": true, "skill": skill.name.as_str(), "key": skill.key(), "source": source, "changed": changed, "gives": gives,
        }));
    }
    let file = short_path(&skill.file, view.context.user_home());
    let what = if gives.is_empty() { "nothing yet".to_owned() } else { gives.join(", ") };
    let verb = if changed { "now belongs" } else { "already belongs" };
    Ok(Report::text(format!(
        "skills.entries.{} {verb} to {} ({file})\n  it gives: {}\n",
        safe(skill.key()),
        safe(skill.name.as_str()),
        safe(&what)
    ))
    .wrapped())
}

/// What an entry gives, by name and without values.
fn gives(entry: &Value) -> Vec<String> {
    let mut gives = Vec::new();
    if !entry["apiKey"].is_null() {
        gives.push("apiKey".to_owned());
    }
    gives.extend(entry["env"].as_object().into_iter().flatten().map(|(name, _)| format!("env.{name}")));
    for section in ["sandbox", "capabilities"] {
        gives.extend(entry[section].as_object().into_iter().flatten().map(|(name, _)| format!("{section}.{name}")));
    }
    gives
}

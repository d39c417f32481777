//! `prowess config`: what is set, where does it come from, and how is it changed?

mod value;

use std::io::Write;

use prowess_config::schema::{self, Kind};
use prowess_config::{ConfigFile, KeyPath, Layer, REDACTED, Warning};
use prowess_host::{Context, Failure, View};
use prowess_skills::{Problem, ProblemKind};
use serde_json::Value;

pub(crate) use value::{Asked, asked};

use crate::cli::{self, Globals};
use crate::output::{BOLD, DIM, Report, WARN, paint, safe, table};
use crate::suggest::did_you_mean;
use crate::wrap::{stdout_columns, wrap};

pub(crate) fn run(command: &cli::Config, globals: &Globals) -> Result<Report, Failure> {
    match command {
        cli::Config::Get { path, show_secrets } => {
            get(&globals.context()?, path.as_deref(), *show_secrets, globals.json)
        }
        cli::Config::Set { path, value, stdin, force } => {
            let asked = asked(path, value.as_deref(), *stdin, *force)?;
            set(&asked, globals)
        }
        cli::Config::Unset { path } => {
            let file = file(globals)?;
            let edited = file.unset(path).map_err(Failure::input)?;
            done(&edited, path, globals.json)
        }
        cli::Config::Keys { text } => keys(text.as_deref().unwrap_or_default(), globals.json),
        cli::Config::Path => {
            let path = file(globals)?.path().display().to_string();
            if globals.json {
                Report::json(&serde_json::json!({ "path": path }))
            } else {
                Ok(Report::text(format!("{path}\n")))
            }
        }
    }
}

fn set(asked: &Asked, globals: &Globals) -> Result<Report, Failure> {
    let path = asked.path.to_string();
    let edited = file(globals)?.set(&path, asked.value.clone()).map_err(|error| {
        let failure = Failure::input(error);
        asked.example().into_iter().fold(failure, Failure::hint)
    })?;
    let about = |warning: &&Warning| !warning.path.segments().is_empty() && asked.path.starts_with(&warning.path);
    for warning in globals.context()?.config.warnings().iter().filter(about) {
        // The value is written all the same; a reader that has gone away misses a remark.
        let _ = writeln!(anstream::stderr(), "{} {warning}", paint(WARN, "warning:"));
    }
    if asked.path.segments().iter().take(2).eq(["skills", "entries"]) {
        note_owner(asked, globals);
    }
    done(&edited, &path, globals.json)
}

/// Records which skill an entry was set up for, and warns if it is not the one that is there now.
fn note_owner(asked: &Asked, globals: &Globals) {
    // Looking is what records it; whatever stands in its way is told where skills are looked at.
    let Ok(view) = globals.context().and_then(|context| View::load(context, None)) else { return };
    let key = asked.path.segments().get(2);
    let claimed = view.catalog.skills().iter().filter(|skill| key.is_some_and(|key| key == skill.key()));
    let files: Vec<_> = claimed.map(|skill| &skill.file).collect();
    let is_about = |problem: &&Problem| problem.kind == ProblemKind::Unbound && files.contains(&&problem.path);
    for problem in view.problems.iter().filter(is_about) {
        let text = format!("the skill in {} {}; {}", problem.path.display(), problem.reason, problem.fix);
        let _ = writeln!(anstream::stderr(), "{} {}", paint(WARN, "warning:"), safe(&text));
    }
}

/// The keys that hold values; sections only lead to them.
fn leaves() -> impl Iterator<Item = &'static schema::Key> {
    schema::KEYS.iter().filter(|key| !matches!(key.kind, Kind::Section | Kind::Open | Kind::Free | Kind::List))
}

fn keys(text: &str, json: bool) -> Result<Report, Failure> {
    let wanted = text.to_lowercase();
    let fits =
        |key: &&schema::Key| key.path.to_lowercase().contains(&wanted) || key.meaning.to_lowercase().contains(&wanted);
    let found: Vec<&schema::Key> = leaves().filter(fits).collect();
    if found.is_empty() {
        let failure = Failure::input(format!("no key contains `{}`", crate::output::safe(text)));
        let near = did_you_mean(text, leaves().map(|key| key.path));
        return Err(near.into_iter().fold(failure, Failure::hint).hint("prowess config keys lists all of them"));
    }
    if json {
        let shape = |key: &&schema::Key| serde_json::json!({"path": key.path, "type": key.kind.to_string(), "default": key.default_value(), "meaning": key.meaning});
        return Report::json(&found.iter().map(shape).collect::<Vec<_>>());
    }
    let Some(columns) = stdout_columns() else {
        let row = |key: &&schema::Key| {
            let default = key.default.unwrap_or("-").to_owned();
            vec![key.path.to_owned(), key.kind.to_string(), default, key.meaning.to_owned()]
        };
        let rows = found.iter().map(row).collect();
        return Ok(Report::text(table(&["Key", "Type", "Default", "Meaning"], &[], rows)));
    };
    let page = found.iter().map(|key| {
        let default = key.default.map_or_else(String::new, |default| format!(" (default {default})"));
        let about = wrap(&format!("    {}: {}{default}", key.meaning, key.kind), Some(columns), "    ");
        format!("{}\n{about}\n", paint(BOLD, key.path))
    });
    Ok(Report::text(page.collect::<String>()))
}

fn file(globals: &Globals) -> Result<ConfigFile, Failure> {
    // Changing a broken file must stay possible, so it is not loaded here.
    let locations = globals.ground_to_edit().and_then(|ground| ground.locations())?;
    Ok(ConfigFile::new(locations.config_path))
}

fn get(context: &Context, path: Option<&str>, show_secrets: bool, json: bool) -> Result<Report, Failure> {
    let config = &context.config;
    let Some(path) = path else {
        return Report::json(
            if show_secrets { config.tree().clone() } else { config.redacted() }
                .as_object()
                .unwrap_or(&serde_json::Map::new()),
        );
    };
    let Some(found) = config.get(path) else {
        let unavailable = config.unavailable().iter().find(|lost| lost.path.to_string() == path);
        let failure = Failure::input(format!("`{path}` is not set and has no default"));
        if let Some(lost) = unavailable {
            return Err(failure.hint(format!("it refers to the variable {}, which is not set", lost.variable)));
        }
        let is_known = path.parse::<KeyPath>().is_ok_and(|path| schema::find(path.segments()).is_some());
        let near = did_you_mean(path, leaves().map(|key| key.path)).filter(|_| !is_known);
        return Err(near.into_iter().fold(failure, Failure::hint).hint("prowess config get shows what is set"));
    };
    let layer = match found.layer {
        Layer::Default => "default",
        Layer::File => "file",
        Layer::Env => "env",
        Layer::Flag => "flag",
    };
    let value = if show_secrets { found.value } else { hidden(config, path, found.value) };
    let origin = found.origin.map(|file| file.display().to_string());
    if json {
        return Report::json(&serde_json::json!({"path": path, "value": value, "layer": layer, "origin": origin}));
    }
    let shown = match &value {
        Value::String(text) => text.clone(),
        other => serde_json::to_string_pretty(other).map_err(Failure::ours)?,
    };
    // Where it comes from is not part of the value, so a script can use the output as it is.
    let _ = writeln!(
        anstream::stderr(),
        "{}",
        paint(DIM, &format!("{layer}{}", origin.map(|file| format!(": {file}")).unwrap_or_default()))
    );
    Ok(Report::text(format!("{shown}\n")))
}

/// The value as the redacted tree has it, where it has it.
fn hidden(config: &prowess_config::Config, path: &str, value: Value) -> Value {
    let Ok(path) = path.parse::<prowess_config::KeyPath>() else { return value };
    let redacted = config.redacted();
    let found = path.segments().iter().try_fold(&redacted, |value, step| match value {
        Value::Array(items) => step.parse::<usize>().ok().and_then(|index| items.get(index)),
        _ => value.get(step),
    });
    match found {
        Some(shown) if shown.is_object() || shown.is_array() || shown == REDACTED => shown.clone(),
        _ => value,
    }
}

fn done(edited: &prowess_config::Edited, path: &str, json: bool) -> Result<Report, Failure> {
    let file = edited.file.display().to_string();
    let revealed = edited.revealed.as_ref().map(|file| file.display().to_string());
    if json {
        return Report::json(
            &serde_json::json!({"ok": true, "path": path, "file": file, "changed": edited.changed, "revealed": revealed}),
        );
    }
    let mut text =
        if edited.changed { format!("changed {path} in {file}\n") } else { format!("unchanged: {path} in {file}\n") };
    if let Some(other) = revealed {
        text = format!("{text}the value from {other} applies now\n");
    }
    Ok(Report::text(text))
}

//! `prowess config`: what is set, where does it come from, and how is it changed?

use std::io::Write;

use prowess_config::schema::{self, Kind};
use prowess_config::{ConfigFile, KeyPath, Layer, REDACTED, Warning};
use prowess_host::{Context, Failure};
use serde_json::Value;

use crate::cli::{self, Globals};
use crate::output::{DIM, Report, WARN, paint, table};

pub(crate) fn run(command: &cli::Config, globals: &Globals) -> Result<Report, Failure> {
    match command {
        cli::Config::Get { path, show_secrets } => {
            get(&globals.context()?, path.as_deref(), *show_secrets, globals.json)
        }
        cli::Config::Set { path, value } => {
            let file = file(globals)?;
            let edited = file.set(path, value_of(value)).map_err(Failure::input)?;
            let place: KeyPath = path.parse().map_err(Failure::input)?;
            let context = globals.context()?;
            let about = |warning: &&Warning| !warning.path.segments().is_empty() && place.starts_with(&warning.path);
            for warning in context.config.warnings().iter().filter(about) {
                // The value is written all the same; a reader that has gone away misses a remark.
                let _ = writeln!(anstream::stderr(), "{} {warning}", paint(WARN, "warning:"));
            }
            done(&edited, path, globals.json)
        }
        cli::Config::Unset { path } => {
            let file = file(globals)?;
            let edited = file.unset(path).map_err(Failure::input)?;
            done(&edited, path, globals.json)
        }
        cli::Config::Keys => keys(globals.json),
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

fn keys(json: bool) -> Result<Report, Failure> {
    let keys = || schema::KEYS.iter().filter(|key| !matches!(key.kind, Kind::Section | Kind::Open | Kind::List));
    if json {
        let shape = |key: &schema::Key| serde_json::json!({"path": key.path, "type": key.kind.to_string(), "default": key.default_value(), "meaning": key.meaning});
        return Report::json(&keys().map(shape).collect::<Vec<_>>());
    }
    let row = |key: &schema::Key| {
        let default = key.default.unwrap_or("-").to_owned();
        vec![key.path.to_owned(), key.kind.to_string(), default, key.meaning.to_owned()]
    };
    Ok(Report::text(table(&["Key", "Type", "Default", "Meaning"], &[2], keys().map(row).collect())))
}

fn file(globals: &Globals) -> Result<ConfigFile, Failure> {
    // Changing a broken file must stay possible, so it is not loaded here.
    globals.ground().and_then(|ground| ground.locations()).map(|locations| ConfigFile::new(locations.config_path))
}

/// JSON when it is JSON, else the text itself.
fn value_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
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
        return Err(match unavailable {
            Some(lost) => failure.hint(format!("it is given as ${{{}}}, which has no value", lost.variable)),
            None => failure.hint("prowess config get shows everything that is set"),
        });
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
    let mut text = if edited.changed {
        format!("changed {path} in {file}\n")
    } else {
        format!("{path} was so already in {file}\n")
    };
    if let Some(other) = revealed {
        text = format!("{text}the value in {other} applies now\n");
    }
    Ok(Report::text(text))
}

//! `config.*`: what did the operator write, and how is it changed from afar?
//!
//! Secrets leave this file only as a mark, and the mark means on the way back what it stood for. A change is made in
//! the file's own text, so that comments, includes and names of variables stay what they are; whoever changes it has to
//! know the hash of what is there.

mod change;
mod schema;
mod shown;

use std::sync::Arc;

use prowess_config::{Change, Config, ConfigFile, EditError, Locations, SourceError, Warning, WarningKind, unredact};
use serde_json::{Map, Value, json};

use super::{Answer, Ask, Method, method};
use crate::aside::blocking;
use crate::gateway::Gateway;
use crate::scope::{Access, Scope};
use crate::wire::{REDACTED, Refusal};

use shown::{Written, hash};

/// The methods of this matter.
pub(super) const METHODS: &[Method] = &[
    method!("config.get", Access::Operator(Scope::Read), get),
    method!("config.set", Access::Operator(Scope::Admin), set),
    method!("config.apply", Access::Operator(Scope::Admin), apply),
    method!("config.patch", Access::Operator(Scope::Admin), patch),
    method!("config.schema", Access::Operator(Scope::Admin), describe),
];

/// What is said of a change that was made on another version of the file.
const CHANGED: &str = "config changed since last load; re-run config.get and retry";

/// Sections that a running gateway has read once and for all.
const AT_START: [&str; 3] = ["gateway", "diagnostics", "logging"];

async fn get(ask: Ask) -> Answer {
    check(ask.params(), "config.get", &[], &[])?;
    blocking(move || Ok(Written::read(&place(&ask.gateway)?).shown())).await?
}

async fn describe(ask: Ask) -> Answer {
    check(ask.params(), "config.schema", &[], &[])?;
    Ok(schema::described())
}

async fn set(ask: Ask) -> Answer {
    check(ask.params(), "config.set", &["raw"], &["baseHash"])?;
    blocking(move || replaced(&ask)).await?.map(|(answer, _)| answer)
}

async fn apply(ask: Ask) -> Answer {
    check(ask.params(), "config.apply", &["raw"], RESTART)?;
    blocking(move || replaced(&ask).map(|(answer, changed)| restarted(answer, "config.apply", &changed))).await?
}

async fn patch(ask: Ask) -> Answer {
    check(ask.params(), "config.patch", &["raw"], RESTART)?;
    blocking(move || patched(&ask).map(|(answer, changed)| restarted(answer, "config.patch", &changed))).await?
}

/// What may come with a change that would restart the peer.
const RESTART: &[&str] = &["baseHash", "sessionKey", "note", "restartDelayMs"];

/// Where the configuration is, and what it is read with.
struct Place {
    locations: Locations,
    env: prowess_config::Env,
}

impl Place {
    fn file(&self) -> ConfigFile {
        ConfigFile::new(&self.locations.config_path)
    }
}

fn place(gateway: &Arc<Gateway>) -> Result<Place, Refusal> {
    let ground = gateway.agents.ground();
    let locations = ground.locations().map_err(|failure| Refusal::unavailable(failure.sentence()))?;
    Ok(Place { locations, env: ground.env.clone() })
}

/// The keys of an object, as the peer checks them.
fn check(params: &Value, method: &str, needed: &[&str], optional: &[&str]) -> Result<(), Refusal> {
    let refuse = |why: String| Refusal::invalid(format!("invalid {method} params: {why}"));
    let empty = Map::new();
    let given = match params {
        Value::Null => &empty,
        Value::Object(given) => given,
        _ => return Err(refuse("must be object".to_owned())),
    };
    if let Some(missing) = needed.iter().find(|name| !given.contains_key(**name)) {
        return Err(refuse(format!("must have required property '{missing}'")));
    }
    for (name, value) in given {
        if !needed.contains(&name.as_str()) && !optional.contains(&name.as_str()) {
            return Err(refuse(format!("at root: unexpected property '{name}'")));
        }
        match (name.as_str(), value) {
            ("restartDelayMs", value) if !value.is_u64() => return Err(refuse(format!("at /{name}: must be integer"))),
            ("restartDelayMs", _) => {}
            (_, Value::String(text)) if name == "raw" && text.is_empty() => {
                return Err(refuse("at /raw: must NOT have fewer than 1 characters".to_owned()));
            }
            (_, Value::String(_)) => {}
            _ => return Err(refuse(format!("at /{name}: must be string"))),
        }
    }
    Ok(())
}

/// The file as it is now, if it is what the client has seen.
fn seen(place: &Place, params: &Value) -> Result<Written, Refusal> {
    let written = Written::read(place);
    let Some(text) = &written.text else { return Ok(written) };
    match params["baseHash"].as_str().map(str::trim).filter(|base| !base.is_empty()) {
        None => Err(Refusal::invalid("config base hash required; re-run config.get and retry")),
        Some(base) if base != hash(text) => Err(Refusal::invalid(CHANGED)),
        Some(_) => Ok(written),
    }
}

/// Lets the file say what `raw` says.
fn replaced(ask: &Ask) -> Result<(Value, Vec<Change>), Refusal> {
    let (params, place) = (ask.params(), place(&ask.gateway)?);
    let written = seen(&place, params)?;
    let raw = params["raw"].as_str().unwrap_or_default();
    let wanted = ConfigFile::new("raw").parse(raw).map_err(refused)?;
    // What is no plain JSON was written by a person, whose comments are worth as much as the values.
    let is_plain = serde_json::from_str::<Value>(raw).is_ok();
    if written.config.is_none() || !is_plain {
        let text = change::with_secrets(&place.file(), raw, &wanted, &written.value).map_err(unknown_mark)?;
        let changes = change::between(&written.value, &Value::Null, &place.file().parse(&text).map_err(refused)?);
        return Ok((store(ask, &place, &written, &text, &changes)?, changes));
    }
    let wanted = unredact(&wanted, &written.both(), REDACTED).map_err(|error| Refusal::invalid(error.to_string()))?;
    let changes = change::between(&written.value, written.effective(), &wanted);
    let text = place.file().preview(written.text.as_deref().unwrap_or_default(), &changes).map_err(refused)?;
    Ok((store(ask, &place, &written, &text, &changes)?, changes))
}

/// Changes what the patch names, and nothing else.
fn patched(ask: &Ask) -> Result<(Value, Vec<Change>), Refusal> {
    let (params, place) = (ask.params(), place(&ask.gateway)?);
    let written = seen(&place, params)?;
    if written.config.is_none() {
        return Err(Refusal::invalid("invalid config; fix before patching"));
    }
    let raw = params["raw"].as_str().unwrap_or_default();
    let patch = change::parse_patch(raw).map_err(|error| match error {
        EditError::Source(SourceError::NotASection { .. }) => Refusal::invalid("config.patch raw must be an object"),
        other => refused(other),
    })?;
    let merged = change::merged(written.effective(), &patch);
    let wanted = unredact(&merged, &written.both(), REDACTED).map_err(|error| Refusal::invalid(error.to_string()))?;
    let changes = change::between(&written.value, written.effective(), &wanted);
    let text = place.file().preview(written.text.as_deref().unwrap_or_default(), &changes).map_err(refused)?;
    Ok((store(ask, &place, &written, &text, &changes)?, changes))
}

/// Writes the new text, unless something in it would not be understood.
fn store(ask: &Ask, place: &Place, written: &Written, text: &str, changes: &[Change]) -> Result<Value, Refusal> {
    let config = Config::imagine(text, &place.locations, &place.env)
        .map_err(|error| Refusal::invalid(format!("invalid config: {error}")))?;
    let old = written.config.as_ref().map(Config::warnings).unwrap_or_default();
    let issues: Vec<Value> = config
        .warnings()
        .iter()
        .filter(|warning| is_issue(warning) && !old.contains(warning))
        .map(|warning| json!({"path": warning.path.to_string(), "message": warning.kind.to_string()}))
        .collect();
    if !issues.is_empty() {
        return Err(Refusal::invalid("invalid config").details(json!({ "issues": issues })));
    }
    place.file().exchange(written.text.as_deref(), text).map_err(refused)?;
    let paths: Vec<String> = changes.iter().take(MAX_NAMED).map(|change| change.path().to_string()).collect();
    tracing::info!(conn = ask.guest.conn, changed = paths.join(", "), "the configuration was changed by a client");
    let shown = prowess_config::redact_with(config.tree(), REDACTED);
    Ok(json!({"ok": true, "path": place.locations.config_path, "config": shown}))
}

/// How many changed places the log names.
const MAX_NAMED: usize = 20;

/// Whether a value is not understood, and so would not do what its writer means.
fn is_issue(warning: &Warning) -> bool {
    matches!(
        warning.kind,
        WarningKind::WrongType { .. }
            | WarningKind::Restricted { .. }
            | WarningKind::NotAllowed { .. }
            | WarningKind::Refused { .. }
    )
}

/// What is said about a restart: there is none, but some changes wait for one.
fn restarted(mut answer: Value, reason: &str, changes: &[Change]) -> Value {
    let first = |change: &Change| change.path().segments().first().cloned().unwrap_or_default();
    let mut waiting: Vec<String> = changes
        .iter()
        .filter(|change| AT_START.contains(&first(change).as_str()))
        .map(|change| change.path().to_string())
        .collect();
    waiting.dedup();
    answer["restart"] = json!({
        "ok": true,
        "mode": "none",
        "reason": reason,
        "delayMs": 0,
        "coalesced": false,
        "waiting": waiting,
    });
    answer
}

fn refused(error: EditError) -> Refusal {
    match error {
        EditError::Changing { .. } => Refusal::invalid(CHANGED),
        EditError::Busy { .. } | EditError::Write { .. } => Refusal::unavailable(error.to_string()),
        other => Refusal::invalid(other.to_string()),
    }
}

fn unknown_mark(error: change::MarkError) -> Refusal {
    match error {
        change::MarkError::Nothing(error) => Refusal::invalid(error.to_string()),
        change::MarkError::Edit(error) => refused(error),
    }
}

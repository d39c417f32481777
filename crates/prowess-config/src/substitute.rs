//! What do `${NAME}` references in the configuration stand for?
//!
//! A name starts with a capital letter or underscore and goes on with capitals, digits and underscores. `$${NAME}` is
//! the text `${NAME}`. All other dollar signs are ordinary characters, and there is no syntax for defaults.

use serde_json::Value;

use crate::tree::{Fix, Trail};
use crate::{Env, KeyPath};

/// A value that is not there because its variable is missing or empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unavailable {
    /// Where the value would be.
    pub path: KeyPath,
    /// The first variable that is missing.
    pub variable: String,
}

/// `text` with its references filled in, or the name of the variable that is missing.
pub(crate) fn substitute(text: &str, env: &Env) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(dollar) = rest.find('$') {
        out.push_str(&rest[..dollar]);
        rest = &rest[dollar..];
        if let Some(name) = rest.strip_prefix('$').and_then(reference) {
            let value = env.get(name).filter(|value| !value.is_empty()).ok_or_else(|| name.to_owned())?;
            out.push_str(value);
            rest = &rest["${}".len() + name.len()..];
        } else if let Some(name) = rest.strip_prefix("$$").and_then(reference) {
            out.push_str(&rest[1.."$${}".len() + name.len()]);
            rest = &rest["$${}".len() + name.len()..];
        } else {
            out.push('$');
            rest = &rest[1..];
        }
    }
    out.push_str(rest);
    Ok(out)
}

/// The name in `{NAME}…`.
fn reference(text: &str) -> Option<&str> {
    let name = text.strip_prefix('{')?.split_once('}')?.0;
    let starts_well = name.starts_with(|c: char| c.is_ascii_uppercase() || c == '_');
    let goes_on_well = name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
    (starts_well && goes_on_well).then_some(name)
}

/// The corrections that fill in all references below `value`, and the values that cannot be had.
pub(crate) fn plan_substitutions(value: &Value, env: &Env) -> (Vec<Fix>, Vec<Unavailable>) {
    let mut plan = (Vec::new(), Vec::new());
    visit(value, &Trail::ROOT, env, &mut plan);
    plan
}

fn visit(value: &Value, trail: &Trail<'_>, env: &Env, plan: &mut (Vec<Fix>, Vec<Unavailable>)) {
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| visit(value, &trail.key(key), env, plan)),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, item)| visit(item, &trail.item(&at.to_string()), env, plan));
        }
        Value::String(text) if text.contains('$') => match substitute(text, env) {
            Ok(new) if new == *text => {}
            Ok(new) => plan.0.push(Fix { path: trail.path(), value: Some(Value::String(new)) }),
            Err(variable) => {
                plan.0.push(Fix { path: trail.path(), value: None });
                plan.1.push(Unavailable { path: trail.path(), variable });
            }
        },
        _ => {}
    }
}

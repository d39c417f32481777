//! Shapes: in what does a value differ from what was recorded?
//!
//! A shape is a type by name, `any`, `{"=": value}` for what must be equal, `{"*": shape}` for a map with any keys, a
//! list with the shape of its elements, or an object; a key that ends in `?` was not always there.

use serde_json::Value;

/// Every difference, each under the path where it is.
pub(crate) fn differences(shape: &Value, value: &Value, path: &str, found: &mut Vec<String>) {
    match shape {
        Value::String(kind) => {
            if kind != "any" && kind != kind_of(value) {
                found.push(format!("{path} is {} and not {kind}", kind_of(value)));
            }
        }
        Value::Array(elements) => {
            let Some(items) = value.as_array() else {
                return found.push(format!("{path} is {} and not array", kind_of(value)));
            };
            if let Some(element) = elements.first() {
                let mut own = Vec::new();
                for item in items {
                    differences(element, item, &format!("{path}[]"), &mut own);
                }
                own.sort();
                own.dedup();
                found.append(&mut own);
            }
        }
        Value::Object(keys) => {
            if let Some(expected) = keys.get("=") {
                if expected != value {
                    found.push(format!("{path} is {value} and not {expected}"));
                }
                return;
            }
            let Some(map) = value.as_object() else {
                return found.push(format!("{path} is {} and not object", kind_of(value)));
            };
            if let Some(element) = keys.get("*") {
                for item in map.values() {
                    differences(element, item, &format!("{path}.*"), found);
                }
                return;
            }
            for (key, shape) in keys {
                let (name, is_optional) = key.strip_suffix('?').map_or((key.as_str(), false), |name| (name, true));
                match map.get(name) {
                    Some(item) => differences(shape, item, &format!("{path}.{name}"), found),
                    None if is_optional => {}
                    None => found.push(format!("{path}.{name} is missing")),
                }
            }
            for name in map.keys().filter(|name| !keys.contains_key(*name) && !keys.contains_key(&format!("{name}?"))) {
                found.push(format!("{path}.{name} is added"));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => found.push(format!("{path} has no shape")),
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

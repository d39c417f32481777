//! JSON, and JSON5 where strict JSON fails. The only file that knows the JSON5 crate.

use serde_json::Value;

/// Levels of nesting a text may have; the JSON5 parser would otherwise recurse as deep as its input.
const MAX_DEPTH: usize = 96;

/// Reads `text` as JSON, else as JSON5.
pub(crate) fn parse(text: &str) -> Result<Value, String> {
    match serde_json::from_str(text) {
        Ok(value) => Ok(value),
        Err(_) if depth(text) > MAX_DEPTH => Err(format!("nested more than {MAX_DEPTH} levels deep")),
        Err(_) => json5::from_str(text).map_err(|error| error.to_string()),
    }
}

/// An upper bound of the nesting, without telling strings from structure: strings can only make it larger.
fn depth(text: &str) -> usize {
    let (mut level, mut deepest) = (0_usize, 0);
    for byte in text.bytes() {
        match byte {
            b'[' | b'{' => {
                level += 1;
                deepest = deepest.max(level);
            }
            b']' | b'}' => level = level.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_both() {
        assert_eq!(parse(r#"{"a":[1,2]}"#), Ok(serde_json::json!({"a": [1, 2]})));
        assert_eq!(parse("{a: 'x', // note\n b: [1,],}"), Ok(serde_json::json!({"a": "x", "b": [1]})));
        assert!(parse("{").is_err());
    }

    #[test]
    fn depth_is_bounded() {
        assert!(parse(&"[".repeat(200_000)).is_err());
        assert!(parse(&format!("{}'{}", "[".repeat(500), "]".repeat(500))).is_err());
    }
}

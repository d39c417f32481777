//! Which tool and which call does a reply mean?

use std::collections::HashSet;

use crate::message::ToolCall;
use crate::tool::resolve;

/// The longest name of a tool.
const MAX_NAME: usize = 64;

/// The tool that `name` means. A name that means none comes back without the white space around it.
#[must_use]
pub fn tool_name(name: &str, known: &[&str]) -> String {
    resolve(name, known).unwrap_or_else(|| name.trim()).to_owned()
}

/// Trims the ids of the calls in one reply. One that is empty, or that an earlier call has, becomes `call_auto_N`.
pub fn call_ids(calls: &mut [ToolCall]) {
    let mut ids: Vec<&mut String> = calls.iter_mut().map(|call| &mut call.id).collect();
    settle_ids(&mut ids);
}

/// The same for the ids alone.
pub(super) fn settle_ids(ids: &mut [&mut String]) {
    for id in ids.iter_mut() {
        id.truncate(id.trim_end().len());
        let lead = id.len() - id.trim_start().len();
        id.drain(..lead);
    }
    let given: HashSet<String> = ids.iter().map(|id| (**id).clone()).collect();
    if given.len() == ids.len() && !given.contains("") {
        return;
    }
    let mut seen = HashSet::new();
    let mut number = 0;
    for id in ids {
        if !id.is_empty() && seen.insert((**id).clone()) {
            continue;
        }
        // Numbers only grow, and a name that a call was given is passed over: so each is new.
        **id = loop {
            number += 1;
            let made = format!("call_auto_{number}");
            if !given.contains(&made) {
                break made;
            }
        };
    }
}

/// Whether a tool can be called that.
pub(super) fn is_tool_name(name: &str) -> bool {
    let is_right = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    !name.is_empty() && name.len() <= MAX_NAME && name.bytes().all(is_right)
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;

    #[test]
    fn names_mean_tools() {
        let known = ["exec", "Read", "read_file", "READ_FILE", "apply_patch"];
        for (name, wanted) in [
            ("exec", "exec"),
            (" exec\n", "exec"),
            ("Exec", "exec"),
            ("bash", "exec"),
            ("BASH", "exec"),
            ("apply-patch", "apply_patch"),
            ("read", "Read"),
            ("READ_FILE", "READ_FILE"),
            ("Read_File", "read_file"),
            ("nope", "nope"),
            ("  ", ""),
        ] {
            assert_eq!(tool_name(name, &known), wanted, "{name:?}");
        }
        assert_eq!(tool_name("Ab", &["AB", "aB"]), "Ab", "two are alike");
        assert_eq!(tool_name("bash", &["read"]), "bash");
        assert_eq!(tool_name("bash", &["bash", "exec"]), "bash");
    }

    #[test]
    fn ids_are_unique_in_a_reply() {
        let table: [(&[&str], &[&str]); 5] = [
            (&["a", "b"], &["a", "b"]),
            (&[" a ", "a"], &["a", "call_auto_1"]),
            (&["", " "], &["call_auto_1", "call_auto_2"]),
            (&["", "call_auto_1"], &["call_auto_2", "call_auto_1"]),
            (&["x", "x", "x"], &["x", "call_auto_1", "call_auto_2"]),
        ];
        for (given, wanted) in table {
            let call = |id: &&str| ToolCall {
                id: (*id).to_owned(),
                name: "exec".to_owned(),
                arguments: Map::new(),
                thought_signature: None,
                provider_data: serde_json::Map::new(),
            };
            let mut calls: Vec<ToolCall> = given.iter().map(call).collect();
            call_ids(&mut calls);
            assert_eq!(calls.iter().map(|call| call.id.as_str()).collect::<Vec<_>>(), wanted);
        }
    }
}

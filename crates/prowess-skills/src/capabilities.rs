//! Capabilities: what do a skill's commands use beyond the sandbox, and is all of the declaration understood?
//!
//! The same block stands in a `SKILL.md`, as a declaration, and under `skills.entries`, as what the operator allows. A part
//! that nobody understands would be a permission that is missing, so each one is named.

use serde_json::Value;
use strsim::damerau_levenshtein;

use crate::metadata::strings;

/// What a skill's commands use beyond the sandbox, as the skill declares it. A declaration gives nothing: the operator
/// confirms it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Hosts, each with its ports; without ports, those of the web.
    pub network: Vec<(String, Vec<u16>)>,
    /// Files and directories that are read.
    pub reads: Vec<String>,
    /// Files and directories that are changed.
    pub writes: Vec<String>,
    /// Variables whose values are secrets.
    pub env: Vec<String>,
    /// Unix sockets of services.
    pub sockets: Vec<String>,
    /// Whether something keeps running after a command has ended.
    pub keeps_running: bool,
}

/// The parts of the block, those of `filesystem`, and those of one host.
const PARTS: [&str; 5] = ["network", "filesystem", "env", "sockets", "keepsRunning"];
const FILE_PARTS: [&str; 2] = ["reads", "writes"];
const HOST_PARTS: [&str; 2] = ["host", "ports"];

/// Other words for the parts, as people write them.
const MEANT: [(&str, &str); 13] = [
    ("background", "keepsRunning"),
    ("directories", "filesystem"),
    ("files", "filesystem"),
    ("folders", "filesystem"),
    ("fs", "filesystem"),
    ("hosts", "network"),
    ("keys", "env"),
    ("read", "filesystem.reads"),
    ("reads", "filesystem.reads"),
    ("secrets", "env"),
    ("urls", "network"),
    ("write", "filesystem.writes"),
    ("writes", "filesystem.writes"),
];

/// A part of the block that has no meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownPart {
    /// Where it is in the block.
    pub path: String,
    /// What was probably meant.
    pub meant: Option<String>,
    /// What has a meaning there.
    pub known: &'static [&'static str],
}

impl UnknownPart {
    /// What is wrong with it.
    #[must_use]
    pub fn why(&self) -> String {
        match &self.meant {
            Some(meant) => format!("is unknown; did you mean `{meant}`?"),
            None => format!("is unknown; use {}", self.known.join(", ")),
        }
    }
}

impl Capabilities {
    /// Reads `{network, filesystem: {reads, writes}, env, sockets, keepsRunning}`; nothing where a part has another form.
    #[must_use]
    pub fn read(value: &Value) -> Option<Self> {
        let map = value.as_object()?;
        let hosts = match map.get("network") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(hosts)) => hosts.iter().map(host).collect::<Option<_>>()?,
            Some(_) => return None,
        };
        let files = map.get("filesystem");
        if files.is_some_and(|files| !files.is_object() && !files.is_null()) {
            return None;
        }
        let keeps_running = match map.get("keepsRunning") {
            None | Some(Value::Null) => false,
            Some(value) => value.as_bool()?,
        };
        Some(Self {
            network: hosts,
            reads: strings(files.and_then(|files| files.get("reads")))?,
            writes: strings(files.and_then(|files| files.get("writes")))?,
            env: strings(map.get("env"))?,
            sockets: strings(map.get("sockets"))?,
            keeps_running,
        })
    }

    /// The parts of `value` that have no meaning: unknown keys, and hosts that are none.
    #[must_use]
    pub fn unknown_parts(value: &Value) -> Vec<UnknownPart> {
        let mut unknown = unknown_keys(value, "", &PARTS);
        unknown.extend(unknown_keys(&value["filesystem"], "filesystem.", &FILE_PARTS));
        for (at, one) in value["network"].as_array().into_iter().flatten().enumerate() {
            unknown.extend(unknown_keys(one, &format!("network[{at}]."), &HOST_PARTS));
            let Some((host, _)) = host(one) else { continue };
            if host.is_empty() || host.contains(['/', ' ', '@']) {
                let plain = host.split_once("://").map_or(host.as_str(), |(_, rest)| rest);
                let plain = plain.split(['/', ' ']).next().unwrap_or_default();
                let meant = (!plain.is_empty()).then(|| plain.to_owned());
                unknown.push(UnknownPart { path: format!("network[{at}].host"), meant, known: &["a host name"] });
            }
        }
        unknown
    }
}

fn unknown_keys(value: &Value, path: &str, known: &'static [&'static str]) -> Vec<UnknownPart> {
    let keys = value.as_object().into_iter().flatten().map(|(key, _)| key);
    let unknown = keys.filter(|key| !known.contains(&key.as_str()));
    unknown.map(|key| UnknownPart { path: format!("{path}{key}"), meant: meant(key, known), known }).collect()
}

/// The part that somebody who wrote `key` probably meant.
fn meant(key: &str, known: &[&str]) -> Option<String> {
    let plain = |name: &str| name.to_lowercase().replace(['-', '_'], "");
    let near = known.iter().map(|name| (damerau_levenshtein(&plain(key), &plain(name)), name));
    let nearest = near.min().filter(|(distance, name)| *distance <= (name.len() / 3).max(1));
    let word = || MEANT.iter().find(|(word, _)| *word == plain(key)).filter(|_| known == PARTS);
    nearest.map(|(_, name)| (*name).to_owned()).or_else(|| word().map(|(_, part)| (*part).to_owned()))
}

/// `{host, ports?}`, or the host alone.
fn host(value: &Value) -> Option<(String, Vec<u16>)> {
    if let Value::String(host) = value {
        return Some((host.clone(), Vec::new()));
    }
    let ports = match value.get("ports") {
        None | Some(Value::Null) => Vec::new(),
        Some(ports) => {
            ports.as_array()?.iter().map(|port| u16::try_from(port.as_u64()?).ok()).collect::<Option<_>>()?
        }
    };
    Some((value.get("host")?.as_str()?.to_owned(), ports))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn unknown(value: &Value) -> Vec<String> {
        Capabilities::unknown_parts(value).iter().map(|part| format!("{} {}", part.path, part.why())).collect()
    }

    #[test]
    fn every_part_that_has_no_meaning_is_named() {
        let value = json!({
            "network": [{"host": "wttr.in", "port": [443]}, "https://example.com/x", "a.example"],
            "filesystem": {"read": [], "colour": 1}, "keeps_running": true, "reads": [], "netwrok": [], "zzz": 1,
        });
        let mut found = unknown(&value);
        found.sort();
        assert_eq!(
            found,
            [
                "filesystem.colour is unknown; use reads, writes",
                "filesystem.read is unknown; did you mean `reads`?",
                "keeps_running is unknown; did you mean `keepsRunning`?",
                "network[0].port is unknown; did you mean `ports`?",
                "network[1].host is unknown; did you mean `example.com`?",
                "netwrok is unknown; did you mean `network`?",
                "reads is unknown; did you mean `filesystem.reads`?",
                "zzz is unknown; use network, filesystem, env, sockets, keepsRunning",
            ]
        );
    }

    #[test]
    fn a_block_in_the_documented_form_is_understood() {
        let value = json!({
            "network": [{"host": "wttr.in", "ports": [443]}, "*.example.com"],
            "filesystem": {"reads": ["~/notes"], "writes": []}, "env": ["KEY"], "sockets": [], "keepsRunning": false,
        });
        assert_eq!(unknown(&value), Vec::<String>::new());
        assert!(Capabilities::read(&value).is_some());
        assert_eq!(Capabilities::read(&json!({"filesystem": ["~/notes"]})), None);
    }
}

//! Proposals: what would a skill declare, going by its own text?
//!
//! Most skills do not say what their commands use beyond the sandbox. Their examples do: the commands, the addresses and the
//! names of keys in them. A proposal gives nothing. The operator reads it, corrects it and sets it.

use std::collections::BTreeSet;
use std::path::Path;

use prowess_policy::env::{hijacks, is_credential, is_inherited};
use prowess_policy::forecast::forecast;
use prowess_policy::lease::{DEFAULT_PORTS, HostRule, Lease};
use prowess_skills::Skill;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::context::View;
use crate::fix::{entry_path, quoted};
use crate::skill_text;

/// The most commands of a text that are looked at, and the longest of them.
const MAX_COMMANDS: usize = 400;
const MAX_COMMAND: usize = 2_000;

/// The most hosts, paths or keys of a proposal: a longer list would not be read.
const MAX_ITEMS: usize = 24;

/// Hosts that stand for others in examples.
const PLACEHOLDERS: &[&str] =
    &["example.com", "example.org", "example.net", "example.test", "your-", "yourdomain", "my-domain", "mydomain"];

/// What a skill's text says it uses, in the form of a declaration.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Proposal {
    /// `{network, filesystem, env, sockets, keepsRunning}`, without what is empty.
    pub capabilities: Value,
    /// The command that sets it.
    pub command: String,
}

/// A proposal for a skill that declares nothing and for which the operator set nothing. None if its text needs nothing.
#[must_use]
pub fn propose(view: &View, skill: &Skill) -> Option<Proposal> {
    let is_set = view.settings.entry(skill.key()).is_some_and(|entry| entry.capabilities.is_some());
    if is_set || skill.metadata.capabilities.is_some() {
        return None;
    }
    let lease = wanted(skill, &skill_text::read(skill), view.context.user_home());
    let capabilities = capabilities(&lease, view.context.user_home());
    if capabilities.is_empty() {
        return None;
    }
    let capabilities = Value::Object(capabilities);
    let path = format!("{}.capabilities", entry_path(skill.key()));
    let command = format!("prowess config set {} {}", quoted(&path), quoted(&capabilities.to_string()));
    Some(Proposal { capabilities, command })
}

/// What the code in `text` uses beyond the sandbox.
fn wanted(skill: &Skill, text: &str, home: &Path) -> Lease {
    let lines = skill_text::fenced(text);
    let commands = skill_text::commands(&lines);
    let commands = commands.iter().filter(|command| command.len() <= MAX_COMMAND).take(MAX_COMMANDS);
    let mut lease = commands.fold(Lease::default(), |lease, command| lease.and(&forecast(command, home)));
    let code: Vec<&str> = lines.iter().map(|line| line.text.as_str()).chain(skill_text::spans(text)).collect();
    let found = code.iter().flat_map(|code| urls(code));
    lease = lease.and(&Lease::for_hosts(found.collect()));
    lease.hosts.retain(|rule| !is_placeholder(&rule.host().to_string()));
    let named: BTreeSet<&str> = code.iter().flat_map(|code| keys(code)).collect();
    let declared = skill.metadata.declared_env().filter(|name| !hijacks(name) && !is_inherited(name));
    lease.keys = declared.chain(named).map(str::to_owned).collect::<BTreeSet<_>>().into_iter().collect();
    lease
}

/// The hosts of the URLs in a piece of code.
fn urls(code: &str) -> impl Iterator<Item = HostRule> + '_ {
    let starts = ["https://", "http://", "wss://", "ws://"];
    let begins = starts.into_iter().flat_map(|start| code.match_indices(start).map(move |(at, _)| (at, start)));
    begins.filter_map(|(at, start)| {
        let rest = &code[at + start.len()..];
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || ".-_:@".contains(c))).unwrap_or(rest.len());
        // What goes on with a variable or a placeholder is not the whole name.
        if rest[end..].starts_with(['$', '{', '<', '[', '%']) {
            return None;
        }
        let host = rest[..end].rsplit('@').next().unwrap_or_default();
        let (host, port) = host.split_once(':').map_or((host, None), |(host, port)| (host, port.parse().ok()));
        let ports: Vec<u16> = port.into_iter().collect();
        HostRule::new(host.trim_end_matches('.'), &ports).ok().filter(|_| host.contains('.') || host == "localhost")
    })
}

fn is_placeholder(host: &str) -> bool {
    let host = host.to_lowercase();
    host.ends_with(".example") || PLACEHOLDERS.iter().any(|one| host == *one || host.contains(one))
}

/// Names of keys in a piece of code.
fn keys(code: &str) -> impl Iterator<Item = &str> {
    let words = code.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let is_name = |word: &&str| {
        let shouts =
            word.starts_with(|c: char| c.is_ascii_uppercase()) && !word.contains(|c: char| c.is_ascii_lowercase());
        shouts && word.contains('_') && !word.starts_with("YOUR_") && !word.starts_with("MY_")
    };
    words.filter(is_name).filter(|word| is_credential(word) && !hijacks(word))
}

/// A lease in the form of a declaration.
fn capabilities(lease: &Lease, home: &Path) -> Map<String, Value> {
    let network = lease.hosts.iter().take(MAX_ITEMS).map(|rule| {
        let host = rule.host().to_string();
        if rule.ports() == DEFAULT_PORTS { json!({"host": host}) } else { json!({"host": host, "ports": rule.ports()}) }
    });
    let short = |path: &Path| match path.strip_prefix(home) {
        Ok(rest) => format!("~/{}", rest.display()),
        Err(_) => path.display().to_string(),
    };
    let paths = |list: &[std::path::PathBuf]| list.iter().take(MAX_ITEMS).map(|path| short(path)).collect::<Vec<_>>();
    let mut files = Map::new();
    for (name, list) in [("reads", paths(&lease.reads)), ("writes", paths(&lease.writes))] {
        if !list.is_empty() {
            files.insert(name.to_owned(), json!(list));
        }
    }
    let parts = [
        ("network", json!(network.collect::<Vec<_>>())),
        ("filesystem", Value::Object(files)),
        ("env", json!(lease.keys.iter().take(MAX_ITEMS).collect::<Vec<_>>())),
        ("sockets", json!(paths(&lease.sockets))),
    ];
    let is_empty =
        |value: &Value| value.as_array().is_some_and(Vec::is_empty) || value.as_object().is_some_and(Map::is_empty);
    let parts = parts.into_iter().filter(|(_, value)| !is_empty(value));
    let mut map: Map<String, Value> = parts.map(|(name, value)| (name.to_owned(), value)).collect();
    if lease.keeps_running {
        map.insert("keepsRunning".to_owned(), true.into());
    }
    map
}

#[cfg(test)]
mod tests {
    use prowess_skills::{Capabilities, Tier};

    use super::*;

    fn proposed(body: &str, extra: &str) -> Value {
        let text = format!("---\nname: s\ndescription: d\n{extra}\n---\n{body}");
        let skill = Skill::parse(text.as_bytes(), Path::new("/skills/s/SKILL.md"), Tier::Managed).expect("a skill").0;
        let home = Path::new("/home/me");
        let proposed = Value::Object(capabilities(&wanted(&skill, &text, home), home));
        assert!(Capabilities::read(&proposed).is_some(), "it can be set: {proposed}");
        proposed
    }

    #[test]
    fn commands_addresses_and_keys_of_a_text_become_a_declaration() {
        let body = "Get a key at https://docs.acme.io and see [this](https://blog.acme.io).\n\n```bash\n\
                    curl -s -H \"Authorization: Bearer $ACME_API_KEY\" \\\n  https://api.acme.io/v1/things\n\
                    curl wttr.in/Lisbon\ncat ~/.config/acme/settings.json\ncurl https://example.com/x https://$HOST/y\n```\n\
                    Or `https://eu.acme.io:8443/v1`.\n```python\nrequests.get(\"https://files.acme.io/x\", os.environ[\"ACME_SECRET\"])\n\
                    open(\"/root/.ssh/id\")\n```\n";
        let expected = json!({
            "network": [
                {"host": "api.acme.io"}, {"host": "wttr.in"}, {"host": "files.acme.io"},
                {"host": "eu.acme.io", "ports": [8443]},
            ],
            "filesystem": {"reads": ["~/.config/acme/settings.json"]},
            "env": ["ACME_API_KEY", "ACME_SECRET", "OTHER"],
        });
        assert_eq!(proposed(body, "metadata: {openclaw: {requires: {env: [OTHER]}}}"), expected);
    }

    #[test]
    fn a_text_that_needs_nothing_proposes_nothing() {
        let body =
            "Use `ls` and `PATH`.\n```sh\nls -la\necho YOUR_API_KEY\ngrep -r x .\n```\n```json\n{\"a\": \"b\"}\n```\n";
        assert_eq!(proposed(body, ""), json!({}));
    }
}

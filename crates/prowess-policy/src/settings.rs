//! Settings: what did the operator write under `tools.exec`?
//!
//! The agent's own section comes before the common one, key by key. A value that should restrict and cannot be read
//! restricts as far as it can: a typing error never opens a door.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::posture::{Ask, Security};
use crate::protected::ProtectedSettings;
use crate::safe_bin::CustomProfile;

/// Where commands run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Host {
    /// In a sandbox on this machine.
    Sandbox,
    /// On this machine, in our own sandbox all the same.
    Gateway,
    /// On another machine.
    Node,
    /// A word that means nothing to us; nothing runs.
    Unknown,
}

impl Host {
    /// The host that `word` names, in any case.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        match word.trim().to_lowercase().as_str() {
            "sandbox" => Some(Self::Sandbox),
            "gateway" => Some(Self::Gateway),
            "node" => Some(Self::Node),
            _ => None,
        }
    }

    /// The one word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Sandbox => "sandbox",
            Self::Gateway => "gateway",
            Self::Node => "node",
            Self::Unknown => "unknown",
        }
    }
}

/// What keeps a command in its place, as asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum SandboxChoice {
    /// The best this machine has.
    #[default]
    Auto,
    /// Landlock and seccomp.
    Landlock,
    /// Bubblewrap.
    Bubblewrap,
    /// A running container of Docker.
    Docker(String),
    /// A running container of Podman.
    Podman(String),
    /// Nothing at all, said in so many words.
    Off,
    /// A word that means nothing to us; it is refused when something is to run.
    Unknown(String),
}

/// What a run may reach beyond its workspace. More is added, nothing taken away.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Grants {
    /// Files and folders it may read.
    pub read: Vec<PathBuf>,
    /// Files and folders it may change.
    pub write: Vec<PathBuf>,
    /// Whether it may use the network.
    pub network: bool,
    /// Whether it may connect to local sockets.
    pub unix_sockets: bool,
}

impl Grants {
    /// Reads `{read, write, network, unixSockets}`; what is not well-formed grants nothing.
    #[must_use]
    pub fn read(section: &Value) -> Self {
        let paths = |key: &str| texts(&section[key]).unwrap_or_default().into_iter().map(PathBuf::from).collect();
        Self {
            read: paths("read"),
            write: paths("write"),
            network: section["network"] == Value::Bool(true),
            unix_sockets: section["unixSockets"] == Value::Bool(true),
        }
    }

    /// Both together.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.read.extend(other.read);
        self.write.extend(other.write);
        self.network |= other.network;
        self.unix_sockets |= other.unix_sockets;
        self
    }
}

/// `tools.exec`, for one agent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExecSettings {
    /// Where commands run, when said.
    pub host: Option<Host>,
    /// How strict, when said.
    pub security: Option<Security>,
    /// When to ask, when said.
    pub ask: Option<Ask>,
    /// The node commands are bound to.
    pub node: Option<String>,
    /// Folders that go first on `PATH`.
    pub path_prepend: Vec<String>,
    /// Names of safe programs, in place of the usual ones.
    pub safe_bins: Option<Vec<String>>,
    /// More folders that safe programs may be in.
    pub safe_bin_trusted_dirs: Vec<PathBuf>,
    /// Argument rules of safe programs.
    pub safe_bin_profiles: BTreeMap<String, CustomProfile>,
    /// How long a command may run before it goes on in the background.
    pub background: Option<Duration>,
    /// How long a command may run.
    pub timeout: Option<Duration>,
    /// How long finished background commands are remembered.
    pub cleanup: Option<Duration>,
    /// What keeps commands in their place.
    pub sandbox: SandboxChoice,
    /// What commands may reach beyond their workspace.
    pub grants: Grants,
    /// What is protected in a workspace, besides the usual, and what is not.
    pub protected: ProtectedSettings,
}

impl ExecSettings {
    /// Reads the common section and the agent's own.
    #[must_use]
    pub fn read(common: &Value, agent: &Value) -> Self {
        let pick = |key: &str| if agent[key].is_null() { &common[key] } else { &agent[key] };
        let millis = |key: &str| pick(key).as_u64().map(Duration::from_millis);
        let profiles = [common, agent].into_iter().filter_map(|one| one["safeBinProfiles"].as_object()).flatten();
        Self {
            host: host(pick("host")),
            security: strict(pick("security"), Security::parse, Security::Deny),
            ask: strict(pick("ask"), Ask::parse, Ask::Always),
            node: pick("node").as_str().map(str::to_owned),
            path_prepend: texts(pick("pathPrepend")).unwrap_or_default(),
            safe_bins: if pick("safeBins").is_null() {
                None
            } else {
                Some(texts(pick("safeBins")).unwrap_or_default())
            },
            safe_bin_trusted_dirs: texts(pick("safeBinTrustedDirs"))
                .unwrap_or_default()
                .into_iter()
                .map(PathBuf::from)
                .collect(),
            safe_bin_profiles: profiles.map(|(name, profile)| (name.clone(), custom_profile(profile))).collect(),
            background: millis("backgroundMs"),
            timeout: pick("timeoutSec").as_u64().filter(|seconds| *seconds > 0).map(Duration::from_secs),
            cleanup: millis("cleanupMs"),
            sandbox: sandbox(&common["sandbox"], &agent["sandbox"]),
            grants: Grants::read(&common["sandbox"]).and(Grants::read(&agent["sandbox"])),
            protected: protected(&common["protected"], &agent["protected"]),
        }
    }
}

/// What is added for all is added for each agent; what is removed counts for whom it is said.
fn protected(common: &Value, agent: &Value) -> ProtectedSettings {
    let list = |section: &Value, key: &str| texts(&section[key]).unwrap_or_default();
    let add = list(common, "add").into_iter().chain(list(agent, "add")).collect();
    let remove = if agent["remove"].is_null() { list(common, "remove") } else { list(agent, "remove") };
    ProtectedSettings { add, remove }
}

/// `null` is not given; anything that is no word of ours is the strictest.
fn strict<T>(value: &Value, parse: impl Fn(&str) -> Option<T>, strictest: T) -> Option<T> {
    match value {
        Value::Null => None,
        Value::String(word) => Some(parse(word).unwrap_or(strictest)),
        _ => Some(strictest),
    }
}

fn texts(value: &Value) -> Option<Vec<String>> {
    let list = value.as_array()?;
    Some(
        list.iter()
            .filter_map(Value::as_str)
            .map(|text| text.trim().to_owned())
            .filter(|text| !text.is_empty())
            .collect(),
    )
}

/// A profile that cannot be read lets no argument through.
fn custom_profile(value: &Value) -> CustomProfile {
    serde_json::from_value(value.clone())
        .unwrap_or_else(|_| CustomProfile { max_positional: Some(0), ..CustomProfile::default() })
}

fn host(value: &Value) -> Option<Host> {
    match value.as_str().map(str::trim) {
        None if value.is_null() => None,
        Some("" | "auto") => None,
        word => Some(word.and_then(Host::parse).unwrap_or(Host::Unknown)),
    }
}

fn sandbox(common: &Value, agent: &Value) -> SandboxChoice {
    let pick = |key: &str| if agent[key].is_null() { &common[key] } else { &agent[key] };
    let kind = match pick("kind") {
        Value::Null => return SandboxChoice::Auto,
        Value::String(kind) => kind.trim().to_lowercase(),
        other => return SandboxChoice::Unknown(other.to_string()),
    };
    match (kind.as_str(), pick("container").as_str()) {
        ("auto", _) => SandboxChoice::Auto,
        ("landlock", _) => SandboxChoice::Landlock,
        ("bubblewrap" | "bwrap", _) => SandboxChoice::Bubblewrap,
        ("docker", Some(name)) => SandboxChoice::Docker(name.to_owned()),
        ("podman", Some(name)) => SandboxChoice::Podman(name.to_owned()),
        ("off" | "none", _) => SandboxChoice::Off,
        (other, _) => SandboxChoice::Unknown(other.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_agents_word_comes_first_key_by_key() {
        let common = json!({"security": "full", "ask": "off", "timeoutSec": 5, "sandbox": {"network": true}});
        let settings = ExecSettings::read(&common, &json!({"security": "allowlist", "sandbox": {"kind": "off"}}));
        assert_eq!((settings.security, settings.ask), (Some(Security::Allowlist), Some(Ask::Off)));
        assert_eq!(settings.timeout, Some(Duration::from_secs(5)));
        assert_eq!(settings.sandbox, SandboxChoice::Off);
        assert!(settings.grants.network, "what is granted to all is granted to each");
    }

    #[test]
    fn an_agents_grants_do_not_replace_the_common_sandbox() {
        let common = json!({"sandbox": {"kind": "docker", "container": "box"}});
        let settings = ExecSettings::read(&common, &json!({"sandbox": {"read": ["/srv"]}}));
        assert_eq!(settings.sandbox, SandboxChoice::Docker("box".to_owned()));
        assert_eq!(ExecSettings::read(&json!({"host": "gatway"}), &Value::Null).host, Some(Host::Unknown));
    }

    #[test]
    fn what_is_protected_can_be_changed() {
        let common = json!({"protected": {"add": ["a"], "remove": [".idea"]}});
        let both = ExecSettings::read(&common, &json!({"protected": {"add": ["b"], "remove": []}})).protected;
        assert_eq!(both, ProtectedSettings { add: vec!["a".to_owned(), "b".to_owned()], remove: Vec::new() });
        assert_eq!(ExecSettings::read(&common, &Value::Null).protected.remove, [".idea"]);
        assert_eq!(ExecSettings::read(&json!({"protected": {"remove": true}}), &Value::Null).protected.remove.len(), 0);
    }

    #[test]
    fn a_typing_error_opens_no_door() {
        let settings = ExecSettings::read(
            &json!({"security": "ful", "ask": 3, "safeBins": "cat", "sandbox": {"kind": "docker", "network": "yes"}}),
            &Value::Null,
        );
        assert_eq!((settings.security, settings.ask), (Some(Security::Deny), Some(Ask::Always)));
        assert_eq!(settings.safe_bins, Some(Vec::new()));
        assert_eq!(settings.sandbox, SandboxChoice::Unknown("docker".to_owned()));
        assert!(!settings.grants.network);
    }
}

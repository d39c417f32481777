//! The node's own file: under which name does it dial in?
//!
//! `node.json` in the state directory, in the shape of the peer. Nothing secret is in it that was not there before.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use thiserror::Error;

use super::Options;

/// The largest file that is read.
const MAX_BYTES: u64 = 64 * 1024;

/// The longest name.
const MAX_NAME: usize = 200;

/// What a node keeps about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NodeState {
    pub(super) node_id: String,
    pub(super) display_name: String,
}

/// The node's file cannot be used.
#[derive(Debug, Error)]
#[error("cannot use {}: {source}; make it writable, or move it elsewhere", path.display())]
pub struct StateError {
    pub(super) path: PathBuf,
    pub(super) source: std::io::Error,
}

impl NodeState {
    /// Reads the file, or makes one; what `options` say is written into it.
    pub(super) fn load_or_make(state_dir: &Path, options: &Options) -> Result<Self, StateError> {
        let path = state_dir.join("node.json");
        let failed = |source| StateError { path: path.clone(), source };
        let before = read(&path);
        let text = |name: &str| before[name].as_str().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
        let given = options.display_name.as_deref().map(str::trim).filter(|name| !name.is_empty());
        let name = given.map(str::to_owned).or_else(|| text("displayName")).unwrap_or_else(machine_name);
        let state = Self {
            node_id: text("nodeId").unwrap_or_else(|| uuid::Uuid::new_v4().to_string()),
            display_name: name.chars().take(MAX_NAME).collect(),
        };
        let mut after = if before.is_object() { before.clone() } else { json!({}) };
        after["version"] = 1.into();
        after["nodeId"] = state.node_id.clone().into();
        after["displayName"] = state.display_name.clone().into();
        after["gateway"] = gateway(&options.url);
        if after != before {
            prowess_files::replace(&path, format!("{after:#}\n").as_bytes()).map_err(failed)?;
        }
        Ok(state)
    }
}

/// Where the gateway is, in the parts that the peer keeps.
fn gateway(url: &str) -> Value {
    let (scheme, rest) = url.split_once("://").unwrap_or(("ws", url));
    let address = rest.split('/').next().unwrap_or(rest);
    let (host, port) = address.rsplit_once(':').unwrap_or((address, ""));
    let port = port.parse().unwrap_or(crate::settings::PORT);
    json!({"host": host, "port": port, "tls": scheme == "wss"})
}

fn machine_name() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    if name.is_empty() { "node".to_owned() } else { name }
}

fn read(path: &Path) -> Value {
    let is_sane = std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() <= MAX_BYTES);
    let text = is_sane.then(|| std::fs::read_to_string(path).ok()).flatten();
    text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

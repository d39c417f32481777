//! Known nodes: which were here before, and what are they called?
//!
//! `nodes/paired.json` in the state directory, in the shape of the peer: an object by node id. Whoever may connect is
//! decided elsewhere; this is memory for lists and names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use prowess_agent::message::now;
use serde_json::{Map, Value, json};

use crate::hub::Guest;

/// How many nodes are remembered.
const MAX_NODES: usize = 1024;

/// The longest name.
const MAX_NAME: usize = 200;

/// The largest file that is read.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// Nodes by id, as they are on disk.
pub(super) struct Known {
    path: PathBuf,
    nodes: Mutex<BTreeMap<String, Value>>,
    writing: Mutex<()>,
}

impl Known {
    /// What is in `state_dir`. Looks at the disk.
    pub(super) fn open(state_dir: &Path) -> Self {
        let path = state_dir.join("nodes").join("paired.json");
        let nodes = read(&path).unwrap_or_default().into_iter().filter(|(_, node)| node.is_object()).collect();
        Self { path, nodes: Mutex::new(nodes), writing: Mutex::default() }
    }

    /// Notes that a node is here; [`save`](Self::save) writes it down.
    pub(super) fn seen(&self, id: &str, guest: &Guest) {
        let mut nodes = self.lock();
        if !nodes.contains_key(id) && nodes.len() >= MAX_NODES {
            return;
        }
        let node = nodes.entry(id.to_owned()).or_insert_with(|| json!({"nodeId": id, "createdAtMs": now()}));
        if node["renamed"] != true {
            node["displayName"] = guest.name().chars().take(MAX_NAME).collect::<String>().into();
        }
        node["platform"] = guest.about.platform.clone().into();
        node["version"] = guest.about.version.clone().into();
        if let Some(ip) = &guest.remote_ip {
            node["remoteIp"] = ip.clone().into();
        }
        node["lastConnectedAtMs"] = guest.connected_at.into();
    }

    /// Gives a node another name. Tells whether there is such a node.
    pub(super) fn rename(&self, id: &str, name: &str) -> Option<String> {
        let mut nodes = self.lock();
        let node = nodes.get_mut(id)?;
        let name: String = name.chars().take(MAX_NAME).collect();
        node["displayName"] = name.clone().into();
        node["renamed"] = true.into();
        drop(nodes);
        self.save();
        Some(name)
    }

    /// The name that somebody gave it.
    pub(super) fn name(&self, id: &str) -> Option<String> {
        let nodes = self.lock();
        let node = nodes.get(id).filter(|node| node["renamed"] == true)?;
        node["displayName"].as_str().map(str::to_owned)
    }

    /// What is told about nodes that may not be here.
    pub(super) fn rows(&self) -> Vec<(String, Value)> {
        let nodes = self.lock();
        let row = |(id, node): (&String, &Value)| {
            let mut row = json!({"nodeId": id});
            for name in ["displayName", "platform", "remoteIp"] {
                if !node[name].is_null() {
                    row[name] = node[name].clone();
                }
            }
            for (name, value) in [("caps", json!([])), ("commands", json!([])), ("paired", true.into())] {
                row[name] = value;
            }
            row["connected"] = false.into();
            (id.clone(), row)
        };
        nodes.iter().map(row).collect()
    }

    /// All of it, for lists of paired nodes.
    pub(super) fn all(&self) -> Vec<Value> {
        let mut all: Vec<Value> = self.lock().values().cloned().collect();
        for node in &mut all {
            if let Some(node) = node.as_object_mut() {
                node.retain(|name, _| name != "renamed" && name != "token");
            }
        }
        all
    }

    /// Forgets a node.
    pub(super) fn forget(&self, id: &str) {
        let was_there = self.lock().remove(id).is_some();
        if was_there {
            self.save();
        }
    }

    /// Writes down what is known now. Writes to the disk.
    pub(super) fn save(&self) {
        // Whoever writes last has seen what came last.
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let file: Map<String, Value> = self.lock().iter().map(|(id, node)| (id.clone(), node.clone())).collect();
        if let Err(error) = prowess_files::replace(&self.path, format!("{:#}\n", Value::Object(file)).as_bytes()) {
            // A name is lost with the next start; nothing else depends on it.
            tracing::warn!("cannot save nodes in {}: {error}", self.path.display());
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Value>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(path: &Path) -> Option<Map<String, Value>> {
    std::fs::metadata(path).ok().filter(|file| file.is_file() && file.len() <= MAX_BYTES)?;
    match serde_json::from_str(&std::fs::read_to_string(path).ok()?).ok()? {
        Value::Object(nodes) => Some(nodes),
        _ => None,
    }
}

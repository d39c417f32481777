//! The approvals file on the wire: how is it read and replaced from afar?
//!
//! The same for this host and for a node: path, whether it is there, a hash of its text, and the file without the token
//! that is in it. Whoever replaces it has to know the hash of what they replace.

use prowess_exec::store::ApprovalsFile;
use prowess_policy::approvals::Approvals;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::device::hex;

/// Why the file was not replaced.
#[derive(Debug, Error)]
pub(crate) enum SetError {
    /// It has to be said what is replaced.
    #[error("exec approvals base hash required; reload and retry")]
    NoHash,
    /// It is not what it was.
    #[error("exec approvals changed; reload and retry")]
    Changed,
    /// Nothing to write.
    #[error("exec approvals file is required")]
    NoFile,
    /// It cannot be read or written, or what was sent is no such file.
    #[error("exec approvals cannot be used: {0}")]
    Unusable(String),
}

/// The file as it is told. Looks at the disk.
pub(crate) fn get(file: &ApprovalsFile) -> Result<Value, SetError> {
    let approvals = file.load().map_err(unusable)?;
    let raw = raw(file);
    let mut value = approvals.to_value();
    if let Some(socket) = value.get_mut("socket") {
        let path = socket.get("path").and_then(Value::as_str).filter(|path| !path.trim().is_empty());
        *socket = path.map_or(Value::Null, |path| json!({"path": path}));
    }
    if value["socket"].is_null()
        && let Some(map) = value.as_object_mut()
    {
        map.shift_remove("socket");
    }
    Ok(json!({"path": file.path(), "exists": raw.is_some(), "hash": hash(raw.as_deref()), "file": value}))
}

/// Replaces it with `params.file`, if it is still what `params.baseHash` says.
pub(crate) fn set(file: &ApprovalsFile, params: &Value) -> Result<Value, SetError> {
    let incoming = params.get("file").filter(|value| value.is_object()).ok_or(SetError::NoFile)?;
    let new_id = || uuid::Uuid::new_v4().to_string();
    let base = params["baseHash"].as_str().map(str::trim).filter(|base| !base.is_empty());
    let replaced = file.update(|current| {
        // Read under the lock that keeps other writers out.
        if let Some(raw) = raw(file) {
            match base {
                None => return Err(SetError::NoHash),
                Some(base) if base != hash(Some(&raw)) => return Err(SetError::Changed),
                Some(_) => {}
            }
        }
        let mut incoming = incoming.clone();
        if !incoming["socket"].is_object() {
            incoming["socket"] = json!({});
        }
        let socket = current.to_value().get("socket").cloned().unwrap_or_default();
        for name in ["path", "token"] {
            if incoming["socket"][name].is_null() && !socket[name].is_null() {
                incoming["socket"][name] = socket[name].clone();
            }
        }
        *current = Approvals::from_value(incoming, new_id).map_err(unusable)?;
        Ok(())
    });
    replaced.map_err(unusable)??;
    get(file)
}

fn raw(file: &ApprovalsFile) -> Option<String> {
    std::fs::read_to_string(file.path()).ok()
}

fn hash(raw: Option<&str>) -> String {
    hex(&Sha256::digest(raw.unwrap_or_default().as_bytes()))
}

fn unusable(error: impl std::fmt::Display) -> SetError {
    SetError::Unusable(error.to_string())
}

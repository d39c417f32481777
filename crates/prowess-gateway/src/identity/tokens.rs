//! Tokens of our device: what did gateways give us, so that we are known next time?

use std::path::{Path, PathBuf};

use prowess_agent::message::now;
use prowess_config::Secret;
use serde_json::{Value, json};

use super::Identity;
use crate::files::{self, FileError};

fn path(state_dir: &Path) -> PathBuf {
    state_dir.join("identity/device-auth.json")
}

impl Identity {
    /// The token that the gateway at `gateway` gave this device for a role, such as `node`.
    pub(crate) fn token(&self, state_dir: &Path, role: &str, gateway: &str) -> Result<Option<Secret>, FileError> {
        let stored = files::read_json(&path(state_dir))?.unwrap_or_default();
        let entry = &stored["tokens"][role];
        // OpenClaw does not write which gateway it is from.
        let is_from_there = entry["gateway"].as_str().is_none_or(|known| known == gateway);
        if stored["deviceId"] != self.id() || !is_from_there {
            return Ok(None);
        }
        Ok(entry["token"].as_str().map(Secret::new))
    }

    /// Keeps the token that is in `auth` of what a gateway said when it let us in, if there is one.
    pub(crate) fn keep_token(&self, state_dir: &Path, gateway: &str, auth: &Value) -> Result<(), FileError> {
        let (Some(token), Some(role)) = (auth["deviceToken"].as_str(), auth["role"].as_str()) else { return Ok(()) };
        let path = path(state_dir);
        let mut stored = files::read_json(&path)?.filter(|stored| stored["deviceId"] == self.id()).unwrap_or_default();
        let entry = &stored["tokens"][role];
        if entry["token"] == token && entry["gateway"] == gateway {
            return Ok(());
        }
        if !stored["tokens"].is_object() {
            stored = json!({"version": 1, "deviceId": self.id(), "tokens": {}});
        }
        let scopes = auth["scopes"].as_array().cloned().unwrap_or_default();
        stored["tokens"][role] =
            json!({"token": token, "role": role, "scopes": scopes, "updatedAtMs": now(), "gateway": gateway});
        files::write_json(&path, &stored)
    }

    /// Forgets the token for a role, because it is worth nothing any more.
    pub(crate) fn forget_token(&self, state_dir: &Path, role: &str) -> Result<(), FileError> {
        let path = path(state_dir);
        let stored = files::read_json(&path)?.filter(|stored| stored["deviceId"] == self.id());
        let Some(mut stored) = stored else { return Ok(()) };
        match stored["tokens"].as_object_mut().and_then(|tokens| tokens.shift_remove(role)) {
            Some(_) => files::write_json(&path, &stored),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_kept_for_its_device_and_role() {
        let dir = tempfile::tempdir().expect("a folder");
        let identity = Identity::generate().expect("an identity");
        let token_at = |identity: &Identity, role: &str, gateway: &str| {
            identity.token(dir.path(), role, gateway).expect("readable").map(|token| token.expose().to_owned())
        };
        let token = |identity: &Identity, role: &str| token_at(identity, role, "ws://a");
        assert_eq!(token(&identity, "node"), None);
        let auth = json!({"deviceToken": "t", "role": "node", "scopes": [], "issuedAtMs": 1});
        identity.keep_token(dir.path(), "ws://a", &auth).expect("kept");
        identity.keep_token(dir.path(), "ws://a", &json!(null)).expect("nothing to keep");
        assert_eq!(token(&identity, "node").as_deref(), Some("t"));
        assert_eq!(token_at(&identity, "node", "ws://b"), None, "it is shown only where it is from");
        assert_eq!(token(&identity, "operator"), None);
        assert_eq!(token(&Identity::generate().expect("another"), "node"), None);
        identity.forget_token(dir.path(), "node").expect("forgotten");
        assert_eq!(token(&identity, "node"), None);
    }
}

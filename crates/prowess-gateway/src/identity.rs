//! Our identity: who are we when we connect to a gateway?
//!
//! One key per state directory, in a file that OpenClaw reads and writes, too.

mod tokens;

use std::path::{Path, PathBuf};

use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use ed25519_dalek::pkcs8::{DecodePrivateKey, EncodePrivateKey, EncodePublicKey, KeypairBytes};
use ed25519_dalek::{Signer, SigningKey};
use prowess_agent::message::now;
use serde_json::{Value, json};
use thiserror::Error;

use crate::device::{self, Statement};
use crate::files::{self, FileError};

/// The key of this machine.
#[derive(Clone)]
pub struct Identity {
    key: SigningKey,
    id: String,
}

/// Why there is no identity.
#[derive(Debug, Error)]
pub enum IdentityError {
    /// The file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file has no key in it.
    #[error("{} contains no key ({why}); move it elsewhere to get a new identity, which then needs approval", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The system gives no random numbers.
    #[error("the system cannot provide random numbers: {0}")]
    Random(String),
}

impl Identity {
    /// A new one.
    pub fn generate() -> Result<Self, IdentityError> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(|error| IdentityError::Random(error.to_string()))?;
        Ok(Self::of(SigningKey::from_bytes(&seed)))
    }

    /// The one of this state directory; the first time, it is made up.
    pub fn load(state_dir: &Path) -> Result<Self, IdentityError> {
        let path = state_dir.join("identity/device.json");
        if let Some(stored) = files::read_json(&path)? {
            return Self::parse(&stored).map_err(|why| IdentityError::Broken { path, why });
        }
        let fresh = Self::generate()?;
        files::create_json(&path, &fresh.render())?;
        // Somebody else may have been faster, and then theirs counts.
        let stored = files::read_json(&path)?.unwrap_or_default();
        Self::parse(&stored).map_err(|why| IdentityError::Broken { path, why })
    }

    /// The hash of the public key, which is the name of this machine among gateways.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// `device` of the parameters of `connect`.
    pub(crate) fn prove(&self, statement: &Statement<'_>) -> Value {
        let signature = device::encode(&self.key.sign(statement.text().as_bytes()).to_bytes());
        let public_key = device::encode(self.key.verifying_key().as_bytes());
        device::device_param(&self.id, &public_key, &signature, statement.signed_at, statement.nonce)
    }

    fn of(key: SigningKey) -> Self {
        Self { id: device::id(&key.verifying_key()), key }
    }

    fn parse(stored: &Value) -> Result<Self, &'static str> {
        let pem = stored["privateKeyPem"].as_str().ok_or("privateKeyPem is missing")?;
        SigningKey::from_pkcs8_pem(pem.trim()).map(Self::of).map_err(|_| "privateKeyPem is not an Ed25519 key")
    }

    fn render(&self) -> Value {
        // Without the public half, as OpenClaw writes it.
        let private = KeypairBytes { secret_key: self.key.to_bytes(), public_key: None };
        let private = private.to_pkcs8_pem(LineEnding::LF).map(|pem| pem.to_string()).unwrap_or_default();
        let public = self.key.verifying_key().to_public_key_pem(LineEnding::LF).unwrap_or_default();
        json!({
            "version": 1,
            "deviceId": self.id,
            "publicKeyPem": public,
            "privateKeyPem": private,
            "createdAtMs": now(),
        })
    }
}

/// Without the key.
impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity").field("id", &self.id).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As OpenClaw 2026.3.2 writes it.
    const STORED: &str = r#"{
        "version": 1,
        "deviceId": "fe812c12f3ab4ce6ac5db69ac352f906cb1b11ef43fb33e252ef7ff552263889",
        "publicKeyPem": "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA6kpsY+KcUgq+9VB7Ey7F+ZVHdq6+vnuSQh7qaRRG0iw=\n-----END PUBLIC KEY-----\n",
        "privateKeyPem": "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIAcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH\n-----END PRIVATE KEY-----\n",
        "createdAtMs": 1794709298373
    }"#;

    #[test]
    fn an_identity_stays_the_same_and_is_for_us_alone() {
        let dir = tempfile::tempdir().expect("a folder");
        let first = Identity::load(dir.path()).expect("an identity");
        let again = Identity::load(dir.path()).expect("an identity");
        assert_eq!(first.id(), again.id());
        assert_eq!(first.id().len(), 64);
        let path = dir.path().join("identity/device.json");
        let mode = std::os::unix::fs::PermissionsExt::mode(&path.metadata().expect("it is there").permissions());
        assert_eq!(mode & 0o777, 0o600);
        assert!(!format!("{first:?}").contains("key:"));
    }

    #[test]
    fn a_file_of_the_other_program_is_read_and_ours_looks_like_it() {
        let stored: Value = serde_json::from_str(STORED).expect("JSON");
        let identity = Identity::parse(&stored).expect("an identity");
        assert_eq!(identity.id(), stored["deviceId"]);
        let rendered = identity.render();
        for key in ["version", "deviceId", "publicKeyPem", "privateKeyPem"] {
            assert_eq!(rendered[key], stored[key], "{key}");
        }
        assert!(rendered["createdAtMs"].is_u64());
    }

    #[test]
    fn a_broken_file_is_told_and_left_alone() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("identity/device.json");
        std::fs::create_dir_all(dir.path().join("identity")).expect("a folder");
        for broken in ["", "{", "{}", r#"{"privateKeyPem": "x"}"#] {
            std::fs::write(&path, broken).expect("written");
            assert!(Identity::load(dir.path()).is_err(), "{broken}");
            assert_eq!(std::fs::read_to_string(&path).expect("it is there"), broken);
        }
    }
}

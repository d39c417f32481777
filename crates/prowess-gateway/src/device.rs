//! Devices: does a client have the key that it says it has?
//!
//! A device is an Ed25519 key, and its id is the hash of the public half. It proves itself by signing what it is about
//! to be let in as, together with our challenge, so that a proof is good for one connection and one purpose.

use base64::Engine;
use base64::alphabet::URL_SAFE;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use base64::engine::{DecodePaddingMode, general_purpose::URL_SAFE_NO_PAD};
use ed25519_dalek::pkcs8::DecodePublicKey;
use ed25519_dalek::{Signature, VerifyingKey};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::wire::Refusal;

/// How far the clocks of both may be apart, in milliseconds.
const MAX_SKEW: u64 = 120_000;

/// What a device signs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Statement<'a> {
    pub(crate) device: &'a str,
    pub(crate) client: &'a str,
    pub(crate) mode: &'a str,
    pub(crate) role: &'a str,
    pub(crate) scopes: &'a [String],
    pub(crate) signed_at: u64,
    pub(crate) token: &'a str,
    pub(crate) nonce: &'a str,
    pub(crate) platform: &'a str,
    pub(crate) family: &'a str,
}

/// The key that a client shows, and its proof.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claim<'a> {
    pub(crate) public_key: &'a str,
    pub(crate) signature: &'a str,
}

/// What is wrong with a proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unproven {
    IdMismatch,
    /// Its clock and ours are so many milliseconds apart; behind ours, if it is negative.
    Stale(i64),
    NonceMissing,
    NonceMismatch,
    Signature,
}

impl Unproven {
    /// The reason, the code and the words that clients know.
    fn told(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::IdMismatch => ("device-id-mismatch", "DEVICE_AUTH_DEVICE_ID_MISMATCH", "device identity mismatch"),
            Self::Stale(_) => ("device-signature-stale", "DEVICE_AUTH_SIGNATURE_EXPIRED", "device signature expired"),
            Self::NonceMissing => ("device-nonce-missing", "DEVICE_AUTH_NONCE_REQUIRED", "device nonce required"),
            Self::NonceMismatch => ("device-nonce-mismatch", "DEVICE_AUTH_NONCE_MISMATCH", "device nonce mismatch"),
            Self::Signature => ("device-signature", "DEVICE_AUTH_SIGNATURE_INVALID", "device signature invalid"),
        }
    }

    pub(crate) fn refusal(self) -> Refusal {
        let (reason, code, message) = self.told();
        let details = json!({"code": code, "reason": reason});
        let Self::Stale(apart) = self else { return Refusal::invalid(message).details(details) };
        let way = if apart < 0 { "behind" } else { "ahead of" };
        let message = format!(
            "{message}: the client's clock is {} {way} the gateway's; set both clocks right and connect again",
            lasting(apart.unsigned_abs()),
        );
        Refusal::invalid(message).details(details)
    }
}

impl Statement<'_> {
    /// The text that is signed today.
    pub(crate) fn text(&self) -> String {
        let (platform, family) = (settled(self.platform), settled(self.family));
        format!("v3|{}|{platform}|{family}", self.body())
    }

    /// The text that older clients sign, which leaves out what kind of machine it is.
    fn old_text(&self) -> String {
        format!("v2|{}", self.body())
    }

    fn body(&self) -> String {
        let Self { device, client, mode, role, signed_at, token, nonce, .. } = self;
        format!("{device}|{client}|{mode}|{role}|{}|{signed_at}|{token}|{nonce}", self.scopes.join(","))
    }

    /// Checks the proof of somebody who was challenged with `nonce`, and returns its public key as it is stored.
    pub(crate) fn prove(&self, claim: Claim<'_>, nonce: &str, now: u64) -> Result<String, Unproven> {
        let key = public_key(claim.public_key).ok_or(Unproven::IdMismatch)?;
        if id(&key) != self.device {
            return Err(Unproven::IdMismatch);
        }
        if now.abs_diff(self.signed_at) > MAX_SKEW {
            let apart = i64::try_from(self.signed_at).unwrap_or(i64::MAX).saturating_sub_unsigned(now);
            return Err(Unproven::Stale(apart));
        }
        if self.nonce.is_empty() {
            return Err(Unproven::NonceMissing);
        }
        if self.nonce != nonce {
            return Err(Unproven::NonceMismatch);
        }
        let signature = decode(claim.signature).and_then(|bytes| Signature::from_slice(&bytes).ok());
        let signature = signature.ok_or(Unproven::Signature)?;
        let is_signed = |text: String| key.verify_strict(text.as_bytes(), &signature).is_ok();
        if is_signed(self.text()) || is_signed(self.old_text()) {
            return Ok(encode(key.as_bytes()));
        }
        Err(Unproven::Signature)
    }
}

/// A difference between clocks, as people say it.
fn lasting(millis: u64) -> String {
    match millis / 1000 {
        seconds @ 0..120 => format!("{seconds} seconds"),
        seconds @ 120..7_200 => format!("{} minutes", seconds / 60),
        seconds @ 7_200..172_800 => format!("{} hours", seconds / 3_600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

/// What kind of machine it is, in the one form that is compared and signed.
pub(crate) fn settled(text: &str) -> String {
    text.trim().to_ascii_lowercase()
}

/// The id of a device.
pub(crate) fn id(key: &VerifyingKey) -> String {
    hex(&Sha256::digest(key.as_bytes()))
}

/// Bytes as two digits each.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

/// Bytes as they are written in frames and files.
pub(crate) fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn decode(text: &str) -> Option<Vec<u8>> {
    const CONFIG: GeneralPurposeConfig =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let text = text.trim().replace('+', "-").replace('/', "_");
    GeneralPurpose::new(&URL_SAFE, CONFIG).decode(text).ok()
}

/// A public key: its bytes in base64, or a PEM block.
fn public_key(text: &str) -> Option<VerifyingKey> {
    if text.contains("BEGIN") {
        return VerifyingKey::from_public_key_pem(text.trim()).ok();
    }
    let bytes: [u8; 32] = decode(text)?.try_into().ok()?;
    VerifyingKey::from_bytes(&bytes).ok()
}

/// The fields of `device` in the parameters of `connect`.
pub(crate) fn device_param(id: &str, public_key: &str, signature: &str, signed_at: u64, nonce: &str) -> Value {
    json!({"id": id, "publicKey": public_key, "signature": signature, "signedAt": signed_at, "nonce": nonce})
}

#[cfg(test)]
mod tests {
    use ed25519_dalek::{Signer, SigningKey};

    use super::*;

    const NOW: u64 = 1_794_709_298_373;

    fn key() -> SigningKey {
        SigningKey::from_bytes(&[7; 32])
    }

    struct Proof {
        device: String,
        public_key: String,
        nonce: &'static str,
        signed_at: u64,
        role: &'static str,
        text: fn(&Statement<'_>) -> String,
    }

    impl Proof {
        fn good() -> Self {
            let key = key().verifying_key();
            Self {
                device: id(&key),
                public_key: encode(key.as_bytes()),
                nonce: "n",
                signed_at: NOW,
                role: "node",
                text: |statement| statement.text(),
            }
        }

        /// Signs as what it is, and shows it as somebody who wants to be a node.
        fn check(&self) -> Result<String, Unproven> {
            let scopes = ["a".to_owned(), "b".to_owned()];
            let signed = Statement {
                device: &self.device,
                client: "node-host",
                mode: "node",
                role: self.role,
                scopes: &scopes,
                signed_at: self.signed_at,
                token: "t",
                nonce: self.nonce,
                platform: " Linux ",
                family: "",
            };
            let signature = encode(&key().sign((self.text)(&signed).as_bytes()).to_bytes());
            let shown = Statement { role: "node", platform: "linux", ..signed };
            shown.prove(Claim { public_key: &self.public_key, signature: &signature }, "n", NOW)
        }
    }

    #[test]
    fn the_texts_that_are_signed_are_the_known_ones() {
        let scopes = ["operator.read".to_owned(), "operator.write".to_owned()];
        let statement = Statement {
            device: "d",
            client: "cli",
            mode: "cli",
            role: "operator",
            scopes: &scopes,
            signed_at: 5,
            token: "",
            nonce: "n",
            platform: " MacOS ",
            family: "Mac",
        };
        assert_eq!(statement.text(), "v3|d|cli|cli|operator|operator.read,operator.write|5||n|macos|mac");
        assert_eq!(statement.old_text(), "v2|d|cli|cli|operator|operator.read,operator.write|5||n");
    }

    #[test]
    fn a_good_proof_is_taken_in_both_versions_and_notations() {
        let raw = Proof::good().public_key.clone();
        assert_eq!(Proof::good().check(), Ok(raw.clone()));
        assert_eq!(Proof { text: |statement| statement.old_text(), ..Proof::good() }.check(), Ok(raw.clone()));
        let pem = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA6kpsY+KcUgq+9VB7Ey7F+ZVHdq6+vnuSQh7qaRRG0iw=\n-----END PUBLIC KEY-----\n";
        assert_eq!(Proof { public_key: pem.into(), ..Proof::good() }.check(), Ok(raw.clone()));
        let padded = Proof { public_key: format!("{raw}="), ..Proof::good() };
        assert_eq!(padded.check(), Ok(raw));
    }

    #[test]
    fn who_is_refused_because_of_its_clock_is_told_so() {
        let table = [(-180_000, "3 minutes behind"), (7_200_000, "2 hours ahead of"), (-259_200_000, "3 days behind")];
        for (apart, words) in table {
            let told = Unproven::Stale(apart).refusal().message;
            assert!(told.starts_with("device signature expired: ") && told.contains(words), "{told}");
        }
    }

    #[test]
    fn a_proof_is_good_for_one_key_one_moment_one_challenge_and_one_purpose() {
        let other = SigningKey::from_bytes(&[8; 32]).verifying_key();
        let cases = [
            (Proof { device: "0".repeat(64), ..Proof::good() }, Unproven::IdMismatch),
            (Proof { public_key: encode(other.as_bytes()), ..Proof::good() }, Unproven::IdMismatch),
            (Proof { public_key: "!".into(), ..Proof::good() }, Unproven::IdMismatch),
            (Proof { device: id(&other), public_key: encode(other.as_bytes()), ..Proof::good() }, Unproven::Signature),
            (Proof { signed_at: NOW - MAX_SKEW - 1, ..Proof::good() }, Unproven::Stale(-120_001)),
            (Proof { signed_at: NOW + MAX_SKEW + 1, ..Proof::good() }, Unproven::Stale(120_001)),
            (Proof { nonce: "", ..Proof::good() }, Unproven::NonceMissing),
            (Proof { nonce: "another", ..Proof::good() }, Unproven::NonceMismatch),
            (Proof { role: "operator", ..Proof::good() }, Unproven::Signature),
        ];
        for (proof, expected) in cases {
            assert_eq!(proof.check(), Err(expected));
        }
        assert!(Proof { signed_at: NOW - MAX_SKEW, ..Proof::good() }.check().is_ok());
    }
}

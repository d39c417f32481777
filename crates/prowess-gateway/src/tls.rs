//! TLS: with which certificate does the gateway prove itself, and which one does a client accept?
//!
//! The operator's own certificate, or a self-signed one that is made once and kept. Nobody vouches for a self-signed
//! certificate, so people and programs recognise it by its SHA-256 fingerprint.

mod pin;

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use prowess_config::Locations;
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use thiserror::Error;
use tokio_rustls::TlsAcceptor;

pub(crate) use pin::{Recognised, verifier};
use prowess_files::replace;

/// How long a certificate that we make is good. Phones refuse those that last longer.
const VALID: Duration = Duration::from_secs(820 * 24 * 3600);

/// How long before its end a certificate that we made is replaced.
const RENEW: Duration = Duration::from_secs(30 * 24 * 3600);

/// How large a file with certificates or a key can be.
const MAX_BYTES: u64 = 1024 * 1024;

/// Where the certificate and its key are, and whether they are made when they are missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsSettings {
    /// The certificate, and those that vouch for it, in PEM.
    pub cert: PathBuf,
    /// Its private key, in PEM.
    pub key: PathBuf,
    /// Make a self-signed certificate if both files are missing.
    pub generate: bool,
    /// The files are the operator's own, and are never replaced.
    is_given: bool,
}

/// A certificate that the gateway can show.
#[derive(Clone)]
pub(crate) struct Tls {
    pub(crate) acceptor: TlsAcceptor,
    pub(crate) fingerprint: Fingerprint,
}

/// The SHA-256 of a certificate. It prints the way browsers show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint([u8; 32]);

/// There is no certificate to show.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A file cannot be read or written.
    #[error("cannot use {}: {source}; check gateway.tls.certPath and gateway.tls.keyPath", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file is not what it should be.
    #[error("{} has {what}; write a PEM file there, or remove it to generate one", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// A certificate cannot be made.
    #[error("cannot generate a self-signed certificate: {0}; set gateway.tls.certPath and gateway.tls.keyPath")]
    Generate(String),
}

impl TlsSettings {
    /// From `gateway.tls`, in OpenClaw's keys.
    #[must_use]
    pub fn read(section: &Value, locations: &Locations) -> Self {
        let given = |name: &str| {
            let path = section[name].as_str().map(str::trim).filter(|path| !path.is_empty());
            path.map(|path| locations.expand(path))
        };
        let folder = locations.state_dir.join("gateway/tls");
        Self {
            is_given: given("certPath").is_some() || given("keyPath").is_some(),
            cert: given("certPath").unwrap_or_else(|| folder.join("gateway-cert.pem")),
            key: given("keyPath").unwrap_or_else(|| folder.join("gateway-key.pem")),
            generate: section["autoGenerate"] != false,
        }
    }

    /// The fingerprint of the certificate that is there, if there is one.
    #[must_use]
    pub fn fingerprint(&self) -> Option<Fingerprint> {
        chain(&self.cert).ok()?.first().map(Fingerprint::of)
    }

    /// Loads the certificate; makes one first if there is none, or ours is about to expire. Reads and writes files.
    pub(crate) fn load(&self) -> Result<Tls, TlsError> {
        let is_missing = |path: &Path| matches!(path.metadata(), Err(error) if error.kind() == ErrorKind::NotFound);
        let is_absent = is_missing(&self.cert) && is_missing(&self.key);
        if self.generate && (is_absent || (!self.is_given && self.is_ending(SystemTime::now()))) {
            self.make()?;
        }
        let chain = chain(&self.cert)?;
        let text = read(&self.key)?;
        let content = |what: String| TlsError::Content { path: self.key.clone(), what };
        let key = PrivateKeyDer::from_pem_slice(&text).map_err(|error| content(format!("no private key ({error})")))?;
        let fingerprint = Fingerprint::of(&chain[0]);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|error| content(error.to_string()))?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(|error| content(format!("a key that does not fit the certificate ({error})")))?;
        Ok(Tls { acceptor: TlsAcceptor::from(Arc::new(config)), fingerprint })
    }

    /// Whether the certificate that is there expires soon.
    fn is_ending(&self, now: SystemTime) -> bool {
        let Some(cert) = chain(&self.cert).ok().and_then(|chain| chain.into_iter().next()) else { return false };
        let Ok((_, parsed)) = x509_parser::parse_x509_certificate(&cert) else { return false };
        let end = u64::try_from(parsed.validity().not_after.timestamp()).unwrap_or(0);
        let soon = (now + RENEW).duration_since(SystemTime::UNIX_EPOCH).map_or(u64::MAX, |at| at.as_secs());
        end < soon
    }

    /// Makes a key and a certificate for this machine.
    fn make(&self) -> Result<(), TlsError> {
        let failed = |error: &dyn std::fmt::Display| TlsError::Generate(error.to_string());
        let mut names = vec!["localhost".to_owned(), crate::presence::host_name()];
        names.extend(machine_addresses().iter().map(IpAddr::to_string));
        names.retain(|name| !name.is_empty() && name.is_ascii());
        let mut params = CertificateParams::new(names).map_err(|error| failed(&error))?;
        params.distinguished_name.push(DnType::CommonName, "prowess gateway");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let now = SystemTime::now();
        params.not_before = (now - Duration::from_secs(3600)).into();
        params.not_after = (now + VALID).into();
        let key = KeyPair::generate().map_err(|error| failed(&error))?;
        let cert = params.self_signed(&key).map_err(|error| failed(&error))?;
        write(&self.key, &key.serialize_pem())?;
        write(&self.cert, &cert.pem())?;
        tracing::info!(cert = %self.cert.display(), "made a self-signed certificate");
        Ok(())
    }
}

/// The addresses of this machine in its networks, this machine itself first.
#[must_use]
pub fn machine_addresses() -> Vec<IpAddr> {
    let found = if_addrs::get_if_addrs().unwrap_or_default().into_iter().map(|interface| interface.ip());
    let is_useful = |ip: &IpAddr| match ip {
        IpAddr::V4(ip) => !ip.is_link_local() && !ip.is_loopback(),
        IpAddr::V6(ip) => !ip.is_unicast_link_local() && !ip.is_loopback(),
    };
    let mut own = vec![IpAddr::from([127, 0, 0, 1])];
    own.extend(found.filter(is_useful).take(32));
    own
}

fn chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text = read(path)?;
    let content = |what: String| TlsError::Content { path: path.to_owned(), what };
    let parsed: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let chain = parsed.map_err(|error| content(format!("a broken certificate ({error})")))?;
    if chain.is_empty() { Err(content("no certificate in it".to_owned())) } else { Ok(chain) }
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    let mut text = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_BYTES).read_to_end(&mut text));
    read.map(|_| text).map_err(|source| TlsError::File { path: path.to_owned(), source })
}

fn write(path: &Path, text: &str) -> Result<(), TlsError> {
    replace(path, text.as_bytes()).map_err(|source| TlsError::File { path: path.to_owned(), source })
}

impl Fingerprint {
    fn of(cert: &CertificateDer<'_>) -> Self {
        Self(Sha256::digest(cert.as_ref()).into())
    }

    /// From 64 hexadecimal digits, with or without colons and `sha256:`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim().to_ascii_lowercase();
        let rest =
            text.strip_prefix("sha256").map_or(text.as_str(), |rest| rest.trim_start_matches([':', '=', '-', ' ']));
        let digits: Vec<char> = rest.chars().filter(|c| !matches!(c, ':' | ' ')).collect();
        let is_hex = digits.iter().all(char::is_ascii_hexdigit);
        let byte = |pair: &[char]| u8::from_str_radix(&String::from_iter(pair), 16).ok();
        let bytes: Vec<u8> = digits.chunks(2).map(byte).collect::<Option<_>>()?;
        (digits.len() == 64 && is_hex).then(|| bytes.try_into().ok().map(Self)).flatten()
    }
}

impl std::fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            write!(f, "{}{byte:02X}", if at > 0 { ":" } else { "" })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn settings(folder: &Path) -> TlsSettings {
        let (cert, key) = (folder.join("tls/cert.pem"), folder.join("tls/key.pem"));
        TlsSettings { cert, key, generate: true, is_given: false }
    }

    #[test]
    fn a_certificate_is_made_once_and_its_key_is_for_us_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let settings = settings(folder.path());
        assert_eq!(settings.fingerprint(), None);
        let first = settings.load().expect("a certificate").fingerprint;
        assert_eq!(settings.load().expect("a certificate").fingerprint, first);
        assert_eq!(settings.fingerprint(), Some(first));
        let mode = settings.key.metadata().expect("the key").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(!settings.is_ending(SystemTime::now()));
        assert!(settings.is_ending(SystemTime::now() + VALID - RENEW + Duration::from_secs(60)));
    }

    #[test]
    fn what_the_operator_gave_is_never_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let settings = TlsSettings { generate: false, ..settings(folder.path()) };
        assert!(matches!(settings.load(), Err(TlsError::File { .. })));
        std::fs::create_dir_all(folder.path().join("tls")).expect("a folder");
        std::fs::write(&settings.cert, "no certificate").expect("written");
        let settings = TlsSettings { generate: true, ..settings };
        assert!(matches!(settings.load(), Err(TlsError::Content { .. })), "one of both is there, so nothing is made");
        assert_eq!(std::fs::read_to_string(&settings.cert).expect("the file"), "no certificate");
    }

    #[test]
    fn a_fingerprint_is_read_in_every_usual_form() {
        let plain = "00ff".repeat(16);
        let print = Fingerprint::parse(&plain).expect("a fingerprint");
        assert_eq!(Fingerprint::parse(&print.to_string()), Some(print));
        assert_eq!(Fingerprint::parse(&format!(" SHA256:{} ", plain.to_uppercase())), Some(print));
        assert!(print.to_string().starts_with("00:FF:00"));
        for bad in ["", "00", &plain[1..], &format!("{plain}00"), &plain.replace('f', "g")] {
            assert_eq!(Fingerprint::parse(bad), None, "{bad}");
        }
    }
}

//! Pinning: is it the certificate that the operator compared?
//!
//! With a fingerprint only that certificate counts, whoever vouches for it. Without one the system's authorities do, and
//! the fingerprint that was seen is remembered, so that a person can be told what to compare.

use std::sync::{Arc, OnceLock};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};

use super::Fingerprint;

/// Which certificate a server showed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recognised(Arc<OnceLock<Fingerprint>>);

impl Recognised {
    /// Its fingerprint, once the server has shown it.
    pub(crate) fn fingerprint(&self) -> Option<Fingerprint> {
        self.0.get().copied()
    }
}

/// Accepts the certificate with that fingerprint, or else those of the system's authorities. What is shown is noted in `seen`.
pub(crate) fn verifier(
    provider: Arc<CryptoProvider>,
    pin: Option<Fingerprint>,
    seen: Recognised,
) -> Result<Arc<dyn ServerCertVerifier>, Error> {
    let authorities = match pin {
        Some(_) => None,
        None => Some(rustls_platform_verifier::Verifier::new(Arc::clone(&provider))?),
    };
    Ok(Arc::new(Pinned { pin, authorities, provider, seen }))
}

#[derive(Debug)]
struct Pinned {
    pin: Option<Fingerprint>,
    authorities: Option<rustls_platform_verifier::Verifier>,
    provider: Arc<CryptoProvider>,
    seen: Recognised,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let shown = Fingerprint::of(end_entity);
        let _ = self.seen.0.set(shown);
        if let Some(authorities) = &self.authorities {
            return authorities.verify_server_cert(end_entity, intermediates, server_name, ocsp, now);
        }
        if self.pin == Some(shown) {
            return Ok(ServerCertVerified::assertion());
        }
        Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

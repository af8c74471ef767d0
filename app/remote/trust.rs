//! How a client knows that it talks to its orchestrator.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use reqwest::{Certificate, ClientBuilder};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, OtherError, SignatureScheme};
use sha2::{Digest, Sha256};

use crate::protocol::fingerprint::Fingerprint;

/// Why nobody can be trusted as it was said, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrustError {
    /// The flags are wrong.
    Usage(String),
    /// What they name cannot be used.
    Unusable(String),
}

/// Whose certificate is accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    /// One that an authority of the system's has signed.
    System,
    /// One that the certificates in this PEM file vouch for; no others do.
    Only(PathBuf),
    /// Whatever says it, one with this key.
    Pinned(Fingerprint),
    /// Anyone's.
    Anything,
}

impl Trust {
    /// What the flags say together.
    ///
    /// # Errors
    /// If they contradict each other.
    pub fn of(no_verify: bool, ca_file: Option<PathBuf>, fingerprint: Option<&str>) -> Result<Self, TrustError> {
        match (no_verify, ca_file, fingerprint) {
            (false, None, None) => Ok(Self::System),
            (false, Some(file), None) => Ok(Self::Only(file)),
            (false, None, Some(text)) => text
                .parse()
                .map(Self::Pinned)
                .map_err(|error| TrustError::Usage(format!("--orchestrator-fingerprint {text:?}: {error}"))),
            (true, None, None) => Ok(Self::Anything),
            (false, Some(_), Some(_)) => Err(TrustError::Usage(
                "--orchestrator-fingerprint says which key the orchestrator has, so no authority is asked: leave \
                 --ca-file (SIMPLETUNER_CA_FILE) out"
                    .to_owned(),
            )),
            (true, ..) => Err(TrustError::Usage(
                "--ssl-no-verify (SIMPLETUNER_SSL_NO_VERIFY) trusts anyone, which contradicts --ca-file and \
                 --orchestrator-fingerprint: leave it out"
                    .to_owned(),
            )),
        }
    }

    /// A client that accepts these and nobody else.
    ///
    /// # Errors
    /// If the certificates cannot be used.
    pub fn apply(&self, client: ClientBuilder, https: bool) -> Result<ClientBuilder, TrustError> {
        // Only a second call fails, and it would install the same.
        let _ = aws_lc_rs::default_provider().install_default();
        Ok(match self {
            // The system's certificates cost memory, and a bare container has none.
            Self::System if !https => client.tls_certs_only([]),
            Self::System => client,
            Self::Only(file) => {
                let unusable = |why: String| TrustError::Unusable(format!("--ca-file {}: {why}", file.display()));
                let pem = std::fs::read(file).map_err(|error| unusable(error.to_string()))?;
                let certificates = Certificate::from_pem_bundle(&pem).map_err(|error| unusable(error.to_string()))?;
                if certificates.is_empty() {
                    return Err(unusable("there is no certificate in it; it must be in PEM form".to_owned()));
                }
                client.tls_certs_only(certificates)
            }
            Self::Pinned(fingerprint) => client.tls_backend_preconfigured(pinned(*fingerprint)?),
            Self::Anything => client.tls_danger_accept_invalid_certs(true).tls_danger_accept_invalid_hostnames(true),
        })
    }
}

fn pinned(fingerprint: Fingerprint) -> Result<ClientConfig, TrustError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| TrustError::Unusable(format!("cannot set up TLS: {error}")))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Pinned { fingerprint, provider }))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// The orchestrator has another key than the one that was pinned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrongKey {
    /// The fingerprint of the key that it has.
    pub shown: Fingerprint,
}

impl fmt::Display for WrongKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "its fingerprint is {}", self.shown)
    }
}

impl std::error::Error for WrongKey {}

/// Accepts the holder of one key. Names and dates do not matter: who has the key is who it is.
#[derive(Debug)]
struct Pinned {
    fingerprint: Fingerprint,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let key = ParsedCertificate::try_from(certificate)?.subject_public_key_info();
        let shown = Fingerprint(Sha256::digest(key).into());
        if shown == self.fingerprint {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(CertificateError::Other(OtherError(Arc::new(WrongKey { shown }))).into())
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_that_contradict_each_other_are_refused() {
        let fingerprint = Fingerprint([7; 32]);
        let text = fingerprint.to_string();
        let file = || Some(PathBuf::from("ca.pem"));
        assert_eq!(Trust::of(false, None, None), Ok(Trust::System));
        assert_eq!(Trust::of(false, file(), None), Ok(Trust::Only("ca.pem".into())));
        assert_eq!(Trust::of(false, None, Some(&text)), Ok(Trust::Pinned(fingerprint)));
        assert_eq!(Trust::of(true, None, None), Ok(Trust::Anything));
        for (no_verify, file, pin) in [
            (true, file(), None),
            (true, None, Some(text.as_str())),
            (true, file(), Some(&text)),
            (false, file(), Some(&text)),
            (false, None, Some("sha256:12")),
        ] {
            let said = Trust::of(no_verify, file.clone(), pin);
            assert!(matches!(said, Err(TrustError::Usage(_))), "{no_verify} {file:?} {pin:?}");
        }
    }
}

//! How a client verifies that it talks to its orchestrator.

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

use crate::protocol::system::fingerprint::Fingerprint;

/// Why the trust settings cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerTrustError {
    /// The flags are invalid.
    Usage(String),
    /// The files that the flags name cannot be used.
    Unusable(String),
}

/// Which server certificates are accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerTrust {
    /// Certificates that are signed by a root certificate of the system.
    SystemRoots,
    /// Certificates that are signed by the certificates in this PEM file, and no others.
    CaFile(PathBuf),
    /// Any certificate with this public key.
    PinnedKey(Fingerprint),
    /// Any certificate.
    AcceptAny,
}

impl ServerTrust {
    /// Combines the flags.
    ///
    /// # Errors
    ///
    /// If the flags contradict each other.
    pub fn from_flags(
        no_verify: bool,
        ca_file: Option<PathBuf>,
        fingerprint: Option<&str>,
    ) -> Result<Self, ServerTrustError> {
        match (no_verify, ca_file, fingerprint) {
            (false, None, None) => Ok(Self::SystemRoots),
            (false, Some(file), None) => Ok(Self::CaFile(file)),
            (false, None, Some(text)) => text
                .parse()
                .map(Self::PinnedKey)
                .map_err(|error| ServerTrustError::Usage(format!("--orchestrator-fingerprint {text:?}: {error}"))),
            (true, None, None) => Ok(Self::AcceptAny),
            (false, Some(_), Some(_)) => Err(ServerTrustError::Usage(
                "--orchestrator-fingerprint pins the key of the orchestrator, so no certificate authority is used: remove \
                 --ca-file (SIMPLETUNER_CA_FILE)"
                    .to_owned(),
            )),
            (true, ..) => Err(ServerTrustError::Usage(
                "--ssl-no-verify (SIMPLETUNER_SSL_NO_VERIFY) accepts any server, which contradicts --ca-file and \
                 --orchestrator-fingerprint: remove it"
                    .to_owned(),
            )),
        }
    }

    /// Configures a client that accepts only these certificates.
    ///
    /// # Errors
    ///
    /// If the certificates cannot be used.
    pub fn configure_client(&self, client: ClientBuilder, https: bool) -> Result<ClientBuilder, ServerTrustError> {
        // Fails only on a second call, which would install the same provider.
        let _ = aws_lc_rs::default_provider().install_default();
        Ok(match self {
            // Loading the system's certificates costs memory, and minimal containers have none.
            Self::SystemRoots if !https => client.tls_certs_only([]),
            Self::SystemRoots => client,
            Self::CaFile(file) => {
                let unusable =
                    |reason: String| ServerTrustError::Unusable(format!("--ca-file {}: {reason}", file.display()));
                let pem = std::fs::read(file).map_err(|error| unusable(error.to_string()))?;
                let certificates = Certificate::from_pem_bundle(&pem).map_err(|error| unusable(error.to_string()))?;
                if certificates.is_empty() {
                    return Err(unusable("it contains no certificate in PEM format".to_owned()));
                }
                client.tls_certs_only(certificates)
            }
            Self::PinnedKey(fingerprint) => client.tls_backend_preconfigured(pinned_tls_config(*fingerprint)?),
            Self::AcceptAny => client.tls_danger_accept_invalid_certs(true).tls_danger_accept_invalid_hostnames(true),
        })
    }
}

fn pinned_tls_config(fingerprint: Fingerprint) -> Result<ClientConfig, ServerTrustError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| ServerTrustError::Unusable(format!("cannot set up TLS: {error}")))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(PinnedKeyVerifier { fingerprint, provider }))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// The orchestrator's key is not the pinned one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FingerprintMismatch {
    /// The fingerprint of the key that the server presented.
    pub presented: Fingerprint,
}

impl fmt::Display for FingerprintMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "its fingerprint is {}", self.presented)
    }
}

impl std::error::Error for FingerprintMismatch {}

/// Accepts any certificate with the pinned key. Names and validity dates are ignored.
#[derive(Debug)]
struct PinnedKeyVerifier {
    fingerprint: Fingerprint,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for PinnedKeyVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let key = ParsedCertificate::try_from(certificate)?.subject_public_key_info();
        let presented = Fingerprint(Sha256::digest(key).into());
        if presented == self.fingerprint {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(CertificateError::Other(OtherError(Arc::new(FingerprintMismatch { presented }))).into())
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
    fn contradicting_flags_are_rejected() {
        let fingerprint = Fingerprint([7; 32]);
        let text = fingerprint.to_string();
        let file = || Some(PathBuf::from("ca.pem"));
        assert_eq!(ServerTrust::from_flags(false, None, None), Ok(ServerTrust::SystemRoots));
        assert_eq!(ServerTrust::from_flags(false, file(), None), Ok(ServerTrust::CaFile("ca.pem".into())));
        assert_eq!(ServerTrust::from_flags(false, None, Some(&text)), Ok(ServerTrust::PinnedKey(fingerprint)));
        assert_eq!(ServerTrust::from_flags(true, None, None), Ok(ServerTrust::AcceptAny));
        for (no_verify, file, pin) in [
            (true, file(), None),
            (true, None, Some(text.as_str())),
            (true, file(), Some(&text)),
            (false, file(), Some(&text)),
            (false, None, Some("sha256:12")),
        ] {
            let trust = ServerTrust::from_flags(no_verify, file.clone(), pin);
            assert!(matches!(trust, Err(ServerTrustError::Usage(_))), "{no_verify} {file:?} {pin:?}");
        }
    }
}

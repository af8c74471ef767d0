//! A certificate chain and its key, from two PEM files.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use app::domain::time::Timestamp;
use app::protocol::system::fingerprint::Fingerprint;
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, Error, RootCertStore};
use sha2::{Digest, Sha256};

use super::crypto_provider;
use super::validity::ends_at;

/// The paths of both files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificatePaths {
    /// The certificate and its intermediates.
    pub chain: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// The contents of both files.
#[derive(Clone, PartialEq, Eq)]
pub struct CertificateFiles {
    pub chain: Vec<u8>,
    pub key: Vec<u8>,
}

impl CertificatePaths {
    /// Reads both files.
    pub fn read(&self) -> Result<CertificateFiles, String> {
        let read =
            |path: &PathBuf| std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()));
        Ok(CertificateFiles { chain: read(&self.chain)?, key: read(&self.key)? })
    }

    /// Returns a message with the names of the files.
    pub fn describe_unusable(&self, reason: &str) -> String {
        format!("cannot use the certificate {} with the key {}: {reason}", self.chain.display(), self.key.display())
    }
}

/// A usable certificate.
#[derive(Debug)]
pub struct ServerCertificate {
    /// With chain and private key.
    pub key: Arc<CertifiedKey>,
    /// Fingerprint of the key.
    pub fingerprint: Fingerprint,
    /// Whether another certificate has signed it.
    pub is_ca_signed: bool,
    /// When it expires.
    pub ends_at: Option<Timestamp>,
}

/// Parses a chain and its key, and checks that they belong together.
pub fn parse(contents: &CertificateFiles, now: Timestamp) -> Result<ServerCertificate, String> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&contents.chain).collect();
    let chain = chain.map_err(|error| format!("the certificate is not valid PEM ({error})"))?;
    let Some(certificate) = chain.first().cloned() else {
        return Err("the file contains no certificate in PEM format".to_owned());
    };
    let key = PrivateKeyDer::from_pem_slice(&contents.key)
        .map_err(|error| format!("the key is not an unencrypted private key in PEM format ({error})"))?;
    let key = CertifiedKey::from_der(chain, key, &crypto_provider()).map_err(|error| match error {
        Error::InconsistentKeys(_) => "the key does not match the certificate".to_owned(),
        other => other.to_string(),
    })?;
    let parsed = ParsedCertificate::try_from(&certificate).map_err(|error| error.to_string())?;
    let fingerprint = Fingerprint(Sha256::digest(parsed.subject_public_key_info()).into());
    let unknown_issuer = Err(Error::InvalidCertificate(CertificateError::UnknownIssuer));
    let is_ca_signed = verify_self_signed(&certificate, &parsed, now) == unknown_issuer;
    Ok(ServerCertificate { key: Arc::new(key), fingerprint, is_ca_signed, ends_at: ends_at(&certificate) })
}

/// Verifies a certificate with itself as the only trust anchor; succeeds if it is self-signed.
pub fn verify_self_signed(
    der: &CertificateDer<'_>,
    parsed: &ParsedCertificate<'_>,
    now: Timestamp,
) -> Result<(), Error> {
    let mut roots = RootCertStore::empty();
    roots.add(der.clone())?;
    let now = UnixTime::since_unix_epoch(Duration::from_millis(now.0.unsigned_abs()));
    verify_server_cert_signed_by_trust_anchor(
        parsed,
        &roots,
        &[],
        now,
        crypto_provider().signature_verification_algorithms.all,
    )
}

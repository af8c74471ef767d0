//! A certificate chain and its key, from two PEM files.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use app::domain::time::Timestamp;
use app::protocol::fingerprint::Fingerprint;
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, Error, RootCertStore};
use sha2::{Digest, Sha256};

use super::provider;
use super::validity::ends_at;

/// Two files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// The certificate, and those between it and an authority.
    pub chain: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// What stood in them.
#[derive(Clone, PartialEq, Eq)]
pub struct Contents {
    pub chain: Vec<u8>,
    pub key: Vec<u8>,
}

impl Pair {
    /// What stands in the files.
    pub fn read(&self) -> Result<Contents, String> {
        let read =
            |path: &PathBuf| std::fs::read(path).map_err(|error| format!("{} cannot be read: {error}", path.display()));
        Ok(Contents { chain: read(&self.chain)?, key: read(&self.key)? })
    }

    /// Says which files are meant.
    pub fn unusable(&self, why: &str) -> String {
        format!("the certificate {} with the key {} cannot be used: {why}", self.chain.display(), self.key.display())
    }
}

/// A certificate that can be shown.
#[derive(Debug)]
pub struct Certificate {
    /// With its chain and key.
    pub key: Arc<CertifiedKey>,
    /// Of the key.
    pub fingerprint: Fingerprint,
    /// Whether another one's signature is on it.
    pub vouched_for: bool,
    /// When it ends.
    pub ends_at: Option<Timestamp>,
}

/// Reads a chain and its key, and checks that they belong together.
pub fn parse(contents: &Contents, now: Timestamp) -> Result<Certificate, String> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&contents.chain).collect();
    let chain = chain.map_err(|error| format!("the certificate is not in PEM form ({error})"))?;
    let Some(own) = chain.first().cloned() else {
        return Err("there is no certificate in it; it must be in PEM form".to_owned());
    };
    let key = PrivateKeyDer::from_pem_slice(&contents.key)
        .map_err(|error| format!("the key is no private key in PEM form without a password ({error})"))?;
    let key = CertifiedKey::from_der(chain, key, &provider()).map_err(|error| match error {
        Error::InconsistentKeys(_) => "the key belongs to another certificate".to_owned(),
        other => other.to_string(),
    })?;
    let parsed = ParsedCertificate::try_from(&own).map_err(|error| error.to_string())?;
    let fingerprint = Fingerprint(Sha256::digest(parsed.subject_public_key_info()).into());
    let unknown_issuer = Err(Error::InvalidCertificate(CertificateError::UnknownIssuer));
    let vouched_for = trusted_by_itself(&own, &parsed, now) == unknown_issuer;
    Ok(Certificate { key: Arc::new(key), fingerprint, vouched_for, ends_at: ends_at(&own) })
}

/// What somebody says of a certificate who trusts it and nothing else: nothing against it if it has signed itself.
pub fn trusted_by_itself(
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
        provider().signature_verification_algorithms.all,
    )
}

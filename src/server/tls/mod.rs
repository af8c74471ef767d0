//! TLS of this server: its certificate, which is reloaded when its files change.
//!
//! A new certificate applies to new connections; open ones are not affected.

mod certificate;
pub mod self_signed;
mod validity;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use app::domain::time::Timestamp;
use app::protocol::system::fingerprint::Fingerprint;
use rustls::ServerConfig;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

pub use self::certificate::CertificatePaths;
use self::certificate::ServerCertificate;
use crate::clock::Clock;

/// How often the files are checked. A change is loaded when two checks agree, because the second file may not be
/// written yet.
pub const RELOAD_INTERVAL: Duration = Duration::from_secs(5);

/// The certificate to use, as set on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TlsMode {
    /// Plain HTTP.
    Off,
    /// A generated self-signed one.
    SelfSigned,
    /// The one in these files.
    Files(CertificatePaths),
}

impl TlsMode {
    /// Combines `--ssl`, `--ssl-cert` and `--ssl-key`.
    pub fn from_flags(ssl: bool, chain: Option<&Path>, key: Option<&Path>) -> Result<Self, &'static str> {
        match (ssl, chain, key) {
            (false, None, None) => Ok(Self::Off),
            (true, None, None) => Ok(Self::SelfSigned),
            (true, Some(chain), Some(key)) => {
                Ok(Self::Files(CertificatePaths { chain: chain.to_owned(), key: key.to_owned() }))
            }
            (false, ..) => Err("--ssl-cert and --ssl-key require HTTPS; add --ssl, or omit them"),
            (true, Some(_), None) => Err("--ssl-cert requires the private key; set --ssl-key"),
            (true, None, Some(_)) => Err("--ssl-key requires the certificate; set --ssl-cert"),
        }
    }
}

/// The cryptography provider, selected explicitly: the database driver brings another one, so rustls has no default.
fn crypto_provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

/// Makes this provider rustls' default.
pub fn install_crypto_provider() {
    // Only a second call fails, and it would install the same provider.
    let _ = aws_lc_rs::default_provider().install_default();
}

/// The current TLS configuration.
#[derive(Clone)]
pub struct Tls {
    current: watch::Sender<Arc<ServerCertificate>>,
    config: Arc<ServerConfig>,
    paths: CertificatePaths,
}

impl Tls {
    /// Loads the certificate in these files.
    pub fn open(paths: CertificatePaths, clock: &dyn Clock) -> Result<Self, String> {
        let first = certificate::parse(&paths.read()?, clock.now()).map_err(|error| paths.describe_unusable(&error))?;
        let current = watch::Sender::new(Arc::new(first));
        let mut config = ServerConfig::builder_with_provider(crypto_provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(CertificateResolver(current.subscribe())));
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self { current, config: Arc::new(config), paths })
    }

    /// Returns the acceptor of the server's side.
    pub fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.config))
    }

    /// Returns the fingerprint of the key.
    pub fn fingerprint(&self) -> Fingerprint {
        self.current.borrow().fingerprint
    }

    /// Returns when the certificate expires.
    pub fn ends_at(&self) -> Option<Timestamp> {
        self.current.borrow().ends_at
    }

    /// Returns whether a certificate authority has signed the certificate. Then HSTS can be used.
    pub fn is_ca_signed(&self) -> bool {
        self.current.borrow().is_ca_signed
    }

    /// Returns the fingerprint that agents must pin, if no authority has signed the certificate.
    pub fn pin(&self) -> Option<Fingerprint> {
        (!self.is_ca_signed()).then(|| self.fingerprint())
    }

    /// Waits until the key has changed.
    pub async fn key_changed(&self, old: Fingerprint) {
        // The sender lives as long as `self`, so this cannot fail.
        let _ = self.current.subscribe().wait_for(|certificate| certificate.fingerprint != old).await;
    }

    /// Checks the files periodically and loads changes. An unusable certificate is logged once and ignored.
    pub async fn watch_files(self, clock: Arc<dyn Clock>, interval: Duration) {
        let mut applied = self.paths.read();
        let mut previous = applied.clone();
        loop {
            tokio::time::sleep(interval).await;
            let paths = self.paths.clone();
            let Ok(files) = tokio::task::spawn_blocking(move || paths.read()).await else { continue };
            if files == previous && files != applied {
                self.update(&files, &*clock);
                applied = files.clone();
            }
            previous = files;
        }
    }

    fn update(&self, files: &Result<certificate::CertificateFiles, String>, clock: &dyn Clock) {
        let parse =
            |contents| certificate::parse(contents, clock.now()).map_err(|error| self.paths.describe_unusable(&error));
        match files.as_ref().map_err(String::clone).and_then(parse) {
            Ok(certificate) => {
                tracing::info!(fingerprint = %certificate.fingerprint, "tls: certificate reloaded for new connections");
                self.current.send_replace(Arc::new(certificate));
            }
            Err(error) => tracing::error!("tls: cannot load the new certificate, keeping the old one: {error}"),
        }
    }
}

/// Gives each handshake the current certificate.
#[derive(Debug)]
struct CertificateResolver(watch::Receiver<Arc<ServerCertificate>>);

impl ResolvesServerCert for CertificateResolver {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.borrow().key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incompatible_flags_are_rejected() {
        let (chain, key) = (Path::new("cert.pem"), Path::new("key.pem"));
        let paths = CertificatePaths { chain: chain.to_owned(), key: key.to_owned() };
        assert_eq!(TlsMode::from_flags(false, None, None), Ok(TlsMode::Off));
        assert_eq!(TlsMode::from_flags(true, None, None), Ok(TlsMode::SelfSigned));
        assert_eq!(TlsMode::from_flags(true, Some(chain), Some(key)), Ok(TlsMode::Files(paths)));
        for (ssl, chain, key, expected) in [
            (false, Some(chain), Some(key), "add --ssl"),
            (false, Some(chain), None, "add --ssl"),
            (true, Some(chain), None, "set --ssl-key"),
            (true, None, Some(key), "set --ssl-cert"),
        ] {
            assert!(
                TlsMode::from_flags(ssl, chain, key).is_err_and(|error| error.contains(expected)),
                "{ssl} {chain:?} {key:?}"
            );
        }
    }

    #[test]
    fn invalid_pair_keeps_the_old_certificate() {
        let directory = tempfile::tempdir().expect("a directory");
        let clock = crate::clock::ManualClock::new();
        let create = |folder: &str| {
            let names = ["localhost".to_owned()];
            self_signed::load_or_create(&directory.path().join(folder), &names, clock.now()).expect("a pair")
        };
        let (first, second) = (create("first"), create("second"));
        let tls = Tls::open(first.clone(), &clock).expect("a certificate");
        let old = tls.fingerprint();
        let (valid_files, other_files) = (first.read().expect("files"), second.read().expect("files"));
        let no_pem = || b"none".to_vec();
        for broken in [
            certificate::CertificateFiles { key: other_files.key.clone(), ..valid_files.clone() },
            certificate::CertificateFiles { chain: no_pem(), ..valid_files.clone() },
            certificate::CertificateFiles { key: no_pem(), ..valid_files.clone() },
            certificate::CertificateFiles {
                chain: other_files.chain[..other_files.chain.len() / 2].to_vec(),
                ..other_files.clone()
            },
        ] {
            assert!(certificate::parse(&broken, clock.now()).is_err());
            tls.update(&Ok(broken), &clock);
            assert_eq!(tls.fingerprint(), old);
        }
        tls.update(&Err("no such file".to_owned()), &clock);
        assert_eq!(tls.fingerprint(), old);
        tls.update(&Ok(other_files), &clock);
        assert_ne!(tls.fingerprint(), old);
    }
}

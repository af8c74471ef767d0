//! TLS of this server: the certificate that it shows, and a watch over the files that hold it.
//!
//! A new certificate is for new connections; those that are open stay as they are.

mod certificate;
pub mod self_signed;
mod validity;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use app::domain::time::Timestamp;
use app::protocol::fingerprint::Fingerprint;
use rustls::ServerConfig;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use self::certificate::Certificate;
pub use self::certificate::Pair;
use crate::clock::Clock;

/// How often the files are looked at. A change counts once two looks agree: the other file may not be written yet.
pub const LOOK: Duration = Duration::from_secs(5);

/// Which certificate to show, as the command line says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// None: plain HTTP.
    Nothing,
    /// One of our own making.
    Own,
    /// The one in these files.
    Given(Pair),
}

impl Wanted {
    /// What `--ssl`, `--ssl-cert` and `--ssl-key` say together.
    pub fn of(ssl: bool, chain: Option<&Path>, key: Option<&Path>) -> Result<Self, &'static str> {
        match (ssl, chain, key) {
            (false, None, None) => Ok(Self::Nothing),
            (true, None, None) => Ok(Self::Own),
            (true, Some(chain), Some(key)) => Ok(Self::Given(Pair { chain: chain.to_owned(), key: key.to_owned() })),
            (false, ..) => Err("--ssl-cert and --ssl-key are for HTTPS; add --ssl, or leave them out"),
            (true, Some(_), None) => Err("--ssl-cert needs the key of its certificate; name its file with --ssl-key"),
            (true, None, Some(_)) => {
                Err("--ssl-key needs the certificate that it is for; name its file with --ssl-cert")
            }
        }
    }
}

/// The provider of cryptography, chosen by name: where the database's driver brings another one, rustls has no default.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

/// Whoever asks rustls for its default gets this provider too.
pub fn install_provider() {
    // Only a second call fails, and it would install the same.
    let _ = aws_lc_rs::default_provider().install_default();
}

/// TLS as it is now.
#[derive(Clone)]
pub struct Tls {
    shown: watch::Sender<Arc<Certificate>>,
    config: Arc<ServerConfig>,
    pair: Pair,
}

impl Tls {
    /// With the certificate in these files.
    pub fn open(pair: Pair, clock: &dyn Clock) -> Result<Self, String> {
        let first = certificate::parse(&pair.read()?, clock.now()).map_err(|error| pair.unusable(&error))?;
        let shown = watch::Sender::new(Arc::new(first));
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(Shown(shown.subscribe())));
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { shown, config: Arc::new(config), pair })
    }

    /// What takes the server's side of a handshake.
    pub fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.config))
    }

    /// The fingerprint of the key.
    pub fn fingerprint(&self) -> Fingerprint {
        self.shown.borrow().fingerprint
    }

    /// When the certificate ends.
    pub fn ends_at(&self) -> Option<Timestamp> {
        self.shown.borrow().ends_at
    }

    /// Whether somebody else has signed the certificate: then browsers may be told to insist on it.
    pub fn is_vouched_for(&self) -> bool {
        self.shown.borrow().vouched_for
    }

    /// What agents have to know of the key, because nobody vouches for it.
    pub fn to_pin(&self) -> Option<Fingerprint> {
        (!self.is_vouched_for()).then(|| self.fingerprint())
    }

    /// Waits until the key is another one.
    pub async fn another_key(&self, than: Fingerprint) {
        // The sender lives as long as `self`; an error cannot come.
        let _ = self.shown.subscribe().wait_for(|now| now.fingerprint != than).await;
    }

    /// Looks at the files again and again, and shows what they hold. What cannot be used is said once, and not shown.
    pub async fn follow(self, clock: Arc<dyn Clock>, every: Duration) {
        let mut acted_on = self.pair.read();
        let mut last_look = acted_on.clone();
        loop {
            tokio::time::sleep(every).await;
            let pair = self.pair.clone();
            let Ok(look) = tokio::task::spawn_blocking(move || pair.read()).await else { continue };
            if look == last_look && look != acted_on {
                self.show(&look, &*clock);
                acted_on = look.clone();
            }
            last_look = look;
        }
    }

    fn show(&self, found: &Result<certificate::Contents, String>, clock: &dyn Clock) {
        let parse = |contents| certificate::parse(contents, clock.now()).map_err(|error| self.pair.unusable(&error));
        match found.as_ref().map_err(String::clone).and_then(parse) {
            Ok(certificate) => {
                tracing::info!(fingerprint = %certificate.fingerprint, "new connections get the new certificate");
                self.shown.send_replace(Arc::new(certificate));
            }
            Err(error) => tracing::error!("the new certificate is not used, the old one stays: {error}"),
        }
    }
}

/// Hands the certificate of the moment to each handshake.
#[derive(Debug)]
struct Shown(watch::Receiver<Arc<Certificate>>);

impl ResolvesServerCert for Shown {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.borrow().key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_that_do_not_go_together_are_refused() {
        let (chain, key) = (Path::new("cert.pem"), Path::new("key.pem"));
        let pair = Pair { chain: chain.to_owned(), key: key.to_owned() };
        assert_eq!(Wanted::of(false, None, None), Ok(Wanted::Nothing));
        assert_eq!(Wanted::of(true, None, None), Ok(Wanted::Own));
        assert_eq!(Wanted::of(true, Some(chain), Some(key)), Ok(Wanted::Given(pair)));
        for (ssl, chain, key, says) in [
            (false, Some(chain), Some(key), "add --ssl"),
            (false, Some(chain), None, "add --ssl"),
            (true, Some(chain), None, "with --ssl-key"),
            (true, None, Some(key), "with --ssl-cert"),
        ] {
            assert!(Wanted::of(ssl, chain, key).is_err_and(|said| said.contains(says)), "{ssl} {chain:?} {key:?}");
        }
    }

    #[test]
    fn a_broken_pair_leaves_the_old_one_in_place() {
        let directory = tempfile::tempdir().expect("a directory");
        let clock = crate::clock::ManualClock::new();
        let made = |folder: &str| {
            let names = ["localhost".to_owned()];
            self_signed::keep(&directory.path().join(folder), &names, clock.now()).expect("a pair")
        };
        let (first, second) = (made("first"), made("second"));
        let tls = Tls::open(first.clone(), &clock).expect("a certificate");
        let old = tls.fingerprint();
        let (good, other) = (first.read().expect("files"), second.read().expect("files"));
        let none = || b"none".to_vec();
        for broken in [
            certificate::Contents { key: other.key.clone(), ..good.clone() },
            certificate::Contents { chain: none(), ..good.clone() },
            certificate::Contents { key: none(), ..good.clone() },
            certificate::Contents { chain: other.chain[..other.chain.len() / 2].to_vec(), ..other.clone() },
        ] {
            assert!(certificate::parse(&broken, clock.now()).is_err());
            tls.show(&Ok(broken), &clock);
            assert_eq!(tls.fingerprint(), old);
        }
        tls.show(&Err("gone".to_owned()), &clock);
        assert_eq!(tls.fingerprint(), old);
        tls.show(&Ok(other), &clock);
        assert_ne!(tls.fingerprint(), old);
    }
}

//! Access for the command line on this host: a file with the server's address and a token.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;

use tokio_util::sync::CancellationToken;

use crate::files::operator_file::{OperatorEndpoint, OperatorFile};
use crate::http::edge::client_addr::Scheme;
use crate::service::Services;
use crate::tls::Tls;

pub struct OperatorAccess {
    file: OperatorFile,
    endpoint: OperatorEndpoint,
    tls: Option<Tls>,
}

impl OperatorAccess {
    /// Writes the file. If this fails, the server runs anyway, and commands on this host need a token.
    pub fn publish(services: &Services, data: &Path, address: SocketAddr, tls: Option<&Tls>) -> Self {
        let host = gethostname::gethostname().to_string_lossy().into_owned();
        let operator = Self {
            file: OperatorFile::new(data, &host, address.port()),
            endpoint: OperatorEndpoint {
                url: local_url(address, tls.is_some()),
                fingerprint: tls.map(Tls::fingerprint),
                token: services.access.issue_operator_token(),
                host,
                started_at: services.context.now(),
            },
            tls: tls.cloned(),
        };
        operator.write_file();
        operator
    }

    /// Updates the file until the server stops, then removes it.
    pub async fn keep_current(mut self, shutdown: CancellationToken) {
        while let Some((tls, fingerprint)) = self.tls.clone().zip(self.endpoint.fingerprint) {
            if shutdown.run_until_cancelled(tls.key_changed(fingerprint)).await.is_none() {
                break;
            }
            self.endpoint.fingerprint = Some(tls.fingerprint());
            self.write_file();
        }
        shutdown.cancelled().await;
        if let Err(error) = self.file.remove(&self.endpoint.token) {
            tracing::debug!(%error, "operator access: failed to remove the file");
        }
    }

    fn write_file(&self) {
        if let Err(error) = self.file.write(&self.endpoint) {
            tracing::warn!(%error, "operator access: failed to write the file; commands on this host need an API token");
        }
    }
}

/// Returns the URL of a listener for clients on this host.
pub fn local_url(address: SocketAddr, tls: bool) -> String {
    let host = if address.ip().is_unspecified() { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { address.ip() };
    format!("{}://{}", Scheme::direct(tls).as_str(), SocketAddr::new(host, address.port()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;
    use std::time::Duration;

    use tempfile::TempDir;

    use super::*;
    use crate::clock::{Clock, SystemClock};
    use crate::files::operator_file::find_endpoint;
    use crate::tests::harness::TestServer;
    use crate::tls::self_signed;

    #[test]
    fn local_url_matches_the_listen_address() {
        for (listen_address, tls, url) in [
            ("127.0.0.1:8001", false, "http://127.0.0.1:8001"),
            ("0.0.0.0:9", true, "https://127.0.0.1:9"),
            ("[::]:9", false, "http://127.0.0.1:9"),
            ("[::1]:9", false, "http://[::1]:9"),
            ("10.0.0.7:80", false, "http://10.0.0.7:80"),
        ] {
            assert_eq!(local_url(listen_address.parse().expect("an address"), tls), url);
        }
    }

    #[tokio::test]
    async fn file_follows_the_key_and_is_removed_at_shutdown() {
        let (data, other) = (TempDir::new().expect("a directory"), TempDir::new().expect("a directory"));
        let create_certificate = |directory: &Path| {
            self_signed::load_or_create(directory, &["localhost".to_owned()], SystemClock.now()).expect("a certificate")
        };
        let (files, next) = (create_certificate(data.path()), create_certificate(other.path()));
        let tls = Tls::open(files.clone(), &SystemClock).expect("a certificate");
        let server = TestServer::start_with_tls(tls.clone()).await;
        let address = "0.0.0.0:8001".parse().expect("an address");
        let operator = OperatorAccess::publish(&server.app.services, data.path(), address, Some(&tls));
        let host = gethostname::gethostname().to_string_lossy().into_owned();
        let endpoint = || find_endpoint(data.path(), &host).expect("a valid file");
        let first = endpoint().expect("written");
        assert_eq!((first.url.as_str(), first.fingerprint), ("https://127.0.0.1:8001", Some(tls.fingerprint())));
        assert!(server.app.services.access.authenticate_operator(&first.token, Some("root")).is_some());

        let stop = CancellationToken::new();
        let task = tokio::spawn(operator.keep_current(stop.clone()));
        let watch = tls.clone().watch_files(Arc::new(SystemClock), Duration::from_millis(5));
        let watch_task = tokio::spawn(watch);
        // The first check runs before other tasks do.
        tokio::task::yield_now().await;
        fs::copy(&next.chain, &files.chain).expect("copied");
        fs::copy(&next.key, &files.key).expect("copied");
        let changed = async {
            while endpoint().and_then(|endpoint| endpoint.fingerprint) == first.fingerprint {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), changed).await.expect("another fingerprint");
        assert_eq!(endpoint().and_then(|endpoint| endpoint.fingerprint), Some(tls.fingerprint()));
        stop.cancel();
        task.await.expect("no panic");
        assert!(endpoint().is_none(), "the file is removed");
        watch_task.abort();
    }
}

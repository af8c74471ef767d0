//! The way in for the command line on this host: a file that says where this server listens, with a token.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;

use tokio_util::sync::CancellationToken;

use crate::files::operator::{Note, NoteFile};
use crate::http::arrival::Scheme;
use crate::service::Core;
use crate::tls::Tls;

/// See the module.
pub struct Operator {
    file: NoteFile,
    note: Note,
    tls: Option<Tls>,
}

impl Operator {
    /// Writes the file. Without it the server runs all the same, and commands on this host need a token.
    pub fn let_in(core: &Core, data: &Path, address: SocketAddr, tls: Option<&Tls>) -> Self {
        let host = gethostname::gethostname().to_string_lossy().into_owned();
        let operator = Self {
            file: NoteFile::of(data, &host, address.port()),
            note: Note {
                url: own_url(address, tls.is_some()),
                fingerprint: tls.map(Tls::fingerprint),
                token: core.operator_token(),
                host,
                started_at: core.now(),
            },
            tls: tls.cloned(),
        };
        operator.write();
        operator
    }

    /// Keeps the file true until the server stops, and removes it then.
    pub async fn keep(mut self, shutdown: CancellationToken) {
        while let Some((tls, known)) = self.tls.clone().zip(self.note.fingerprint) {
            if shutdown.run_until_cancelled(tls.another_key(known)).await.is_none() {
                break;
            }
            self.note.fingerprint = Some(tls.fingerprint());
            self.write();
        }
        shutdown.cancelled().await;
        if let Err(error) = self.file.remove(&self.note.token) {
            tracing::debug!(%error, "the operator's file was not there to remove");
        }
    }

    fn write(&self) {
        if let Err(error) = self.file.write(&self.note) {
            tracing::warn!(%error, "no operator's file: commands on this host need an API token");
        }
    }
}

/// How this host reaches a server that listens there.
pub fn own_url(address: SocketAddr, tls: bool) -> String {
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
    use crate::files::operator::find;
    use crate::tests::harness::Server;
    use crate::tls::self_signed;

    #[test]
    fn a_server_is_reached_where_it_listens() {
        for (listens, tls, url) in [
            ("127.0.0.1:8001", false, "http://127.0.0.1:8001"),
            ("0.0.0.0:9", true, "https://127.0.0.1:9"),
            ("[::]:9", false, "http://127.0.0.1:9"),
            ("[::1]:9", false, "http://[::1]:9"),
            ("10.0.0.7:80", false, "http://10.0.0.7:80"),
        ] {
            assert_eq!(own_url(listens.parse().expect("an address"), tls), url);
        }
    }

    #[tokio::test]
    async fn the_file_follows_the_servers_key_and_goes_with_the_server() {
        let (data, other) = (TempDir::new().expect("a directory"), TempDir::new().expect("a directory"));
        let make = |directory: &Path| {
            self_signed::keep(directory, &["localhost".to_owned()], SystemClock.now()).expect("a pair")
        };
        let (pair, next) = (make(data.path()), make(other.path()));
        let tls = Tls::open(pair.clone(), &SystemClock).expect("a certificate");
        let server = Server::start_over(tls.clone()).await;
        let address = "0.0.0.0:8001".parse().expect("an address");
        let operator = Operator::let_in(&server.app.core, data.path(), address, Some(&tls));
        let host = gethostname::gethostname().to_string_lossy().into_owned();
        let note = || find(data.path(), &host).expect("believable");
        let first = note().expect("written");
        assert_eq!((first.url.as_str(), first.fingerprint), ("https://127.0.0.1:8001", Some(tls.fingerprint())));
        assert!(server.app.core.operator(&first.token, Some("root")).is_some());

        let stop = CancellationToken::new();
        let kept = tokio::spawn(operator.keep(stop.clone()));
        let follow = tls.clone().follow(Arc::new(SystemClock), Duration::from_millis(5));
        let following = tokio::spawn(follow);
        // It looks at the files as they are before it waits for others.
        tokio::task::yield_now().await;
        fs::copy(&next.chain, &pair.chain).expect("copied");
        fs::copy(&next.key, &pair.key).expect("copied");
        let changed = async {
            while note().and_then(|note| note.fingerprint) == first.fingerprint {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), changed).await.expect("another fingerprint");
        assert_eq!(note().and_then(|note| note.fingerprint), Some(tls.fingerprint()));
        stop.cancel();
        kept.await.expect("its end");
        assert!(note().is_none(), "it is gone");
        following.abort();
    }
}

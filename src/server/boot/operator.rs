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

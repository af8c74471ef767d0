//! What every request handler is given.

use std::net::SocketAddr;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;

use app::protocol::system::SettingView;
use axum::extract::FromRef;
use ipnet::IpNet;
use leptos::config::LeptosOptions;
use tokio_util::sync::CancellationToken;

use crate::flashes::Flashes;
use crate::http::access::Mode;
use crate::http::ui::making::Making;
use crate::service::Core;
use crate::tls::Tls;

/// A shared handle to the parts of this server.
#[derive(Clone)]
pub struct App(Arc<Parts>);

/// The parts.
pub struct Parts {
    /// The use cases.
    pub core: Arc<Core>,
    /// How people get in.
    pub mode: Mode,
    /// Cancelled when the server stops: streams end by it.
    pub shutdown: CancellationToken,
    /// Names this life of the server, so that versions of another are recognised.
    pub epoch: String,
    /// Where it listens, `host:port`.
    pub address: String,
    /// TLS of the listening socket; none for plain HTTP.
    pub tls: Option<Tls>,
    /// Proxies whose word about their clients is believed.
    pub trusted_proxies: Vec<IpNet>,
    /// Words for the next page.
    pub flashes: Flashes,
    /// Where pages are made.
    pub making: Making,
    /// The data directory.
    pub data: PathBuf,
    /// The settings that it was started with.
    pub settings: Vec<SettingView>,
    /// How pages refer to their scripts and styles.
    pub leptos: LeptosOptions,
}

impl App {
    /// Shares the parts.
    pub fn new(parts: Parts) -> Self {
        Self(Arc::new(parts))
    }
}

impl Parts {
    /// Whether it speaks plain HTTP where others than this machine and listed proxies can listen.
    pub fn speaks_plainly(&self) -> bool {
        is_plain_http(&self.address, self.tls.is_some(), !self.trusted_proxies.is_empty())
    }
}

fn is_plain_http(address: &str, tls: bool, behind_proxies: bool) -> bool {
    let is_open = address.parse::<SocketAddr>().is_ok_and(|address| !address.ip().to_canonical().is_loopback());
    is_open && !tls && !behind_proxies
}

impl Deref for App {
    type Target = Parts;
    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl FromRef<App> for LeptosOptions {
    fn from_ref(app: &App) -> Self {
        app.leptos.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_on_a_network_is_warned_of() {
        for address in ["0.0.0.0:8001", "10.0.0.5:80", "[::]:8001", "[2001:db8::1]:8001"] {
            assert!(is_plain_http(address, false, false), "{address}");
            assert!(!is_plain_http(address, true, false) && !is_plain_http(address, false, true), "{address}");
        }
        for address in ["127.0.0.1:8001", "[::1]:8001", "[::ffff:127.0.0.1]:8001"] {
            assert!(!is_plain_http(address, false, false), "{address}");
        }
    }
}

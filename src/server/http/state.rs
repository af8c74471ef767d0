//! The state of request handlers.

use std::net::SocketAddr;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use app::protocol::system::SettingView;
use axum::extract::FromRef;
use ipnet::IpNet;
use leptos::config::LeptosOptions;
use tokio_util::sync::CancellationToken;

use crate::flashes::Flashes;
use crate::http::render_limiter::RenderLimiter;
use crate::service::Services;
use crate::tls::Tls;

/// A shared handle to the parts of this server.
#[derive(Clone)]
pub struct AppState(Arc<AppParts>);

pub struct AppParts {
    pub services: Arc<Services>,
    /// How users authenticate.
    pub mode: AuthMode,
    /// Cancelled when the server stops: ends all streams.
    pub shutdown: CancellationToken,
    /// Names this run of the server, so that versions of another one are recognized.
    pub epoch: String,
    /// The listening address, `host:port`.
    pub address: String,
    /// TLS of the listening socket; `None` for plain HTTP.
    pub tls: Option<Tls>,
    /// Proxies whose `X-Forwarded-*` headers are trusted.
    pub trusted_proxies: Vec<IpNet>,
    /// Messages for the next page.
    pub flashes: Flashes,
    /// Limits concurrent rendering of pages.
    pub render_limiter: RenderLimiter,
    pub data_dir: PathBuf,
    /// The settings at start.
    pub settings: Vec<SettingView>,
    /// How pages refer to their scripts and styles.
    pub leptos_options: LeptosOptions,
}

/// How users and scripts authenticate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthMode {
    /// API tokens and sessions.
    Accounts,
    /// Anyone on the loopback address (`--single-user`).
    SingleUser,
}

impl AppState {
    pub fn new(parts: AppParts) -> Self {
        Self(Arc::new(parts))
    }
}

impl AppParts {
    /// For requests that come by no listener.
    pub fn without_listener(services: Arc<Services>, data_dir: &Path, epoch: String) -> Self {
        Self {
            services,
            mode: AuthMode::Accounts,
            shutdown: CancellationToken::new(),
            epoch,
            address: "localhost".to_owned(),
            tls: None,
            trusted_proxies: Vec::new(),
            flashes: Flashes::default(),
            render_limiter: RenderLimiter::default(),
            data_dir: data_dir.to_owned(),
            settings: Vec::new(),
            leptos_options: LeptosOptions::builder().output_name("simpletuner").build(),
        }
    }

    /// Whether it serves plain HTTP where others than this machine and trusted proxies can listen.
    pub fn is_plain_http_exposed(&self) -> bool {
        is_plain_http(&self.address, self.tls.is_some(), !self.trusted_proxies.is_empty())
    }
}

fn is_plain_http(address: &str, tls: bool, behind_proxies: bool) -> bool {
    let is_open = address.parse::<SocketAddr>().is_ok_and(|address| !address.ip().to_canonical().is_loopback());
    is_open && !tls && !behind_proxies
}

impl Deref for AppState {
    type Target = AppParts;
    fn deref(&self) -> &AppParts {
        &self.0
    }
}

impl FromRef<AppState> for LeptosOptions {
    fn from_ref(app: &AppState) -> Self {
        app.leptos_options.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exposed_plain_http_is_detected() {
        for address in ["0.0.0.0:8001", "10.0.0.5:80", "[::]:8001", "[2001:db8::1]:8001"] {
            assert!(is_plain_http(address, false, false), "{address}");
            assert!(!is_plain_http(address, true, false) && !is_plain_http(address, false, true), "{address}");
        }
        for address in ["127.0.0.1:8001", "[::1]:8001", "[::ffff:127.0.0.1]:8001"] {
            assert!(!is_plain_http(address, false, false), "{address}");
        }
    }
}

//! What every request handler is given.

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

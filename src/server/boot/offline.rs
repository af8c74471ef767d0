//! A server without listeners, for commands that repair something while no server runs.

use std::path::Path;
use std::sync::Arc;

use axum::Router;
use leptos::config::LeptosOptions;
use tokio_util::sync::CancellationToken;

use super::{open_core, restore_marker};
use crate::boot::exit::ExitError;
use crate::cli::SecretString;
use crate::flashes::Flashes;
use crate::http;
use crate::http::access::AuthMode;
use crate::http::ui::render_limiter::RenderLimiter;
use crate::service::jobs::dispatch;
use crate::service::{Core, ServerPolicy};
use crate::state::{AppParts, AppState};
use crate::store::sqlite;
use crate::tokens;

pub struct OfflineServer {
    core: Arc<Core>,
    /// The router that handles requests.
    pub router: Router,
    /// The token that authenticates requests.
    pub token: String,
}

impl OfflineServer {
    /// Returns whether the directory contains a server's database.
    pub fn has_database(data: &Path) -> bool {
        data.join(sqlite::DATABASE_FILE).is_file()
    }

    /// Opens the database of stopped servers, or one that several servers share.
    ///
    /// # Errors
    /// Returns an error if there is no database, or a server uses it.
    pub async fn open(data: &Path, database_url: Option<&SecretString>) -> Result<Self, ExitError> {
        if database_url.is_none() && !Self::has_database(data) {
            return Err(ExitError::unavailable(format!(
                "no server runs on this host, and {} contains no database; set the server's data directory with \
                 --data-dir, its --database-url, or a server with --url",
                data.display()
            )));
        }
        let core = Arc::new(open_core(database_url, &ServerPolicy::default(), data).await?);
        core.store.set_hooks(dispatch::store_hooks(&core));
        restore_marker::hold_if_restored(&core, data).await?;
        let app = AppState::new(AppParts {
            core: Arc::clone(&core),
            mode: AuthMode::Accounts,
            shutdown: CancellationToken::new(),
            epoch: tokens::hex(&core.random.bytes::<6>()),
            address: "localhost".to_owned(),
            tls: None,
            trusted_proxies: Vec::new(),
            flashes: Flashes::default(),
            render_limiter: RenderLimiter::default(),
            data_dir: data.to_owned(),
            settings: Vec::new(),
            leptos_options: LeptosOptions::builder().output_name("simpletuner").build(),
        });
        Ok(Self { token: core.issue_operator_token(), router: http::router(app), core })
    }

    #[cfg(test)]
    pub const fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// Closes it; all changes are on disk.
    pub async fn close(self) {
        // If this fails, the next server signs the entries.
        let _ = self.core.sign_audit().await;
        let _ = self.core.close_audit().await;
        self.core.store.close().await;
    }
}

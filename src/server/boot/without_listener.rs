//! A server without listeners, for commands that repair something while no server runs.

use std::path::Path;
use std::sync::Arc;

use axum::Router;

use super::{open_parts, open_services, restore_marker};
use crate::args::SecretString;
use crate::exit::ExitError;
use crate::http;
use crate::http::state::{AppParts, AppState};
use crate::service::{ServerPolicy, Services};
use crate::store::sqlite;
use crate::tokens;

pub struct ServerWithoutListener {
    services: Arc<Services>,
    /// The router that handles requests.
    pub router: Router,
    /// The token that authenticates requests.
    pub token: String,
}

impl ServerWithoutListener {
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
        let services = Arc::new(open_services(open_parts(database_url, &ServerPolicy::default(), data).await?, data)?);
        restore_marker::delay_jobs_if_restored(&services, data).await?;
        let epoch = tokens::hex(&services.context.random.bytes::<6>());
        let app = AppState::new(AppParts::without_listener(Arc::clone(&services), data, epoch));
        Ok(Self { token: services.access.issue_operator_token(), router: http::router(app), services })
    }

    #[cfg(test)]
    pub const fn services(&self) -> &Arc<Services> {
        &self.services
    }

    /// Closes it; all changes are on disk.
    pub async fn close(self) {
        // If this fails, the next server signs the entries.
        let _ = self.services.audit.sign_audit().await;
        let _ = self.services.audit.close_audit().await;
        self.services.context.store.close().await;
    }
}

//! A server that listens to nobody: for commands that mend something while none runs.

use std::path::Path;
use std::sync::Arc;

use axum::Router;
use leptos::config::LeptosOptions;
use tokio_util::sync::CancellationToken;

use super::{open, restored};
use crate::boot::exit::Exit;
use crate::cli::Secret;
use crate::flashes::Flashes;
use crate::http;
use crate::http::access::Mode;
use crate::http::ui::making::Making;
use crate::service::{Core, Policy, dispatch};
use crate::state::{App, Parts};
use crate::store::sqlite;
use crate::tokens;

/// See the module.
pub struct Offline {
    core: Arc<Core>,
    /// What it would answer.
    pub router: Router,
    /// What opens it.
    pub token: String,
}

impl Offline {
    /// Whether there is a database of a server's in this directory.
    pub fn is_possible(data: &Path) -> bool {
        data.join(sqlite::FILE).is_file()
    }

    /// On the database of servers that do not run, or on one that several servers share.
    ///
    /// # Errors
    /// If there is no database, or a server has it.
    pub async fn open(data: &Path, database_url: Option<&Secret>) -> Result<Self, Exit> {
        if database_url.is_none() && !Self::is_possible(data) {
            return Err(Exit::unavailable(format!(
                "no server runs here, and there is no database in {}; name the server's data directory with \
                 --data-dir, its --database-url, or a server with --url",
                data.display()
            )));
        }
        let core = Arc::new(open(database_url, &Policy::default(), data).await?);
        core.store.attach(dispatch::hooks(&core));
        restored::heed(&core, data).await?;
        let app = App::new(Parts {
            core: Arc::clone(&core),
            mode: Mode::Accounts,
            shutdown: CancellationToken::new(),
            epoch: tokens::hex(&core.random.bytes::<6>()),
            address: "localhost".to_owned(),
            tls: None,
            trusted_proxies: Vec::new(),
            flashes: Flashes::default(),
            making: Making::default(),
            data: data.to_owned(),
            settings: Vec::new(),
            leptos: LeptosOptions::builder().output_name("simpletuner").build(),
        });
        Ok(Self { token: core.operator_token(), router: http::router(app), core })
    }

    /// What it answers with.
    #[cfg(test)]
    pub const fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// Ends it; all that was answered is on disk.
    pub async fn close(self) {
        // The next server signs what this did if it cannot be signed now.
        let _ = self.core.sign_audit().await;
        let _ = self.core.close_audit().await;
        self.core.store.close().await;
    }
}

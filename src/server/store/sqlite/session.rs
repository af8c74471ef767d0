//! A connection inside a transaction, for reading or for writing: what the aggregate traits are implemented on.

use std::ops::DerefMut;
use std::sync::Arc;

use sqlx::SqliteConnection;

/// See the module.
pub struct Session<C> {
    connection: C,
    /// The audit chain of this server process.
    pub(super) chain: Arc<str>,
}

impl<C: DerefMut<Target = SqliteConnection>> Session<C> {
    /// Wraps a connection that is inside a transaction.
    pub fn new(connection: C, chain: Arc<str>) -> Self {
        Self { connection, chain }
    }

    /// The connection, for one statement.
    pub(super) fn db(&mut self) -> &mut SqliteConnection {
        &mut self.connection
    }
}

//! A transaction for reading that begins with the first statement: whoever finds everything in memory asks no database.

use sqlx::{Database, Pool, Transaction};

use super::{Db, failed};
use crate::store::Result;

/// See the module.
pub struct Reader<D: Database> {
    pool: Pool<D>,
    /// How it begins.
    begin: &'static str,
    transaction: Option<Transaction<'static, D>>,
}

impl<D: Database> Reader<D> {
    /// One that has not begun.
    pub fn new(pool: &Pool<D>, begin: &'static str) -> Self {
        Self { pool: pool.clone(), begin, transaction: None }
    }

    /// The connection, inside the transaction.
    pub async fn begun(&mut self) -> Result<&mut D::Connection> {
        if self.transaction.is_none() {
            self.transaction = Some(match self.pool.begin_with(self.begin).await {
                // The connection may have been dead for a while; the pool has noticed, and the next one is new.
                Err(sqlx::Error::Io(_)) => self.pool.begin_with(self.begin).await.map_err(failed)?,
                other => other.map_err(failed)?,
            });
        }
        Ok(self.transaction.as_mut().expect("it has begun"))
    }
}

impl Db<'_> {
    /// Whether a transaction is open: from then on, there is one moment that counts.
    pub fn has_begun(&self) -> bool {
        match self {
            Self::Sqlite(_) | Self::Postgres(_) => true,
            Self::SqliteReader(reader) => reader.transaction.is_some(),
            Self::PostgresReader(reader) => reader.transaction.is_some(),
        }
    }
}

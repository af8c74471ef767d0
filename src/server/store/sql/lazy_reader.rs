//! A read transaction that begins with the first statement: a reader that finds everything in memory does not access
//! the database.

use app::threads::wait_for_thread;
use sqlx::{Database, Pool, Transaction};

use super::{DbConnection, store_error};
use crate::store::Result;

/// A transaction that may not have begun.
pub struct LazyReader<D: Database> {
    pool: Pool<D>,
    /// The statement that begins it.
    begin_sql: &'static str,
    transaction: Option<Transaction<'static, D>>,
}

impl<D: Database> LazyReader<D> {
    /// Creates one that has not begun.
    pub fn new(pool: &Pool<D>, begin: &'static str) -> Self {
        Self { pool: pool.clone(), begin_sql: begin, transaction: None }
    }

    /// The connection, inside the transaction.
    pub async fn connection(&mut self) -> Result<&mut D::Connection> {
        if self.transaction.is_none() {
            let begun = wait_for_thread(self.pool.begin_with(self.begin_sql)).await;
            self.transaction = Some(match begun {
                // The connection may have been dead for a while; the pool has noticed, and the next one is new.
                Err(sqlx::Error::Io(_)) => self.pool.begin_with(self.begin_sql).await.map_err(store_error)?,
                other => other.map_err(store_error)?,
            });
        }
        Ok(self.transaction.as_mut().expect("the transaction has begun"))
    }
}

impl DbConnection<'_> {
    /// Returns whether a transaction is open: after that, all reads are of its snapshot.
    pub fn has_begun(&self) -> bool {
        match self {
            Self::Sqlite(_) | Self::Postgres(_) => true,
            Self::SqliteReader(reader) => reader.transaction.is_some(),
            Self::PostgresReader(reader) => reader.transaction.is_some(),
        }
    }
}

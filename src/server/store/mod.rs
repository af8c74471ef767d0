//! Persistent state: workers, jobs, attempts, configurations, access, and the audit log.
//!
//! [`Store`] is the interface for use cases; [`sqlite`] and [`postgres`] implement it, with the statements of `sql`. A
//! use case runs as one [`TransactionWork`] in one transaction. It decides before it writes, so that a rejection has
//! written nothing, and it awaits nothing but the database. The store may run it a second time if the first transaction
//! failed, so it must be repeatable.

pub mod access;
pub mod artifacts;
pub mod audit;
pub mod cache;
pub mod commit_group;
pub mod configs;
pub mod jobs;
pub mod postgres;
pub mod read_only;
pub mod secrets;
pub mod shares;
mod sql;
pub mod sqlite;
pub mod system;
pub mod usage;
pub mod workers;

#[cfg(test)]
pub mod conformance;

use std::collections::BTreeSet;
use std::fmt;

use app::domain::ids::JobId;
use futures_util::future::BoxFuture;

/// The database part of a use case.
pub type TransactionWork = Box<dyn for<'t> Fn(&'t mut dyn Tx) -> BoxFuture<'t, Result<()>> + Send + Sync>;

/// A database that several use cases share.
pub trait Store: Send + Sync {
    /// Runs `work` in a write transaction, and returns when it is durable. An error means that nothing was written,
    /// except for
    /// [`StoreError::Unavailable`] if the connection was lost during the commit.
    fn write(&self, work: TransactionWork) -> BoxFuture<'_, Result<()>>;

    /// Sets the hooks around each group; once, before the first use case that needs them.
    fn set_hooks(&self, hooks: commit_group::GroupHooks);

    /// A consistent snapshot for reading, not older than now; writes through it fail.
    fn read(&self) -> BoxFuture<'_, Result<Box<dyn Tx>>>;

    /// A snapshot whose live state may come from memory: as of this server's last commit, or before commits of another
    /// server that were notified less than a moment ago, or not yet. After the first statement, all of it is from one
    /// time.
    fn read_recent(&self) -> BoxFuture<'_, Result<Box<dyn Tx>>>;

    /// Takes the IDs of the jobs that were written since the last call, by this server or, as far as it has read them,
    /// by others; `None` if any job may have been. What was committed before a [`Store::read`] is among them.
    fn take_changed_jobs(&self) -> Option<BTreeSet<JobId>>;

    /// Waits for the next change by other servers on the same database; never returns if there are none.
    fn next_external_change(&self) -> BoxFuture<'_, ExternalChange> {
        Box::pin(std::future::pending())
    }

    /// Whether other servers may use the same database.
    fn is_shared(&self) -> bool {
        false
    }

    /// Sends a text of at most 7,000 bytes to the other servers on the same database. It may be lost.
    fn send_message(&self, _text: String) -> BoxFuture<'_, Result<()>> {
        Box::pin(async { Ok(()) })
    }

    /// The number of the newest migration that this program knows.
    fn newest_schema(&self) -> i64;

    /// Completes work in progress and closes the store.
    fn close(&self) -> BoxFuture<'_, ()>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExternalChange {
    Topics(Vec<String>),
    /// A message; nothing has changed.
    Message(String),
    /// Unknown: anything may have changed.
    Unknown,
}

/// All queries and writes inside a transaction, one trait per aggregate.
pub trait Tx:
    workers::WorkerQueries
    + jobs::JobQueries
    + jobs::attempts::AttemptQueries
    + jobs::sample_votes::SampleVoteQueries
    + jobs::saved_views::SavedViewQueries
    + artifacts::ArtifactQueries
    + artifacts::checkpoints::CheckpointQueries
    + configs::ConfigQueries
    + access::AccessQueries
    + secrets::SecretQueries
    + shares::ShareQueries
    + access::factors::FactorQueries
    + access::passkeys::PasskeyQueries
    + access::notices::NoticeQueries
    + audit::AuditQueries
    + system::servers::ServerQueries
    + commit_group::CommitGroup
    + cache::read::ReadState
    + jobs::retention::RetentionQueries
    + system::schema::SchemaQueries
    + usage::UsageQueries
    + Send
{
}

/// Why a database operation failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreError {
    /// The row has changed since the decision, or the name is taken: another transaction was first.
    Conflict,
    /// The use case rejected the request. Nothing was written.
    Rejected,
    /// The database cannot be reached, is full, or corrupt.
    Unavailable(String),
    /// A row that violates an invariant.
    CorruptRow {
        table: &'static str,
        row: String,
        /// What is wrong with it.
        message: String,
    },
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conflict => f.write_str("the row was changed by another transaction"),
            Self::Rejected => f.write_str("the use case rejected the request"),
            Self::Unavailable(detail) => write!(f, "the database is not available: {detail}"),
            Self::CorruptRow { table, row, message } => {
                write!(f, "corrupt database row {row} of {table}: {message}")
            }
        }
    }
}

impl std::error::Error for StoreError {}

/// The result of store operations.
pub type Result<T> = std::result::Result<T, StoreError>;

//! What must survive: workers, jobs, attempts, configurations, access, and the audit trail.
//!
//! [`Store`] is what the use cases know; [`sqlite`] and [`postgres`] implement it, with the statements of `sql`. A use case runs as one [`Work`] in one
//! transaction. It decides before it writes, so that a refusal has written nothing, and it awaits nothing but the
//! database. The store may run it a second time if the first transaction broke, so it must be repeatable.

pub mod access;
pub mod archive;
pub mod artifacts;
pub mod attempts;
pub mod audit;
pub mod board;
pub mod checkpoints;
pub mod configs;
pub mod factors;
pub mod group;
pub mod jobs;
pub mod known;
pub mod look;
pub mod notices;
pub mod passkeys;
pub mod people;
pub mod postgres;
pub mod retention;
pub mod schema;
pub mod secrets;
pub mod servers;
mod sql;
pub mod sqlite;
pub mod usage;
pub mod workers;

#[cfg(test)]
pub mod conformance;

use std::fmt;

use futures_util::future::BoxFuture;

/// A use case's database part.
pub type Work = Box<dyn for<'t> Fn(&'t mut dyn Tx) -> BoxFuture<'t, Result<()>> + Send + Sync>;

/// A database that several use cases share.
pub trait Store: Send + Sync {
    /// Runs `work` in a write transaction, and returns when it is durable. An error means that nothing was written, but
    /// for [`StoreError::Unavailable`] where the connection went while it was committed.
    fn write(&self, work: Work) -> BoxFuture<'_, Result<()>>;

    /// Sets what is done around each group; once, before the first use case that needs it.
    fn attach(&self, hooks: group::Hooks);

    /// A consistent view for reading, not older than now; writes through it fail.
    fn read(&self) -> BoxFuture<'_, Result<Box<dyn Tx>>>;

    /// The same, but what lives may come from memory: as of this server's last commit, or of another one's that was not
    /// heard of for a moment. From the first statement on, all of it is of one moment.
    fn recent(&self) -> BoxFuture<'_, Result<Box<dyn Tx>>>;

    /// The next thing that other servers on the same database have changed; never, where there are none.
    fn news(&self) -> BoxFuture<'_, News> {
        Box::pin(std::future::pending())
    }

    /// The number of the newest migration that this program knows.
    fn known_schema(&self) -> i64;

    /// Finishes what is under way and closes.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// What other servers have changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// These topics.
    Topics(Vec<String>),
    /// Nobody knows: anything.
    Lost,
}

/// Everything that can be asked and written inside a transaction, an aggregate a trait.
pub trait Tx:
    workers::Workers
    + jobs::Jobs
    + attempts::Attempts
    + artifacts::Artifacts
    + checkpoints::Checkpoints
    + configs::Configs
    + access::Access
    + secrets::Secrets
    + factors::Factors
    + passkeys::Passkeys
    + notices::Notices
    + audit::Audit
    + servers::Servers
    + group::Group
    + look::Looking
    + retention::Retention
    + schema::Schema
    + usage::Usage
    + Send
{
}

impl<T> Tx for T where
    T: workers::Workers
        + jobs::Jobs
        + attempts::Attempts
        + artifacts::Artifacts
        + checkpoints::Checkpoints
        + configs::Configs
        + access::Access
        + secrets::Secrets
        + factors::Factors
        + passkeys::Passkeys
        + notices::Notices
        + audit::Audit
        + servers::Servers
        + group::Group
        + look::Looking
        + retention::Retention
        + schema::Schema
        + usage::Usage
        + Send
{
}

/// Why the database did not do it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreError {
    /// The row is not as the decision took it to be, or the name is taken: somebody else was quicker.
    Conflict,
    /// The use case decided against it. Nothing was written.
    Refused,
    /// The database cannot be reached, is full, or broken.
    Unavailable(String),
    /// A row that should not exist.
    Inconsistent {
        /// Its table.
        table: &'static str,
        /// Its key.
        row: String,
        /// What is wrong with it.
        what: String,
    },
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conflict => f.write_str("the row was changed by somebody else"),
            Self::Refused => f.write_str("the use case refused"),
            Self::Unavailable(why) => write!(f, "the database is not available: {why}"),
            Self::Inconsistent { table, row, what } => write!(f, "row {row} of {table} makes no sense: {what}"),
        }
    }
}

impl std::error::Error for StoreError {}

/// What every store operation returns.
pub type Result<T> = std::result::Result<T, StoreError>;

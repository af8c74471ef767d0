//! Backup of a whole server to a directory or an archive while it runs, and restore.
//!
//! The database is copied first, as a snapshot, and the files after it, so that every file a row refers to exists. The
//! manifest with the hashes of all files is written last; a backup without it is invalid.

pub mod database;
pub mod files;
pub mod manifest;
pub mod pack;
pub mod progress;
mod sparse;
pub mod unpack;

/// The error is a message for the operator.
pub type Result<T> = std::result::Result<T, String>;

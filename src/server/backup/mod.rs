//! A whole server in a directory or an archive, taken while it runs, and put back.
//!
//! The database is copied first, at one moment, and the files after it: whatever a row speaks of is there already. Files
//! have their hashes in a manifest, which is written last; a backup without one is none.

pub mod database;
pub mod files;
pub mod manifest;
pub mod pack;
pub mod progress;
mod sparse;
pub mod unpack;

/// What comes out: sentences for an operator.
pub type Result<T> = std::result::Result<T, String>;

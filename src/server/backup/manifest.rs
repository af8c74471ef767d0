//! What is in a backup.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Result;

/// The layout that this build writes and reads.
pub const FORMAT: u32 = 1;
/// Its place in a backup.
pub const NAME: &str = "manifest.json";
/// The SQLite database's place.
pub const SQLITE: &str = "database/orchestrator.db";
/// The PostgreSQL database's place: what `pg_dump` wrote.
pub const POSTGRES: &str = "database/postgres.dump";
/// Below it stands what stood in the data directory.
pub const FILES: &str = "files/";

/// Which database it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// A file in the data directory.
    Sqlite,
    /// A server of its own.
    Postgres,
}

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`FORMAT`].
    pub format: u32,
    /// The version of the program that made it.
    pub version: String,
    /// The database.
    pub engine: Engine,
    /// The newest migration that the database has had.
    pub schema: i64,
    /// When it was begun, as RFC 3339.
    pub taken_at: String,
    /// Whether the files that jobs made are in it.
    pub with_artifacts: bool,
    /// Every file but this one, by its path in the backup.
    pub files: BTreeMap<String, Entry>,
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// In bytes.
    pub size: u64,
    /// In hex.
    pub sha256: String,
}

impl Manifest {
    /// Reads one, if this program can put back what it describes.
    pub fn read(text: &[u8], newest_schema: impl Fn(Engine) -> i64) -> Result<Self> {
        let manifest: Self = serde_json::from_slice(text).map_err(|error| format!("{NAME} is damaged: {error}"))?;
        if manifest.format != FORMAT || manifest.schema > newest_schema(manifest.engine) {
            return Err(format!(
                "this backup was made by version {}, which is newer than this program; restore it with that version",
                manifest.version
            ));
        }
        Ok(manifest)
    }

    /// The first thing in which what was found is not what was written.
    pub fn compare(&self, found: &BTreeMap<String, Entry>) -> Result<()> {
        for (path, entry) in &self.files {
            match found.get(path) {
                None => return Err(format!("{path} is missing from the backup; nothing was restored")),
                Some(other) if other != entry => {
                    return Err(format!("{path} is damaged: it is not as it was written; nothing was restored"));
                }
                Some(_) => {}
            }
        }
        match found.keys().find(|path| !self.files.contains_key(*path)) {
            Some(path) => Err(format!("{path} does not belong to the backup; nothing was restored")),
            None => Ok(()),
        }
    }
}

//! The manifest of a backup.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Result;

/// The format version that this program writes and reads.
pub const FORMAT_VERSION: u32 = 1;
/// Path of the manifest in a backup.
pub const MANIFEST_FILE: &str = "manifest.json";
/// Path of the SQLite database in a backup.
pub const SQLITE_PATH: &str = "database/orchestrator.db";
/// Path of the PostgreSQL dump in a backup.
pub const POSTGRES_PATH: &str = "database/postgres.dump";
/// Prefix of the data directory's files in a backup.
pub const FILES_PREFIX: &str = "files/";

/// The database engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DatabaseEngine {
    /// A file in the data directory.
    Sqlite,
    /// A separate server.
    Postgres,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`FORMAT_VERSION`].
    pub format: u32,
    /// The version of the program that created it.
    pub version: String,
    pub engine: DatabaseEngine,
    /// The newest migration of the database.
    pub schema: i64,
    /// When the backup was started (RFC 3339).
    pub taken_at: String,
    /// Whether artifacts are included.
    pub with_artifacts: bool,
    /// All files except the manifest, by path in the backup.
    pub files: BTreeMap<String, ManifestEntry>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestEntry {
    /// In bytes.
    pub size: u64,
    /// In hex.
    pub sha256: String,
}

impl Manifest {
    /// Parses a manifest, if this program can restore the backup.
    pub fn parse(text: &[u8], newest_schema: impl Fn(DatabaseEngine) -> i64) -> Result<Self> {
        let manifest: Self =
            serde_json::from_slice(text).map_err(|error| format!("{MANIFEST_FILE} is damaged: {error}"))?;
        if manifest.format != FORMAT_VERSION || manifest.schema > newest_schema(manifest.engine) {
            return Err(format!(
                "this backup was created by version {}, which is newer than this program; restore it with that version",
                manifest.version
            ));
        }
        Ok(manifest)
    }

    /// Returns the first difference between the manifest and the files as an error.
    pub fn verify(&self, unpacked: &BTreeMap<String, ManifestEntry>) -> Result<()> {
        for (path, entry) in &self.files {
            match unpacked.get(path) {
                None => return Err(format!("{path} is missing from the backup; nothing was restored")),
                Some(other) if other != entry => {
                    return Err(format!("{path} is damaged: its content has changed; nothing was restored"));
                }
                Some(_) => {}
            }
        }
        match unpacked.keys().find(|path| !self.files.contains_key(*path)) {
            Some(path) => Err(format!("{path} does not belong to the backup; nothing was restored")),
            None => Ok(()),
        }
    }
}

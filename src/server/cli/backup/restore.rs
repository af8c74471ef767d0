//! `simpletuner restore`

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use app::domain::time::Timestamp;
use clap::Args;

use super::DatabaseLocationArgs;
use crate::backup::database;
use crate::backup::files::create_private_dir;
use crate::backup::manifest::{DatabaseEngine, FILES_PREFIX, Manifest, POSTGRES_PATH, SQLITE_PATH};
use crate::backup::progress::BackupProgress;
use crate::backup::unpack::unpack;
use crate::boot::restore_marker;
use crate::cli::audit::verify_from_database;
use crate::clock::{Clock, SystemClock};
use crate::data_dir::resolve_data_dir;
use crate::exit::ExitError;
use crate::store::read_only::ReadOnlyStore;
use crate::store::system::schema;
use crate::store::{Store, postgres, sqlite};

#[derive(Debug, Clone, Args)]
pub struct RestoreArgs {
    #[command(flatten)]
    database: DatabaseLocationArgs,
    /// Backup to restore: a directory or a .tar file.
    #[arg(long, value_name = "DIR|FILE.tar")]
    from: PathBuf,
    /// Replace existing data. Files in the data directory are moved aside; tables in a PostgreSQL database are dropped.
    #[arg(long)]
    force: bool,
}

impl RestoreArgs {
    #[cfg(test)]
    pub fn new(database: DatabaseLocationArgs, from: PathBuf, force: bool) -> Self {
        Self { database, from, force }
    }
}

/// Restores a backup; returns a summary.
pub async fn restore(args: &RestoreArgs) -> Result<String, ExitError> {
    let data = resolve_data_dir(args.database.data_dir.as_deref())?;
    let directory_error = |error: std::io::Error| ExitError::config(format!("cannot use {}: {error}", data.display()));
    create_private_dir(&data).map_err(directory_error)?;
    let _lock = sqlite::lock_directory(&data).map_err(|error| ExitError::unavailable(format!("{error:#}")))?;
    let existing = list_contents(&data).map_err(directory_error)?;
    if !existing.is_empty() && !args.force {
        return Err(ExitError::config(format!(
            "{} is not empty; set another with --data-dir, or replace it with --force, which moves \
             existing files aside",
            data.display()
        )));
    }
    let now = SystemClock.now();
    let staging = StagingDir(data.join(format!("restoring-{}", std::process::id())));
    create_private_dir(&staging.0).map_err(directory_error)?;
    let mut progress = BackupProgress::new("restore");
    let manifest = unpack(&args.from, &staging.0, latest_migration, &mut progress).map_err(ExitError::config)?;
    drop(progress);
    let url = args.database.database_url.as_ref().map(|url| url.0.as_str());
    match (manifest.engine, url) {
        (DatabaseEngine::Sqlite, None) | (DatabaseEngine::Postgres, Some(_)) => {}
        (DatabaseEngine::Sqlite, Some(_)) => {
            return Err(ExitError::usage("this backup is of an SQLite database; omit --database-url".to_owned()));
        }
        (DatabaseEngine::Postgres, None) => {
            let message = "this backup is of a PostgreSQL database; set --database-url to an empty one";
            return Err(ExitError::usage(message.to_owned()));
        }
    }
    if let Some(url) = url {
        ensure_unused(url, args.force).await?;
    }
    // Written before the database, which must never exist without it.
    restore_marker::write_marker(&data).map_err(directory_error)?;
    if let Some(url) = url {
        database::restore(url, &staging.0.join(POSTGRES_PATH), args.force).await.map_err(ExitError::unavailable)?;
    }
    let previous = replace_data(&data, &staging.0, &existing, now).map_err(directory_error)?;
    drop(staging);
    let (intact, verdict) = verify_from_database(&args.database).await?;
    if !intact {
        return Err(ExitError::data_error(format!("it was restored, but its audit log is invalid: {verdict}")));
    }
    Ok(format_summary(&manifest, &data, previous.as_deref(), &verdict))
}

fn format_summary(manifest: &Manifest, data: &Path, previous: Option<&Path>, audit_log: &str) -> String {
    let files = manifest.files.len();
    let previous =
        previous.map_or_else(String::new, |previous| format!("\nprevious files are in {}", previous.display()));
    let artifacts_note = if manifest.with_artifacts { "" } else { "\nartifacts are not in this backup" };
    format!(
        "{}: {files} files of {}\naudit log: {audit_log}{previous}{artifacts_note}",
        data.display(),
        manifest.taken_at
    )
}

/// Returns the newest migration that this program knows.
fn latest_migration(engine: DatabaseEngine) -> i64 {
    schema::newest_version(match engine {
        DatabaseEngine::Sqlite => &sqlite::MIGRATIONS,
        DatabaseEngine::Postgres => &postgres::MIGRATIONS,
    })
}

/// Lists the directory without the lock file that is held now.
fn list_contents(data: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut existing = Vec::new();
    for entry in fs::read_dir(data)? {
        let entry = entry?;
        if entry.file_name() != sqlite::LOCK_FILE && entry.file_name() != restore_marker::MARKER_FILE {
            existing.push(entry.path());
        }
    }
    Ok(existing)
}

/// Rejects a database that is in use or not empty.
async fn ensure_unused(url: &str, force: bool) -> Result<(), ExitError> {
    let database = ReadOnlyStore::open_postgres(url).await.map_err(|error| ExitError::config(format!("{error:#}")))?;
    let state = database.usage_state().await;
    database.close().await;
    match state.map_err(|error| ExitError::unavailable(format!("cannot read the database: {error}")))? {
        (_, true) => Err(ExitError::unavailable("a simpletuner server uses this database; stop it first".to_owned())),
        (true, false) if !force => Err(ExitError::config(
            "the database is not empty; create another, or replace it with --force, which removes its \
             tables"
                .to_owned(),
        )),
        _ => Ok(()),
    }
}

/// Moves existing files aside and the unpacked ones into place, the database last: a directory without it counts as
/// empty.
fn replace_data(data: &Path, staging: &Path, existing: &[PathBuf], now: Timestamp) -> std::io::Result<Option<PathBuf>> {
    let previous = data.join(format!("restored-over-{}", now.to_string().replace(':', "")));
    if !existing.is_empty() {
        create_private_dir(&previous)?;
        for path in existing {
            fs::rename(path, previous.join(path.file_name().unwrap_or_default()))?;
        }
    }
    let files = staging.join(FILES_PREFIX);
    if files.is_dir() {
        for entry in fs::read_dir(files)? {
            let entry = entry?;
            fs::rename(entry.path(), data.join(entry.file_name()))?;
        }
    }
    let copy = staging.join(SQLITE_PATH);
    if copy.is_file() {
        fs::rename(copy, data.join(sqlite::DATABASE_FILE))?;
    }
    File::open(data)?.sync_all()?;
    Ok((!existing.is_empty()).then_some(previous))
}

/// A directory that is removed on drop.
struct StagingDir(PathBuf);

impl Drop for StagingDir {
    fn drop(&mut self) {
        // Files that were not moved out are not needed.
        let _ = fs::remove_dir_all(&self.0);
    }
}

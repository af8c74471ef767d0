//! `simpletuner backup` and `simpletuner restore`, which run on the server's host.

mod restore;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use app::domain::time::Timestamp;
use clap::Args;

use super::audit::DatabaseLocationArgs;
use crate::backup::database;
use crate::backup::files::{self, ARTIFACTS_DIR};
use crate::backup::manifest::{DatabaseEngine, FILES_PREFIX, FORMAT_VERSION, Manifest, POSTGRES_PATH, SQLITE_PATH};
use crate::backup::pack::BackupWriter;
use crate::backup::progress::BackupProgress;
use crate::clock::{Clock, SystemClock};
use crate::data_dir::resolve_data_dir;
use crate::exit::ExitError;
use crate::http::system::BACKUP_TIME_FILE;
use crate::store::Store;
use crate::store::read_only::ReadOnlyStore;

pub use self::restore::RestoreArgs;

/// `simpletuner backup`
#[derive(Debug, Clone, Args)]
pub struct BackupArgs {
    #[command(flatten)]
    database: DatabaseLocationArgs,
    /// Target: a new directory, or a file whose name ends in .tar.
    #[arg(long, value_name = "DIR|FILE.tar")]
    to: PathBuf,
    /// Exclude artifacts, if they are backed up in another way.
    #[arg(long)]
    without_artifacts: bool,
}

/// Creates a backup.
pub fn main(args: &BackupArgs) -> ExitCode {
    run_to_exit(async { create_backup(args, SystemClock.now()).await.map(|summary| println!("{summary}")) })
}

/// Restores a backup.
pub fn restore(args: &RestoreArgs) -> ExitCode {
    run_to_exit(async { restore::restore(args).await.map(|summary| println!("{summary}")) })
}

fn run_to_exit(work: impl Future<Output = Result<(), ExitError>>) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let outcome = match runtime {
        Ok(runtime) => runtime.block_on(work),
        Err(error) => Err(ExitError::failed(format!("cannot start the async runtime: {error}"))),
    };
    outcome.map_or_else(|exit| exit.print(), |()| ExitCode::SUCCESS)
}

async fn create_backup(args: &BackupArgs, now: Timestamp) -> Result<String, ExitError> {
    let data = resolve_data_dir(args.database.data_dir.as_deref())?;
    let url = args.database.database_url.as_ref();
    let open_error = |error: anyhow::Error| ExitError::config(format!("{error:#}"));
    let (store, engine) = match url {
        Some(url) => (ReadOnlyStore::open_postgres(&url.0).await.map_err(open_error)?, DatabaseEngine::Postgres),
        None => (ReadOnlyStore::open_sqlite(&data).await.map_err(open_error)?, DatabaseEngine::Sqlite),
    };
    let read_error = |error| ExitError::unavailable(format!("cannot read the database: {error}"));
    let schema = store.read().await.map_err(read_error)?.schema().await.map_err(read_error)?.version;
    let manifest = Manifest {
        format: FORMAT_VERSION,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        engine,
        schema,
        taken_at: now.to_string(),
        with_artifacts: !args.without_artifacts,
        files: std::collections::BTreeMap::new(),
    };
    let mut writer = BackupWriter::create(&args.to).map_err(ExitError::config)?;
    let mut progress = BackupProgress::new("backup");
    // A snapshot; all files that its rows refer to exist already.
    let database_copy = RemoveFileOnDrop(writer.scratch_path());
    // Created as private before any data is written.
    files::create_private_file(&database_copy.0)
        .map_err(|error| ExitError::config(format!("cannot write {}: {error}", database_copy.0.display())))?;
    match url {
        Some(url) => database::dump(&url.0, &database_copy.0).await.map_err(ExitError::unavailable)?,
        None => store.copy_to(&database_copy.0).await.map_err(read_error)?,
    }
    let path = if engine == DatabaseEngine::Sqlite { SQLITE_PATH } else { POSTGRES_PATH };
    writer.add(path, &database_copy.0, &mut progress).map_err(ExitError::failed)?;
    drop(database_copy);
    add_files(&mut writer, &data, !args.without_artifacts, &mut progress)?;
    store.close().await;
    let manifest_time = manifest.taken_at.clone();
    let (files, bytes) = writer.finish(manifest).map_err(ExitError::failed)?;
    drop(progress);
    // The system page shows the age of the newest backup. The backup is valid even if this file cannot be written.
    if let Err(error) = std::fs::write(data.join(BACKUP_TIME_FILE), manifest_time) {
        eprintln!("warning: the server cannot show this backup: {error}");
    }
    let artifacts_note = if args.without_artifacts { ", without artifacts" } else { "" };
    Ok(format!("{}: {files} files, {bytes} bytes{artifacts_note}", args.to.display()))
}

fn add_files(
    writer: &mut BackupWriter,
    data: &Path,
    with_artifacts: bool,
    progress: &mut BackupProgress,
) -> Result<(), ExitError> {
    let read_error = |error| ExitError::config(format!("cannot read the data directory {}: {error}", data.display()));
    let (paths, links) = files::list_files(data, with_artifacts).map_err(read_error)?;
    for link in links {
        eprintln!("warning: skipping the link {}", data.join(link).display());
    }
    for path in paths {
        let name = format!("{FILES_PREFIX}{}", files::checked_path(&path).map_err(ExitError::failed)?);
        let full_path = data.join(&path);
        // Files that retention or a newer attempt has deleted since the listing are not missing.
        let may_be_deleted = path.starts_with(ARTIFACTS_DIR) || path.starts_with("logs");
        if may_be_deleted && !full_path.exists() {
            continue;
        }
        writer.add(&name, &full_path, progress).map_err(ExitError::failed)?;
    }
    Ok(())
}

/// A file that is removed on drop.
struct RemoveFileOnDrop(PathBuf);

impl Drop for RemoveFileOnDrop {
    fn drop(&mut self) {
        // It may not exist.
        let _ = std::fs::remove_file(&self.0);
    }
}

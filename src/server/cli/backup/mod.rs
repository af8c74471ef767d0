//! `simpletuner backup` and `simpletuner restore`, on the server's host.

mod restore;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use app::domain::time::Timestamp;
use clap::Args;

use super::audit::Database;
use crate::backup::database;
use crate::backup::files::{self, ARTIFACTS};
use crate::backup::manifest::{Engine, FILES, FORMAT, Manifest, POSTGRES, SQLITE};
use crate::backup::pack::Pack;
use crate::backup::progress::Progress;
use crate::boot::chosen_directory;
use crate::boot::exit::Exit;
use crate::clock::{Clock, SystemClock};
use crate::http::system::BACKED_UP;
use crate::store::Store;
use crate::store::archive::Archive;

pub use self::restore::RestoreArgs;

/// `simpletuner backup`
#[derive(Debug, Clone, Args)]
pub struct BackupArgs {
    #[command(flatten)]
    database: Database,
    /// Where to: a directory that is not there yet, or a file whose name ends in .tar.
    #[arg(long, value_name = "DIR|FILE.tar")]
    to: PathBuf,
    /// Leave out the files that jobs made; keep them in another way.
    #[arg(long)]
    without_artifacts: bool,
}

/// Makes a backup.
pub fn main(args: &BackupArgs) -> ExitCode {
    finish(async { back_up(args, SystemClock.now()).await.map(|said| println!("{said}")) })
}

/// Puts a backup back.
pub fn restore(args: &RestoreArgs) -> ExitCode {
    finish(async { restore::restore(args).await.map(|said| println!("{said}")) })
}

fn finish(work: impl Future<Output = Result<(), Exit>>) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let outcome = match runtime {
        Ok(runtime) => runtime.block_on(work),
        Err(error) => Err(Exit::failed(format!("the runtime could not be started: {error}"))),
    };
    outcome.map_or_else(|exit| exit.report(), |()| ExitCode::SUCCESS)
}

async fn back_up(args: &BackupArgs, now: Timestamp) -> Result<String, Exit> {
    let data = chosen_directory(args.database.data_dir.as_deref())?;
    let url = args.database.database_url.as_ref();
    let unusable = |error: anyhow::Error| Exit::config(format!("{error:#}"));
    let (archive, engine) = match url {
        Some(url) => (Archive::at(&url.0).await.map_err(unusable)?, Engine::Postgres),
        None => (Archive::in_directory(&data).await.map_err(unusable)?, Engine::Sqlite),
    };
    let unreadable = |error| Exit::unavailable(format!("the database cannot be read: {error}"));
    let schema = archive.read().await.map_err(unreadable)?.schema_version().await.map_err(unreadable)?;
    let manifest = Manifest {
        format: FORMAT,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        engine,
        schema,
        taken_at: now.to_string(),
        with_artifacts: !args.without_artifacts,
        files: std::collections::BTreeMap::new(),
    };
    let mut pack = Pack::begin(&args.to).map_err(Exit::config)?;
    let mut progress = Progress::of("backup");
    // At one moment; all that its rows speak of is in the directory already.
    let copy = Removed(pack.scratch());
    // There before it is filled, so that nobody else can ever read it.
    files::create(&copy.0).map_err(|error| Exit::config(format!("{} cannot be written: {error}", copy.0.display())))?;
    match url {
        Some(url) => database::dump(&url.0, &copy.0).await.map_err(Exit::unavailable)?,
        None => archive.copy_to(&copy.0).await.map_err(unreadable)?,
    }
    let place = if engine == Engine::Sqlite { SQLITE } else { POSTGRES };
    pack.add(place, &copy.0, &mut progress).map_err(Exit::failed)?;
    drop(copy);
    add_files(&mut pack, &data, !args.without_artifacts, &mut progress)?;
    archive.close().await;
    let manifest_time = manifest.taken_at.clone();
    let (files, bytes) = pack.finish(manifest).map_err(Exit::failed)?;
    drop(progress);
    // The server's page says how old the newest backup is. That it cannot is no reason to have none.
    if let Err(error) = std::fs::write(data.join(BACKED_UP), manifest_time) {
        eprintln!("warning: the server will not know of this backup: {error}");
    }
    let left = if args.without_artifacts { ", without artifacts" } else { "" };
    Ok(format!("{}: {files} files, {bytes} bytes{left}", args.to.display()))
}

fn add_files(pack: &mut Pack, data: &Path, with_artifacts: bool, progress: &mut Progress) -> Result<(), Exit> {
    let unreadable = |error| Exit::config(format!("the data directory {} cannot be read: {error}", data.display()));
    let (listed, links) = files::listed(data, with_artifacts).map_err(unreadable)?;
    for link in links {
        eprintln!("warning: {} is a link, and is left out", data.join(link).display());
    }
    for path in listed {
        let name = format!("{FILES}{}", files::plain(&path).map_err(Exit::failed)?);
        let whole = data.join(&path);
        // What retention or a newer attempt has removed meanwhile is no loss.
        let gone = path.starts_with(ARTIFACTS) || path.starts_with("logs");
        if gone && !whole.exists() {
            continue;
        }
        pack.add(&name, &whole, progress).map_err(Exit::failed)?;
    }
    Ok(())
}

/// A file that goes when this does.
struct Removed(PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        // It may never have been made.
        let _ = std::fs::remove_file(&self.0);
    }
}

//! `simpletuner restore`

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use app::domain::time::Timestamp;
use clap::Args;

use super::Database;
use crate::backup::database;
use crate::backup::files::make_directory;
use crate::backup::manifest::{Engine, FILES, Manifest, POSTGRES, SQLITE};
use crate::backup::progress::Progress;
use crate::backup::unpack::unpack;
use crate::boot::chosen_directory;
use crate::boot::exit::Exit;
use crate::boot::restored;
use crate::cli::audit::is_intact;
use crate::clock::{Clock, SystemClock};
use crate::store::archive::Archive;
use crate::store::{Store, postgres, schema, sqlite};

/// `simpletuner restore`
#[derive(Debug, Clone, Args)]
pub struct RestoreArgs {
    #[command(flatten)]
    database: Database,
    /// The backup: a directory, or a file.
    #[arg(long, value_name = "DIR|FILE.tar")]
    from: PathBuf,
    /// Put it in the place of what is there. The data directory's files are moved aside, a PostgreSQL database's tables are
    /// removed.
    #[arg(long)]
    force: bool,
}

impl RestoreArgs {
    #[cfg(test)]
    pub fn new(database: Database, from: PathBuf, force: bool) -> Self {
        Self { database, from, force }
    }
}

/// Puts a backup back; says what was done.
pub async fn restore(args: &RestoreArgs) -> Result<String, Exit> {
    let data = chosen_directory(args.database.data_dir.as_deref())?;
    let unusable = |error: std::io::Error| Exit::config(format!("{} cannot be used: {error}", data.display()));
    make_directory(&data).map_err(unusable)?;
    let _lock = sqlite::lock(&data).map_err(|error| Exit::unavailable(format!("{error:#}")))?;
    let there = contents(&data).map_err(unusable)?;
    if !there.is_empty() && !args.force {
        return Err(Exit::config(format!(
            "{} is not empty; name another with --data-dir, or put the backup in its place with --force, which moves \
             what is there aside",
            data.display()
        )));
    }
    let now = SystemClock.now();
    let draft = Draft(data.join(format!("restoring-{}", std::process::id())));
    make_directory(&draft.0).map_err(unusable)?;
    let mut progress = Progress::of("restore");
    let manifest = unpack(&args.from, &draft.0, newest, &mut progress).map_err(Exit::config)?;
    drop(progress);
    let url = args.database.database_url.as_ref().map(|url| url.0.as_str());
    match (manifest.engine, url) {
        (Engine::Sqlite, None) | (Engine::Postgres, Some(_)) => {}
        (Engine::Sqlite, Some(_)) => {
            return Err(Exit::usage("this backup is of an SQLite database; leave --database-url out".to_owned()));
        }
        (Engine::Postgres, None) => {
            let sentence = "this backup is of a PostgreSQL database; name an empty one with --database-url";
            return Err(Exit::usage(sentence.to_owned()));
        }
    }
    if let Some(url) = url {
        refuse_used(url, args.force).await?;
    }
    // Before the database: it must not be there without.
    restored::mark(&data).map_err(unusable)?;
    if let Some(url) = url {
        database::restore(url, &draft.0.join(POSTGRES), args.force).await.map_err(Exit::unavailable)?;
    }
    let aside = put_in_place(&data, &draft.0, &there, now).map_err(unusable)?;
    drop(draft);
    let (intact, words) = is_intact(&args.database).await?;
    if !intact {
        return Err(Exit::tampered(format!("it was restored, but its audit trail does not hold: {words}")));
    }
    Ok(told(&manifest, &data, aside.as_deref(), &words))
}

fn told(manifest: &Manifest, data: &Path, aside: Option<&Path>, trail: &str) -> String {
    let files = manifest.files.len();
    let aside = aside.map_or_else(String::new, |aside| format!("\nwhat was there is in {}", aside.display()));
    let without = if manifest.with_artifacts { "" } else { "\nartifacts are not in this backup" };
    format!("{}: {files} files of {}\naudit trail: {trail}{aside}{without}", data.display(), manifest.taken_at)
}

/// The number of the newest migration that this program knows.
fn newest(engine: Engine) -> i64 {
    schema::newest(match engine {
        Engine::Sqlite => &sqlite::MIGRATIONS,
        Engine::Postgres => &postgres::MIGRATIONS,
    })
}

/// What is in the directory, but for the lock that is held now.
fn contents(data: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut there = Vec::new();
    for entry in fs::read_dir(data)? {
        let entry = entry?;
        if entry.file_name() != sqlite::LOCK && entry.file_name() != restored::MARK {
            there.push(entry.path());
        }
    }
    Ok(there)
}

/// Refuses a database that is in use, or has something in it.
async fn refuse_used(url: &str, force: bool) -> Result<(), Exit> {
    let archive = Archive::at(url).await.map_err(|error| Exit::config(format!("{error:#}")))?;
    let used = archive.is_used().await;
    archive.close().await;
    match used.map_err(|error| Exit::unavailable(format!("the database cannot be read: {error}")))? {
        (_, true) => Err(Exit::unavailable("a simpletuner server uses this database; stop it first".to_owned())),
        (true, false) if !force => Err(Exit::config(
            "the database is not empty; make another, or put the backup in its place with --force, which removes what \
             is there"
                .to_owned(),
        )),
        _ => Ok(()),
    }
}

/// Moves what was there aside and what was unpacked to its place, the database last: without it nothing counts.
fn put_in_place(data: &Path, draft: &Path, there: &[PathBuf], now: Timestamp) -> std::io::Result<Option<PathBuf>> {
    let aside = data.join(format!("restored-over-{}", now.to_string().replace(':', "")));
    if !there.is_empty() {
        make_directory(&aside)?;
        for path in there {
            fs::rename(path, aside.join(path.file_name().unwrap_or_default()))?;
        }
    }
    let files = draft.join(FILES);
    if files.is_dir() {
        for entry in fs::read_dir(files)? {
            let entry = entry?;
            fs::rename(entry.path(), data.join(entry.file_name()))?;
        }
    }
    let copy = draft.join(SQLITE);
    if copy.is_file() {
        fs::rename(copy, data.join(sqlite::FILE))?;
    }
    File::open(data)?.sync_all()?;
    Ok((!there.is_empty()).then_some(aside))
}

/// A directory that goes when this does.
struct Draft(PathBuf);

impl Drop for Draft {
    fn drop(&mut self) {
        // What was not moved out of it is of no use.
        let _ = fs::remove_dir_all(&self.0);
    }
}

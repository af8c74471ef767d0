//! `simpletuner audit …`: the trail, read beside the server.

#[cfg(test)]
mod tests;

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use app::protocol::audit::{AuditFault, AuditFilters, AuditVerdict};
use clap::{Args, Subcommand};
use futures_util::{StreamExt, pin_mut};
use serde_json::json;

use super::Secret;
use crate::boot::chosen_directory;
use crate::boot::exit::Exit;
use crate::clock::{Clock, SystemClock};
use crate::files::checkpoints::{Checkpoints, SignedLines, shipped};
use crate::http::problem::ApiError;
use crate::service::audit::trail;
use crate::service::audit::verify::verify;
use crate::store::Store;
use crate::store::archive::Archive;

/// What can be done with the trail.
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// Say whether the trail is as it was written; exits with 65 if it is not.
    Verify(VerifyArgs),
    /// Print entries as lines of JSON, oldest first.
    Export(ExportArgs),
}

/// Where the trail is.
#[derive(Debug, Clone, Default, Args)]
pub struct Database {
    /// The server's data directory, with its SQLite database and its key [default: simpletuner in the user's data
    /// directory].
    #[arg(long, env = "SIMPLETUNER_DATA_DIR")]
    pub data_dir: Option<PathBuf>,
    /// The PostgreSQL database of the servers.
    #[arg(long, env = "SIMPLETUNER_DATABASE_URL", hide_env_values = true, value_name = "postgres://…")]
    pub database_url: Option<Secret>,
}

/// `simpletuner audit verify`
#[derive(Debug, Clone, Default, Args)]
pub struct VerifyArgs {
    #[command(flatten)]
    database: Database,
    /// Compare with checkpoints that were shipped elsewhere (`--audit-ship`), in place of the file in the data directory.
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    /// Print the verdict as JSON.
    #[arg(long)]
    json: bool,
    /// Print nothing: the exit code says it.
    #[arg(long, short, conflicts_with = "json")]
    quiet: bool,
}

/// `simpletuner audit export`
#[derive(Debug, Clone, Default, Args)]
pub struct ExportArgs {
    #[command(flatten)]
    database: Database,
    /// Only what this person, worker (`worker:w_…`) or `system` did.
    #[arg(long)]
    actor: Option<String>,
    /// Only this action, or all that begin so: `worker.created`, `worker.`.
    #[arg(long)]
    action: Option<String>,
    /// Only what was done to this: an id or a name.
    #[arg(long)]
    target: Option<String>,
    /// Only what came of this request.
    #[arg(long)]
    request_id: Option<String>,
    /// Not earlier than this moment, like 2024-01-15T10:30:00Z.
    #[arg(long)]
    since: Option<String>,
    /// Earlier than this moment.
    #[arg(long)]
    until: Option<String>,
}

/// Does it.
pub fn main(command: AuditCommand) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let out = &mut io::stdout().lock();
    let outcome = match runtime {
        Err(error) => Err(Exit::failed(format!("the runtime could not be started: {error}"))),
        Ok(runtime) => runtime.block_on(async {
            match command {
                AuditCommand::Verify(args) => report(args, out).await,
                AuditCommand::Export(args) => export(args, out).await.map(|()| ExitCode::SUCCESS),
            }
        }),
    };
    outcome.unwrap_or_else(|exit| exit.report())
}

async fn open(database: &Database) -> Result<Archive, Exit> {
    let opened = match &database.database_url {
        Some(url) => Archive::at(&url.0).await,
        None => Archive::in_directory(&chosen_directory(database.data_dir.as_deref())?).await,
    };
    opened.map_err(|error| Exit::config(format!("{error:#}")))
}

/// Whether the trail holds, and what `verify` prints of it.
pub async fn is_intact(database: &Database) -> Result<(bool, String), Exit> {
    let (found, mut words) = (look(database, None).await?, Vec::new());
    print(&found, &mut words)?;
    let words = String::from_utf8_lossy(&words).trim().replace('\n', "; ");
    Ok((found.intact, words))
}

async fn report(args: VerifyArgs, out: &mut impl Write) -> Result<ExitCode, Exit> {
    let found = look(&args.database, args.against.as_deref()).await?;
    let printed = match (args.quiet, args.json) {
        (true, _) => Ok(()),
        (false, true) => writeln!(out, "{}", json!(found)),
        (false, false) => print(&found, out),
    };
    // A reader who left hears the verdict by the exit code all the same.
    printed.or_else(|error| if error.kind() == ErrorKind::BrokenPipe { Ok(()) } else { Err(error) })?;
    Ok(if found.intact { ExitCode::SUCCESS } else { Exit::silent(65).report() })
}

async fn look(database: &Database, against: Option<&Path>) -> Result<AuditVerdict, Exit> {
    let archive = open(database).await?;
    let directory = chosen_directory(database.data_dir.as_deref());
    let kind = if database.database_url.is_some() { "postgres" } else { "sqlite" };
    let unreadable =
        |error: io::Error| Exit::config(format!("the key or the file of checkpoints cannot be read: {error}"));
    let key = directory.map_or(Ok(None), |directory| Checkpoints::find(&directory, kind)).map_err(unreadable)?;
    let lines = match (against, &key) {
        (Some(file), _) => shipped(&fs::read_to_string(file).map_err(unreadable)?, kind),
        (None, Some(key)) => key.signed().map_err(unreadable)?,
        (None, None) => SignedLines::default(),
    };
    let failed = |error| Exit::unavailable(format!("the trail could not be read to its end: {error}"));
    let mut tx = archive.read().await.map_err(failed)?;
    // A trail that nobody writes, such as a backup, gets no later: what is overdue is told by what came after it.
    let now = tx.newest_audit_at().await.map_err(failed)?.unwrap_or_default();
    let verdict = verify(&mut *tx, key.as_ref(), &lines, against.is_some(), now).await.map_err(failed)?;
    Ok(verdict.told(key.is_some(), lines.broken))
}

fn print(found: &AuditVerdict, out: &mut impl Write) -> io::Result<()> {
    for AuditFault { chain, what, .. } in &found.faults {
        writeln!(out, "{chain}: {what}")?;
    }
    for line in &found.broken_checkpoint_lines {
        writeln!(out, "the file of checkpoints: line {line} was not signed with this key")?;
    }
    if found.more_faults > 0 {
        writeln!(out, "and {} more", found.more_faults)?;
    }
    let word = if found.intact { "intact" } else { "TAMPERED WITH" };
    writeln!(out, "{word}; entries: {}, chains: {}", found.entries, found.chains)?;
    if found.key_found && !found.chains_must_be_signed {
        writeln!(
            out,
            "signed by an earlier version: chains that were added or cut are not excluded until a server has started"
        )?;
    }
    let signed = found.checkpoints_signed;
    match (found.key_found, found.checkpoints_of_other_keys) {
        (false, _) => writeln!(out, "no key was found: that the whole was written anew cannot be excluded"),
        (true, 0) => writeln!(out, "signed checkpoints: {signed}"),
        (true, foreign) => writeln!(out, "signed checkpoints: {signed}; of other keys, not checked: {foreign}"),
    }
}

async fn export(args: ExportArgs, out: &mut impl Write) -> Result<(), Exit> {
    let ExportArgs { database, actor, action, target, request_id, since, until } = args;
    let store: Arc<dyn Store> = Arc::new(open(&database).await?);
    let filters = AuditFilters { actor, action, target, request_id, since, until };
    let wrong = |refusal| Exit::usage(ApiError::from(refusal).problem().detail);
    let entries = trail::export(store, &filters, SystemClock.now()).map_err(wrong)?;
    pin_mut!(entries);
    let mut out = io::BufWriter::new(out);
    while let Some(entry) = entries.next().await {
        let line = serde_json::to_string(&entry.map_err(Exit::refused)?).expect("plain fields");
        writeln!(out, "{line}")?;
    }
    Ok(out.flush()?)
}

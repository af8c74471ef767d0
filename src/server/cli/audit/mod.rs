//! `simpletuner audit …`: reads the audit log directly from the database.

#[cfg(test)]
mod tests;

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use app::protocol::audit::{AuditFault, AuditFilters, AuditVerification};
use app::ui::prefs::Locale;
use clap::{Args, Subcommand};
use futures_util::{StreamExt, pin_mut};
use serde_json::json;

use crate::args::SecretString;
use crate::clock::{Clock, SystemClock};
use crate::data_dir::resolve_data_dir;
use crate::exit::ExitError;
use crate::files::audit_checkpoints::{AuditCheckpointFile, SignedLines, parse_shipped};
use crate::http::problem::ApiError;
use crate::service::audit::entries;
use crate::service::audit::verify::verify_audit_log;
use crate::store::Store;
use crate::store::read_only::ReadOnlyStore;

/// Commands for the audit log.
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// Verify that the audit log is unmodified; exits with 65 if it is not.
    Verify(VerifyArgs),
    /// Print entries as JSON lines, oldest first.
    Export(ExportArgs),
}

/// Location of the audit log.
#[derive(Debug, Clone, Default, Args)]
pub struct DatabaseLocationArgs {
    /// Data directory of the server, with its SQLite database and key [default: simpletuner in the user's data
    /// directory].
    #[arg(long, env = "SIMPLETUNER_DATA_DIR")]
    pub data_dir: Option<PathBuf>,
    /// PostgreSQL database of the servers.
    #[arg(long, env = "SIMPLETUNER_DATABASE_URL", hide_env_values = true, value_name = "postgres://…")]
    pub database_url: Option<SecretString>,
}

/// `simpletuner audit verify`
#[derive(Debug, Clone, Default, Args)]
pub struct VerifyArgs {
    #[command(flatten)]
    database: DatabaseLocationArgs,
    /// Compare with checkpoints that were shipped elsewhere (`--audit-ship`), instead of the file in the data
    /// directory.
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
    /// Print nothing, only set the exit code.
    #[arg(long, short, conflicts_with = "json")]
    quiet: bool,
}

/// `simpletuner audit export`
#[derive(Debug, Clone, Default, Args)]
pub struct ExportArgs {
    #[command(flatten)]
    database: DatabaseLocationArgs,
    /// Filter by user, worker (`worker:w_…`) or `system`.
    #[arg(long)]
    actor: Option<String>,
    /// Filter by action, or by prefix: `worker.created`, `worker.`.
    #[arg(long)]
    action: Option<String>,
    /// Filter by target: an ID or name.
    #[arg(long)]
    target: Option<String>,
    /// Filter by request ID.
    #[arg(long)]
    request_id: Option<String>,
    /// At or after this time, like 2024-01-15T10:30:00Z.
    #[arg(long)]
    since: Option<String>,
    /// Before this time.
    #[arg(long)]
    until: Option<String>,
}

pub fn main(command: AuditCommand) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let out = &mut io::stdout().lock();
    let outcome = match runtime {
        Err(error) => Err(ExitError::failed(format!("cannot start the async runtime: {error}"))),
        Ok(runtime) => runtime.block_on(async {
            match command {
                AuditCommand::Verify(args) => run_verify(args, out).await,
                AuditCommand::Export(args) => run_export(args, out).await.map(|()| ExitCode::SUCCESS),
            }
        }),
    };
    outcome.unwrap_or_else(|exit| exit.print())
}

async fn open_store(database: &DatabaseLocationArgs) -> Result<ReadOnlyStore, ExitError> {
    let store = match &database.database_url {
        Some(url) => ReadOnlyStore::open_postgres(&url.0).await,
        None => ReadOnlyStore::open_sqlite(&resolve_data_dir(database.data_dir.as_deref())?).await,
    };
    store.map_err(|error| ExitError::config(format!("{error:#}")))
}

/// Verifies the audit log; returns the result and the output of `verify`.
pub async fn verify_from_database(database: &DatabaseLocationArgs) -> Result<(bool, String), ExitError> {
    let (verification, mut output) = (compute_verification(database, None).await?, Vec::new());
    print_verification(&verification, &mut output)?;
    let output = String::from_utf8_lossy(&output).trim().replace('\n', "; ");
    Ok((verification.intact, output))
}

async fn run_verify(args: VerifyArgs, out: &mut impl Write) -> Result<ExitCode, ExitError> {
    let verification = compute_verification(&args.database, args.against.as_deref()).await?;
    let result = match (args.quiet, args.json) {
        (true, _) => Ok(()),
        (false, true) => writeln!(out, "{}", json!(verification)),
        (false, false) => print_verification(&verification, out),
    };
    // The exit code is set even if the reader closes the pipe.
    result.or_else(|error| if error.kind() == ErrorKind::BrokenPipe { Ok(()) } else { Err(error) })?;
    Ok(if verification.intact { ExitCode::SUCCESS } else { ExitError::silent(65).print() })
}

async fn compute_verification(
    database: &DatabaseLocationArgs,
    against: Option<&Path>,
) -> Result<AuditVerification, ExitError> {
    let store = open_store(database).await?;
    let directory = resolve_data_dir(database.data_dir.as_deref());
    let kind = if database.database_url.is_some() { "postgres" } else { "sqlite" };
    let read_error =
        |error: io::Error| ExitError::config(format!("cannot read the key or the file of checkpoints: {error}"));
    let checkpoints =
        directory.map_or(Ok(None), |directory| AuditCheckpointFile::find(&directory, kind)).map_err(read_error)?;
    let lines = match (against, &checkpoints) {
        (Some(file), _) => parse_shipped(&fs::read_to_string(file).map_err(read_error)?, kind),
        (None, Some(checkpoints)) => checkpoints.read_signed().map_err(read_error)?,
        (None, None) => SignedLines::default(),
    };
    let database_error = |error| ExitError::unavailable(format!("cannot read the whole audit log: {error}"));
    let mut tx = store.read().await.map_err(database_error)?;
    // A backup gets no further entries, so its newest entry counts as the current time for overdue checkpoints.
    let now = tx.newest_audit_at().await.map_err(database_error)?.unwrap_or_default();
    let verification = verify_audit_log(&mut *tx, checkpoints.as_ref(), &lines, against.is_some(), now)
        .await
        .map_err(database_error)?;
    Ok(verification.to_view(checkpoints.is_some(), lines.invalid_lines))
}

fn print_verification(verification: &AuditVerification, out: &mut impl Write) -> io::Result<()> {
    for AuditFault { chain, what, .. } in &verification.faults {
        writeln!(out, "{chain}: {what}")?;
    }
    for line in &verification.broken_checkpoint_lines {
        writeln!(out, "the file of checkpoints: line {line} was not signed with this key")?;
    }
    if verification.more_faults > 0 {
        writeln!(out, "and {} more", verification.more_faults)?;
    }
    let verdict = if verification.intact { "intact" } else { "TAMPERED WITH" };
    writeln!(out, "{verdict}; entries: {}, chains: {}", verification.entries, verification.chains)?;
    if verification.key_found && !verification.chains_must_be_signed {
        writeln!(
            out,
            "signed by an earlier version: added or truncated chains cannot be excluded until a server has started"
        )?;
    }
    let signed = verification.checkpoints_signed;
    match (verification.key_found, verification.checkpoints_of_other_keys) {
        (false, _) => writeln!(out, "no key found: a complete rewrite of the audit log cannot be excluded"),
        (true, 0) => writeln!(out, "signed checkpoints: {signed}"),
        (true, others) => writeln!(out, "signed checkpoints: {signed}; of other keys, not checked: {others}"),
    }
}

async fn run_export(args: ExportArgs, out: &mut impl Write) -> Result<(), ExitError> {
    let ExportArgs { database, actor, action, target, request_id, since, until } = args;
    let store: Arc<dyn Store> = Arc::new(open_store(&database).await?);
    let filters = AuditFilters { actor, action, target, request_id, since, until };
    let usage_error = |error| ExitError::usage(ApiError::from(error).to_problem(Locale::En).detail);
    let entries = entries::export(store, &filters, SystemClock.now()).map_err(usage_error)?;
    pin_mut!(entries);
    let mut out = io::BufWriter::new(out);
    while let Some(entry) = entries.next().await {
        let line = serde_json::to_string(&entry.map_err(ExitError::from_service_error)?).expect("plain fields");
        writeln!(out, "{line}")?;
    }
    Ok(out.flush()?)
}

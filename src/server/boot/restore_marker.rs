//! A restored database does not know which jobs were dispatched after the backup. Jobs that it holds as queued may be
//! running.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::exit::ExitError;
use crate::service::Services;

/// The file that marks a restored database. No backup includes it.
pub const MARKER_FILE: &str = "restored";

/// Marks the database of this directory as restored.
pub fn write_marker(data: &Path) -> io::Result<()> {
    fs::File::create(data.join(MARKER_FILE))?.sync_all()
}

/// If marked, delays exclusive jobs until all agents of the previous server must have stopped.
///
/// # Errors
/// Returns an error if the database rejects the change.
pub async fn delay_jobs_if_restored(services: &Arc<Services>, data: &Path) -> Result<bool, ExitError> {
    let restored = data.join(MARKER_FILE).exists();
    if restored {
        services.jobs.delay_exclusive_jobs().await.map_err(ExitError::from_service_error)?;
    }
    Ok(restored)
}

/// Like `delay_jobs_if_restored`, and removes the mark: from now on the server knows what it dispatches.
///
/// # Errors
/// Returns an error if the database rejects the change, or the directory is not writable.
pub async fn complete_restore(services: &Arc<Services>, data: &Path) -> Result<(), ExitError> {
    if delay_jobs_if_restored(services, data).await? {
        fs::remove_file(data.join(MARKER_FILE))
            .map_err(|error| ExitError::config(format!("{}: {error}", data.display())))?;
    }
    Ok(())
}

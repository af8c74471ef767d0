//! A database that was put back from a backup does not know what was offered since. What it holds for waiting may run.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::exit::Exit;
use crate::service::Core;

/// The file that says so. Its name begins as those do that no backup has.
pub const MARK: &str = "restored";

/// Notes that the database of this directory was put back.
pub fn mark(data: &Path) -> io::Result<()> {
    fs::File::create(data.join(MARK))?.sync_all()
}

/// If it was: no exclusive job begins before every agent that the server before it answered must have stopped.
///
/// # Errors
/// If the database does not take it.
pub async fn heed(core: &Arc<Core>, data: &Path) -> Result<bool, Exit> {
    let restored = data.join(MARK).exists();
    if restored {
        core.keep_all_back().await.map_err(Exit::refused)?;
    }
    Ok(restored)
}

/// The same, once and for all: the server that is there from now on knows what it offers.
///
/// # Errors
/// If the database does not take it, or the directory cannot be written to.
pub async fn take_up(core: &Arc<Core>, data: &Path) -> Result<(), Exit> {
    if heed(core, data).await? {
        fs::remove_file(data.join(MARK)).map_err(|error| Exit::config(format!("{}: {error}", data.display())))?;
    }
    Ok(())
}

//! The state of an attempt in memory and on disk. The part that changes each second is small, however much was sent.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use app::threads::run_io;

use crate::worker::files::{AttemptDir, AttemptState, UploadedFile, UploadedFiles};

#[derive(Debug)]
pub struct PersistedState {
    dir: AttemptDir,
    state: Mutex<AttemptState>,
    uploaded: Mutex<UploadedFiles>,
    /// What `state.json` contains. Locked by the task that writes, not by the one that waits for it: a cancelled waiter
    /// must not let an older state replace a newer one.
    written: Arc<tokio::sync::Mutex<AttemptState>>,
}

impl PersistedState {
    /// Starts with this state.
    pub fn new(dir: &AttemptDir, mut state: AttemptState) -> Self {
        let mut uploaded = UploadedFiles::load(dir);
        // An older version stored them in `state.json`. If they cannot be moved, they stay there.
        if !state.uploaded.is_empty() {
            state.uploaded.iter().cloned().for_each(|file| uploaded.record(file));
            match dir.append_uploaded(&state.uploaded) {
                Ok(()) => state.uploaded.clear(),
                Err(error) => tracing::warn!("{}: {error}", dir.path().display()),
            }
        }
        let written = Arc::new(tokio::sync::Mutex::new(state.clone()));
        Self { dir: dir.clone(), state: Mutex::new(state), uploaded: Mutex::new(uploaded), written }
    }

    /// A change of it is saved with the next update.
    pub fn state(&self) -> MutexGuard<'_, AttemptState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes and saves the state. `wait_for_disk` waits until it is written.
    pub async fn update(&self, wait_for_disk: bool, change: impl FnOnce(&mut AttemptState)) {
        let mut written = Arc::clone(&self.written).lock_owned().await;
        change(&mut self.state());
        let (dir, state) = (self.dir.clone(), self.state().clone());
        if state == *written && !wait_for_disk {
            return;
        }
        // The disk may be busy with a checkpoint for seconds; nothing else waits for it.
        let write = move || {
            if wait_for_disk {
                dir.write_json("state.json", &state)?;
            } else {
                dir.write_json_unsynced("state.json", &state)?;
            }
            *written = state;
            Ok(())
        };
        self.log_write_error("its state", run_io(write).await);
    }

    /// The files that the orchestrator has.
    pub fn uploaded_files(&self) -> UploadedFiles {
        self.uploaded.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Records that the orchestrator has this file.
    pub async fn record_uploaded(&self, file: UploadedFile) {
        let guard = Arc::clone(&self.written).lock_owned().await;
        self.uploaded.lock().unwrap_or_else(PoisonError::into_inner).record(file.clone());
        let dir = self.dir.clone();
        let append = move || {
            let _guard = guard;
            dir.append_uploaded(&[file])
        };
        self.log_write_error("its uploaded files", run_io(append).await);
    }

    /// Records that the orchestrator no longer has this file.
    pub async fn forget_uploaded(&self, path: &str) {
        self.record_uploaded(UploadedFile { path: path.to_owned(), ..UploadedFile::default() }).await;
    }

    fn log_write_error(&self, file: &str, written: io::Result<()>) {
        if let Err(error) = written {
            tracing::error!("{}: cannot write {file}: {error}", self.dir.path().display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;

    use nix::sys::stat::Mode;

    #[tokio::test]
    async fn cancelled_wait_does_not_reorder_saves() -> io::Result<()> {
        let temp = tempfile::tempdir()?;
        let dir = AttemptDir::from_path(temp.path());
        let persisted = PersistedState::new(&dir, AttemptState::default());
        // Simulates a hung disk: a writer of a pipe blocks until it is read.
        nix::unistd::mkfifo(&dir.join("state.json.new"), Mode::S_IRWXU)?;
        {
            let mut older = pin!(persisted.update(false, |state| state.log_acked = 1));
            assert!(futures_util::poll!(older.as_mut()).is_pending());
        }
        let mut newer = pin!(persisted.update(false, |state| state.log_acked = 2));
        assert!(futures_util::poll!(newer.as_mut()).is_pending());
        let pipe = dir.join("state.json.new");
        let read = run_io(move || std::fs::read(pipe)).await?;
        newer.await;
        let older: AttemptState = serde_json::from_slice(&read)?;
        assert_eq!(older.log_acked, 1, "both states were written at the same time");
        assert!(std::fs::metadata(dir.join("state.json"))?.is_file(), "the older state was written last");
        assert_eq!(dir.read_json::<AttemptState>("state.json")?.map(|state| state.log_acked), Some(2));
        Ok(())
    }

    #[tokio::test]
    async fn changes_in_memory_are_saved_with_the_next_update() -> io::Result<()> {
        let temp = tempfile::tempdir()?;
        let dir = AttemptDir::from_path(temp.path());
        let persisted = PersistedState::new(&dir, AttemptState::default());
        persisted.update(false, |_| {}).await;
        assert_eq!(dir.read_json::<AttemptState>("state.json")?, None, "nothing has changed");
        persisted.state().running = true;
        persisted.update(false, |_| {}).await;
        assert_eq!(dir.read_json::<AttemptState>("state.json")?.map(|state| state.running), Some(true));
        Ok(())
    }

    #[tokio::test]
    async fn state_file_does_not_grow_with_uploads() -> io::Result<()> {
        let temp = tempfile::tempdir()?;
        let dir = AttemptDir::from_path(temp.path());
        let persisted = PersistedState::new(&dir, AttemptState::default());
        let file =
            |n: u64| UploadedFile { path: format!("validation_images/{n}.png"), size: n, ..UploadedFile::default() };
        for n in 0..500 {
            persisted.record_uploaded(UploadedFile { sha256: "ab".repeat(32), ..file(n) }).await;
        }
        persisted.forget_uploaded(&file(7).path).await;
        persisted.update(false, |state| state.log_acked = 9).await;
        assert!(std::fs::metadata(dir.join("state.json"))?.len() < 1_000);
        let state: AttemptState = dir.read_json("state.json")?.unwrap_or_default();
        let reloaded = PersistedState::new(&dir, state).uploaded_files();
        let missing: Vec<_> = (0..500).filter(|n| !reloaded.is_up_to_date(&file(*n))).collect();
        assert_eq!(missing, [7]);
        assert!((0..500).all(|n| persisted.uploaded_files().is_up_to_date(&file(n)) != (n == 7)));
        Ok(())
    }
}

//! What is known of an attempt, in memory and on disk. What changes each second is small, whatever was sent.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::blocking;
use crate::files::{AttemptDir, Sent, State, Uploaded};

/// See the module.
#[derive(Debug)]
pub struct Kept {
    dir: AttemptDir,
    state: Mutex<State>,
    sent: Mutex<Sent>,
    /// Held until it is written, by whoever writes and not by whoever waits for that: one who is told to stop waiting would
    /// let an older state replace a newer one.
    saving: Arc<tokio::sync::Mutex<()>>,
}

impl Kept {
    /// Of an attempt that has begun with this, or was left with this.
    pub fn new(dir: &AttemptDir, mut state: State) -> Self {
        let mut sent = Sent::read(dir);
        // An older version had them in `state.json`. Where they cannot be moved they stay there.
        if !state.uploaded.is_empty() {
            state.uploaded.iter().cloned().for_each(|file| sent.note(file));
            match dir.add_sent(&state.uploaded) {
                Ok(()) => state.uploaded.clear(),
                Err(error) => tracing::warn!("{}: {error}", dir.path().display()),
            }
        }
        Self { dir: dir.clone(), state: Mutex::new(state), sent: Mutex::new(sent), saving: Arc::default() }
    }

    /// As it is now.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, and writes it down. `must` waits for the disk.
    pub async fn update(&self, must: bool, change: impl FnOnce(&mut State)) {
        let turn = Arc::clone(&self.saving).lock_owned().await;
        change(&mut self.state());
        let (dir, state) = (self.dir.clone(), self.state().clone());
        // The disk may be busy with a checkpoint for seconds; nothing else waits for it.
        let write = move || {
            let _turn = turn;
            if must { dir.write("state.json", &state) } else { dir.write_soon("state.json", &state) }
        };
        self.said("its state", blocking(write).await);
    }

    /// The files that the orchestrator has.
    pub fn sent(&self) -> Sent {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// It has this one.
    pub async fn has_sent(&self, file: Uploaded) {
        let turn = Arc::clone(&self.saving).lock_owned().await;
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).note(file.clone());
        let dir = self.dir.clone();
        let add = move || {
            let _turn = turn;
            dir.add_sent(&[file])
        };
        self.said("what was sent", blocking(add).await);
    }

    /// It says that it has it no more.
    pub async fn misses(&self, path: &str) {
        self.has_sent(Uploaded { path: path.to_owned(), ..Uploaded::default() }).await;
    }

    fn said(&self, what: &str, written: io::Result<()>) {
        if let Err(error) = written {
            tracing::error!("{}: {what} cannot be written: {error}", self.dir.path().display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;

    use nix::sys::stat::Mode;

    #[tokio::test]
    async fn who_does_not_wait_for_a_save_is_not_overtaken() -> io::Result<()> {
        let temp = tempfile::tempdir()?;
        let dir = AttemptDir::at(temp.path());
        let kept = Kept::new(&dir, State::default());
        // A disk that hangs: whoever writes waits until somebody reads.
        nix::unistd::mkfifo(&dir.join("state.json.new"), Mode::S_IRWXU)?;
        {
            let mut older = pin!(kept.update(false, |state| state.log_acked = 1));
            assert!(futures_util::poll!(older.as_mut()).is_pending());
        }
        let mut newer = pin!(kept.update(false, |state| state.log_acked = 2));
        assert!(futures_util::poll!(newer.as_mut()).is_pending());
        let pipe = dir.join("state.json.new");
        let read = blocking(move || std::fs::read(pipe)).await?;
        newer.await;
        let older: State = serde_json::from_slice(&read)?;
        assert_eq!(older.log_acked, 1, "both wrote at once");
        assert!(std::fs::metadata(dir.join("state.json"))?.is_file(), "the older one came last");
        assert_eq!(dir.read::<State>("state.json")?.map(|state| state.log_acked), Some(2));
        Ok(())
    }

    #[tokio::test]
    async fn what_is_written_each_second_does_not_grow_with_what_was_sent() -> io::Result<()> {
        let temp = tempfile::tempdir()?;
        let dir = AttemptDir::at(temp.path());
        let kept = Kept::new(&dir, State::default());
        let file = |n: u64| Uploaded { path: format!("validation_images/{n}.png"), size: n, ..Uploaded::default() };
        for n in 0..500 {
            kept.has_sent(Uploaded { sha256: "ab".repeat(32), ..file(n) }).await;
        }
        kept.misses(&file(7).path).await;
        kept.update(false, |state| state.log_acked = 9).await;
        assert!(std::fs::metadata(dir.join("state.json"))?.len() < 1_000);
        let state: State = dir.read("state.json")?.unwrap_or_default();
        let again = Kept::new(&dir, state).sent();
        let missing: Vec<_> = (0..500).filter(|n| !again.has(&file(*n))).collect();
        assert_eq!(missing, [7]);
        assert!((0..500).all(|n| kept.sent().has(&file(n)) != (n == 7)));
        Ok(())
    }
}

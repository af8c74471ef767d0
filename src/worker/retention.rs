//! Which finished attempts stay on disk.

use std::path::Path;

use crate::files::{AttemptDir, State, attempts};

/// So many finished attempts stay, for a person to look at and for a later attempt to resume from.
const KEPT: usize = 10;

/// Removes what is finished and old.
pub fn tidy(work_dir: &Path) {
    let Ok(dirs) = attempts(work_dir) else { return };
    for dir in surplus(dirs.into_iter().filter_map(finished).collect()) {
        tracing::debug!("removing {}", dir.path().display());
        if let Err(error) = std::fs::remove_dir_all(dir.path()) {
            tracing::warn!("cannot remove {}: {error}", dir.path().display());
        }
        if let Some(job) = dir.path().parent() {
            // It fails while another attempt is in it, as it should.
            let _ = std::fs::remove_dir(job);
        }
    }
}

/// A finished attempt with the time of its end.
fn finished(dir: AttemptDir) -> Option<(std::time::SystemTime, AttemptDir)> {
    let state: State = dir.read("state.json").ok()??;
    let ended = std::fs::metadata(dir.join("state.json")).ok()?.modified().ok()?;
    state.delivered.then_some((ended, dir))
}

fn surplus<T: Ord>(mut finished: Vec<(T, AttemptDir)>) -> Vec<AttemptDir> {
    finished.sort_by(|a, b| b.0.cmp(&a.0));
    finished.into_iter().skip(KEPT).map(|(_, dir)| dir).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_stay() {
        let dirs = (0..12).map(|age| (age, AttemptDir::at(Path::new(&age.to_string())))).collect();
        let removed: Vec<_> = surplus(dirs).into_iter().map(|dir| dir.path().display().to_string()).collect();
        assert_eq!(removed, ["1", "0"]);
    }
}

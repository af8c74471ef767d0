//! The last committed state, in memory, for reads: streams, heartbeats, tokens, and loops that mostly find nothing to
//! do.
//!
//! The writer publishes what it has committed before anyone is notified of it. On a database with several servers the
//! snapshot is invalid from the moment another server is known to have written, until this server's writer has read the
//! state again; meanwhile reads go to the database. What is missing in the snapshot may still be in the database, so
//! only a positive answer is final.

use std::sync::RwLock;
use std::time::{Duration, Instant};

use crate::store::cache::state::{FleetState, StateChange};

#[derive(Default)]
pub struct CommittedSnapshot {
    state: RwLock<SnapshotState>,
    /// How long it is valid after a commit; `None`: forever, because there is no other writer.
    max_age: Option<Duration>,
}

#[derive(Default)]
struct SnapshotState {
    fleet: Option<FleetState>,
    /// The database generation of this state; engines that serve one server have none.
    generation: i64,
    /// The newest known generation.
    newest_generation: i64,
    /// The last commit of this server.
    committed_at: Option<Instant>,
}

impl CommittedSnapshot {
    /// A snapshot that is valid for this time after a commit.
    pub fn with_max_age(life: Duration) -> Self {
        Self { max_age: Some(life), ..Self::default() }
    }

    /// Reads the snapshot if it is valid.
    pub fn read<R>(&self, read: impl FnOnce(&FleetState) -> R) -> Option<R> {
        let state = self.state.read().expect("no panic while it is held");
        let is_expired = self.max_age.is_some_and(|life| state.committed_at.is_none_or(|at| at.elapsed() > life));
        if is_expired || state.newest_generation > state.generation { None } else { state.fleet.as_ref().map(read) }
    }

    /// Applies the changes of a commit with this generation; `all` is the complete state after it, if the writer has
    /// it.
    pub fn apply(&self, generation: i64, changes: Vec<StateChange>, all: Option<&FleetState>) {
        // Copied before the lock is taken.
        let copied = if self.read(|_| ()).is_none() { all.cloned() } else { None };
        let mut state = self.state.write().expect("no panic while it is held");
        match (&mut state.fleet, copied) {
            (fleet, Some(copied)) => *fleet = Some(copied),
            (Some(fleet), None) => changes.into_iter().for_each(|change| fleet.apply(change)),
            (None, None) => {}
        }
        state.generation = generation;
        state.newest_generation = state.newest_generation.max(generation);
        state.committed_at = Some(Instant::now());
    }

    /// Records that another server has committed this generation.
    pub fn observe_generation(&self, generation: i64) {
        let mut state = self.state.write().expect("no panic while it is held");
        state.newest_generation = state.newest_generation.max(generation);
        let outdated = if state.newest_generation > state.generation { state.fleet.take() } else { None };
        drop(state);
        drop(outdated);
    }

    /// Invalidates the snapshot.
    pub fn invalidate(&self) {
        let stale = self.state.write().expect("no panic while it is held").fleet.take();
        drop(stale);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_up(snapshot: &CommittedSnapshot) -> bool {
        snapshot.read(|_| ()).is_some()
    }

    #[test]
    fn invalid_while_another_server_is_ahead() {
        let (snapshot, all) = (CommittedSnapshot::with_max_age(Duration::from_mins(1)), FleetState::default());
        snapshot.apply(1, Vec::new(), None);
        assert!(!is_up(&snapshot), "the writer had no state");
        snapshot.apply(2, Vec::new(), Some(&all));
        assert!(is_up(&snapshot));
        snapshot.observe_generation(1);
        assert!(is_up(&snapshot), "an older generation");
        snapshot.observe_generation(4);
        snapshot.apply(3, Vec::new(), Some(&all));
        assert!(!is_up(&snapshot), "generation 4 was observed before generation 3 was applied");
        snapshot.apply(5, Vec::new(), Some(&all));
        assert!(is_up(&snapshot));
        snapshot.invalidate();
        assert!(!is_up(&snapshot));
    }

    #[test]
    fn expires_without_commits() {
        let snapshot = CommittedSnapshot::with_max_age(Duration::ZERO);
        snapshot.apply(1, Vec::new(), Some(&FleetState::default()));
        assert!(!is_up(&snapshot));
        let single_server = CommittedSnapshot::default();
        single_server.apply(0, Vec::new(), Some(&FleetState::default()));
        assert!(is_up(&single_server));
    }
}

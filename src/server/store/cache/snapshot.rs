//! The last committed state, in memory, for reads: streams, heartbeats, tokens, and loops that mostly find nothing to
//! do.
//!
//! The writer publishes what it has committed before anyone is notified of it. Commits of other servers are applied
//! when they are notified; until then the snapshot may be read for a moment, and then reads go to the database. What is
//! missing in the snapshot may still be in the database, so only a positive answer is final.

use std::collections::BTreeSet;
use std::sync::RwLock;
use std::time::{Duration, Instant};

use app::domain::ids::JobId;

use crate::store::cache::state::{FleetState, StateChange};

/// The maximum number of changes by other servers that are kept for the writer; it takes them every few seconds.
const MAX_KEPT_CHANGES: usize = 100_000;
/// The maximum number of changed jobs that are kept for the index of jobs; it takes them with each query.
const MAX_CHANGED_JOBS: usize = 100_000;
/// How long the snapshot may be read after a commit of another server was notified and is not applied.
const MAX_LAG: Duration = Duration::from_millis(100);

#[derive(Default)]
pub struct CommittedSnapshot {
    state: RwLock<SnapshotState>,
    /// How long it is valid after a commit; `None`: forever, because there is no other writer.
    max_age: Option<Duration>,
}

#[derive(Default)]
struct SnapshotState {
    fleet: Option<FleetState>,
    /// The generation of the database that this state is of.
    generation: i64,
    /// The newest known generation.
    newest_generation: i64,
    /// When a newer generation than this one was noticed.
    outdated_since: Option<Instant>,
    /// The last time that something was published.
    published_at: Option<Instant>,
    /// Commits of other servers that the writer has not taken, from the oldest.
    kept: Vec<ExternalChanges>,
    /// The jobs that were written since they were last taken; `None` if not all of them are known.
    changed_jobs: Option<BTreeSet<JobId>>,
}

impl SnapshotState {
    fn record_jobs(&mut self, changes: &[StateChange]) {
        let Some(changed_jobs) = &mut self.changed_jobs else { return };
        changed_jobs.extend(changes.iter().filter_map(|change| match change {
            StateChange::Job(job) => Some(job.id.clone()),
            StateChange::JobRemoved(id) => Some(id.clone()),
            _ => None,
        }));
        if changed_jobs.len() > MAX_CHANGED_JOBS {
            self.changed_jobs = None;
        }
    }
}

/// Changes by other servers.
#[derive(Debug, Clone, Default)]
pub struct ExternalChanges {
    /// They were committed after this generation.
    pub since: i64,
    /// The last one of them is this generation.
    pub generation: i64,
    pub changes: Vec<StateChange>,
    /// Configurations that have changed, by name.
    pub configs: BTreeSet<String>,
    /// Configurations of which jobs were created, by name.
    pub numbered_configs: BTreeSet<String>,
}

impl CommittedSnapshot {
    /// A snapshot that is valid for this time after a commit.
    pub fn with_max_age(life: Duration) -> Self {
        Self { max_age: Some(life), ..Self::default() }
    }

    /// Reads the snapshot if it is valid.
    pub fn read<R>(&self, read: impl FnOnce(&FleetState) -> R) -> Option<R> {
        let state = self.state.read().expect("no panic while it is held");
        let is_expired = self.max_age.is_some_and(|life| state.published_at.is_none_or(|at| at.elapsed() > life));
        let is_outdated = state.outdated_since.is_some_and(|since| since.elapsed() > MAX_LAG);
        if is_expired || is_outdated { None } else { state.fleet.as_ref().map(read) }
    }

    /// The generation of the state; `None` if there is no state.
    pub fn generation(&self) -> Option<i64> {
        let state = self.state.read().expect("no panic while it is held");
        state.fleet.as_ref().map(|_| state.generation)
    }

    /// A copy of the state of exactly this generation.
    pub fn copy_at(&self, generation: i64) -> Option<FleetState> {
        let state = self.state.read().expect("no panic while it is held");
        if state.generation == generation { state.fleet.clone() } else { None }
    }

    /// Applies the changes of the commits after generation `since` until `generation`; `all` is the complete state after
    /// them, if it is in memory.
    pub fn publish(&self, since: i64, generation: i64, changes: Vec<StateChange>, all: Option<&FleetState>) {
        // Copied before the lock is taken.
        let copied = if self.generation().is_some_and(|at| at >= since) { None } else { all.cloned() };
        let state = &mut *self.state.write().expect("no panic while it is held");
        state.record_jobs(&changes);
        state.published_at = Some(Instant::now());
        state.newest_generation = state.newest_generation.max(generation);
        let is_contiguous = state.generation >= since;
        if !is_contiguous && (state.fleet.is_none() || copied.is_some()) {
            // What other servers have committed in between is not read here.
            state.changed_jobs = None;
        }
        match (&mut state.fleet, copied) {
            // These commits and later ones have been published already.
            (Some(_), _) if generation < state.generation => return,
            (Some(fleet), None) if is_contiguous => changes.into_iter().for_each(|change| fleet.apply(change)),
            (fleet, Some(copied)) => *fleet = Some(copied),
            // Commits in between are missing.
            (_, None) => {
                state.outdated_since.get_or_insert_with(Instant::now);
                return;
            }
        }
        state.generation = generation;
        // A newer commit was noticed, but after those that are applied now.
        state.outdated_since = (state.newest_generation > generation).then(Instant::now);
    }

    /// Applies changes by other servers, and keeps them for the writer.
    pub fn publish_external(&self, external: ExternalChanges) {
        self.publish(external.since, external.generation, external.changes.clone(), None);
        let mut state = self.state.write().expect("no panic while it is held");
        if state.kept.iter().map(|kept| kept.changes.len()).sum::<usize>() > MAX_KEPT_CHANGES {
            state.kept.clear();
        }
        state.kept.push(external);
    }

    /// Returns the kept changes, which are not kept any longer.
    pub fn take_external(&self) -> Vec<ExternalChanges> {
        std::mem::take(&mut self.state.write().expect("no panic while it is held").kept)
    }

    /// Takes the jobs that were written since the last call; `None` if any job may have been.
    pub fn take_changed_jobs(&self) -> Option<BTreeSet<JobId>> {
        let state = &mut *self.state.write().expect("no panic while it is held");
        // Without a state, changes by other servers are not read.
        let is_known = self.max_age.is_none() || state.fleet.is_some();
        state.changed_jobs.replace(BTreeSet::new()).filter(|_| is_known)
    }

    /// Records that another server has committed this generation; returns whether the state is older.
    pub fn observe_generation(&self, generation: i64) -> bool {
        let mut state = self.state.write().expect("no panic while it is held");
        state.newest_generation = state.newest_generation.max(generation);
        if state.newest_generation > state.generation {
            state.outdated_since.get_or_insert_with(Instant::now);
        }
        state.newest_generation > state.generation
    }

    /// Drops the state.
    pub fn invalidate(&self) {
        let stale = std::mem::take(&mut *self.state.write().expect("no panic while it is held"));
        drop(stale);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_up(snapshot: &CommittedSnapshot) -> bool {
        snapshot.read(|_| ()).is_some()
    }

    /// Whether it can be read for longer than a moment.
    fn is_current(snapshot: &CommittedSnapshot) -> bool {
        is_up(snapshot) && snapshot.state.read().expect("no panic while it is held").outdated_since.is_none()
    }

    #[test]
    fn outdated_while_another_server_is_ahead() {
        let (snapshot, all) = (CommittedSnapshot::with_max_age(Duration::from_mins(1)), FleetState::default());
        snapshot.publish(0, 1, Vec::new(), None);
        assert!(!is_up(&snapshot), "the writer had no state");
        snapshot.publish(1, 2, Vec::new(), Some(&all));
        assert!(is_current(&snapshot));
        assert!(!snapshot.observe_generation(1));
        assert!(is_current(&snapshot), "an older generation");
        assert!(snapshot.observe_generation(4));
        assert!(!is_current(&snapshot));
        snapshot.publish(2, 3, Vec::new(), None);
        assert!(is_up(&snapshot) && !is_current(&snapshot), "generation 4 is missing");
        snapshot.publish(3, 4, Vec::new(), None);
        assert!(is_current(&snapshot));
        snapshot.publish(2, 3, Vec::new(), None);
        assert_eq!(snapshot.generation(), Some(4), "it was published before");
        snapshot.publish(5, 6, Vec::new(), None);
        assert!(is_up(&snapshot) && !is_current(&snapshot), "generation 5 is missing");
        snapshot.publish(6, 7, Vec::new(), Some(&all));
        assert!(is_current(&snapshot));
        snapshot.invalidate();
        assert!(!is_up(&snapshot));
    }

    #[test]
    fn outdated_state_is_read_for_a_moment() {
        let snapshot = CommittedSnapshot::default();
        snapshot.publish(0, 1, Vec::new(), Some(&FleetState::default()));
        snapshot.observe_generation(2);
        assert!(is_up(&snapshot));
        snapshot.state.write().expect("no panic while it is held").outdated_since =
            Instant::now().checked_sub(MAX_LAG * 2);
        snapshot.observe_generation(3);
        assert!(!is_up(&snapshot));
    }

    #[test]
    fn expires_without_commits() {
        let snapshot = CommittedSnapshot::with_max_age(Duration::ZERO);
        snapshot.publish(0, 1, Vec::new(), Some(&FleetState::default()));
        assert!(!is_up(&snapshot));
        let single_server = CommittedSnapshot::default();
        single_server.publish(0, 0, Vec::new(), Some(&FleetState::default()));
        assert!(is_up(&single_server));
    }
}

//! Teams, and what they use, in memory.

use std::collections::BTreeMap;

use app::domain::job::Job;
use app::domain::shares::{FleetSize, ShareKey, ShareLoad, ShareRules, ShareTree, ShareUsage, Team, Teams};
use app::domain::time::Timestamp;

#[derive(Debug, Clone, Default)]
pub struct ShareState {
    teams: Teams,
    rules: ShareRules,
    /// What is stored.
    stored: BTreeMap<ShareKey, ShareUsage>,
    /// What is stored, and what was used since then until the last lease began.
    usage: BTreeMap<ShareKey, ShareUsage>,
    /// The jobs with a lease.
    loads: BTreeMap<ShareKey, ShareLoad>,
}

/// A change of teams or of what they have used.
#[derive(Debug, Clone)]
pub enum ShareChange {
    Team(Team),
    TeamRemoved(String),
    Usage(ShareKey, ShareUsage),
    Rules(ShareRules),
}

impl ShareState {
    pub fn apply(&mut self, change: ShareChange) {
        match change {
            ShareChange::Team(team) => drop(self.teams.insert(team.name.clone(), team)),
            ShareChange::TeamRemoved(name) => drop(self.teams.remove(&name)),
            ShareChange::Usage(key, usage) => {
                self.usage.insert(key.clone(), usage);
                self.stored.insert(key, usage);
            }
            ShareChange::Rules(rules) => self.rules = rules,
        }
    }

    pub fn teams(&self) -> &Teams {
        &self.teams
    }

    pub const fn rules(&self) -> ShareRules {
        self.rules
    }

    /// What a member of a team has used until now.
    pub fn usage_at(&self, key: &ShareKey, now: Timestamp) -> ShareUsage {
        let load = self.loads.get(key).copied().unwrap_or_default();
        let usage = self.usage.get(key).copied().unwrap_or(ShareUsage { at: now, ..ShareUsage::default() });
        usage.at(now, &load, self.rules.half_life)
    }

    /// The shares of a fleet of this size.
    pub fn tree(&self, size: FleetSize, now: Timestamp) -> ShareTree<'_> {
        let mut tree = ShareTree::new(&self.teams, size);
        for key in self.usage.keys() {
            tree.add(key, &self.usage_at(key, now), self.loads.get(key).copied().unwrap_or_default());
        }
        tree
    }

    /// Updates what runs after a change of a job.
    pub fn job_changed(&mut self, before: Option<&Job>, after: Option<&Job>) {
        let lease = |job: Option<&Job>| job.and_then(Job::active_lease).map(|lease| lease.attempt);
        if lease(before) == lease(after) {
            return;
        }
        if let Some((key, _, load)) = before.and_then(lease_of)
            && let Some(running) = self.loads.get_mut(&key)
        {
            running.remove(load);
            if *running == ShareLoad::default() {
                self.loads.remove(&key);
            }
        }
        if let Some((key, since, load)) = after.and_then(lease_of) {
            self.usage.insert(key.clone(), self.usage_at(&key, since));
            self.loads.entry(key).or_default().add(load);
        }
    }
}

/// The share of a job with a lease, since when it has it, and what it adds.
fn lease_of(job: &Job) -> Option<(ShareKey, Timestamp, ShareLoad)> {
    let lease = job.active_lease()?;
    Some((share_key(job), lease.since, ShareLoad::of(job, lease.gpus.len())))
}

/// The share that a job counts for.
pub fn share_key(job: &Job) -> ShareKey {
    ShareKey { team: job.spec.team.clone(), user: job.submitted_by.clone() }
}

/// The ID of a share's row: `vision/ada`. Names of teams contain no slash.
pub fn usage_id(key: &ShareKey) -> String {
    format!("{}/{}", key.team, key.user)
}

/// Compares the contents. What was used since it was stored depends on the order of changes, by rounding.
impl PartialEq for ShareState {
    fn eq(&self, other: &Self) -> bool {
        let Self { teams, rules, stored, usage: _, loads } = self;
        (teams, rules, stored, loads) == (&other.teams, &other.rules, &other.stored, &other.loads)
    }
}

#[cfg(test)]
mod tests {
    use app::domain::ids::{JobId, WorkerId};
    use app::domain::job::JobSpec;
    use app::domain::time::Millis;

    use super::*;

    const START: Timestamp = Timestamp(1_705_314_600_000);

    fn leased(n: u8, since: i64) -> Job {
        let at = Timestamp(START.0 + since);
        let job = Job::submitted(JobId::new(START, [n; 10]), JobSpec::new("digits", 1), START, "ada".to_owned());
        job.offered(at, WorkerId::new(START, [1; 10]), vec!["GPU-1".to_owned()], at).expect("queued")
    }

    fn key() -> ShareKey {
        share_key(&leased(1, 0))
    }

    fn gpu_hours(state: &ShareState, at: i64) -> f64 {
        state.usage_at(&key(), Timestamp(START.0 + at)).month_gpu_time / 3_600_000.0
    }

    const HOUR: i64 = 3_600_000;

    #[test]
    fn running_jobs_count_from_their_offer() {
        let mut state = ShareState::default();
        state.job_changed(None, Some(&leased(1, 0)));
        state.job_changed(None, Some(&leased(2, HOUR)));
        assert!((gpu_hours(&state, 2 * HOUR) - 3.0).abs() < 1e-9);
        let accepted = leased(1, 0);
        state.job_changed(Some(&leased(1, 0)), Some(&accepted));
        assert!((gpu_hours(&state, 2 * HOUR) - 3.0).abs() < 1e-9, "it has the same lease");
        let stored = state.usage_at(&key(), Timestamp(START.0 + 2 * HOUR));
        state.apply(ShareChange::Usage(key(), stored));
        state.job_changed(Some(&leased(1, 0)), None);
        assert!((gpu_hours(&state, 4 * HOUR) - 5.0).abs() < 1e-9, "one of them has ended");
    }

    #[test]
    fn a_server_that_starts_finds_the_same_usage() {
        let mut running = ShareState::default();
        running.job_changed(None, Some(&leased(1, 0)));
        let stored = running.usage_at(&key(), Timestamp(START.0 + HOUR));
        running.apply(ShareChange::Usage(key(), stored));
        running.job_changed(None, Some(&leased(2, 2 * HOUR)));
        let mut started = ShareState::default();
        started.apply(ShareChange::Usage(key(), stored));
        for job in [leased(1, 0), leased(2, 2 * HOUR)] {
            started.job_changed(None, Some(&job));
        }
        assert_eq!(running, started);
        assert!((gpu_hours(&started, 3 * HOUR) - 4.0).abs() < 1e-9);
        assert!((gpu_hours(&running, 3 * HOUR) - 4.0).abs() < 1e-9);
    }

    #[test]
    fn rules_change_what_counts() {
        let mut state = ShareState::default();
        let used = ShareUsage { at: START, gpu_time: 8.0, ..ShareUsage::default() };
        state.apply(ShareChange::Usage(key(), used));
        state.apply(ShareChange::Rules(ShareRules { half_life: Millis(HOUR) }));
        let later = state.usage_at(&key(), Timestamp(START.0 + 3 * HOUR));
        assert!((later.gpu_time - 1.0).abs() < 1e-9);
        let tree = state.tree(FleetSize { gpus: 1, slots: 1 }, Timestamp(START.0 + 3 * HOUR));
        assert_eq!((tree.teams().len(), tree.teams()[0].name), (1, "default"));
    }
}

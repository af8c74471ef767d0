//! Alerts for jobs that no worker will run without an admin's action: one alert for jobs with the same requirements.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::{Alert, AlertKind, AlertSubject};
use crate::domain::explain::{Feasibility, FeasibilityCache};
use crate::domain::job::Job;
use crate::domain::plan::{DemandKey, demand_key};
use crate::domain::time::{Millis, Timestamp};

/// A restarting agent may reconnect within this time.
const GRACE_PERIOD: Millis = Millis::from_secs(60);
/// Maximum number of alerts, for the requirements with the most jobs; the jobs of others are only counted.
const MAX_DEMANDS: usize = 5;

/// Jobs with the same requirements.
struct DemandGroup<'j> {
    oldest: &'j Job,
    jobs: u64,
}

/// Returns the alerts for pending jobs. The requirements with the most jobs are checked first, within the budget of
/// `feasibility_cache`.
pub fn stuck_job_alerts<'j>(
    waiting: impl IntoIterator<Item = &'j Job>,
    feasibility_cache: &mut FeasibilityCache<'j, '_>,
    now: Timestamp,
) -> Vec<Alert> {
    let mut demands = group_by_demand(waiting);
    demands.retain(|demand| now - demand.oldest.state_since() > GRACE_PERIOD);
    demands.sort_by_key(|demand| (Reverse(demand.jobs), demand.oldest.state_since(), &demand.oldest.id));
    demands.retain(|demand| {
        feasibility_cache.feasibility(demand.oldest).is_some_and(|feasibility| feasibility > Feasibility::Busy)
    });
    let others = demands.split_off(demands.len().min(MAX_DEMANDS));
    let others: u64 = others.iter().map(|demand| demand.jobs).sum();
    let entry = |DemandGroup { oldest, jobs }: DemandGroup<'j>| Alert {
        kind: AlertKind::Stuck { jobs, summary: feasibility_cache.summary(oldest) },
        subject: AlertSubject::Job(oldest.id.clone(), oldest.spec.config_name.clone()),
        since: Some(oldest.state_since()),
    };
    let mut entries: Vec<Alert> = demands.into_iter().map(entry).collect();
    if others > 0 {
        entries.push(Alert { kind: AlertKind::MoreStuck { jobs: others }, subject: AlertSubject::Server, since: None });
    }
    entries
}

fn group_by_demand<'j>(waiting: impl IntoIterator<Item = &'j Job>) -> Vec<DemandGroup<'j>> {
    let mut demands: HashMap<DemandKey<'j>, DemandGroup<'j>> = HashMap::new();
    for job in waiting {
        let demand = demands.entry(demand_key(&job.spec)).or_insert(DemandGroup { oldest: job, jobs: 0 });
        demand.jobs += 1;
        if (job.state_since(), &job.id) < (demand.oldest.state_since(), &demand.oldest.id) {
            demand.oldest = job;
        }
    }
    demands.into_values().collect()
}

//! Jobs that no worker takes unless somebody does something: one entry for those that ask for the same.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::{About, Concern, Entry};
use crate::domain::explain::{Outlook, Outlooks};
use crate::domain::job::Job;
use crate::domain::plan::{Class, class};
use crate::domain::time::{Millis, Timestamp};

/// Before that, an agent that restarts may be back.
const SOON: Millis = Millis::seconds(60);
/// So many demands are told, those of most jobs; of the others the number of their jobs.
const TOLD: usize = 5;

/// Jobs that ask for the same.
struct Demanded<'j> {
    oldest: &'j Job,
    jobs: u64,
}

/// What there is to look at of the jobs that wait. Demands of many jobs are judged first, for as long as `outlooks` lasts.
pub fn stuck<'j>(
    waiting: impl IntoIterator<Item = &'j Job>,
    outlooks: &mut Outlooks<'j, '_>,
    now: Timestamp,
) -> Vec<Entry> {
    let mut demands = by_demand(waiting);
    demands.retain(|demand| now - demand.oldest.since() > SOON);
    demands.sort_by_key(|demand| (Reverse(demand.jobs), demand.oldest.since(), &demand.oldest.id));
    demands.retain(|demand| outlooks.of(demand.oldest).is_some_and(|outlook| outlook > Outlook::Busy));
    let others = demands.split_off(demands.len().min(TOLD));
    let others: u64 = others.iter().map(|demand| demand.jobs).sum();
    let entry = |Demanded { oldest, jobs }: Demanded<'j>| Entry {
        concern: Concern::Stuck { jobs, summary: outlooks.summary(oldest) },
        about: About::Job(oldest.id.clone(), oldest.spec.config_name.clone()),
        since: Some(oldest.since()),
    };
    let mut entries: Vec<Entry> = demands.into_iter().map(entry).collect();
    if others > 0 {
        entries.push(Entry { concern: Concern::MoreStuck { jobs: others }, about: About::Server, since: None });
    }
    entries
}

fn by_demand<'j>(waiting: impl IntoIterator<Item = &'j Job>) -> Vec<Demanded<'j>> {
    let mut demands: HashMap<Class<'j>, Demanded<'j>> = HashMap::new();
    for job in waiting {
        let demand = demands.entry(class(&job.spec)).or_insert(Demanded { oldest: job, jobs: 0 });
        demand.jobs += 1;
        if (job.since(), &job.id) < (demand.oldest.since(), &demand.oldest.id) {
            demand.oldest = job;
        }
    }
    demands.into_values().collect()
}

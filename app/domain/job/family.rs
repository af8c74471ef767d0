//! The tree of jobs that come from each other by retries and forks.

use std::collections::BTreeMap;

use super::Job;
use crate::domain::ids::JobId;

/// Orders the jobs of a family: each before those that come from it, which are in the order of their submits. Returns
/// the depth of each job below the first one that it comes from. Jobs whose origin is not among them come first.
pub fn depth_first(jobs: Vec<Job>) -> Vec<(u32, Job)> {
    let mut by_id: BTreeMap<JobId, Job> = jobs.into_iter().map(|job| (job.id.clone(), job)).collect();
    let mut children: BTreeMap<JobId, Vec<JobId>> = BTreeMap::new();
    let mut roots = Vec::new();
    // IDs are in the order of submits.
    for job in by_id.values() {
        match job.retry_of.as_ref().filter(|origin| by_id.contains_key(*origin)) {
            Some(origin) => children.entry(origin.clone()).or_default().push(job.id.clone()),
            None => roots.push(job.id.clone()),
        }
    }
    let mut stack: Vec<(u32, JobId)> = roots.into_iter().rev().map(|id| (0, id)).collect();
    let mut ordered = Vec::with_capacity(by_id.len());
    while let Some((depth, id)) = stack.pop() {
        let Some(job) = by_id.remove(&id) else { continue };
        ordered.push((depth, job));
        let below = children.remove(&id).unwrap_or_default();
        stack.extend(below.into_iter().rev().map(|child| (depth + 1, child)));
    }
    ordered
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::fixtures::{job, job_id as id};
    use crate::domain::job::Demand;

    fn family(origins: &[Option<u16>]) -> Vec<Job> {
        let member = |(number, origin): (usize, &Option<u16>)| Job {
            retry_of: origin.map(id),
            ..job(u16::try_from(number).expect("few jobs"), Demand::default())
        };
        origins.iter().enumerate().map(member).collect()
    }

    #[test]
    fn jobs_are_below_their_origin() {
        let ordered = depth_first(family(&[None, Some(0), Some(0), Some(1), Some(77), Some(2)]));
        let found: Vec<(u32, JobId)> = ordered.into_iter().map(|(depth, job)| (depth, job.id)).collect();
        assert_eq!(found, [(0, id(0)), (1, id(1)), (2, id(3)), (1, id(2)), (2, id(5)), (0, id(4))]);
    }

    proptest! {
        #[test]
        fn each_job_is_listed_once_directly_below_its_origin(origins in prop::collection::vec(prop::option::of(0..40_u16), 0..40)) {
            // A job comes from one that was submitted before.
            let origins: Vec<_> = origins.iter().enumerate().map(|(number, origin)| origin.filter(|origin| usize::from(*origin) < number)).collect();
            let ordered = depth_first(family(&origins));
            prop_assert_eq!(ordered.len(), origins.len());
            for (index, (depth, job)) in ordered.iter().enumerate() {
                let above = ordered[..index].iter().rev().find(|(other, _)| other < depth);
                prop_assert_eq!(above.map(|(_, above)| &above.id), job.retry_of.as_ref());
            }
        }
    }
}

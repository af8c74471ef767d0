//! Which waiting job goes to which worker.

use std::cmp::Reverse;

use super::ids::{JobId, WorkerId};
use super::job::{Job, State};
use super::matching::{Candidate, blockers};
use super::time::Timestamp;

/// One job to offer to one worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The job.
    pub job: JobId,
    /// The worker.
    pub worker: WorkerId,
    /// UUIDs of the GPUs it gets.
    pub gpus: Vec<String>,
}

/// Assigns waiting jobs, first come first served; a job that fits nowhere does not keep back those behind it.
///
/// `jobs` may be in any order. A worker that takes one job at a time gives it the whole host.
pub fn assign(jobs: &[Job], candidates: &[Candidate], now: Timestamp) -> Vec<Assignment> {
    let mut waiting: Vec<&Job> = jobs.iter().filter(|job| is_due(job, now)).collect();
    waiting.sort_by_key(|job| (job.submitted_at, job.id.clone()));
    let mut candidates = candidates.to_vec();
    let mut assignments = Vec::new();
    for job in waiting {
        let best = candidates
            .iter_mut()
            .filter(|candidate| blockers(&job.spec, candidate).is_empty())
            .min_by_key(|candidate| preference(candidate));
        if let Some(candidate) = best {
            candidate.held += 1;
            assignments.push(Assignment {
                job: job.id.clone(),
                worker: candidate.worker.id.clone(),
                gpus: granted(candidate),
            });
        }
    }
    assignments
}

fn is_due(job: &Job, now: Timestamp) -> bool {
    matches!(job.state, State::Queued { not_before, .. } if not_before.is_none_or(|moment| moment <= now))
}

/// Remote before local, those with GPUs before those without, the longest idle first.
fn preference(candidate: &Candidate) -> (bool, Reverse<bool>, Timestamp, String) {
    let worker = &candidate.worker;
    let has_gpus = worker.capability().is_some_and(|capability| !capability.gpus.is_empty());
    (worker.local, Reverse(has_gpus), worker.link_since(), worker.name.clone())
}

fn granted(candidate: &Candidate) -> Vec<String> {
    let gpus = candidate.worker.capability().map(|capability| capability.gpus.as_slice()).unwrap_or_default();
    gpus.iter().map(|gpu| gpu.uuid.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::capability::{Capability, Gpu};
    use crate::domain::job::{Demand, Loss, Report, Spec, Target};
    use crate::domain::labels::Labels;
    use crate::domain::worker::{Kind, Link, Worker};

    const NOW: Timestamp = Timestamp(1_000);

    fn job(n: u8, gpu_count: Option<u32>) -> Job {
        let spec = Spec {
            config_name: "digits".to_owned(),
            config_revision: 1,
            target: Target::Auto,
            demand: Demand { gpu_count, ..Demand::default() },
            num_processes: None,
            max_retries: 3,
            retry_on_failure: false,
        };
        Job::submitted(JobId::new(NOW, [n; 10]), spec, Timestamp(i64::from(n)), "ada".to_owned())
    }

    fn candidate(n: u8, gpus: usize) -> Candidate {
        let gpu = |i| Gpu { uuid: format!("GPU-{n}-{i}"), name: "A100".to_owned(), vram_gb: None };
        let capability = Capability { gpus: (0..gpus).map(gpu).collect(), ..Capability::default() };
        let worker = Worker {
            id: WorkerId::new(NOW, [n; 10]),
            name: format!("w{n}"),
            kind: None,
            labels: Labels::default(),
            created_at: NOW,
            link: Link::NeverSeen,
            drain: None,
            spent: None,
            local: false,
        };
        let worker = worker.registered(NOW, capability, Kind::Persistent).listening(NOW).expect("registered");
        Candidate { worker, held: 0, max_jobs: 1 }
    }

    fn pairs(jobs: &[Job], candidates: &[Candidate]) -> Vec<(JobId, WorkerId)> {
        assign(jobs, candidates, NOW).into_iter().map(|a| (a.job, a.worker)).collect()
    }

    fn pair(job_n: u8, worker_n: u8) -> (JobId, WorkerId) {
        (JobId::new(NOW, [job_n; 10]), WorkerId::new(NOW, [worker_n; 10]))
    }

    #[test]
    fn first_come_first_served_one_job_a_worker() {
        let jobs = [job(3, None), job(1, None), job(2, None)];
        assert_eq!(pairs(&jobs, &[candidate(1, 1), candidate(2, 1)]), [pair(1, 1), pair(2, 2)]);
    }

    #[test]
    fn a_job_that_fits_nowhere_blocks_nobody() {
        assert_eq!(pairs(&[job(1, Some(8)), job(2, None)], &[candidate(1, 1)]), [pair(2, 1)]);
    }

    #[test]
    fn hosts_with_gpus_come_first_and_local_ones_last() {
        let local = Candidate { worker: Worker { local: true, ..candidate(1, 8).worker }, ..candidate(1, 8) };
        assert_eq!(pairs(&[job(1, None)], &[local.clone(), candidate(2, 0), candidate(3, 1)]), [pair(1, 3)]);
        assert_eq!(pairs(&[job(1, None)], &[local, candidate(2, 0)]), [pair(1, 2)]);
    }

    #[test]
    fn a_job_gets_the_whole_host() {
        let assigned = assign(&[job(1, None)], &[candidate(1, 2)], NOW);
        assert_eq!(assigned[0].gpus, ["GPU-1-0", "GPU-1-1"]);
    }

    #[test]
    fn only_what_waits_and_is_due_is_assigned() {
        let until = Timestamp(NOW.0 + 5);
        let offered = job(1, None).offered(NOW, WorkerId::new(NOW, [9; 10]), vec![], until).expect("it waits");
        assert_eq!(pairs(std::slice::from_ref(&offered), &[candidate(1, 1)]), []);
        let lost = offered.reported(NOW, &WorkerId::new(NOW, [9; 10]), crate::domain::ids::Attempt(1), Report::Running);
        let lost = lost.expect("current").lost(NOW, Loss::WorkerOffline);
        assert_eq!(assign(std::slice::from_ref(&lost), &[candidate(1, 1)], NOW), []);
        assert_eq!(assign(&[lost], &[candidate(1, 1)], Timestamp(NOW.0 + 10_000)).len(), 1);
    }

    #[test]
    fn the_longest_idle_worker_is_taken() {
        let mut rested = candidate(2, 1);
        rested.worker = rested.worker.stopped_listening(Timestamp(1)).listening(Timestamp(1)).expect("registered");
        assert_eq!(pairs(&[job(1, None)], &[candidate(1, 1), rested]), [pair(1, 2)]);
    }
}

//! Whether a job fits a worker, and if not, why not.
//!
//! The planner, explanations and previews all ask here, so that none of them can disagree.

use super::job::{Spec, Target};
use super::worker::{Link, Worker};

/// A worker as the planner sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// The worker.
    pub worker: Worker,
    /// How many jobs it holds.
    pub held: u32,
    /// How many jobs it takes.
    pub max_jobs: u32,
}

/// One thing that keeps a job from a worker.
#[derive(Debug, Clone, PartialEq)]
pub enum Blocker {
    /// The job wants a remote worker and this is the orchestrator's own, or the other way round.
    WrongTarget,
    /// A label is missing or different.
    Label {
        /// The label's key.
        key: String,
        /// The glob that was asked for.
        wanted: String,
        /// What the worker has.
        found: Option<String>,
    },
    /// Another kind of accelerator.
    Accelerator {
        /// What was asked for.
        wanted: String,
        /// What it has.
        found: String,
    },
    /// Too few GPUs (of enough memory, if that was asked for).
    Gpus {
        /// How many were asked for.
        wanted: u32,
        /// How many fit.
        found: u32,
    },
    /// A person wants it to drain.
    Draining,
    /// An ephemeral worker whose job has ended.
    Spent,
    /// Never contacted, or gone.
    Offline,
    /// Registered, not listening yet.
    Connecting,
    /// All its slots are taken.
    Occupied {
        /// How many jobs it takes.
        max_jobs: u32,
    },
}

/// Everything that keeps the job from the worker: first what only a person can change, then what passes by itself.
pub fn blockers(spec: &Spec, candidate: &Candidate) -> Vec<Blocker> {
    let worker = &candidate.worker;
    let mut found = Vec::new();
    if (spec.target == Target::Worker && worker.local) || (spec.target == Target::Local && !worker.local) {
        found.push(Blocker::WrongTarget);
    }
    if let Some(mismatch) = worker.effective_labels().first_mismatch(&spec.demand.labels) {
        found.push(Blocker::Label {
            key: mismatch.key.to_owned(),
            wanted: mismatch.pattern.to_owned(),
            found: mismatch.found.map(str::to_owned),
        });
    }
    found.extend(hardware(spec, worker));
    if worker.drain.is_some() {
        found.push(Blocker::Draining);
    }
    if worker.spent.is_some() {
        found.push(Blocker::Spent);
    }
    match worker.link {
        Link::NeverSeen | Link::Offline { .. } => found.push(Blocker::Offline),
        Link::Connecting { .. } => found.push(Blocker::Connecting),
        Link::Online { .. } => {}
    }
    if candidate.held >= candidate.max_jobs {
        found.push(Blocker::Occupied { max_jobs: candidate.max_jobs });
    }
    found
}

fn hardware(spec: &Spec, worker: &Worker) -> Vec<Blocker> {
    // What a worker that was never seen has, nobody knows: that it is offline says it all.
    let Some(capability) = worker.capability() else { return Vec::new() };
    let demand = &spec.demand;
    let mut found = Vec::new();
    if let Some(wanted) = demand.accelerator.as_ref().filter(|wanted| **wanted != capability.accelerator) {
        found.push(Blocker::Accelerator { wanted: wanted.clone(), found: capability.accelerator.clone() });
    }
    let wanted = match (demand.gpu_count, demand.min_vram_gb) {
        (Some(count), _) => count,
        (None, Some(_)) => 1,
        (None, None) => return found,
    };
    let least = demand.min_vram_gb.unwrap_or(0.0);
    let fits = capability.gpus.iter().filter(|gpu| least <= 0.0 || gpu.vram_gb.is_some_and(|gb| gb >= least)).count();
    let fits = u32::try_from(fits).unwrap_or(u32::MAX);
    if fits < wanted {
        found.push(Blocker::Gpus { wanted, found: fits });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::capability::{Capability, Gpu};
    use crate::domain::ids::WorkerId;
    use crate::domain::job::Demand;
    use crate::domain::labels::Labels;
    use crate::domain::time::Timestamp;
    use crate::domain::worker::{Kind, OfflineCause};

    fn spec(demand: Demand) -> Spec {
        Spec {
            config_name: "digits".to_owned(),
            config_revision: 1,
            target: Target::Auto,
            demand,
            num_processes: None,
            max_retries: 3,
            retry_on_failure: false,
        }
    }

    fn idle() -> Candidate {
        let gpu = |uuid: &str, vram_gb| Gpu { uuid: uuid.to_owned(), name: "A100".to_owned(), vram_gb };
        let capability = Capability {
            gpus: vec![gpu("a", Some(80.0)), gpu("b", Some(40.0)), gpu("c", None)],
            accelerator: "cuda".to_owned(),
            ..Capability::default()
        };
        let worker = Worker {
            id: WorkerId::new(Timestamp(0), [0; 10]),
            name: "gpu-1".to_owned(),
            kind: None,
            labels: Labels([("team".to_owned(), "nlp".to_owned())].into()),
            created_at: Timestamp(0),
            link: Link::NeverSeen,
            drain: None,
            spent: None,
            local: false,
        };
        let worker = worker.registered(Timestamp(0), capability, Kind::Persistent);
        Candidate { worker: worker.listening(Timestamp(0)).expect("registered"), held: 0, max_jobs: 1 }
    }

    fn labels(key: &str, value: &str) -> Demand {
        Demand { labels: Labels([(key.to_owned(), value.to_owned())].into()), ..Demand::default() }
    }

    #[test]
    fn what_a_job_may_ask_for() {
        let gpus = |wanted, found| vec![Blocker::Gpus { wanted, found }];
        let rows = [
            (Demand::default(), vec![]),
            (labels("team", "n*"), vec![]),
            (
                labels("team", "vision"),
                vec![Blocker::Label {
                    key: "team".to_owned(),
                    wanted: "vision".to_owned(),
                    found: Some("nlp".to_owned()),
                }],
            ),
            (Demand { gpu_count: Some(3), ..Demand::default() }, vec![]),
            (Demand { gpu_count: Some(4), ..Demand::default() }, gpus(4, 3)),
            (Demand { min_vram_gb: Some(80.0), ..Demand::default() }, vec![]),
            (Demand { min_vram_gb: Some(80.5), ..Demand::default() }, gpus(1, 0)),
            (Demand { gpu_count: Some(2), min_vram_gb: Some(40.0), ..Demand::default() }, vec![]),
            (Demand { gpu_count: Some(3), min_vram_gb: Some(40.0), ..Demand::default() }, gpus(3, 2)),
            (Demand { accelerator: Some("cuda".to_owned()), ..Demand::default() }, vec![]),
            (
                Demand { accelerator: Some("rocm".to_owned()), ..Demand::default() },
                vec![Blocker::Accelerator { wanted: "rocm".to_owned(), found: "cuda".to_owned() }],
            ),
        ];
        for (demand, expected) in rows {
            assert_eq!(blockers(&spec(demand.clone()), &idle()), expected, "{demand:?}");
        }
    }

    #[test]
    fn what_a_worker_may_be_like() {
        let with = |change: fn(Worker) -> Worker| Candidate { worker: change(idle().worker), ..idle() };
        let rows = [
            (with(|w| w.drained(Timestamp(1), None)), vec![Blocker::Draining]),
            (with(|w| Worker { spent: Some(Timestamp(1)), ..w }), vec![Blocker::Spent]),
            (with(|w| w.stopped_listening(Timestamp(1))), vec![Blocker::Connecting]),
            (with(|w| w.gone(Timestamp(1), OfflineCause::Silent)), vec![Blocker::Offline]),
            (with(|w| Worker { link: Link::NeverSeen, ..w }), vec![Blocker::Offline]),
            (Candidate { held: 1, ..idle() }, vec![Blocker::Occupied { max_jobs: 1 }]),
            (Candidate { held: 1, max_jobs: 2, ..idle() }, vec![]),
        ];
        for (candidate, expected) in rows {
            assert_eq!(blockers(&spec(Demand::default()), &candidate), expected, "{candidate:?}");
        }
    }

    #[test]
    fn targets() {
        let local = Candidate { worker: Worker { local: true, ..idle().worker }, ..idle() };
        let fits =
            |target, candidate: &Candidate| blockers(&Spec { target, ..spec(Demand::default()) }, candidate).is_empty();
        assert!(fits(Target::Auto, &idle()) && fits(Target::Auto, &local));
        assert!(fits(Target::Worker, &idle()) && !fits(Target::Worker, &local));
        assert!(!fits(Target::Local, &idle()) && fits(Target::Local, &local));
    }
}

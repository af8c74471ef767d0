//! Planning with the result of the last round is planning without it.

use std::sync::Arc;

use app::domain::capability::Capability;
use app::domain::gpu::Gpu;
use app::domain::ids::{JobId, WorkerId};
use app::domain::job::{Demand, Job, JobSpec};
use app::domain::plan::{Assignment, ConcurrencyLimits, STARVATION_AFTER};
use app::domain::time::Timestamp;
use app::domain::worker::{Worker, WorkerKind};
use proptest::prelude::*;

use super::access::AccessState;
use super::shares::ShareState;
use super::state::{FleetState, StateChange};

const NOW: Timestamp = Timestamp(1_000_000_000);

#[derive(Debug, Clone)]
enum Step {
    /// A worker with this number of GPUs.
    Worker(u8, u32),
    Drain(u8),
    DeleteWorker(u8),
    /// A job for this number of GPUs, of a user, that has starved or not.
    Submit(u8, u32, u8, bool),
    /// A job has ended, or was deleted.
    End(u8),
    Plan,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => (0_u8..2, 1_u32..4).prop_map(|(n, gpus)| Step::Worker(n, gpus)),
        1 => (0_u8..2).prop_map(Step::Drain),
        1 => (0_u8..2).prop_map(Step::DeleteWorker),
        6 => (0_u8..6, 1_u32..4, 0_u8..2, any::<bool>()).prop_map(|(n, gpus, user, old)| Step::Submit(n, gpus, user, old)),
        4 => (0_u8..6).prop_map(Step::End),
        6 => Just(Step::Plan),
    ]
}

fn worker(n: u8, gpus: u32) -> Worker {
    let gpu = |index| Gpu { index, uuid: format!("GPU-{n}-{index}"), vram_gb: Some(80.0), ..Gpu::default() };
    let capability = Capability {
        gpus: (0..gpus).map(gpu).collect(),
        max_jobs: 2,
        accelerator: "cuda".to_owned(),
        protocol: Some(1),
        ..Capability::default()
    };
    let worker = Worker::new(worker_id(n), format!("worker-{n}"), NOW);
    worker.registered(NOW, capability, WorkerKind::Persistent).stream_opened(NOW, "c_1/1").expect("registered")
}

fn worker_id(n: u8) -> WorkerId {
    WorkerId::new(NOW, [n; 10])
}

fn job_id(n: u8) -> JobId {
    JobId::new(NOW, [n; 10])
}

fn job(n: u8, gpus: u32, user: u8, has_starved: bool) -> Job {
    let demand = Demand { gpu_count: Some(gpus), ..Demand::default() };
    let age = if has_starved { STARVATION_AFTER.0 } else { 0 };
    let submitted_at = Timestamp(NOW.0 - age - i64::from(n));
    Job::submitted(job_id(n), JobSpec { demand, ..JobSpec::new("digits", 1) }, submitted_at, format!("user-{user}"))
}

/// The same state without the result of the last round.
fn forgetful(state: &FleetState) -> FleetState {
    let workers = state.workers().map(|worker| (*worker.stored).clone());
    let jobs = state.jobs().map(|job| (**job).clone());
    FleetState::new(workers, jobs, AccessState::default(), ShareState::default())
}

fn assign(state: &FleetState) -> Vec<Assignment> {
    let limits = ConcurrencyLimits { jobs: None, jobs_per_user: Some(3) };
    state.assign_jobs(state.planner_fleet(limits, NOW), NOW)
}

fn apply(state: &mut FleetState, step: &Step) {
    let change = match *step {
        Step::Worker(n, gpus) => StateChange::Worker(Box::new(worker(n, gpus))),
        Step::Drain(n) => match state.worker(&worker_id(n)) {
            Some(stored) => StateChange::Worker(Box::new(stored.worker.clone().drained(NOW, None, None))),
            None => return,
        },
        Step::DeleteWorker(n) => StateChange::WorkerRemoved(worker_id(n)),
        Step::Submit(n, gpus, user, has_starved) => StateChange::Job(Arc::new(job(n, gpus, user, has_starved))),
        Step::End(n) => StateChange::JobRemoved(job_id(n)),
        Step::Plan => return,
    };
    state.apply(change);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn remembered_rounds_change_no_plan(steps in prop::collection::vec(step(), 1..60)) {
        let mut state = FleetState::default();
        for step in &steps {
            apply(&mut state, step);
            if matches!(step, Step::Plan) {
                let planned = assign(&state);
                prop_assert_eq!(&planned, &assign(&forgetful(&state)));
                for assignment in planned {
                    let job = (**state.job(&assignment.job).expect("queued")).clone();
                    let offered = job.offered(NOW, assignment.worker, assignment.gpus, NOW).expect("queued");
                    state.apply(StateChange::Job(Arc::new(offered)));
                }
            }
        }
        prop_assert!(state.queued_jobs().eq(forgetful(&state).queued_jobs()));
    }
}

//! Rounds of planning, with 20 distinct demands and 50 distinct label sets: from scratch, and after one change.
//!
//! `cargo bench --no-default-features --bench plan` prints the figures in the format of the other benchmarks.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use app::domain::capability::Capability;
use app::domain::gpu::Gpu;
use app::domain::ids::{JobId, WorkerId};
use app::domain::job::{Demand, Job, JobSpec, JobTarget};
use app::domain::labels::Labels;
use app::domain::matching::Candidate;
use app::domain::plan::{
    ConcurrencyLimits, JobQueue, PlannerFleet, QueuedJob, UnmatchedKinds, plan, queue_of, share_queue,
};
use app::domain::time::Timestamp;
use app::domain::worker::{Worker, WorkerKind};

/// Of the jobs that wait for one worker.
const KINDS: usize = 20;
const NOW: Timestamp = Timestamp(1_000_000_000);

fn entropy(n: u32) -> [u8; 10] {
    let mut bytes = [0; 10];
    bytes[6..].copy_from_slice(&n.to_be_bytes());
    bytes
}

fn labels(pairs: &[(&str, String)]) -> Labels {
    Labels(pairs.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect())
}

fn worker(n: u32) -> Worker {
    let label_set = n % 50;
    let labels = labels(&[
        ("gpu_type", ["a100", "h100", "l40s", "4090", "a6000"][(label_set % 5) as usize].to_owned()),
        ("rack", format!("r{}", label_set / 5)),
        ("team", ["nlp", "vision"][(label_set % 2) as usize].to_owned()),
    ]);
    let gpu = |i: u32| Gpu {
        index: i,
        uuid: format!("GPU-{n}-{i}"),
        name: "NVIDIA A100-SXM4-80GB".to_owned(),
        vram_gb: Some(80.0),
        ..Gpu::default()
    };
    let gpus = (0..=n % 4).map(gpu).collect();
    let capability = Capability { gpus, accelerator: "cuda".to_owned(), protocol: Some(1), ..Capability::default() };
    let worker = Worker { labels, ..Worker::new(WorkerId::new(NOW, entropy(n)), format!("gpu-{n:05}"), NOW) };
    worker.registered(NOW, capability, WorkerKind::Persistent).stream_opened(NOW, "c_1/1").expect("registered")
}

fn job(n: u32) -> Job {
    let kind = n % 20;
    let gpu_type = ["a100*", "h100", "l40?", "[4]090", "*"][(kind % 5) as usize].to_owned();
    let demand = Demand {
        labels: if kind < 10 {
            labels(&[("gpu_type", gpu_type)])
        } else {
            labels(&[("gpu_type", gpu_type), ("team", "n*".to_owned())])
        },
        gpu_count: Some(1 + kind % 4),
        min_vram_gb: (kind.is_multiple_of(3)).then_some(40.0),
        ..Demand::default()
    };
    let spec = JobSpec { target: JobTarget::Worker, demand, ..JobSpec::new("digits", 1) };
    let at = Timestamp(NOW.0 - 100_000 + i64::from(n));
    Job {
        priority: (n % 7) as u8,
        ..Job::submitted(JobId::new(NOW, entropy(n)), spec, at, format!("user-{}", n % 200))
    }
}

/// A job that no worker has enough GPUs for.
fn waiting_job(n: u32) -> Job {
    let job = Job { priority: 0, submitted_by: "ada".to_owned(), ..job(n) };
    let gpu_count = job.spec.demand.gpu_count.map(|count| count + 8);
    let spec = JobSpec { demand: Demand { gpu_count, ..job.spec.demand.clone() }, ..job.spec.clone() };
    Job { spec, ..job }
}

/// The median and the 90th percentile in milliseconds, and the number of offers of a round.
fn measure(rounds: usize, mut round: impl FnMut() -> usize) -> (f64, f64, usize) {
    let mut times: Vec<Duration> = Vec::new();
    let mut placed = 0;
    for _ in 0..rounds {
        let start = Instant::now();
        placed = round();
        times.push(start.elapsed());
    }
    times.sort();
    let ms = |index: usize| times[index].as_secs_f64() * 1_000.0;
    (ms(rounds / 2), ms(rounds * 9 / 10), placed)
}

fn print(what: &str, target: u32, (median, p90, placed): (f64, f64, usize)) {
    println!("planning {what}: median {median:.1} ms (target <= {target} ms), p90 {p90:.1} ms; {placed} placed");
}

/// From scratch: nothing is sorted, and nothing is known.
fn plan_all(jobs: &[Job], workers: &[Worker]) -> usize {
    plan(JobQueue::new(jobs), PlannerFleet::new(workers, &[], ConcurrencyLimits::default()), NOW).assignments.len()
}

/// After a change of one worker, in the state that the server keeps: sorted jobs with the numbers of their kinds, sorted
/// workers, and the result of the last round.
fn plan_after_change(jobs: &[Job], workers: &[Worker], unmatched: &UnmatchedKinds, changed: &Worker) -> usize {
    // The jobs are sorted already, and kinds come in turns.
    let queued = jobs.iter().zip((0..KINDS).cycle()).map(|(job, kind)| QueuedJob { job, kind });
    let share = share_queue(queue_of(&jobs[0]), queued);
    let candidates = workers.iter().map(|worker| Candidate::new(worker, Vec::new()));
    let fleet = PlannerFleet::from_sorted(workers.len(), candidates, HashMap::new(), ConcurrencyLimits::default());
    let fleet = fleet.since_last_round(unmatched.clone(), [Candidate::new(changed, Vec::new())]);
    plan(JobQueue::from_sorted(vec![share], KINDS), fleet, NOW).assignments.len()
}

fn main() {
    for (count, target) in [(10_000, 20), (100_000, 400)] {
        let workers: Vec<Worker> = (0..count).map(worker).collect();
        let jobs: Vec<Job> = (0..count).map(job).collect();
        let what = format!("{count} jobs (20 demands, 200 users) onto {count} workers (50 label sets)");
        print(&what, target, measure(10, || plan_all(&jobs, &workers)));
    }
    let workers: Vec<Worker> = (0..100_000).map(worker).collect();
    let jobs: Vec<Job> = (0..100_000).map(waiting_job).collect();
    let unmatched =
        plan(JobQueue::new(&jobs), PlannerFleet::new(&workers, &[], ConcurrencyLimits::default()), NOW).unmatched;
    assert!((0..KINDS).all(|kind| unmatched.contains(kind)), "every kind was compared with every worker");
    let what = "after one worker changed, 100000 jobs that fit none of 100000 free workers";
    print(what, 5, measure(100, || plan_after_change(&jobs, &workers, &unmatched, &workers[50_000])));
    let what = "after one worker of 100000 became free, 100000 jobs";
    let free = [worker(1)];
    let jobs: Vec<Job> = (0..100_000).map(|n| Job { priority: 0, submitted_by: "ada".to_owned(), ..job(n) }).collect();
    print(what, 5, measure(100, || plan_after_change(&jobs, &free, &UnmatchedKinds::All, &free[0])));
}

//! One round of planning: 10,000 jobs of 20 distinct demands that wait for 10,000 workers of 50 distinct label sets.
//!
//! `cargo bench --no-default-features --bench plan` prints the figure in the format of the other benchmarks.

use std::time::{Duration, Instant};

use app::domain::capability::Capability;
use app::domain::gpu::Gpu;
use app::domain::ids::{JobId, WorkerId};
use app::domain::job::{Demand, Job, JobSpec, JobTarget};
use app::domain::labels::Labels;
use app::domain::plan::{ConcurrencyLimits, PlannerFleet, job_sort_key, plan};
use app::domain::time::Timestamp;
use app::domain::worker::{Worker, WorkerKind};

const COUNT: u32 = 10_000;
const ROUNDS: usize = 30;
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
    let at = Timestamp(NOW.0 - i64::from(COUNT) + i64::from(n));
    Job { priority: (n % 7) as u8, ..Job::submitted(JobId::new(NOW, entropy(n)), spec, at, format!("user-{}", n % 30)) }
}

fn main() {
    let workers: Vec<Worker> = (0..COUNT).map(worker).collect();
    let jobs: Vec<Job> = (0..COUNT).map(job).collect();
    let mut times: Vec<Duration> = Vec::new();
    let mut assigned = 0;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let mut waiting: Vec<&Job> = jobs.iter().collect();
        waiting.sort_by_key(|job| job_sort_key(job));
        assigned = plan(waiting, PlannerFleet::new(&workers, &[], ConcurrencyLimits::default()), NOW).assignments.len();
        times.push(start.elapsed());
    }
    times.sort();
    let ms = |index: usize| times[index].as_secs_f64() * 1_000.0;
    println!(
        "planning {COUNT} jobs (20 demands) onto {COUNT} workers (50 label sets): median {:.1} ms (target <= 20 ms), p90 {:.1} ms; {assigned} placed, {ROUNDS} rounds",
        ms(ROUNDS / 2),
        ms(ROUNDS * 9 / 10)
    );
}

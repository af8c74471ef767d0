//! Queries over an index of a million jobs of 200 configurations and 40 users.
//!
//! `cargo bench --no-default-features --bench job_search` prints the figures in the format of the other benchmarks.

use std::collections::BTreeMap;
use std::time::Instant;

use app::domain::ids::{JobId, WorkerId};
use app::domain::job_search::index::{ConfigValue, ConfigValues, IndexedJob, JobIndex, JobPageRequest};
use app::domain::job_search::order::JobOrder;
use app::domain::job_search::query::JobSearchQuery;
use app::domain::job_status::JobStatus;
use app::domain::labels::Labels;
use app::domain::time::Timestamp;

const JOBS: u32 = 1_000_000;
const NOW: Timestamp = Timestamp(1_800_000_000_000);
/// A job each half minute.
const INTERVAL: i64 = 30_000;

fn job(n: u32) -> IndexedJob {
    let submitted_at = Timestamp(NOW.0 - i64::from(JOBS - n) * INTERVAL);
    let mut entropy = [0; 10];
    entropy[6..].copy_from_slice(&n.to_be_bytes());
    // Spread like noise, and the same in each run.
    let noise = n.wrapping_mul(2_654_435_761);
    let ended = n < JOBS - 500;
    IndexedJob {
        id: JobId::new(submitted_at, entropy),
        number: Some(n / 200),
        config: format!("{}-lora-{}", ["flux", "sdxl", "sd3", "wan"][(n % 4) as usize], n % 200),
        revision: 1 + noise % 3,
        name: n.is_multiple_of(3).then(|| format!("try {n} of rank {}", 1 << (noise % 7))),
        tags: [["ablation", "night"][(noise % 2) as usize].to_owned()].into(),
        starred_by: Vec::new(),
        user: format!("user-{}", noise % 40),
        status: match (ended, noise % 10) {
            (false, 0) => JobStatus::Running,
            (false, _) => JobStatus::Queued,
            (true, 0) => JobStatus::Failed,
            (true, 1) => JobStatus::Cancelled,
            (true, _) => JobStatus::Completed,
        },
        submitted_at,
        started_at: ended.then_some(Timestamp(submitted_at.0 + 60_000)),
        ended_at: ended.then_some(Timestamp(submitted_at.0 + 60_000 + i64::from(noise % 86_400) * 1_000)),
        priority: (noise % 50) as u8,
        urgency: 0,
        labels: Labels(BTreeMap::from([("gpu_type".to_owned(), "a100*".to_owned())])),
        gpus: Some(1 << (noise % 4)),
        workers: vec![(WorkerId::new(Timestamp(0), [(noise % 250) as u8; 10]), format!("gpu-{}", noise % 250))],
        overrides: BTreeMap::new(),
        metrics: ["epoch", "learning_rate", "loss", "lr", "step", "val/loss"]
            .map(|name| (name.to_owned(), f64::from(noise) / f64::from(u32::MAX)))
            .into(),
    }
}

const QUERIES: [(&str, &str); 12] = [
    ("", "-submitted"),
    ("flux", "-submitted"),
    ("rank 64", "-submitted"),
    ("config:flux* tag:ablation status:failed loss<0.3 lr>1e-5", "-submitted"),
    ("loss<0.00001", "-submitted"),
    ("-tag:night user=user-7", "-submitted"),
    ("submitted>-7d duration>2h", "-duration"),
    ("", "metric.loss"),
    ("status:completed", "name"),
    ("config.rank>8 loss<0.5", "metric.val/loss"),
    ("worker:gpu-17 #77", "-submitted"),
    ("nothing-has-this-name", "-submitted"),
];
const ROUNDS: usize = 9;

fn resident_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse().ok());
    kib.unwrap_or(0.0_f64) / 1_024.0
}

fn main() {
    let (before, mut index) = (resident_mib(), JobIndex::default());
    let start = Instant::now();
    for from in (0..JOBS).step_by(5_000) {
        index.update([], (from..from + 5_000).map(job));
    }
    println!("{:46} {:10.1} s", "build an index of 1,000,000 jobs", start.elapsed().as_secs_f64());
    println!("{:46} {:10.0} MiB", "its memory", resident_mib() - before);
    for (config, revision) in index.revisions_without_values() {
        let rank = ConfigValue { text: "16".to_owned(), number: Some(16.0) };
        index.set_values(&config, revision, ConfigValues::from([("rank".to_owned(), rank)]));
    }
    let mut all = Vec::new();
    for (text, sort) in QUERIES {
        let (query, order) = (JobSearchQuery::parse(text).expect("a query"), JobOrder::parse(sort).expect("an order"));
        let request = JobPageRequest {
            query: &query,
            statuses: &JobStatus::ALL,
            order: &order,
            after: None,
            limit: 50,
            now: NOW,
        };
        let (mut times, mut total) = (Vec::new(), 0);
        for _ in 0..ROUNDS {
            let start = Instant::now();
            total = index.select(&request).counts.sum(|_| true);
            times.push(start.elapsed().as_secs_f64() * 1_000.0);
        }
        times.sort_by(f64::total_cmp);
        println!("{:46} {:10.1} ms  {total} jobs", format!("{text:?} by {sort}"), times[ROUNDS / 2]);
        all.extend(times);
    }
    all.sort_by(f64::total_cmp);
    println!("{:46} {:10.1} ms  (target 100)", "99th percentile", all[all.len() * 99 / 100]);
}

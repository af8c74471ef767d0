//! Several servers on one database.

use super::figures::{Lives, agents, complete_jobs, quantile};
use super::server::Server;

/// Complete jobs by one, two and four servers, with many other workers. `SIMPLETUNER_BENCH_WORKERS` selects one number.
pub async fn servers() {
    const AGENTS: usize = 64;
    const JOBS: usize = 4_000;
    let selected: Option<usize> =
        std::env::var("SIMPLETUNER_BENCH_WORKERS").ok().and_then(|number| number.parse().ok());
    for workers in [100, 1_000, 10_000].into_iter().filter(|workers| selected.is_none_or(|number| number == *workers)) {
        let mut alone = None;
        for count in [1, 2, 4] {
            let first = Server::start(true).await;
            agents(&[&first], "idle", workers - AGENTS).await;
            let mut peers = Vec::new();
            for _ in 1..count {
                peers.push(first.start_peer().await);
            }
            let servers: Vec<&Server> = std::iter::once(&first).chain(&peers).collect();
            let Lives { rate, done, mut submits, .. } = complete_jobs(&servers, AGENTS, JOBS).await;
            let submit = quantile(&mut submits, 0.5);
            let (rate_alone, submit_alone) = *alone.get_or_insert((rate, submit));
            println!(
                "complete jobs, {workers} workers, {count} server(s): {rate:.0} jobs/s, {:.2} of one server's (target >= 1); submit p50 {submit:.1} ms, {:.2} of one server's (target <= 1.3); {done} of {JOBS} jobs",
                rate / rate_alone,
                submit / submit_alone,
            );
        }
    }
}

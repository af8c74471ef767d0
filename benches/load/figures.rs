//! The figures. Each is printed as one line: name, value, target, method.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::stream::iter;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};

use super::agent::{Agent, Offer};
use super::server::Server;

/// Returns a quantile in milliseconds.
pub fn quantile(times: &mut [Duration], fraction: f64) -> f64 {
    times.sort();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "an index"
    )]
    let index = ((times.len() as f64 * fraction).ceil() as usize).clamp(1, times.len()) - 1;
    times[index].as_secs_f64() * 1_000.0
}

/// Creates `number` agents, 32 at a time, the same number for each server.
pub async fn agents(servers: &[&Server], name: &str, number: usize) -> Vec<Agent> {
    let agent = async |n: usize| Agent::new(servers[n % servers.len()], &format!("{name}-{n:05}")).await;
    iter((0..number).map(agent)).buffered(32).collect().await
}

/// Waits until `number` agents listen and are idle.
pub async fn until_idle(server: &Server, number: usize) {
    loop {
        let page = server.api(Method::GET, "/api/admin/workers?limit=1", None).await;
        if page["counts"]["idle"].as_u64() >= Some(number as u64) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Submits at random intervals while a thousand agents listen; an agent completes its job immediately.
pub async fn dispatch(server: &Server) {
    const AGENTS: usize = 1_000;
    const SUBMITS: usize = 1_000;
    let (sender, mut offers) = mpsc::unbounded_channel::<(String, Instant)>();
    for agent in agents(&[server], "load", AGENTS).await {
        let sender = sender.clone();
        tokio::spawn(async move {
            let mut offers = agent.offers();
            while let Some(offer) = offers.recv().await {
                let _ = sender.send((offer.job.clone(), offer.at));
                let _ = agent.report(&offer, "starting").await;
                let _ = agent.report(&offer, "completed").await;
            }
        });
    }
    until_idle(server, AGENTS).await;
    let (mut submitted, mut times, mut random) = (HashMap::new(), Vec::new(), 7_u64);
    for _ in 0..SUBMITS {
        // Intervals of 0 to 40 ms: 50 submits per second.
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        tokio::time::sleep(Duration::from_micros((random >> 33) % 40_000)).await;
        let at = Instant::now();
        submitted.insert(server.submit().await, at);
    }
    for _ in 0..SUBMITS {
        let (job, at) = offers.recv().await.expect("an offer for every submit");
        times.push(at - submitted[&job]);
    }
    println!(
        "submit to job_submit bytes, {AGENTS} streams, 50 submits/s: p50 {:.2} ms (target <= 2), p99 {:.2} ms (target <= 10), max {:.2} ms; {SUBMITS} submits",
        quantile(&mut times, 0.5),
        quantile(&mut times, 0.99),
        quantile(&mut times, 1.0)
    );
}

/// Complete jobs over HTTP: submit, offer, start, completion.
pub async fn lives(server: &Server) {
    const AGENTS: usize = 64;
    const JOBS: usize = 10_000;
    let Lives { rate, done, submit_rate, .. } = complete_jobs(&[server], AGENTS, JOBS).await;
    println!(
        "complete jobs over HTTP, {AGENTS} agents: {rate:.0} jobs/s (target >= 2000 on SQLite, 500 on PostgreSQL); {done} of {JOBS} jobs{}, submitted at {submit_rate:.0}/s",
        if done == JOBS { "" } else { ", NOT ALL DONE" },
    );
}

/// How a number of jobs was completed.
pub struct Lives {
    /// Jobs per second.
    pub rate: f64,
    pub done: usize,
    pub submit_rate: f64,
    /// Durations of the submits.
    pub submits: Vec<Duration>,
}

/// Completes `jobs` jobs; the servers get the same number of agents and submits.
pub async fn complete_jobs(servers: &[&Server], number_of_agents: usize, jobs: usize) -> Lives {
    let (done, all_done) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    for agent in agents(servers, "life", number_of_agents).await {
        let (done, all_done) = (Arc::clone(&done), Arc::clone(&all_done));
        tokio::spawn(async move {
            let mut offers = agent.offers();
            while let Some(offer) = offers.recv().await {
                let _ = agent.report(&offer, "starting").await;
                let _ = agent.report(&offer, "completed").await;
                if done.fetch_add(1, Ordering::SeqCst) + 1 == jobs {
                    all_done.notify_one();
                }
            }
        });
    }
    until_idle(servers[0], number_of_agents).await;
    let started = Instant::now();
    let submit = async |n: usize| {
        let started = Instant::now();
        servers[n % servers.len()].submit().await;
        started.elapsed()
    };
    let submitting = iter((0..jobs).map(submit)).buffer_unordered(128).collect::<Vec<_>>();
    let finished = async {
        let _ = tokio::time::timeout(Duration::from_mins(5), all_done.notified()).await;
        started.elapsed()
    };
    let ((submits, submitted), finished) = tokio::join!(async { (submitting.await, started.elapsed()) }, finished);
    #[expect(clippy::cast_precision_loss, reason = "a rate for display")]
    let rate = |number: usize, span: Duration| number as f64 / span.as_secs_f64();
    let done = done.load(Ordering::SeqCst);
    Lives { rate: rate(done, finished), done, submit_rate: rate(jobs, submitted), submits }
}

/// Heartbeats as fast as possible, without telemetry and with readings of eight GPUs.
pub async fn heartbeats(server: &Server) {
    const AGENTS: usize = 64;
    const GPUS: usize = 8;
    let agents = agents(&[server], "load", AGENTS).await;
    let rate = heartbeats_per_second(&agents, &json!([])).await;
    println!("heartbeats: {rate}/s (target >= 20000); {AGENTS} connections, 5 s");
    for agent in &agents {
        agent.register_gpus(GPUS).await.expect("registered");
    }
    let gpu = |n: usize| {
        json!({"uuid": format!("GPU-{n}"), "utilization_percent": 97.0, "memory_used_gb": 61.5, "temperature_celsius": 71.0,
            "power_watts": 390.0, "power_limit_watts": 400.0, "clock_mhz": 1410, "memory_clock_mhz": 1593, "ecc_errors": 0})
    };
    let reading = json!({"at": "2024-01-15T10:30:00Z", "gpus": (0..GPUS).map(gpu).collect::<Vec<_>>()});
    let rate = heartbeats_per_second(&agents, &json!(vec![reading; 6])).await;
    println!("heartbeats with telemetry: {rate}/s; {AGENTS} connections, 6 readings of {GPUS} GPUs each, 5 s");
}

async fn heartbeats_per_second(agents: &[Agent], telemetry: &Value) -> usize {
    let (count, end) = (AtomicUsize::new(0), Instant::now() + Duration::from_secs(5));
    let loops = agents.iter().map(async |agent| {
        while Instant::now() < end {
            assert!(
                agent.heartbeat(telemetry).await.is_ok_and(|status| status.is_success()),
                "a heartbeat was rejected"
            );
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    futures_util::future::join_all(loops).await;
    count.load(Ordering::Relaxed) / 5
}

/// Idle streams.
pub async fn streams(server: &Server) {
    const AGENTS: usize = 10_000;
    let agents = agents(&[server], "load", AGENTS).await;
    let (before, _) = server.resource_usage();
    for agent in agents {
        tokio::spawn(async move {
            let mut offers = agent.offers();
            while offers.recv().await.is_some() {}
        });
    }
    until_idle(server, AGENTS).await;
    let (memory, _) = server.resource_usage();
    let cpu_share = server.cpu_share(Duration::from_secs(20)).await;
    let mib = |bytes: u64| bytes / (1 << 20);
    println!(
        "{AGENTS} idle streams: {} MiB resident (target <= 350), {cpu_share:.1} % of a core (target <= 10); before them {} MiB, over 20 s",
        mib(memory),
        mib(before)
    );
}

/// `kill -9` with a thousand workers that each run a job.
pub async fn recovery(mut server: Server) {
    const AGENTS: usize = 1_000;
    let agents = agents(&[&server], "load", AGENTS + 1).await;
    let (sender, mut offers) = mpsc::unbounded_channel::<(usize, Offer)>();
    for (n, agent) in agents.iter().cloned().enumerate() {
        let sender = sender.clone();
        tokio::spawn(async move {
            let mut current_offer: Option<Offer> = None;
            loop {
                let mut offers = agent.offers();
                while let Some(offer) = offers.recv().await {
                    let _ = agent.report(&offer, "running").await;
                    current_offer = Some(offer.clone());
                    let _ = sender.send((n, offer));
                }
                let attempts = match &current_offer {
                    Some(offer) => json!([{"job_id": offer.job, "attempt": offer.attempt}]),
                    None => json!([]),
                };
                while !agent.register(attempts.clone()).await.is_ok_and(|status| status.is_success()) {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
        });
    }
    until_idle(&server, AGENTS + 1).await;
    iter((0..AGENTS).map(|_| server.submit())).buffer_unordered(64).for_each(async |_| {}).await;
    for _ in 0..AGENTS {
        offers.recv().await.expect("an offer");
    }
    let running = async |server: &Server| server.api(Method::GET, "/api/queue/stats", None).await["running"].as_u64();
    while running(&server).await != Some(AGENTS as u64) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let started = server.kill_and_restart().await;
    let next_job = server.submit().await;
    let dispatched = loop {
        let (_, offer) = offers.recv().await.expect("an offer");
        if offer.job == next_job {
            break offer.at - started;
        }
    };
    loop {
        let page = server.api(Method::GET, "/api/admin/workers?limit=1", None).await;
        if page["counts"]["busy"].as_u64() == Some(AGENTS as u64 + 1) && page["counts"]["connecting"] == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    println!(
        "kill -9 with {AGENTS} workers and jobs: first dispatch {:.2} s after the start (target <= 2), all recovered after {:.2} s (target <= 15); {:?} run",
        dispatched.as_secs_f64(),
        started.elapsed().as_secs_f64(),
        running(&server).await
    );
}

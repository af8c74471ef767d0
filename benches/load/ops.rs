//! Operations that an operator waits for.

use std::time::{Duration, Instant};

use super::agent::Agent;
use super::figures::{agents, quantile, until_idle};
use super::server::{ADMIN, Server};
use reqwest::Method;
use serde_json::json;

/// Measures the response time of the metrics with ten thousand connected workers.
pub async fn metrics(server: &Server) {
    const AGENTS: usize = 10_000;
    const TIMES: usize = 50;
    start_listeners(server, AGENTS).await;
    let (mut times, size) = get_times(server, "/metrics", TIMES).await;
    println!(
        "/metrics with {AGENTS} workers: p50 {:.1} ms, max {:.1} ms (target <= 50); {size} bytes, {TIMES} times",
        quantile(&mut times, 0.5),
        quantile(&mut times, 1.0)
    );
}

/// Measures what users look at with a hundred thousand workers, none of which fits the job that waits.
pub async fn reads(server: &Server) {
    const AGENTS: usize = 100_000;
    const TIMES: usize = 20;
    let started = Instant::now();
    agents(&[server], "load", AGENTS).await;
    println!("{AGENTS} workers created and registered in {:.0} s", started.elapsed().as_secs_f64());
    let cpu_share = server.cpu_share(Duration::from_secs(10)).await;
    println!("{AGENTS} workers without streams, which do nothing: {cpu_share:.1} % of a core, over 10 s");
    let body = json!({"config_name": "load", "target": "worker", "labels": {"site": "none"}});
    let job = server.api(Method::POST, "/api/queue/submit", Some(&body)).await;
    let explain = format!("/api/queue/{}/explain", job["job_id"].as_str().expect("a job id"));
    for (subject, path) in [
        ("workers, a page with facets", "/api/admin/workers?limit=50&facets=true"),
        ("workers, sorted and filtered", "/api/admin/workers?limit=50&sort=-name&q=load-09"),
        ("overview", "/api/overview"),
        ("explain", explain.as_str()),
        ("search", "/api/search?q=load-0999"),
        ("GPUs", "/api/admin/gpus"),
        ("usage", "/api/usage"),
        ("/metrics", "/metrics"),
        ("workers, export", "/api/admin/workers/export"),
    ] {
        let (mut times, size) = get_times(server, path, TIMES).await;
        println!(
            "{subject}, {AGENTS} workers: p50 {:.1} ms, max {:.1} ms (target <= 50); {size} bytes, {TIMES} times",
            quantile(&mut times, 0.5),
            quantile(&mut times, 1.0)
        );
    }
    let (memory, _) = server.resource_usage();
    println!("{AGENTS} workers without streams: {} MiB resident", memory / (1 << 20));
}

/// The durations of requests, and the size of the last response.
async fn get_times(server: &Server, path: &str, number: usize) -> (Vec<Duration>, usize) {
    let (mut times, mut size) = (Vec::new(), 0);
    for _ in 0..number {
        let started = Instant::now();
        let response = server.http.get(format!("{}{path}", server.url)).bearer_auth(ADMIN).send().await;
        let response = response.expect("a response");
        assert!(response.status().is_success(), "{path} returned {}", response.status());
        size = response.bytes().await.expect("a body").len();
        times.push(started.elapsed());
    }
    (times, size)
}

/// Measures the cost of authentication with a thousand API tokens: alternates between an authenticated and a public
/// response. The authenticated one also contains the user, so the difference is an upper bound.
pub async fn access(server: &Server) {
    const TOKENS: usize = 1_000;
    const TIMES: usize = 20_000;
    for n in 0..TOKENS {
        let token = json!({"name": format!("script-{n}")});
        server.api(Method::POST, "/api/account/tokens", Some(&token)).await;
    }
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..TIMES {
        for (path, times) in ["/healthz", "/api/session"].iter().zip(&mut times) {
            let started = Instant::now();
            let request = server.http.get(format!("{}{path}", server.url)).bearer_auth(ADMIN);
            let response = request.send().await.expect("a response");
            assert!(response.status().is_success(), "{path} returned {}", response.status());
            response.bytes().await.expect("a body");
            times.push(started.elapsed());
        }
    }
    let [public_time, authenticated_time] = times.map(|mut times| quantile(&mut times, 0.5) * 1_000.0);
    println!(
        "authentication with {TOKENS} tokens: {:.0} us (target <= 50): authenticated response {authenticated_time:.0} us, public response {public_time:.0} us",
        authenticated_time - public_time
    );
}

/// Measures from SIGTERM to the end of a server with a thousand open streams.
pub async fn stop(mut server: Server) {
    const AGENTS: usize = 1_000;
    start_listeners(&server, AGENTS).await;
    let duration: Duration = server.stop().await;
    println!("SIGTERM to exit with {AGENTS} open streams: {:.2} s (target <= 2)", duration.as_secs_f64());
}

/// Connects `number` agents that listen until the server ends.
async fn start_listeners(server: &Server, number: usize) {
    for agent in agents(&[server], "load", number).await {
        tokio::spawn(listen(agent));
    }
    until_idle(server, number).await;
}

async fn listen(agent: Agent) {
    let mut offers = agent.offers();
    while offers.recv().await.is_some() {}
}

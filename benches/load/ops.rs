//! What an operator waits for.

use std::time::{Duration, Instant};

use super::agent::Agent;
use super::figures::{agents, quantile, until_idle};
use super::server::{ADMIN, Server};
use reqwest::Method;

/// The metrics of a server on which ten thousand workers listen.
pub async fn metrics(server: &Server) {
    const AGENTS: usize = 10_000;
    const TIMES: usize = 50;
    listening(server, AGENTS).await;
    let (mut times, mut size) = (Vec::new(), 0);
    for _ in 0..TIMES {
        let began = Instant::now();
        let answer =
            server.http.get(format!("{}/metrics", server.url)).bearer_auth(ADMIN).send().await.expect("an answer");
        assert!(answer.status().is_success(), "/metrics was answered {}", answer.status());
        size = answer.bytes().await.expect("a body").len();
        times.push(began.elapsed());
    }
    println!(
        "/metrics with {AGENTS} workers: p50 {:.1} ms, max {:.1} ms (target <= 50); {size} bytes, {TIMES} times",
        quantile(&mut times, 0.5),
        quantile(&mut times, 1.0)
    );
}

/// The cost of authentication beside a thousand API tokens: an authenticated response against a public one, each
/// after the other. The first says who it is as well, so this is no less than it costs.
pub async fn access(server: &Server) {
    const TOKENS: usize = 1_000;
    const TIMES: usize = 20_000;
    for n in 0..TOKENS {
        let token = serde_json::json!({"name": format!("script-{n}")});
        server.api(Method::POST, "/api/account/tokens", Some(&token)).await;
    }
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..TIMES {
        for (path, times) in ["/healthz", "/api/session"].iter().zip(&mut times) {
            let began = Instant::now();
            let request = server.http.get(format!("{}{path}", server.url)).bearer_auth(ADMIN);
            let answer = request.send().await.expect("an answer");
            assert!(answer.status().is_success(), "{path} was answered {}", answer.status());
            answer.bytes().await.expect("a body");
            times.push(began.elapsed());
        }
    }
    let [anybody, somebody] = times.map(|mut times| quantile(&mut times, 0.5) * 1_000.0);
    println!(
        "authentication with {TOKENS} tokens: {:.0} us (target <= 50): an answer for somebody {somebody:.0} us, for anybody {anybody:.0} us",
        somebody - anybody
    );
}

/// From SIGTERM to the end of a server with a thousand open streams.
pub async fn stop(mut server: Server) {
    const AGENTS: usize = 1_000;
    listening(&server, AGENTS).await;
    let took: Duration = server.stop().await;
    println!("SIGTERM to exit with {AGENTS} open streams: {:.2} s (target <= 2)", took.as_secs_f64());
}

/// So many agents that listen, until the server ends.
async fn listening(server: &Server, number: usize) {
    for agent in agents(server, number).await {
        tokio::spawn(listen(agent));
    }
    until_idle(server, number).await;
}

async fn listen(agent: Agent) {
    let mut offers = agent.offers();
    while offers.recv().await.is_some() {}
}

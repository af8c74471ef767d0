//! What an operator waits for.

use std::time::{Duration, Instant};

use super::agent::Agent;
use super::figures::{agents, quantile, until_idle};
use super::server::Server;

/// The metrics of a server on which ten thousand workers listen.
pub async fn metrics(server: &Server) {
    const AGENTS: usize = 10_000;
    const TIMES: usize = 50;
    listening(server, AGENTS).await;
    let (mut times, mut size) = (Vec::new(), 0);
    for _ in 0..TIMES {
        let began = Instant::now();
        let answer = server.http.get(format!("{}/metrics", server.url)).send().await.expect("an answer");
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

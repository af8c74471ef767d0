//! Many clients at once, with failures.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use futures_util::stream::{StreamExt, iter};
use reqwest::Client;
use serde_json::{Value, json};

use crate::harness::{TestFleet, WorkerHost, wait_until};

/// A trainer that ends immediately and records that it ran.
const JOURNALING_TRAINER: &str = r#"echo "$SIMPLETUNER_JOB_ID $SIMPLETUNER_ATTEMPT" >>"$MEET/journal""#;
const JOBS: usize = 200;

async fn quick_host(fleet: &TestFleet, name: &str) -> WorkerHost {
    let host = fleet.add_host(name).await;
    let script = host.home().join("trainer/trainer.sh");
    std::fs::write(&script, JOURNALING_TRAINER).expect("a trainer");
    host.with_trainer_command(&format!("sh {}", script.display()))
}

#[tokio::test]
async fn two_hundred_jobs_survive_kills_of_server_and_agents() {
    let mut fleet = TestFleet::start().await;
    let hosts = [quick_host(&fleet, "one").await, quick_host(&fleet, "two").await, quick_host(&fleet, "three").await];
    let mut agents: Vec<_> = hosts.iter().map(WorkerHost::start).collect();
    let jobs = join_all((0..JOBS).map(|_| fleet.api.submit("digits-quick"))).await;
    let completed =
        async |fleet: &TestFleet| fleet.api.get("/api/queue/stats").await["completed"].as_u64().unwrap_or(0);
    for (host, min_completed) in hosts.iter().zip([10, 60, 110]) {
        wait_until("some jobs to be done", async || (completed(&fleet).await >= min_completed).then_some(())).await;
        fleet.kill_server().await;
        agents.remove(0).kill().await;
        fleet.start_server().await;
        agents.push(host.start());
    }
    wait_until("all jobs to be done", async || (completed(&fleet).await == JOBS as u64).then_some(())).await;

    let mut run_counts: BTreeMap<String, usize> = BTreeMap::new();
    for host in &hosts {
        for line in host.trainer_file("journal").unwrap_or_default().lines() {
            *run_counts.entry(line.split(' ').next().unwrap_or_default().to_owned()).or_default() += 1;
        }
    }
    assert!(run_counts.values().all(|count| *count == 1), "a job ran twice: {run_counts:#?}");
    assert_eq!(jobs.iter().filter(|job| run_counts.contains_key(*job)).count(), JOBS, "a job did not run");
}

/// An agent that only holds a stream, and reconnects whenever it ends.
async fn listen_for_ever(http: Client, url: String, token: String) {
    let send = |request: reqwest::RequestBuilder, key: &str| request.header("x-worker-token", key).send();
    loop {
        let body = json!({"protocol": 1, "persistent": true, "accelerator_type": "cpu", "attempts": []});
        let registered = send(http.post(format!("{url}/api/workers/register")).json(&body), &token).await;
        if let Ok(response) = registered
            && let Ok(registered) = response.json::<Value>().await
            && let Some(session) = registered["session"].as_str()
            && let Ok(stream) = send(http.get(format!("{url}/api/workers/stream")), session).await
        {
            let mut events = stream.bytes_stream();
            while events.next().await.is_some_and(|event| event.is_ok()) {}
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn five_hundred_agents_reconnect_at_once() {
    const AGENTS: usize = 500;
    let mut fleet = TestFleet::start().await;
    let http = Client::builder().no_proxy().build().expect("a client");
    let api = &fleet.api;
    let create = async |n: usize| api.post("/api/admin/workers", &json!({"name": format!("storm-{n}")})).await;
    let workers: Vec<_> = iter((0..AGENTS).map(create)).buffered(16).collect().await;
    let tokens = workers.iter().map(|worker| worker["token"].as_str().expect("a token").to_owned());
    let url = fleet.api.url().to_owned();
    let agents: Vec<_> = tokens.map(|token| tokio::spawn(listen_for_ever(http.clone(), url.clone(), token))).collect();
    for restart in [true, false] {
        wait_until("every agent to listen", async || {
            let page = fleet.api.try_get("/api/admin/workers?limit=1").await?;
            (page["counts"]["idle"].as_u64()? == AGENTS as u64).then_some(())
        })
        .await;
        if restart {
            fleet.kill_server().await;
            fleet.start_server().await;
        }
    }
    let job = fleet.api.submit("digits-quick").await;
    assert_eq!(fleet.api.job(&job).await["status"], "offered");
    for agent in agents {
        agent.abort();
    }
}

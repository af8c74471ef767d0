//! Unreliable networks: connections break, work in one direction only, are slow or buffered. No attempt is lost and
//! nothing happens twice (invariants I1, I5, I6).

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{
    NetworkCondition, NetworkProxy, SHORT_HEARTBEAT_TIMEOUT, TestFleet, WorkerHost, trainers, wait_until,
};

/// A host whose agent reaches its server through a proxy.
async fn add_distant_host(fleet: &TestFleet, name: &str) -> (WorkerHost, NetworkProxy) {
    let proxy = NetworkProxy::new(fleet.port()).await;
    let host = fleet.add_host(name).await.with_url(&proxy.url()).with_python_trainer(trainers::AT_THE_GATE);
    (host, proxy)
}

/// Checks for one attempt, one end with one audit entry, and a complete log without duplicates.
async fn assert_done_once(fleet: &TestFleet, job: &str, log: &str) -> Value {
    let done = fleet.api.wait_for_job(job, "completed").await;
    let attempts = done["attempts"].as_array().expect("a list");
    assert_eq!((attempts.len(), &attempts[0]["outcome"]), (1, &json!("completed")), "{done:#}");
    assert_eq!(fleet.api.log(job).await, log);
    let ends = fleet.api.get(&format!("/api/audit?target={job}&action=job.completed")).await;
    assert_eq!(ends["entries"].as_array().map(Vec::len), Some(1), "{ends:#}");
    done
}

#[tokio::test]
async fn broken_connections_lose_nothing() {
    let fleet = TestFleet::start().await;
    let (host, proxy) = add_distant_host(&fleet, "flaky").await;
    let host = host.with_python_trainer(trainers::COUNTING);
    let _agent = host.start();
    let job = fleet.submit_running_job().await;
    // The server has received a chunk of the log, and its response is still on the way.
    proxy.set_condition(NetworkCondition::Slow(Duration::from_millis(500)));
    for bytes in [1_000, 8_000, 16_000, 24_000, 32_000] {
        fleet.api.wait_for_log(&job, bytes).await;
        proxy.close_all();
    }
    assert_done_once(&fleet, &job, &trainers::counting_output()).await;
}

#[tokio::test]
async fn unacknowledged_end_is_reported_until_acknowledged() {
    // Its agent sends a heartbeat every 10 s.
    let fleet = TestFleet::start_with(&[("SIMPLETUNER_HEARTBEAT_TIMEOUT", "40")]).await;
    let (host, proxy) = add_distant_host(&fleet, "unheard").await;
    let host = host.with_python_trainer(trainers::SILENT_AT_THE_GATE);
    let _agent = host.start();
    let job = fleet.submit_running_job().await;
    // Nothing is in transit.
    fleet.api.wait_for_contact(&host.worker).await;
    // The server receives everything, and the agent gets no responses.
    proxy.set_condition(NetworkCondition::DropDown);
    host.open_gate();
    fleet.api.wait_for_job(&job, "completed").await;
    // The responses are lost, and the agent must query the state again.
    proxy.close_all();
    proxy.set_condition(NetworkCondition::Normal);
    wait_until("the agent to record the delivery", async || {
        let state = std::fs::read_to_string(host.attempt_dir(&job, 1).join("state.json")).ok()?;
        state.contains("\"delivered\": true").then_some(())
    })
    .await;
    assert_done_once(&fleet, &job, "").await;
    fleet.api.wait_for_worker(&host.worker, "idle").await;
}

#[tokio::test]
async fn silent_agent_resumes_its_attempt() {
    let fleet = TestFleet::start_with(&[SHORT_HEARTBEAT_TIMEOUT]).await;
    for condition in [NetworkCondition::DropUp, NetworkCondition::DropAll] {
        let (host, proxy) = add_distant_host(&fleet, &format!("silent-{condition:?}").to_lowercase()).await;
        let agent = host.start();
        fleet.api.wait_for_worker(&host.worker, "idle").await;
        let job = fleet.submit_running_job().await;
        proxy.set_condition(condition);
        fleet.api.wait_for_worker(&host.worker, "offline").await;
        assert_eq!(fleet.api.job(&job).await["status"], "queued");
        proxy.set_condition(NetworkCondition::Normal);
        fleet.api.wait_for_job(&job, "running").await;
        host.open_gate();
        assert_done_once(&fleet, &job, trainers::AT_THE_GATE_OUTPUT).await;
        drop(agent);
        fleet.api.wait_for_worker(&host.worker, "offline").await;
    }
}

#[tokio::test]
async fn reassigned_attempt_stops_at_the_first_contact() {
    let fleet = TestFleet::start_with(&[SHORT_HEARTBEAT_TIMEOUT]).await;
    let (first, proxy) = add_distant_host(&fleet, "cut-off").await;
    let second = fleet.add_host("heir").await.with_python_trainer(trainers::AT_THE_GATE);
    let _first_agent = first.start();
    let job = fleet.submit_running_job().await;
    proxy.set_condition(NetworkCondition::DropAll);
    fleet.api.wait_for_worker(&first.worker, "offline").await;
    let _second_agent = second.start();
    wait_until("the second attempt to run", async || {
        let job = fleet.api.job(&job).await;
        (job["status"] == "running" && job["attempt"] == 2).then_some(())
    })
    .await;
    assert!(!first.attempt_dir(&job, 1).join("exit.json").exists(), "the first agent does not know it yet");
    proxy.set_condition(NetworkCondition::Normal);
    first.wait_for_attempt_end(&job, 1).await;
    fleet.api.wait_for_worker(&first.worker, "idle").await;
    second.open_gate();
    let done = fleet.api.wait_for_job(&job, "completed").await;
    assert_eq!((&done["attempt"], &done["worker_id"]), (&json!(2), &json!(second.worker)));
    assert_eq!(fleet.api.log(&job).await, trainers::AT_THE_GATE_OUTPUT);
}

#[tokio::test]
async fn acceptance_without_response_is_valid_after_an_agent_crash() {
    let fleet = TestFleet::start().await;
    let (host, proxy) = add_distant_host(&fleet, "forgetful").await;
    let agent = host.start();
    fleet.api.wait_for_worker(&host.worker, "idle").await;
    // The offer arrives, but the response to its acceptance does not; the agent dies before the trainer starts.
    let job = fleet.api.submit("digits-quick").await;
    wait_until("the offer to arrive", async || host.attempt_dir(&job, 1).exists().then_some(())).await;
    proxy.set_condition(NetworkCondition::DropDown);
    fleet.api.wait_for_job(&job, "running").await;
    agent.kill().await;
    proxy.close_all();
    proxy.set_condition(NetworkCondition::Normal);
    let _next = host.start();
    host.open_gate();
    assert_done_once(&fleet, &job, trainers::AT_THE_GATE_OUTPUT).await;
}

#[tokio::test]
async fn lost_acceptance_is_repeated_by_the_next_agent() {
    let fleet = TestFleet::start().await;
    let (host, proxy) = add_distant_host(&fleet, "unlucky").await;
    let agent = host.start();
    fleet.api.wait_for_worker(&host.worker, "idle").await;
    proxy.set_condition(NetworkCondition::DropUp);
    let job = fleet.api.submit("digits-quick").await;
    wait_until("the offer to arrive", async || host.attempt_dir(&job, 1).join("spec.json").exists().then_some(()))
        .await;
    agent.kill().await;
    assert_eq!(fleet.api.job(&job).await["status"], "offered");
    proxy.close_all();
    proxy.set_condition(NetworkCondition::Normal);
    let _next = host.start();
    host.open_gate();
    assert_done_once(&fleet, &job, trainers::AT_THE_GATE_OUTPUT).await;
}

#[tokio::test]
async fn proxy_idle_timeout_does_not_end_a_stream() {
    let fleet = TestFleet::start().await;
    let (host, proxy) = add_distant_host(&fleet, "proxied").await;
    // Longer than between two pings, and shorter than between three.
    proxy.set_condition(NetworkCondition::CloseIdle(Duration::from_secs(20)));
    let _agent = host.start();
    fleet.api.wait_for_worker(&host.worker, "idle").await;
    // Nothing else is sent before the third heartbeat.
    for _ in 0..2 {
        fleet.api.wait_for_contact(&host.worker).await;
    }
    assert_eq!(proxy.stream_count(), 1, "the first stream is still open");
    let job = fleet.submit_running_job().await;
    host.open_gate();
    assert_done_once(&fleet, &job, trainers::AT_THE_GATE_OUTPUT).await;
}

#[tokio::test]
async fn slow_network_loses_nothing() {
    let fleet = TestFleet::start().await;
    let (host, proxy) = add_distant_host(&fleet, "far").await;
    proxy.set_condition(NetworkCondition::Slow(Duration::from_secs(1)));
    let _agent = host.start();
    let job = fleet.submit_running_job().await;
    host.open_gate();
    assert_done_once(&fleet, &job, trainers::AT_THE_GATE_OUTPUT).await;
}

#[tokio::test]
async fn buffering_proxy_switches_to_polling_and_back() {
    let fleet = TestFleet::start().await;
    let (host, proxy) = add_distant_host(&fleet, "behind-a-proxy").await;
    let host = host.with_flags(&["--stream-patience", "2", "--poll-for", "2"]);
    proxy.set_condition(NetworkCondition::BufferStreams);
    let agent = host.start();
    wait_until("the agent to poll", async || agent.output().contains("polling instead").then_some(())).await;
    let job = fleet.submit_running_job().await;
    host.open_gate();
    assert_done_once(&fleet, &job, trainers::AT_THE_GATE_OUTPUT).await;
    wait_until("a poll to be counted", async || {
        let metrics = String::from_utf8(fleet.api.get_bytes("/metrics").await).expect("text");
        metrics.contains("route=\"/api/workers/next\"").then_some(())
    })
    .await;
    let before = proxy.stream_count();
    proxy.set_condition(NetworkCondition::Normal);
    wait_until("a stream again", async || (proxy.stream_count() > before).then_some(())).await;
    fleet.api.wait_for_worker(&host.worker, "idle").await;
}

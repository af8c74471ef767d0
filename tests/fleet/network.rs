//! What networks do to those who train far away: they go, come back, pass one way only, take their time and hold things
//! back. No attempt is lost by it, and nothing happens twice (invariants I1, I5, I6).

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Fleet, Host, SOON, Weather, Wire, trainers, until};

/// A host whose agent reaches its server by a wire.
async fn far_away(fleet: &Fleet, name: &str) -> (Host, Wire) {
    let wire = Wire::to(fleet.port()).await;
    let host = fleet.host(name).await.reaching(&wire.url()).training_with(trainers::AT_THE_GATE);
    (host, wire)
}

/// One attempt, one end, its whole log once, and one entry in the trail for each.
async fn assert_done_once(fleet: &Fleet, job: &str, log: &str) -> Value {
    let done = fleet.api.until_job(job, "completed").await;
    let attempts = done["attempts"].as_array().expect("a list");
    assert_eq!((attempts.len(), &attempts[0]["outcome"]), (1, &json!("completed")), "{done:#}");
    assert_eq!(fleet.api.log(job).await, log);
    let ends = fleet.api.get(&format!("/api/audit?target={job}&action=job.completed")).await;
    assert_eq!(ends["entries"].as_array().map(Vec::len), Some(1), "{ends:#}");
    done
}

#[tokio::test]
async fn connections_that_break_again_and_again_lose_nothing() {
    let fleet = Fleet::start().await;
    let (host, wire) = far_away(&fleet, "flaky").await;
    let host = host.training_with(trainers::COUNTING);
    let _agent = host.start();
    let job = fleet.running().await;
    // The server has just got a piece of the log, and its answer is still on the way.
    wire.be(Weather::Slow(Duration::from_millis(500)));
    for bytes in [1_000, 8_000, 16_000, 24_000, 32_000] {
        fleet.api.until_log(&job, bytes).await;
        wire.cut();
    }
    assert_done_once(&fleet, &job, &trainers::counted()).await;
}

#[tokio::test]
async fn an_end_that_nobody_acknowledges_is_told_until_somebody_does() {
    // Its agent beats each 10 s.
    let fleet = Fleet::start_with(&[("SIMPLETUNER_HEARTBEAT_TIMEOUT", "40")]).await;
    let (host, wire) = far_away(&fleet, "unheard").await;
    let host = host.training_with(trainers::SILENT_AT_THE_GATE);
    let _agent = host.start();
    let job = fleet.running().await;
    // Nothing is on its way any more.
    fleet.api.until_heard_again(&host.worker).await;
    // The server hears everything, and the agent hears nothing of what it is answered.
    wire.be(Weather::NothingDown);
    host.open_gate();
    fleet.api.until_job(&job, "completed").await;
    // What was answered is lost, and the agent has to find out again.
    wire.cut();
    wire.be(Weather::Fair);
    until("the agent to know", async || {
        let state = std::fs::read_to_string(host.attempt(&job, 1).join("state.json")).ok()?;
        state.contains("\"delivered\": true").then_some(())
    })
    .await;
    assert_done_once(&fleet, &job, "").await;
    fleet.api.until_worker(&host.worker, "idle").await;
}

#[tokio::test]
async fn who_is_not_heard_for_a_while_goes_on_where_it_was() {
    let fleet = Fleet::start_with(&[SOON]).await;
    for weather in [Weather::NothingUp, Weather::Nothing] {
        let (host, wire) = far_away(&fleet, &format!("silent-{weather:?}").to_lowercase()).await;
        let agent = host.start();
        fleet.api.until_worker(&host.worker, "idle").await;
        let job = fleet.running().await;
        wire.be(weather);
        fleet.api.until_worker(&host.worker, "offline").await;
        assert_eq!(fleet.api.job(&job).await["status"], "queued");
        wire.be(Weather::Fair);
        fleet.api.until_job(&job, "running").await;
        host.open_gate();
        assert_done_once(&fleet, &job, trainers::THROUGH).await;
        drop(agent);
        fleet.api.until_worker(&host.worker, "offline").await;
    }
}

#[tokio::test]
async fn what_was_given_away_meanwhile_stops_at_the_first_contact() {
    let fleet = Fleet::start_with(&[SOON]).await;
    let (first, wire) = far_away(&fleet, "cut-off").await;
    let second = fleet.host("heir").await.training_with(trainers::AT_THE_GATE);
    let _cut_off = first.start();
    let job = fleet.running().await;
    wire.be(Weather::Nothing);
    fleet.api.until_worker(&first.worker, "offline").await;
    let _heir = second.start();
    until("the second attempt to run", async || {
        let job = fleet.api.job(&job).await;
        (job["status"] == "running" && job["attempt"] == 2).then_some(())
    })
    .await;
    assert!(!first.attempt(&job, 1).join("exit.json").exists(), "nobody can have told the first one");
    wire.be(Weather::Fair);
    first.until_over(&job, 1).await;
    fleet.api.until_worker(&first.worker, "idle").await;
    second.open_gate();
    let done = fleet.api.until_job(&job, "completed").await;
    assert_eq!((&done["attempt"], &done["worker_id"]), (&json!(2), &json!(second.worker)));
    assert_eq!(fleet.api.log(&job).await, trainers::THROUGH);
}

#[tokio::test]
async fn an_acceptance_whose_answer_got_lost_with_the_agent_holds() {
    let fleet = Fleet::start().await;
    let (host, wire) = far_away(&fleet, "forgetful").await;
    let agent = host.start();
    fleet.api.until_worker(&host.worker, "idle").await;
    // The offer comes, the answer to its acceptance does not; the trainer has not begun when the agent dies.
    let job = fleet.api.submit("digits-quick").await;
    until("the offer to be there", async || host.attempt(&job, 1).exists().then_some(())).await;
    wire.be(Weather::NothingDown);
    fleet.api.until_job(&job, "running").await;
    agent.kill().await;
    wire.cut();
    wire.be(Weather::Fair);
    let _next = host.start();
    host.open_gate();
    assert_done_once(&fleet, &job, trainers::THROUGH).await;
}

#[tokio::test]
async fn an_offer_whose_acceptance_got_lost_with_the_agent_is_taken_by_the_next() {
    let fleet = Fleet::start().await;
    let (host, wire) = far_away(&fleet, "unlucky").await;
    let agent = host.start();
    fleet.api.until_worker(&host.worker, "idle").await;
    wire.be(Weather::NothingUp);
    let job = fleet.api.submit("digits-quick").await;
    until("the offer to be there", async || host.attempt(&job, 1).join("spec.json").exists().then_some(())).await;
    agent.kill().await;
    assert_eq!(fleet.api.job(&job).await["status"], "offered");
    wire.cut();
    wire.be(Weather::Fair);
    let _next = host.start();
    host.open_gate();
    assert_done_once(&fleet, &job, trainers::THROUGH).await;
}

#[tokio::test]
async fn a_proxy_that_ends_what_is_idle_does_not_end_a_stream() {
    let fleet = Fleet::start().await;
    let (host, wire) = far_away(&fleet, "proxied").await;
    // Longer than between two pings, and shorter than between three.
    wire.be(Weather::IdleCut(Duration::from_secs(20)));
    let _agent = host.start();
    fleet.api.until_worker(&host.worker, "idle").await;
    // Nothing else is said before the third heartbeat is due.
    for _ in 0..2 {
        fleet.api.until_heard_again(&host.worker).await;
    }
    assert_eq!(wire.streams(), 1, "the first stream is there still");
    let job = fleet.running().await;
    host.open_gate();
    assert_done_once(&fleet, &job, trainers::THROUGH).await;
}

#[tokio::test]
async fn a_slow_network_is_only_slow() {
    let fleet = Fleet::start().await;
    let (host, wire) = far_away(&fleet, "far").await;
    wire.be(Weather::Slow(Duration::from_secs(1)));
    let _agent = host.start();
    let job = fleet.running().await;
    host.open_gate();
    assert_done_once(&fleet, &job, trainers::THROUGH).await;
}

#[tokio::test]
async fn a_proxy_that_holds_streams_back_is_polled_around_and_the_stream_comes_back() {
    let fleet = Fleet::start().await;
    let (host, wire) = far_away(&fleet, "behind-a-proxy").await;
    let host = host.flags(&["--stream-patience", "2", "--poll-for", "2"]);
    wire.be(Weather::StreamsHeld);
    let agent = host.start();
    until("the agent to poll", async || agent.said().contains("polling instead").then_some(())).await;
    let job = fleet.running().await;
    host.open_gate();
    assert_done_once(&fleet, &job, trainers::THROUGH).await;
    until("a poll to be counted", async || {
        let metrics = String::from_utf8(fleet.api.bytes("/metrics").await).expect("text");
        metrics.contains("route=\"/api/workers/next\"").then_some(())
    })
    .await;
    let before = wire.streams();
    wire.be(Weather::Fair);
    until("a stream again", async || (wire.streams() > before).then_some(())).await;
    fleet.api.until_worker(&host.worker, "idle").await;
}

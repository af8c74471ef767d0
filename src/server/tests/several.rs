//! Several servers on one database work as one.

use std::time::Duration;

use app::domain::ids::UserId;
use app::domain::time::Millis;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use axum::body::Body;

use super::harness::{By, Events, Server};
use crate::clock::{Clock, SystemClock};
use crate::files::checkpoints::SignedLines;
use crate::loops;
use crate::service::audit::verify::verify;
use crate::store::conformance::fresh_database;

async fn two() -> (Server, Server) {
    two_that_lead_for(Millis(300)).await
}

async fn two_that_lead_for(term: Millis) -> (Server, Server) {
    let database = fresh_database().await;
    (Server::start_beside("c_a", &database, term).await, Server::start_beside("c_b", &database, term).await)
}

/// Asks until it is so; the other server hears of a change a moment after it.
async fn until(what: &str, mut so: impl AsyncFnMut() -> bool) {
    let asking = async {
        while !so().await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), asking).await.unwrap_or_else(|_| panic!("in vain for {what}"));
}

#[tokio::test]
async fn an_agent_on_one_gets_what_is_submitted_on_the_other() {
    let (a, b) = two().await;
    a.config("digits").await;
    let (id, key, mut events) = a.online("gpu-1").await;
    events.of_type("drain").await;
    let job = b.submit("digits").await;
    assert_eq!(events.offer().await.job_id.as_str(), job);
    b.report(&key, &job, json!({"status": "running", "attempt": 1})).await.ok(200);
    b.call(&By::Admin, "POST", &format!("/api/queue/{job}/cancel"), "").await.ok(200);
    assert_eq!(events.of_type("job_cancel").await["job_id"], job);
    b.report(&key, &job, json!({"status": "cancelled", "attempt": 1})).await.ok(200);
    assert_eq!(a.status_of(&job).await, "cancelled");
    assert_eq!(b.get(&By::Admin, &format!("/api/admin/workers/{id}")).await.ok(200)["status"], "idle");
}

#[tokio::test]
async fn how_the_gpus_were_of_a_worker_that_the_other_one_removed_is_forgotten() {
    let (a, b) = two().await;
    let mut keys = Vec::new();
    for name in ["stays", "goes"] {
        let (id, key) = b.worker(name).await;
        let gpu = json!({"index": 0, "uuid": "GPU-0", "name": "A100"});
        b.post(&key, "/api/workers/register", json!({"protocol": 1, "gpus": [gpu]})).await.ok(200);
        let moment = json!({"at": "2024-01-15T10:30:00Z", "gpus": [{"uuid": "GPU-0", "temperature_celsius": 50.0}]});
        b.post(&key, "/api/workers/heartbeat", json!({"telemetry": [moment]})).await.ok(200);
        keys.push((id, key));
    }
    b.app.core.forget_readings().await.expect("a database");
    assert_eq!(b.app.core.readings.number(), 2, "they are there");
    let (id, key) = &keys[1];
    a.post(key, "/api/workers/disconnect", json!({})).await.ok(200);
    let path = format!("/api/admin/workers/{id}");
    assert!(a.call(&By::Admin, "DELETE", &path, Body::empty()).await.status.is_success());
    until("news of it", async || b.get(&By::Admin, &path).await.status == 404).await;
    until("the end of its readings", async || {
        b.app.core.forget_readings().await.expect("a database");
        b.app.core.readings.number() == 1
    })
    .await;
}

#[tokio::test]
async fn what_an_agent_says_of_its_gpus_counts_on_both_and_is_measured_on_its_own() {
    let (a, b) = two().await;
    let (id, key) = a.worker("gpu-1").await;
    let gpu = json!({"index": 0, "uuid": "GPU-0", "name": "A100"});
    a.post(&key, "/api/workers/register", json!({"protocol": 1, "gpus": [gpu]})).await.ok(200);
    let withheld = json!({"reason": "in_use", "detail": "process 4711 (python)"});
    let gpu = json!({"uuid": "GPU-0", "temperature_celsius": 50.0, "withheld": withheld});
    let telemetry = json!([{"at": "2024-01-15T10:30:00Z", "gpus": [gpu]}]);
    a.post(&key, "/api/workers/heartbeat", json!({"telemetry": telemetry})).await.ok(200);
    let path = format!("/api/admin/workers/{id}");
    let [here, there] =
        [a.get(&By::Admin, &path).await, b.get(&By::Admin, &path).await].map(|page| page.ok(200)["gpus"][0].clone());
    assert_eq!((&here["withheld"], &there["withheld"]), (&withheld, &withheld));
    assert_eq!((&here["reading"]["temperature_celsius"], &there["reading"]), (&json!(50.0), &json!(null)));
    b.post(&key, "/api/workers/disconnect", json!({})).await.ok(200);
    until("the goodbye", async || a.get(&By::Admin, &path).await.ok(200)["status"] == "offline").await;
    assert_eq!(a.get(&By::Admin, &path).await.ok(200)["gpus"][0]["reading"], json!(null));
}

#[tokio::test]
async fn a_rotation_on_one_ends_the_stream_on_the_other() {
    let (a, b) = two().await;
    let (id, _, mut events) = a.online("gpu-1").await;
    events.of_type("drain").await;
    b.call(&By::Admin, "POST", &format!("/api/admin/workers/{id}/token"), "").await.ok(200);
    assert!(events.next().await.is_none());
}

#[tokio::test]
async fn a_token_that_one_revokes_is_refused_by_the_other_and_its_stream_ends() {
    let (a, b) = two().await;
    let ada = a.person("ada", "lead").await;
    let made = a.post(&ada, "/api/account/tokens", json!({"name": "ci"})).await.ok(201);
    let token = By::Token(made["secret"].as_str().expect("text").to_owned());
    let mut events = Events::of(b.open(&token, "GET", "/api/events", Body::empty()).await);
    events.next().await.expect("the first message always comes");
    let path = format!("/api/account/tokens/{}", made["id"].as_str().expect("text"));
    a.call(&ada, "DELETE", &path, "").await.ok(200);
    while events.next().await.is_some() {}
    until("the other to refuse", async || b.get(&token, "/api/queue").await.status == 401).await;
}

#[tokio::test]
async fn somebody_whom_one_shuts_out_is_told_nothing_more_by_the_other() {
    let (a, b) = two().await;
    let ada = a.person("ada", "lead").await;
    let mut events = Events::of(b.open(&ada, "GET", "/api/events", Body::empty()).await);
    events.next().await.expect("the first message always comes");
    let path = format!("/api/admin/users/{}", a.id_of("ada").await);
    a.call(&By::Admin, "PATCH", &path, r#"{"disabled": true}"#).await.ok(200);
    while events.next().await.is_some() {}
    until("the other to refuse", async || b.get(&ada, "/api/queue").await.status == 401).await;
}

#[tokio::test]
async fn a_newer_stream_on_the_other_takes_the_place_of_an_older_one() {
    let (a, b) = two().await;
    a.config("digits").await;
    let (id, key, mut old) = a.online("gpu-1").await;
    old.of_type("drain").await;
    let mut new = b.stream(&key).await;
    new.of_type("drain").await;
    assert!(old.next().await.is_none(), "the old stream ends");
    drop(old);
    // Its end is nothing: offers reach the new one.
    let job = a.submit("digits").await;
    assert_eq!(new.offer().await.job_id.as_str(), job);
    assert_eq!(a.get(&By::Admin, &format!("/api/admin/workers/{id}")).await.ok(200)["status"], "busy");
}

#[tokio::test]
async fn six_submits_on_two_servers_give_one_offer_to_one_worker() {
    let (a, b) = two().await;
    a.config("digits").await;
    let (_, _, _events) = a.online("gpu-1").await;
    let jobs = tokio::join!(
        a.submit("digits"),
        b.submit("digits"),
        a.submit("digits"),
        b.submit("digits"),
        a.submit("digits"),
        b.submit("digits")
    );
    let mut offered = 0;
    for job in [jobs.0, jobs.1, jobs.2, jobs.3, jobs.4, jobs.5] {
        offered += usize::from(a.status_of(&job).await == "offered");
    }
    assert_eq!(offered, 1);
}

#[tokio::test]
async fn one_leads_and_who_ends_in_order_is_followed_at_once() {
    // Longer than any test: the database's clock is not moved by hand.
    let (a, b) = two_that_lead_for(Millis::seconds(3_600)).await;
    a.app.core.take_part().await.expect("a database");
    b.app.core.take_part().await.expect("a database");
    assert!(leads(&a) && !leads(&b));
    a.app.core.leave().await.expect("a database");
    b.app.core.take_part().await.expect("a database");
    assert!(leads(&b));
    a.app.core.take_part().await.expect("a database");
    assert!(!leads(&a), "it learns that it was replaced");
}

#[tokio::test]
async fn one_that_is_not_heard_of_any_more_leads_no_more() {
    let (a, b) = two().await;
    b.app.core.take_part().await.expect("a database");
    until("the leadership of one that is not heard of any more", async || {
        a.app.core.take_part().await.expect("a database");
        leads(&a)
    })
    .await;
}

#[tokio::test]
async fn each_looks_at_the_databases_clock_before_and_while_it_serves() {
    let (a, _b) = two().await;
    a.app.core.set_clock().await.expect("a database");
    let ahead = SystemClock.now() - a.clock.now();
    let [seen] = a.clock.shown()[..] else { panic!("once is enough") };
    assert!((seen.0 - ahead.0).abs() < 60_000, "{seen:?} {ahead:?}");
    let (tasks, end) = (TaskTracker::new(), CancellationToken::new());
    loops::start(&a.app.core, &tasks, &end);
    until("another look", async || a.clock.shown().len() > 2).await;
    end.cancel();
    tasks.close();
    tasks.wait().await;
}

#[tokio::test]
async fn who_is_alone_has_no_clock_to_follow() {
    let alone = Server::start().await;
    alone.app.core.set_clock().await.expect("a database");
    assert_eq!(alone.clock.shown(), []);
}

fn leads(server: &Server) -> bool {
    server.app.core.leadership.held_since().is_some()
}

#[tokio::test]
async fn streams_of_a_server_that_is_gone_are_forgotten() {
    let (a, b) = two().await;
    let (id, key, events) = a.online("gpu-1").await;
    a.app.core.take_part().await.expect("a database");
    a.app.shutdown.cancel();
    drop(events);
    let status = async || b.get(&By::Admin, &format!("/api/admin/workers/{id}")).await.ok(200)["status"].clone();
    assert_eq!(status().await, "idle", "nobody has said that it ended");
    until("the stream to be forgotten", async || {
        b.app.core.take_part().await.expect("a database");
        status().await == "connecting"
    })
    .await;
    let _events = b.stream(&key).await;
    assert_eq!(status().await, "idle");
}

#[tokio::test]
async fn who_is_heard_of_on_one_is_not_silent_to_the_other() {
    let (a, b) = two().await;
    b.app.core.take_part().await.expect("a database");
    let (id, key, _events) = a.online("gpu-1").await;
    for server in [&a, &b] {
        server.clock.advance(Millis::seconds(100));
    }
    a.heartbeat(&key, json!([])).await;
    a.app.core.flush_presence().await.expect("a database");
    for server in [&a, &b] {
        server.clock.advance(Millis::seconds(100));
    }
    b.app.core.check_health().await.expect("a database");
    let status = async || b.get(&By::Admin, &format!("/api/admin/workers/{id}")).await.ok(200)["status"].clone();
    assert_eq!(status().await, "idle");
    b.clock.advance(Millis::seconds(21));
    b.app.core.check_health().await.expect("a database");
    assert_eq!(status().await, "offline");
}

#[tokio::test]
async fn who_is_heard_of_by_a_clock_that_is_ahead_is_not_silent() {
    let (a, b) = two().await;
    b.app.core.take_part().await.expect("a database");
    let (id, key, _events) = a.online("gpu-1").await;
    for server in [&a, &b] {
        server.clock.advance(Millis::seconds(200));
    }
    a.clock.advance(Millis::seconds(5));
    a.heartbeat(&key, json!([])).await;
    a.app.core.flush_presence().await.expect("a database");
    b.app.core.check_health().await.expect("a database");
    let view = b.get(&By::Admin, &format!("/api/admin/workers/{id}")).await.ok(200);
    assert_eq!(view["status"], "idle", "{view:?}");
}

#[tokio::test]
async fn a_refusal_on_one_does_not_make_it_deaf_to_the_other() {
    let (a, b) = two().await;
    let (id, key, _events) = a.online("gpu-1").await;
    let twin = json!({"name": "gpu-1"});
    a.post(&By::Admin, "/api/admin/workers", twin).await.problem(409, "name_taken");
    b.call(&By::Admin, "POST", &format!("/api/admin/workers/{id}/token"), "").await.ok(200);
    until("the old token to open nothing", async || {
        // It goes on committing, and so believes what it has put up.
        a.app.core.take_part().await.expect("a database");
        a.get(&key, "/api/workers/queue").await.status == 401
    })
    .await;
}

#[tokio::test]
async fn the_trails_of_both_are_read_as_one_and_each_is_a_chain() {
    let (a, b) = two().await;
    for (server, name) in [(&a, "one"), (&b, "two"), (&a, "three")] {
        for clock in [&a.clock, &b.clock] {
            clock.advance(Millis(1));
        }
        server.config(name).await;
    }
    let page = a.get(&By::Admin, "/api/audit?action=config.").await.ok(200);
    let entries = page["entries"].as_array().expect("a list").iter();
    let told: Vec<_> = entries.map(|entry| (entry["target"].clone(), entry["chain"].clone())).collect();
    let expected = [("three", "c_a"), ("two", "c_b"), ("one", "c_a")];
    assert_eq!(told, expected.map(|(name, chain)| (json!(name), json!(chain))));
    let mut tx = b.app.core.read().await.expect("a database");
    let verdict = verify(&mut *tx, None, &SignedLines::default(), false, app::domain::time::Timestamp(0))
        .await
        .expect("readable");
    assert_eq!((verdict.report.chains, verdict.report.entries, verdict.report.faults), (2, 5, vec![]));
}

#[tokio::test]
async fn a_session_that_is_used_on_one_lives_on_for_the_other() {
    let (a, b) = two_that_lead_for(Millis::seconds(600)).await;
    a.app.core.take_part().await.expect("a database");
    let ada = b.person("ada", "viewer").await;
    let id = UserId::parse(&b.id_of("ada").await).expect("an id");
    b.clock.advance(Millis::seconds(3_600));
    b.get(&ada, "/api/session").await.ok(200);
    let seen_at = async || {
        let sessions = a.app.core.store.read().await.expect("a database").sessions(&id).await.expect("readable");
        sessions.first().expect("one").seen_at
    };
    assert!(seen_at().await < b.app.core.now(), "it is not written at each use");
    // The one that does not lead, and sweeps nothing, says it all the same.
    let tasks = TaskTracker::new();
    loops::start(&b.app.core, &tasks, &b.app.shutdown);
    until("the loop", async || seen_at().await == b.app.core.now()).await;
    assert_eq!(b.app.core.leadership.held_since(), None);
    b.app.shutdown.cancel();
    tasks.close();
    tasks.wait().await;
}

#[tokio::test]
async fn what_an_older_agent_says_to_one_is_answered_by_its_stream_on_the_other() {
    let (a, b) = two().await;
    a.config("digits").await;
    let (_, key) = a.worker("old").await;
    let body = json!({"name": "old", "gpu_info": {"accelerator": "cpu"}, "persistent": true});
    a.post(&key, "/api/workers/register", body).await.ok(200);
    let mut events = a.stream(&key).await;
    let job = a.submit("digits").await;
    events.offer().await;
    b.call(&By::Admin, "POST", &format!("/api/queue/{job}/cancel"), "").await.ok(200);
    b.post(&key, "/api/workers/heartbeat", json!({"status": "busy", "current_job_id": job})).await.ok(200);
    assert_eq!(events.of_type("job_cancel").await["job_id"], job);
    let next = b.submit("digits").await;
    assert_eq!(a.status_of(&next).await, "queued");
    b.post(&key, "/api/workers/heartbeat", json!({"status": "idle"})).await.ok(200);
    assert_eq!(events.offer().await.job_id.as_str(), next);
}

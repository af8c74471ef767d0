//! Several servers on one database behave as one.

use std::time::Duration;

use app::domain::ids::UserId;
use app::domain::time::Millis;
use app::protocol::topic::Topic;
use axum::body::Body;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::clock::{Clock, SystemClock};
use crate::files::audit_checkpoints::SignedLines;
use crate::loops;
use crate::service::ServerPolicy;
use crate::service::audit::verify::verify_audit_log;
use crate::service::policy::rate_quotas::RateQuotas;
use crate::store::conformance::fresh_database;
use crate::tests::harness::{Actor, EventStreamReader, TestServer};

async fn two_servers() -> (TestServer, TestServer) {
    two_servers_with_term(Millis(300)).await
}

async fn two_servers_with_term(term: Millis) -> (TestServer, TestServer) {
    let database = fresh_database().await;
    (TestServer::start_shared("c_a", &database, term).await, TestServer::start_shared("c_b", &database, term).await)
}

/// Repeats a request until the condition holds; the other server notices changes with a short delay.
async fn wait_until(event: &str, mut is_reached: impl AsyncFnMut() -> bool) {
    let polling = async {
        while !is_reached().await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), polling)
        .await
        .unwrap_or_else(|_| panic!("timed out waiting for {event}"));
}

#[tokio::test]
async fn agent_on_one_server_gets_jobs_submitted_on_the_other() {
    let (a, b) = two_servers().await;
    a.put_config("digits").await;
    let (id, key, mut events) = a.connect_worker("gpu-1").await;
    events.next_of_type("drain").await;
    let job = b.submit("digits").await;
    assert_eq!(events.next_offer().await.job_id.as_str(), job);
    b.report_status(&key, &job, json!({"status": "running", "attempt": 1})).await.expect_status(200);
    b.call(&Actor::Admin, "POST", &format!("/api/queue/{job}/cancel"), "").await.expect_status(200);
    assert_eq!(events.next_of_type("job_cancel").await["job_id"], job);
    b.report_status(&key, &job, json!({"status": "cancelled", "attempt": 1})).await.expect_status(200);
    assert_eq!(a.job_status(&job).await, "cancelled");
    assert_eq!(b.get(&Actor::Admin, &format!("/api/admin/workers/{id}")).await.expect_status(200)["status"], "idle");
}

#[tokio::test]
async fn rate_limits_hold_across_servers() {
    let database = fresh_database().await;
    let limits = |policy: &mut ServerPolicy| policy.quotas = RateQuotas::new(1, 0, 0);
    let a = TestServer::start_shared_with("c_a", &database, limits).await;
    let b = TestServer::start_shared_with("c_b", &database, limits).await;
    // A burst is ten requests.
    for _ in 0..6 {
        a.get(&Actor::Admin, "/api/queue").await.expect_status(200);
    }
    let mut changes = b.app.services.context.notifier.subscribe_topic(&Topic::Configs);
    a.app.services.access.share_charges().await.expect("a database");
    // PostgreSQL delivers notifications in the order of commits, so after this one the charges have arrived.
    a.put_config("digits").await;
    changes.changed().await.expect("the other server's change");
    for _ in 0..4 {
        b.get(&Actor::Admin, "/api/queue").await.expect_status(200);
    }
    b.get(&Actor::Admin, "/api/queue").await.expect_problem(429, "too_many_requests");
}

#[tokio::test]
async fn gpu_history_of_a_worker_deleted_on_the_other_server_is_removed() {
    let (a, b) = two_servers().await;
    let mut keys = Vec::new();
    for name in ["stays", "goes"] {
        let (id, key) = b.create_worker(name).await;
        let gpu = json!({"index": 0, "uuid": "GPU-0", "name": "A100"});
        b.post(&key, "/api/workers/register", json!({"protocol": 1, "gpus": [gpu]})).await.expect_status(200);
        let readings = json!({"at": "2024-01-15T10:30:00Z", "gpus": [{"uuid": "GPU-0", "temperature_celsius": 50.0}]});
        b.post(&key, "/api/workers/heartbeat", json!({"telemetry": [readings]})).await.expect_status(200);
        keys.push((id, key));
    }
    b.app.services.gpus.prune_readings().await.expect("a database");
    assert_eq!(b.app.services.gpus.readings.worker_count(), 2, "both have readings");
    let (id, key) = &keys[1];
    a.post(key, "/api/workers/disconnect", json!({})).await.expect_status(200);
    let path = format!("/api/admin/workers/{id}");
    assert!(a.call(&Actor::Admin, "DELETE", &path, Body::empty()).await.status.is_success());
    wait_until("the change notification", async || b.get(&Actor::Admin, &path).await.status == 404).await;
    wait_until("the end of its readings", async || {
        b.app.services.gpus.prune_readings().await.expect("a database");
        b.app.services.gpus.readings.worker_count() == 1
    })
    .await;
}

#[tokio::test]
async fn gpu_reports_apply_on_both_servers() {
    let (a, b) = two_servers().await;
    let (id, key) = a.create_worker("gpu-1").await;
    let gpu = json!({"index": 0, "uuid": "GPU-0", "name": "A100"});
    a.post(&key, "/api/workers/register", json!({"protocol": 1, "gpus": [gpu]})).await.expect_status(200);
    let unavailable = json!({"reason": "in_use", "detail": "process 4711 (python)"});
    let gpu = json!({"uuid": "GPU-0", "temperature_celsius": 50.0, "unavailable": unavailable});
    let telemetry = json!([{"at": "2024-01-15T10:30:00Z", "gpus": [gpu]}]);
    a.post(&key, "/api/workers/heartbeat", json!({"telemetry": telemetry})).await.expect_status(200);
    let path = format!("/api/admin/workers/{id}");
    let [on_a, on_b] = [a.get(&Actor::Admin, &path).await, b.get(&Actor::Admin, &path).await]
        .map(|page| page.expect_status(200)["gpus"][0].clone());
    assert_eq!((&on_a["unavailable"], &on_b["unavailable"]), (&unavailable, &unavailable));
    assert_eq!((&on_a["reading"]["temperature_celsius"], &on_b["reading"]), (&json!(50.0), &json!(null)));
    b.post(&key, "/api/workers/disconnect", json!({})).await.expect_status(200);
    wait_until("the disconnect", async || a.get(&Actor::Admin, &path).await.expect_status(200)["status"] == "offline")
        .await;
    assert_eq!(a.get(&Actor::Admin, &path).await.expect_status(200)["gpus"][0]["reading"], json!(null));
}

#[tokio::test]
async fn rotation_on_one_server_ends_the_stream_on_the_other() {
    let (a, b) = two_servers().await;
    let (id, _, mut events) = a.connect_worker("gpu-1").await;
    events.next_of_type("drain").await;
    b.call(&Actor::Admin, "POST", &format!("/api/admin/workers/{id}/token"), "").await.expect_status(200);
    assert!(events.next().await.is_none());
}

#[tokio::test]
async fn token_revoked_on_one_server_is_rejected_on_the_other() {
    let (a, b) = two_servers().await;
    let ada = a.add_user("ada", "lead").await;
    let created = a.post(&ada, "/api/account/tokens", json!({"name": "ci"})).await.expect_status(201);
    let token = Actor::Token(created["secret"].as_str().expect("text").to_owned());
    let mut events = EventStreamReader::new(b.open(&token, "GET", "/api/events", Body::empty()).await);
    events.next().await.expect("the first message");
    let path = format!("/api/account/tokens/{}", created["id"].as_str().expect("text"));
    a.call(&ada, "DELETE", &path, "").await.expect_status(200);
    while events.next().await.is_some() {}
    wait_until("the other to reject it", async || b.get(&token, "/api/queue").await.status == 401).await;
}

#[tokio::test]
async fn user_disabled_on_one_server_gets_no_events_from_the_other() {
    let (a, b) = two_servers().await;
    let ada = a.add_user("ada", "lead").await;
    let mut events = EventStreamReader::new(b.open(&ada, "GET", "/api/events", Body::empty()).await);
    events.next().await.expect("the first message");
    let path = format!("/api/admin/users/{}", a.user_id("ada").await);
    a.call(&Actor::Admin, "PATCH", &path, r#"{"disabled": true}"#).await.expect_status(200);
    while events.next().await.is_some() {}
    wait_until("the other to reject it", async || b.get(&ada, "/api/queue").await.status == 401).await;
}

#[tokio::test]
async fn newer_stream_on_the_other_server_replaces_the_older_one() {
    let (a, b) = two_servers().await;
    a.put_config("digits").await;
    let (id, key, mut old) = a.connect_worker("gpu-1").await;
    old.next_of_type("drain").await;
    let mut new = b.open_stream(&key).await;
    new.next_of_type("drain").await;
    assert!(old.next().await.is_none(), "the old stream ends");
    drop(old);
    // Its end has no effect: offers reach the new stream.
    let job = a.submit("digits").await;
    assert_eq!(new.next_offer().await.job_id.as_str(), job);
    assert_eq!(a.get(&Actor::Admin, &format!("/api/admin/workers/{id}")).await.expect_status(200)["status"], "busy");
}

#[tokio::test]
async fn six_submits_on_two_servers_make_one_offer_for_one_worker() {
    let (a, b) = two_servers().await;
    a.put_config("digits").await;
    let (_, _, _events) = a.connect_worker("gpu-1").await;
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
        offered += usize::from(a.job_status(&job).await == "offered");
    }
    assert_eq!(offered, 1);
}

#[tokio::test]
async fn orderly_shutdown_hands_over_leadership_immediately() {
    // Longer than any test: the database's clock cannot be set.
    let (a, b) = two_servers_with_term(Millis::from_secs(3_600)).await;
    a.app.services.system.renew_leadership().await.expect("a database");
    b.app.services.system.renew_leadership().await.expect("a database");
    assert!(is_leader(&a) && !is_leader(&b));
    a.app.services.system.resign().await.expect("a database");
    b.app.services.system.renew_leadership().await.expect("a database");
    assert!(is_leader(&b));
    a.app.services.system.renew_leadership().await.expect("a database");
    assert!(!is_leader(&a), "it is no longer the leader");
}

#[tokio::test]
async fn silent_leader_is_replaced() {
    let (a, b) = two_servers().await;
    b.app.services.system.renew_leadership().await.expect("a database");
    wait_until("the leadership of a silent server", async || {
        a.app.services.system.renew_leadership().await.expect("a database");
        is_leader(&a)
    })
    .await;
}

#[tokio::test]
async fn servers_follow_the_database_clock() {
    let (a, _b) = two_servers().await;
    a.app.services.system.sync_clock_at_start().await.expect("a database");
    let expected = SystemClock.now() - a.clock.now();
    let [offset] = a.clock.followed_offsets()[..] else { panic!("the clock is set once") };
    assert!((offset.0 - expected.0).abs() < 60_000, "{offset:?} {expected:?}");
    let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
    loops::start(&a.app.services, &tasks, &stop);
    wait_until("further clock readings", async || a.clock.followed_offsets().len() > 2).await;
    stop.cancel();
    tasks.close();
    tasks.wait().await;
}

#[tokio::test]
async fn single_server_follows_its_own_clock() {
    let server = TestServer::start().await;
    server.app.services.system.sync_clock_at_start().await.expect("a database");
    assert_eq!(server.clock.followed_offsets(), []);
}

fn is_leader(server: &TestServer) -> bool {
    server.app.services.context.leadership.held_since().is_some()
}

#[tokio::test]
async fn streams_of_a_stopped_server_are_forgotten() {
    let (a, b) = two_servers().await;
    let (id, key, events) = a.connect_worker("gpu-1").await;
    a.app.services.system.renew_leadership().await.expect("a database");
    a.app.shutdown.cancel();
    drop(events);
    let status =
        async || b.get(&Actor::Admin, &format!("/api/admin/workers/{id}")).await.expect_status(200)["status"].clone();
    assert_eq!(status().await, "idle", "the end of the stream was not reported");
    wait_until("the stream to be forgotten", async || {
        b.app.services.system.renew_leadership().await.expect("a database");
        status().await == "connecting"
    })
    .await;
    let _events = b.open_stream(&key).await;
    assert_eq!(status().await, "idle");
}

#[tokio::test]
async fn contact_on_one_server_counts_on_the_other() {
    let (a, b) = two_servers().await;
    b.app.services.system.renew_leadership().await.expect("a database");
    let (id, key, _events) = a.connect_worker("gpu-1").await;
    for server in [&a, &b] {
        server.clock.advance(Millis::from_secs(100));
    }
    a.heartbeat(&key, json!([])).await;
    a.app.services.agents.flush_presence().await.expect("a database");
    for server in [&a, &b] {
        server.clock.advance(Millis::from_secs(100));
    }
    b.app.services.agents.check_health().await.expect("a database");
    let status =
        async || b.get(&Actor::Admin, &format!("/api/admin/workers/{id}")).await.expect_status(200)["status"].clone();
    assert_eq!(status().await, "idle");
    b.clock.advance(Millis::from_secs(21));
    b.app.services.agents.check_health().await.expect("a database");
    assert_eq!(status().await, "offline");
}

#[tokio::test]
async fn contact_by_a_clock_ahead_counts() {
    let (a, b) = two_servers().await;
    b.app.services.system.renew_leadership().await.expect("a database");
    let (id, key, _events) = a.connect_worker("gpu-1").await;
    for server in [&a, &b] {
        server.clock.advance(Millis::from_secs(200));
    }
    a.clock.advance(Millis::from_secs(5));
    a.heartbeat(&key, json!([])).await;
    a.app.services.agents.flush_presence().await.expect("a database");
    b.app.services.agents.check_health().await.expect("a database");
    let view = b.get(&Actor::Admin, &format!("/api/admin/workers/{id}")).await.expect_status(200);
    assert_eq!(view["status"], "idle", "{view:?}");
}

#[tokio::test]
async fn rejection_on_one_server_keeps_its_notifications() {
    let (a, b) = two_servers().await;
    let (id, key, _events) = a.connect_worker("gpu-1").await;
    let same_name = json!({"name": "gpu-1"});
    a.post(&Actor::Admin, "/api/admin/workers", same_name).await.expect_problem(409, "name_taken");
    b.call(&Actor::Admin, "POST", &format!("/api/admin/workers/{id}/token"), "").await.expect_status(200);
    wait_until("the old token to be rejected", async || {
        // It still commits, and so assumes that its cache is current.
        a.app.services.system.renew_leadership().await.expect("a database");
        a.get(&key, "/api/workers/queue").await.status == 401
    })
    .await;
}

#[tokio::test]
async fn audit_logs_of_both_servers_are_one_list_and_two_chains() {
    let (a, b) = two_servers().await;
    for (server, name) in [(&a, "one"), (&b, "two"), (&a, "three")] {
        for clock in [&a.clock, &b.clock] {
            clock.advance(Millis(1));
        }
        server.put_config(name).await;
    }
    let page = a.get(&Actor::Admin, "/api/audit?action=config.").await.expect_status(200);
    let entries = page["entries"].as_array().expect("a list").iter();
    let rows: Vec<_> = entries.map(|entry| (entry["target"].clone(), entry["chain"].clone())).collect();
    let expected = [("three", "c_a"), ("two", "c_b"), ("one", "c_a")];
    assert_eq!(rows, expected.map(|(name, chain)| (json!(name), json!(chain))));
    let mut tx = b.app.services.context.read().await.expect("a database");
    let verdict = verify_audit_log(&mut *tx, None, &SignedLines::default(), false, app::domain::time::Timestamp(0))
        .await
        .expect("readable");
    assert_eq!((verdict.report.chains, verdict.report.entries, verdict.report.faults), (2, 5, vec![]));
}

#[tokio::test]
async fn session_used_on_one_server_stays_valid_on_the_other() {
    let (a, b) = two_servers_with_term(Millis::from_secs(600)).await;
    a.app.services.system.renew_leadership().await.expect("a database");
    let ada = b.add_user("ada", "viewer").await;
    let id = UserId::parse(&b.user_id("ada").await).expect("an id");
    b.clock.advance(Millis::from_secs(3_600));
    b.get(&ada, "/api/session").await.expect_status(200);
    let last_used_at = async || {
        let sessions =
            a.app.services.context.store.read().await.expect("a database").sessions(&id).await.expect("readable");
        sessions.first().expect("a session").last_used_at
    };
    assert!(last_used_at().await < b.app.services.context.now(), "it is not written at each use");
    // The server that is not the leader, and does not clean up, writes it too.
    let tasks = TaskTracker::new();
    loops::start(&b.app.services, &tasks, &b.app.shutdown);
    wait_until("the loop", async || last_used_at().await == b.app.services.context.now()).await;
    assert_eq!(b.app.services.context.leadership.held_since(), None);
    b.app.shutdown.cancel();
    tasks.close();
    tasks.wait().await;
}

#[tokio::test]
async fn report_to_one_server_is_answered_on_the_stream_of_the_other() {
    let (a, b) = two_servers().await;
    a.put_config("digits").await;
    let (_, key) = a.create_worker("old").await;
    let body = json!({"name": "old", "gpu_info": {"accelerator": "cpu"}, "persistent": true});
    a.post(&key, "/api/workers/register", body).await.expect_status(200);
    let mut events = a.open_stream(&key).await;
    let job = a.submit("digits").await;
    events.next_offer().await;
    b.call(&Actor::Admin, "POST", &format!("/api/queue/{job}/cancel"), "").await.expect_status(200);
    b.post(&key, "/api/workers/heartbeat", json!({"status": "busy", "current_job_id": job})).await.expect_status(200);
    assert_eq!(events.next_of_type("job_cancel").await["job_id"], job);
    let next = b.submit("digits").await;
    assert_eq!(a.job_status(&next).await, "queued");
    b.post(&key, "/api/workers/heartbeat", json!({"status": "idle"})).await.expect_status(200);
    assert_eq!(events.next_offer().await.job_id.as_str(), next);
}

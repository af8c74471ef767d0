//! I1 for exclusive jobs: an attempt is not offered to another worker until its agent must have stopped it, whatever
//! the reason of the loss. Agents count the lease from their last answered request.

mod retries;

use app::domain::time::Millis;
use serde_json::{Value, json};

use crate::store::conformance::fresh_database;
use crate::tests::agents::older::wait_until_disconnected;
use crate::tests::harness::{Actor, EventStreamReader, TestServer};

/// The heartbeat timeout, in seconds.
const LEASE: i64 = 120;

async fn submit(server: &TestServer) -> String {
    let body = json!({"config_name": "digits", "target": "worker", "exclusive": true});
    let response = server.post(&Actor::Admin, "/api/queue/submit", body).await.expect_status(201);
    response["job_id"].as_str().expect("text").to_owned()
}

/// A running job, and another worker that matches it.
struct ExclusiveScenario {
    server: TestServer,
    worker: String,
    key: Actor,
    token: Actor,
    job: String,
    other: Actor,
    _events: (EventStreamReader, EventStreamReader),
}

impl ExclusiveScenario {
    async fn start() -> Self {
        let server = TestServer::start().await;
        server.put_config("digits").await;
        let (worker, key, mut events) = server.connect_worker("gpu-1").await;
        let job = submit(&server).await;
        let offer = events.next_offer().await;
        assert!(offer.exclusive, "the offer tells the agent that the job is exclusive");
        server.report_status(&key, &job, json!({"status": "running", "attempt": 1})).await.expect_status(200);
        let (_, other, other_events) = server.connect_worker("gpu-2").await;
        let token = Actor::Job(offer.upload_token);
        Self { server, worker, key, token, job, other, _events: (events, other_events) }
    }

    fn attempt_claim(&self) -> Value {
        json!([{"job_id": self.job, "attempt": 1}])
    }

    /// Advances the clock; the other worker sends heartbeats.
    async fn advance(&self, seconds: i64) {
        for _ in 0..seconds {
            self.server.clock.advance(Millis::from_secs(1));
            self.server.heartbeat(&self.other, json!([])).await;
            self.server.advance(Millis(0)).await;
        }
    }

    async fn status(&self) -> String {
        self.server.job_status(&self.job).await
    }

    /// Checks that the job is delayed for a full lease, which is explained, and is then offered to the other worker.
    async fn assert_reassigned_after_a_lease(&self) {
        assert_eq!(self.status().await, "queued");
        self.advance(LEASE - 1).await;
        assert_eq!(self.status().await, "queued", "the previous trainer may still run");
        let path = format!("/api/queue/{}/explain", self.job);
        let explained = self.server.get(&Actor::Admin, &path).await.expect_status(200);
        assert_eq!(explained["verdict"], "held", "{explained}");
        assert!(
            explained["until"].is_string()
                && explained["text"].as_str().is_some_and(|text| text.starts_with("Exclusive job"))
        );
        self.advance(1).await;
        let view = self.server.job(&self.job).await;
        assert_eq!((&view["status"], &view["attempt"]), (&json!("offered"), &json!(2)));
    }
}

#[tokio::test]
async fn exclusive_is_shown_and_copied_by_a_retry() {
    let scenario = ExclusiveScenario::start().await;
    assert_eq!(scenario.server.job(&scenario.job).await["exclusive"], true);
    scenario
        .server
        .report_status(&scenario.key, &scenario.job, json!({"status": "completed", "attempt": 1}))
        .await
        .expect_status(200);
    let path = format!("/api/queue/{}/retry", scenario.job);
    let again = scenario.server.call(&Actor::Admin, "POST", &path, "").await.expect_status(201);
    assert_eq!(again["status"], "offered", "the previous trainer has stopped");
    let id = again["job_id"].as_str().expect("text");
    assert_eq!(scenario.server.job(id).await["exclusive"], true);
}

#[tokio::test]
async fn older_agents_get_no_exclusive_jobs_and_that_is_explained() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (_, key) = server.create_worker("old").await;
    server.post(&key, "/api/workers/register", json!({"name": "old", "persistent": true})).await.expect_status(200);
    let _events = server.open_stream(&key).await;
    let job = submit(&server).await;
    let explained = server.get(&Actor::Admin, &format!("/api/queue/{job}/explain")).await.expect_status(200);
    let blocker = &explained["workers"][0]["blockers"][0];
    assert_eq!(
        (&explained["verdict"], &blocker["code"]),
        (&json!("worker_unavailable"), &json!("cannot_stop")),
        "{explained}"
    );
    assert!(blocker["change"].as_str().is_some_and(|change| change.contains("simpletuner-worker")));
    let plain = server.submit("digits").await;
    assert_eq!(server.job_status(&plain).await, "offered", "jobs that are not exclusive are offered");
}

#[tokio::test]
async fn offer_is_withdrawn_from_a_worker_with_an_older_agent() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (id, key, events) = server.connect_worker("gpu-1").await;
    let job = submit(&server).await;
    drop(events);
    wait_until_disconnected(&server, &id).await;
    server.post(&key, "/api/workers/register", json!({"name": "old", "persistent": true})).await.expect_status(200);
    assert_eq!(server.job_status(&job).await, "queued");
}

#[tokio::test]
async fn after_silence() {
    let scenario = ExclusiveScenario::start().await;
    scenario.advance(LEASE).await;
    assert_eq!(scenario.status().await, "running");
    scenario.advance(1).await;
    scenario.assert_reassigned_after_a_lease().await;
}

#[tokio::test]
async fn after_a_disconnect_that_left_it_running() {
    let scenario = ExclusiveScenario::start().await;
    let disconnect = json!({"left_running": scenario.attempt_claim()});
    scenario.server.post(&scenario.key, "/api/workers/disconnect", disconnect).await.expect_status(200);
    scenario.advance(LEASE).await;
    assert_eq!(scenario.status().await, "running", "its agent may reconnect");
    scenario.advance(1).await;
    scenario.assert_reassigned_after_a_lease().await;
}

#[tokio::test]
async fn after_its_offline_worker_was_deleted() {
    let scenario = ExclusiveScenario::start().await;
    let disconnect = json!({"left_running": scenario.attempt_claim()});
    scenario.server.post(&scenario.key, "/api/workers/disconnect", disconnect).await.expect_status(200);
    scenario
        .server
        .call(&Actor::Admin, "DELETE", &format!("/api/admin/workers/{}", scenario.worker), "")
        .await
        .expect_status(200);
    scenario.assert_reassigned_after_a_lease().await;
}

#[tokio::test]
async fn after_its_agent_came_back_without_it() {
    let scenario = ExclusiveScenario::start().await;
    scenario.server.register(&scenario.key, json!([])).await;
    scenario.assert_reassigned_after_a_lease().await;
}

#[tokio::test]
async fn job_forgotten_by_a_twin_returns_with_its_agent() {
    let scenario = ExclusiveScenario::start().await;
    scenario.server.register(&scenario.key, json!([])).await;
    scenario.advance(60).await;
    assert_eq!(scenario.status().await, "queued");
    assert!(scenario.server.heartbeat(&scenario.key, scenario.attempt_claim()).await.stop.is_empty());
    assert_eq!(scenario.status().await, "running");
    scenario.server.register(&scenario.key, json!([])).await;
    scenario.assert_reassigned_after_a_lease().await;
}

#[tokio::test]
async fn while_its_lost_attempt_is_answered() {
    let scenario = ExclusiveScenario::start().await;
    scenario.server.register(&scenario.key, json!([])).await;
    let (server, job_path) = (&scenario.server, format!("/api/workers/job/{}", scenario.job));
    let point = json!({"attempt": 1, "points": []});
    for round in 0..4_u32 {
        scenario.advance(LEASE - 1).await;
        assert_eq!(scenario.status().await, "queued", "{round}");
        let response = match round {
            0 => server.call(&scenario.token, "PUT", &format!("{job_path}/logs?attempt=1&offset=0"), "more").await,
            1 => server.post(&scenario.token, &format!("{job_path}/progress"), point.clone()).await,
            2 => server.get(&scenario.token, &format!("{job_path}/bundle?attempt=1")).await,
            _ => server.post(&scenario.token, &format!("{job_path}/secrets"), json!({})).await,
        };
        response.expect_status(200);
    }
    scenario.advance(LEASE - 1).await;
    assert_eq!(scenario.status().await, "queued");
    scenario.advance(11).await;
    assert_eq!(scenario.status().await, "offered");
    let late = server.call(&scenario.token, "PUT", &format!("{job_path}/logs?attempt=1&offset=4"), "late").await;
    late.expect_problem(409, "stale_attempt");
}

/// Its agent must stop it; the response has renewed the agent's lease, and a trainer takes time to stop.
#[tokio::test]
async fn after_a_heartbeat_about_an_attempt_whose_slot_is_taken() {
    let scenario = ExclusiveScenario::start().await;
    let server = &scenario.server;
    server.register(&scenario.key, json!([])).await;
    let _events = server.open_stream(&scenario.key).await;
    for job in [server.submit("digits").await, server.submit("digits").await] {
        let has_its_slot = server.job(&job).await["worker_id"] == scenario.worker;
        let (key, status) = if has_its_slot { (&scenario.key, "running") } else { (&scenario.other, "completed") };
        server.report_status(key, &job, json!({"status": status, "attempt": 1})).await.expect_status(200);
    }
    scenario.advance(LEASE / 2).await;
    let desired = server.heartbeat(&scenario.key, scenario.attempt_claim()).await;
    assert_eq!(desired.stop.len(), 1, "{desired:?}");
    scenario.advance(LEASE - 1).await;
    assert_eq!(scenario.status().await, "queued", "its trainer may run");
}

/// The report ends the delay, but the attempt was lost before.
#[tokio::test]
async fn late_report_of_a_lost_attempt_is_recorded_as_one_loss() {
    let scenario = ExclusiveScenario::start().await;
    let server = &scenario.server;
    server.register(&scenario.key, json!([])).await;
    let lost = server.job(&scenario.job).await["attempts"].clone();
    let report = json!({"status": "requeue", "attempt": 1, "unhealthy_reason": "The disk is full."});
    scenario.advance(1).await;
    server.report_status(&scenario.key, &scenario.job, report).await.expect_status(200);
    let query = format!("/api/audit?action=job.requeued&target={}", scenario.job);
    let entries = server.get(&Actor::Admin, &query).await.expect_status(200)["entries"].clone();
    assert_eq!(entries.as_array().map(Vec::len), Some(1), "{entries}");
    assert_eq!(server.job(&scenario.job).await["attempts"][0], lost[0], "it ended when it was lost");
    scenario.advance(10).await;
    assert_eq!(scenario.status().await, "offered", "after its back-off: nothing of it runs");
}

#[tokio::test]
async fn after_its_token_was_rotated() {
    let scenario = ExclusiveScenario::start().await;
    scenario
        .server
        .call(&Actor::Admin, "POST", &format!("/api/admin/workers/{}/token", scenario.worker), "")
        .await
        .expect_status(200);
    scenario.advance(LEASE - 1).await;
    let log = format!("/api/workers/job/{}/logs?attempt=1&offset=0", scenario.job);
    scenario.server.call(&scenario.token, "PUT", &log, "on").await.expect_status(200);
    scenario.advance(LEASE).await;
    assert_eq!(scenario.status().await, "running", "a request with its job token is a contact");
    scenario.advance(1).await;
    scenario.assert_reassigned_after_a_lease().await;
}

#[tokio::test]
async fn after_a_drain_deadline_reported_by_its_agent_only() {
    let scenario = ExclusiveScenario::start().await;
    let drain = format!("/api/admin/workers/{}/drain", scenario.worker);
    scenario.server.post(&Actor::Admin, &drain, json!({"deadline_seconds": 10})).await.expect_status(200);
    scenario.advance(LEASE).await;
    assert_eq!(scenario.status().await, "running", "it was asked to stop, and has not confirmed");
    scenario
        .server
        .report_status(&scenario.key, &scenario.job, json!({"status": "requeue", "attempt": 1}))
        .await
        .expect_status(200);
    assert_eq!(scenario.status().await, "offered", "it has stopped");
}

#[tokio::test]
async fn after_an_unconfirmed_cancel() {
    let scenario = ExclusiveScenario::start().await;
    let (cancel, retry) = (format!("/api/queue/{}/cancel", scenario.job), format!("/api/queue/{}/retry", scenario.job));
    scenario.server.call(&Actor::Admin, "POST", &cancel, "").await.expect_status(200);
    scenario.server.call(&Actor::Admin, "POST", &retry, "").await.expect_problem(409, "job_not_ended");
    scenario.advance(LEASE + 1).await;
    assert_eq!(scenario.status().await, "cancelled");
    let again = scenario.server.call(&Actor::Admin, "POST", &retry, "").await.expect_status(201);
    let again = again["job_id"].as_str().expect("text").to_owned();
    scenario.advance(LEASE - 1).await;
    assert_eq!(scenario.server.job_status(&again).await, "queued", "the previous trainer may still run");
    scenario.advance(1).await;
    assert_eq!(scenario.server.job_status(&again).await, "offered");
}

#[tokio::test]
async fn after_a_cancel_during_the_fencing_delay() {
    let scenario = ExclusiveScenario::start().await;
    scenario.server.register(&scenario.key, json!([])).await;
    scenario
        .server
        .call(&Actor::Admin, "POST", &format!("/api/queue/{}/cancel", scenario.job), "")
        .await
        .expect_status(200);
    let path = format!("/api/queue/{}/retry", scenario.job);
    let again = scenario.server.call(&Actor::Admin, "POST", &path, "").await.expect_status(201);
    assert_eq!(again["status"], "queued");
    scenario.advance(LEASE).await;
    assert_eq!(scenario.server.job_status(again["job_id"].as_str().expect("text")).await, "offered");
}

#[tokio::test]
async fn after_its_last_retry_was_lost() {
    let scenario = ExclusiveScenario::start().await;
    let body = json!({"config_name": "digits", "exclusive": true, "max_retries": 0});
    scenario
        .server
        .report_status(&scenario.key, &scenario.job, json!({"status": "completed", "attempt": 1}))
        .await
        .expect_status(200);
    scenario.server.open_stream(&scenario.key).await;
    let created = scenario.server.post(&Actor::Admin, "/api/queue/submit", body).await.expect_status(201);
    let job = created["job_id"].as_str().expect("text").to_owned();
    let worker_key = if created["allocated_worker_id"] == scenario.worker { &scenario.key } else { &scenario.other };
    scenario
        .server
        .report_status(worker_key, &job, json!({"status": "running", "attempt": 1}))
        .await
        .expect_status(200);
    scenario.server.register(worker_key, json!([])).await;
    let _events = scenario.server.open_stream(worker_key).await;
    assert_eq!(scenario.server.job_status(&job).await, "failed");
    let retried_job =
        scenario.server.call(&Actor::Admin, "POST", &format!("/api/queue/{job}/retry"), "").await.expect_status(201);
    assert_eq!(retried_job["status"], "queued", "the previous trainer may still run");
    scenario.advance(LEASE).await;
    assert_eq!(scenario.server.job_status(retried_job["job_id"].as_str().expect("text")).await, "offered");
}

/// Two servers on one database, of which the first is the leader, and a running exclusive job.
async fn two_servers() -> (TestServer, TestServer, Actor, String, EventStreamReader) {
    let database = fresh_database().await;
    let a = TestServer::start_shared("c_a", &database, Millis::from_secs(3_600)).await;
    let b = TestServer::start_shared("c_b", &database, Millis::from_secs(3_600)).await;
    a.app.services.system.renew_leadership().await.expect("a database");
    a.put_config("digits").await;
    let (_, key, mut events) = a.connect_worker("gpu-1").await;
    let job = submit(&a).await;
    events.next_offer().await;
    a.report_status(&key, &job, json!({"status": "running", "attempt": 1})).await.expect_status(200);
    (a, b, key, job, events)
}

#[tokio::test]
async fn after_the_leader_declared_offline_a_worker_of_another_server() {
    let (a, b, key, job, _events) = two_servers().await;
    for server in [&a, &b] {
        server.clock.advance(Millis::from_secs(LEASE + 1));
    }
    b.heartbeat(&key, json!([{"job_id": job, "attempt": 1}])).await;
    let (_, other, _others) = a.connect_worker("gpu-2").await;
    a.app.services.agents.check_health().await.expect("a database");
    assert_eq!(a.job_status(&job).await, "queued", "the contact with the other server is not stored yet");
    for _ in 1..LEASE {
        a.clock.advance(Millis::from_secs(1));
        a.heartbeat(&other, json!([])).await;
        a.advance(Millis(0)).await;
        assert_eq!(a.job_status(&job).await, "queued");
    }
    a.advance(Millis::from_secs(1)).await;
    assert_eq!(a.job_status(&job).await, "offered");
}

#[tokio::test]
async fn after_a_server_stopped_with_an_unsaved_contact() {
    let (a, b, key, job, events) = two_servers().await;
    for server in [&a, &b] {
        server.clock.advance(Millis::from_secs(100));
    }
    // Only in the memory of the first server, which stops.
    a.heartbeat(&key, json!([{"job_id": job, "attempt": 1}])).await;
    a.app.services.system.resign().await.expect("a database");
    drop((a, events));
    b.app.services.system.renew_leadership().await.expect("a database");
    let (_, other, _others) = b.connect_worker("gpu-2").await;
    for _ in 0..=LEASE {
        assert_eq!(
            b.job_status(&job).await,
            "running",
            "a server that has not listened as long marks no worker offline (I10)"
        );
        b.clock.advance(Millis::from_secs(1));
        b.heartbeat(&other, json!([])).await;
        b.advance(Millis(0)).await;
    }
    for _ in 0..LEASE {
        assert_eq!(b.job_status(&job).await, "queued");
        b.clock.advance(Millis::from_secs(1));
        b.heartbeat(&other, json!([])).await;
        b.advance(Millis(0)).await;
    }
    assert_eq!(b.job_status(&job).await, "offered");
}

#[tokio::test]
async fn after_a_server_with_a_longer_timeout() {
    const LONGER_LEASE: i64 = 600;
    let database = fresh_database().await;
    let term = Millis::from_secs(3_600);
    let a = TestServer::start_shared_with("c_a", &database, |policy| {
        (policy.leader_term, policy.heartbeat_timeout) = (term, Millis::from_secs(LONGER_LEASE));
    })
    .await;
    a.app.services.system.renew_leadership().await.expect("a database");
    a.put_config("digits").await;
    let (_, key, mut events) = a.connect_worker("gpu-1").await;
    let job = submit(&a).await;
    events.next_offer().await;
    a.report_status(&key, &job, json!({"status": "running", "attempt": 1})).await.expect_status(200);
    a.app.services.system.resign().await.expect("a database");
    drop((a, events));
    let b = TestServer::start_shared("c_b", &database, term).await;
    b.app.services.system.renew_leadership().await.expect("a database");
    let (_, other, _others) = b.connect_worker("gpu-2").await;
    for _ in 0..=LEASE {
        b.clock.advance(Millis::from_secs(1));
        b.heartbeat(&other, json!([])).await;
        b.advance(Millis(0)).await;
    }
    assert_eq!(b.job_status(&job).await, "queued", "it is lost after the timeout of the new server");
    for _ in 0..LONGER_LEASE {
        assert_eq!(b.job_status(&job).await, "queued", "its agent has a longer timeout");
        b.clock.advance(Millis::from_secs(1));
        b.heartbeat(&other, json!([])).await;
        b.advance(Millis(0)).await;
    }
    assert_eq!(b.job_status(&job).await, "offered");
}

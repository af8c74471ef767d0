//! I1 for exclusive jobs: an attempt is given to nobody else before its agent must have stopped it, whichever way it was
//! lost. Agents count from the last request of theirs that was answered, for as long as they were told.

use app::domain::time::Millis;
use serde_json::{Value, json};

use super::harness::{By, Events, Server};
use super::older::until_gone;
use crate::store::conformance::fresh_database;

/// The heartbeat timeout, in seconds.
const LEASE: i64 = 120;

async fn submit(server: &Server) -> String {
    let body = json!({"config_name": "digits", "target": "worker", "exclusive": true});
    let answer = server.post(&By::Admin, "/api/queue/submit", body).await.ok(201);
    answer["job_id"].as_str().expect("text").to_owned()
}

/// A job that runs, and another worker that could have it.
struct Story {
    server: Server,
    worker: String,
    key: By,
    token: By,
    job: String,
    other: By,
    _events: (Events, Events),
}

impl Story {
    async fn begin() -> Self {
        let server = Server::start().await;
        server.config("digits").await;
        let (worker, key, mut events) = server.online("gpu-1").await;
        let job = submit(&server).await;
        let offer = events.offer().await;
        assert!(offer.exclusive, "its agent is told");
        server.report(&key, &job, json!({"status": "running", "attempt": 1})).await.ok(200);
        let (_, other, others) = server.online("gpu-2").await;
        let token = By::Job(offer.upload_token);
        Self { server, worker, key, token, job, other, _events: (events, others) }
    }

    fn running(&self) -> Value {
        json!([{"job_id": self.job, "attempt": 1}])
    }

    /// Time passes; the other worker lives.
    async fn pass(&self, seconds: i64) {
        for _ in 0..seconds {
            self.server.clock.advance(Millis::seconds(1));
            self.server.heartbeat(&self.other, json!([])).await;
            self.server.pass(Millis(0)).await;
        }
    }

    async fn status(&self) -> String {
        self.server.status_of(&self.job).await
    }

    /// It waits for a whole lease from now on, which is explained, and goes to the other then.
    async fn goes_to_another_after_a_lease(&self) {
        assert_eq!(self.status().await, "queued");
        self.pass(LEASE - 1).await;
        assert_eq!(self.status().await, "queued", "a trainer of it may run");
        let path = format!("/api/queue/{}/explain", self.job);
        let explained = self.server.get(&By::Admin, &path).await.ok(200);
        assert_eq!(explained["verdict"], "kept_back", "{explained}");
        assert!(explained["until"].is_string() && explained["text"].as_str().is_some_and(|t| t.contains("exclusive")));
        self.pass(1).await;
        let view = self.server.job(&self.job).await;
        assert_eq!((&view["status"], &view["attempt"]), (&json!("offered"), &json!(2)));
    }
}

#[tokio::test]
async fn what_is_exclusive_is_shown_and_copied_by_a_retry() {
    let story = Story::begin().await;
    assert_eq!(story.server.job(&story.job).await["exclusive"], true);
    story.server.report(&story.key, &story.job, json!({"status": "completed", "attempt": 1})).await.ok(200);
    let path = format!("/api/queue/{}/retry", story.job);
    let again = story.server.call(&By::Admin, "POST", &path, "").await.ok(201);
    assert_eq!(again["status"], "offered", "nothing of the old one runs");
    let id = again["job_id"].as_str().expect("text");
    assert_eq!(story.server.job(id).await["exclusive"], true);
}

#[tokio::test]
async fn an_older_agent_is_not_offered_it_and_that_is_explained() {
    let server = Server::start().await;
    server.config("digits").await;
    let (_, key) = server.worker("old").await;
    server.post(&key, "/api/workers/register", json!({"name": "old", "persistent": true})).await.ok(200);
    let _events = server.stream(&key).await;
    let job = submit(&server).await;
    let explained = server.get(&By::Admin, &format!("/api/queue/{job}/explain")).await.ok(200);
    let blocker = &explained["workers"][0]["blockers"][0];
    assert_eq!((&explained["verdict"], &blocker["code"]), (&json!("away"), &json!("cannot_stop")), "{explained}");
    assert!(blocker["change"].as_str().is_some_and(|change| change.contains("simpletuner-worker")));
    let plain = server.submit("digits").await;
    assert_eq!(server.status_of(&plain).await, "offered", "others go there");
}

#[tokio::test]
async fn an_offer_is_taken_back_from_a_worker_whose_agent_is_an_older_one_now() {
    let server = Server::start().await;
    server.config("digits").await;
    let (id, key, events) = server.online("gpu-1").await;
    let job = submit(&server).await;
    drop(events);
    until_gone(&server, &id).await;
    server.post(&key, "/api/workers/register", json!({"name": "old", "persistent": true})).await.ok(200);
    assert_eq!(server.status_of(&job).await, "queued");
}

#[tokio::test]
async fn after_silence() {
    let story = Story::begin().await;
    story.pass(LEASE).await;
    assert_eq!(story.status().await, "running");
    story.pass(1).await;
    story.goes_to_another_after_a_lease().await;
}

#[tokio::test]
async fn after_a_goodbye_that_left_it_running() {
    let story = Story::begin().await;
    let goodbye = json!({"left_running": story.running()});
    story.server.post(&story.key, "/api/workers/disconnect", goodbye).await.ok(200);
    story.pass(LEASE).await;
    assert_eq!(story.status().await, "running", "it may come back");
    story.pass(1).await;
    story.goes_to_another_after_a_lease().await;
}

#[tokio::test]
async fn after_its_offline_worker_was_deleted() {
    let story = Story::begin().await;
    let goodbye = json!({"left_running": story.running()});
    story.server.post(&story.key, "/api/workers/disconnect", goodbye).await.ok(200);
    story.server.call(&By::Admin, "DELETE", &format!("/api/admin/workers/{}", story.worker), "").await.ok(200);
    story.goes_to_another_after_a_lease().await;
}

#[tokio::test]
async fn after_its_agent_came_back_without_it() {
    let story = Story::begin().await;
    story.server.register(&story.key, json!([])).await;
    story.goes_to_another_after_a_lease().await;
}

#[tokio::test]
async fn what_a_twin_forgot_comes_back_with_who_has_it() {
    let story = Story::begin().await;
    story.server.register(&story.key, json!([])).await;
    story.pass(60).await;
    assert_eq!(story.status().await, "queued");
    assert!(story.server.heartbeat(&story.key, story.running()).await.stop.is_empty());
    assert_eq!(story.status().await, "running");
    story.server.register(&story.key, json!([])).await;
    story.goes_to_another_after_a_lease().await;
}

#[tokio::test]
async fn as_long_as_its_lost_attempt_is_answered() {
    let story = Story::begin().await;
    story.server.register(&story.key, json!([])).await;
    let (server, base) = (&story.server, format!("/api/workers/job/{}", story.job));
    let point = json!({"attempt": 1, "points": []});
    for round in 0..4_u32 {
        story.pass(LEASE - 1).await;
        assert_eq!(story.status().await, "queued", "{round}");
        let answered = match round {
            0 => server.call(&story.token, "PUT", &format!("{base}/logs?attempt=1&offset=0"), "more").await,
            1 => server.post(&story.token, &format!("{base}/progress"), point.clone()).await,
            2 => server.get(&story.token, &format!("{base}/bundle?attempt=1")).await,
            _ => server.post(&story.token, &format!("{base}/secrets"), json!({})).await,
        };
        answered.ok(200);
    }
    story.pass(LEASE - 1).await;
    assert_eq!(story.status().await, "queued");
    story.pass(11).await;
    assert_eq!(story.status().await, "offered");
    let late = server.call(&story.token, "PUT", &format!("{base}/logs?attempt=1&offset=4"), "late").await;
    late.problem(409, "old_attempt");
}

#[tokio::test]
async fn after_its_token_was_rotated() {
    let story = Story::begin().await;
    story.server.call(&By::Admin, "POST", &format!("/api/admin/workers/{}/token", story.worker), "").await.ok(200);
    story.pass(LEASE - 1).await;
    let log = format!("/api/workers/job/{}/logs?attempt=1&offset=0", story.job);
    story.server.call(&story.token, "PUT", &log, "on").await.ok(200);
    story.pass(LEASE).await;
    assert_eq!(story.status().await, "running", "its job token speaks for it");
    story.pass(1).await;
    story.goes_to_another_after_a_lease().await;
}

#[tokio::test]
async fn after_a_drains_deadline_by_its_agents_word_only() {
    let story = Story::begin().await;
    let drain = format!("/api/admin/workers/{}/drain", story.worker);
    story.server.post(&By::Admin, &drain, json!({"deadline_seconds": 10})).await.ok(200);
    story.pass(LEASE).await;
    assert_eq!(story.status().await, "running", "it was told to stop, and has not said that it did");
    story.server.report(&story.key, &story.job, json!({"status": "requeue", "attempt": 1})).await.ok(200);
    assert_eq!(story.status().await, "offered", "nothing of it runs any more");
}

#[tokio::test]
async fn after_a_cancel_that_nobody_confirmed() {
    let story = Story::begin().await;
    let (cancel, retry) = (format!("/api/queue/{}/cancel", story.job), format!("/api/queue/{}/retry", story.job));
    story.server.call(&By::Admin, "POST", &cancel, "").await.ok(200);
    story.server.call(&By::Admin, "POST", &retry, "").await.problem(409, "job_not_ended");
    story.pass(LEASE + 1).await;
    assert_eq!(story.status().await, "cancelled");
    let again = story.server.call(&By::Admin, "POST", &retry, "").await.ok(201);
    let again = again["job_id"].as_str().expect("text").to_owned();
    story.pass(LEASE - 1).await;
    assert_eq!(story.server.status_of(&again).await, "queued", "the old one's trainer may run");
    story.pass(1).await;
    assert_eq!(story.server.status_of(&again).await, "offered");
}

#[tokio::test]
async fn after_a_cancel_while_it_was_kept_back() {
    let story = Story::begin().await;
    story.server.register(&story.key, json!([])).await;
    story.server.call(&By::Admin, "POST", &format!("/api/queue/{}/cancel", story.job), "").await.ok(200);
    let path = format!("/api/queue/{}/retry", story.job);
    let again = story.server.call(&By::Admin, "POST", &path, "").await.ok(201);
    assert_eq!(again["status"], "queued");
    story.pass(LEASE).await;
    assert_eq!(story.server.status_of(again["job_id"].as_str().expect("text")).await, "offered");
}

#[tokio::test]
async fn after_its_last_retry_was_lost() {
    let story = Story::begin().await;
    let body = json!({"config_name": "digits", "exclusive": true, "max_retries": 0});
    story.server.report(&story.key, &story.job, json!({"status": "completed", "attempt": 1})).await.ok(200);
    story.server.stream(&story.key).await;
    let made = story.server.post(&By::Admin, "/api/queue/submit", body).await.ok(201);
    let job = made["job_id"].as_str().expect("text").to_owned();
    let taker = if made["allocated_worker_id"] == story.worker { &story.key } else { &story.other };
    story.server.report(taker, &job, json!({"status": "running", "attempt": 1})).await.ok(200);
    story.server.register(taker, json!([])).await;
    let _listens = story.server.stream(taker).await;
    assert_eq!(story.server.status_of(&job).await, "failed");
    let again = story.server.call(&By::Admin, "POST", &format!("/api/queue/{job}/retry"), "").await.ok(201);
    assert_eq!(again["status"], "queued", "the old one's trainer may run");
    story.pass(LEASE).await;
    assert_eq!(story.server.status_of(again["job_id"].as_str().expect("text")).await, "offered");
}

/// Two servers on one database, of which the first leads, and an exclusive job that runs.
async fn two() -> (Server, Server, By, String, Events) {
    let database = fresh_database().await;
    let a = Server::start_beside("c_a", &database, Millis::seconds(3_600)).await;
    let b = Server::start_beside("c_b", &database, Millis::seconds(3_600)).await;
    a.app.core.take_part().await.expect("a database");
    a.config("digits").await;
    let (_, key, mut events) = a.online("gpu-1").await;
    let job = submit(&a).await;
    events.offer().await;
    a.report(&key, &job, json!({"status": "running", "attempt": 1})).await.ok(200);
    (a, b, key, job, events)
}

#[tokio::test]
async fn after_the_leader_took_for_silent_whom_another_server_answers() {
    let (a, b, key, job, _events) = two().await;
    for server in [&a, &b] {
        server.clock.advance(Millis::seconds(LEASE + 1));
    }
    b.heartbeat(&key, json!([{"job_id": job, "attempt": 1}])).await;
    let (_, other, _others) = a.online("gpu-2").await;
    a.app.core.check_health().await.expect("a database");
    assert_eq!(a.status_of(&job).await, "queued", "what the other heard is not written yet");
    for _ in 1..LEASE {
        a.clock.advance(Millis::seconds(1));
        a.heartbeat(&other, json!([])).await;
        a.pass(Millis(0)).await;
        assert_eq!(a.status_of(&job).await, "queued");
    }
    a.pass(Millis::seconds(1)).await;
    assert_eq!(a.status_of(&job).await, "offered");
}

#[tokio::test]
async fn after_a_server_that_heard_of_it_ended_without_writing_that_down() {
    let (a, b, key, job, events) = two().await;
    for server in [&a, &b] {
        server.clock.advance(Millis::seconds(100));
    }
    // In the first one's memory only, which is gone with it.
    a.heartbeat(&key, json!([{"job_id": job, "attempt": 1}])).await;
    a.app.core.leave().await.expect("a database");
    drop((a, events));
    b.app.core.take_part().await.expect("a database");
    let (_, other, _others) = b.online("gpu-2").await;
    for _ in 0..=LEASE {
        assert_eq!(b.status_of(&job).await, "running", "nobody is judged by who has not listened for as long (I10)");
        b.clock.advance(Millis::seconds(1));
        b.heartbeat(&other, json!([])).await;
        b.pass(Millis(0)).await;
    }
    for _ in 0..LEASE {
        assert_eq!(b.status_of(&job).await, "queued");
        b.clock.advance(Millis::seconds(1));
        b.heartbeat(&other, json!([])).await;
        b.pass(Millis(0)).await;
    }
    assert_eq!(b.status_of(&job).await, "offered");
}

#[tokio::test]
async fn after_a_server_that_told_its_agent_of_a_longer_timeout() {
    const TOLD: i64 = 600;
    let database = fresh_database().await;
    let term = Millis::seconds(3_600);
    let a = Server::start_beside_with("c_a", &database, |policy| {
        (policy.leader_term, policy.heartbeat_timeout) = (term, Millis::seconds(TOLD));
    })
    .await;
    a.app.core.take_part().await.expect("a database");
    a.config("digits").await;
    let (_, key, mut events) = a.online("gpu-1").await;
    let job = submit(&a).await;
    events.offer().await;
    a.report(&key, &job, json!({"status": "running", "attempt": 1})).await.ok(200);
    a.app.core.leave().await.expect("a database");
    drop((a, events));
    let b = Server::start_beside("c_b", &database, term).await;
    b.app.core.take_part().await.expect("a database");
    let (_, other, _others) = b.online("gpu-2").await;
    for _ in 0..=LEASE {
        b.clock.advance(Millis::seconds(1));
        b.heartbeat(&other, json!([])).await;
        b.pass(Millis(0)).await;
    }
    assert_eq!(b.status_of(&job).await, "queued", "it is taken for silent by the new one's setting");
    for _ in 0..TOLD {
        assert_eq!(b.status_of(&job).await, "queued", "its agent was told of a longer one");
        b.clock.advance(Millis::seconds(1));
        b.heartbeat(&other, json!([])).await;
        b.pass(Millis(0)).await;
    }
    assert_eq!(b.status_of(&job).await, "offered");
}

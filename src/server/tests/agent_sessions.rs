//! A worker's token is exchanged for a session: who else has the token gets nothing by it, and is noticed.

use serde_json::{Value, json};

use super::harness::{By, Events, Server, read};
use crate::http::routes::{Access, Declared};
use crate::service::keys::TokenUse;

const HERE: [u8; 4] = [10, 0, 0, 1];
const ELSEWHERE: [u8; 4] = [10, 0, 0, 2];

/// A route that an agent uses after it has registered.
#[derive(Debug)]
struct Route {
    method: String,
    /// With `JOB` where the job's id belongs.
    path: String,
    access: Access,
}

impl Route {
    /// Whether it takes the token of an attempt, and no session.
    fn is_of_attempt(&self) -> bool {
        self.access == Access::Job && !self.path.contains("/status")
    }

    fn path(&self, job: &str) -> String {
        self.path.replace("JOB", job)
    }

    fn body(&self) -> String {
        match &self.path {
            path if path.contains("/status") => json!({"status": "failed", "attempt": 1, "error": "no"}).to_string(),
            path if path.contains("/progress") => json!({"attempt": 1, "points": []}).to_string(),
            path if path.contains("/checkpoint") => json!({"name": "checkpoint-1", "files": []}).to_string(),
            _ => "{}".to_owned(),
        }
    }
}

/// All of them, as the server declares them.
async fn routes() -> Vec<Route> {
    let declared = crate::http::declared(&Server::start().await.app).into_iter();
    let of_agents = declared.filter(|route| matches!(route.access, Access::Worker(_) | Access::Job));
    let route = |Declared { method, path, access, .. }: Declared| {
        let path = path.replace("{id}", "JOB").replace("{*path}", "a");
        let query = if access == Access::Job { "?attempt=1&offset=0" } else { "" };
        assert!(!path.contains('{'), "{path} has a parameter that this test does not know");
        Route { method: method.to_string(), path: format!("{path}{query}"), access }
    };
    let all: Vec<Route> = of_agents.map(route).collect();
    assert!(all.len() >= 15, "{all:?}");
    all
}

/// Who has the worker's token and nothing else.
fn thief_of(key: &By) -> By {
    let By::Worker(agent) = key else { panic!("a worker's key") };
    By::Worker(agent.thief())
}

async fn conflict(server: &Server, worker: &str) -> Value {
    server.get(&By::Admin, &format!("/api/admin/workers/{worker}")).await.ok(200)["token_conflict"].clone()
}

#[tokio::test]
async fn a_stolen_token_opens_nothing_and_raises_the_alarm_on_every_route() {
    for route in routes().await {
        let server = Server::start().await;
        server.config("digits").await;
        let (id, key) = server.worker("gpu-1").await;
        server.register(&key, json!([])).await;
        let mut events = Events::of(server.stream_from(&key, HERE).await);
        let job = server.submit("digits").await;
        events.offer().await;
        server.report(&key, &job, json!({"status": "running", "attempt": 1})).await.ok(200);
        assert_eq!(conflict(&server, &id).await, Value::Null);

        // On the agent's host, `doctor` may check the token while the agent runs.
        let from = if route.access == Access::Worker(TokenUse::Check) { ELSEWHERE } else { HERE };
        let path = route.path(&job);
        let answer = server.send_from(&thief_of(&key), from, &route.method, &path, route.body()).await;
        read(answer).await.problem(409, "token_in_use");
        assert!(conflict(&server, &id).await["at"].is_string(), "no alarm on {route:?}");
        assert_eq!(server.status_of(&job).await, "running", "{route:?}");
        server.heartbeat(&key, json!([{"job_id": job, "attempt": 1}])).await;
    }
}

#[tokio::test]
async fn a_token_is_checked_beside_its_agent_but_not_from_another_host() {
    let server = Server::start().await;
    let (id, key) = server.worker("gpu-1").await;
    server.register(&key, json!([])).await;
    let _stream = server.stream_from(&key, HERE).await;
    let thief = thief_of(&key);
    assert_eq!(server.send_from(&thief, HERE, "GET", "/api/workers/queue", "").await.status(), 200);
    assert_eq!(conflict(&server, &id).await, Value::Null);
    assert_eq!(server.send_from(&thief, ELSEWHERE, "GET", "/api/workers/queue", "").await.status(), 409);
    assert_eq!(conflict(&server, &id).await["host"], "10.0.0.2");
}

#[tokio::test]
async fn a_session_reports_but_does_not_open_what_the_jobs_token_opens() {
    let server = Server::start().await;
    server.config("digits").await;
    let (_, key, mut events) = server.online("gpu-1").await;
    let job = server.submit("digits").await;
    events.offer().await;
    server.report(&key, &job, json!({"status": "running", "attempt": 1})).await.ok(200);
    let By::Worker(agent) = &key else { panic!("a worker's key") };
    let session = By::worker(agent.session().expect("it registered"));
    for route in routes().await.into_iter().filter(Route::is_of_attempt) {
        let answer = server.call(&session, &route.method, &route.path(&job), route.body()).await;
        answer.problem(403, "job_token_required");
    }
    server.post(&session, "/api/workers/register", json!({"protocol": 1})).await.problem(401, "worker_token_refused");
}

#[tokio::test]
async fn a_session_ends_when_an_agent_registers() {
    let server = Server::start().await;
    let (_, key) = server.worker("gpu-1").await;
    server.register(&key, json!([])).await;
    let first = key.clone();
    let By::Worker(agent) = &first else { panic!("a worker's key") };
    let session = By::worker(agent.session().expect("it registered"));
    server.post(&session, "/api/workers/heartbeat", json!({})).await.ok(200);
    server.register(&key, json!([])).await;
    server.post(&session, "/api/workers/heartbeat", json!({})).await.problem(409, "not_registered");
    server.post(&key, "/api/workers/heartbeat", json!({})).await.ok(200);
}

#[tokio::test]
async fn an_older_agents_token_opens_nothing_from_another_host() {
    let server = Server::start().await;
    server.config("digits").await;
    let (id, key) = server.worker("old").await;
    let older = json!({"name": "x", "gpu_info": {"accelerator": "cpu"}, "persistent": true}).to_string();
    let registered = server.send_from(&key, HERE, "POST", "/api/workers/register", older).await;
    assert_eq!(registered.status(), 200);
    let stream = server.stream_from(&key, HERE).await;
    let job = server.submit("digits").await;
    // Whoever opens another stream takes the place of the one before.
    let others = |route: &Route| route.access != Access::Worker(TokenUse::Listen);
    for route in routes().await.into_iter().filter(others) {
        let answer = server.send_from(&key, ELSEWHERE, &route.method, &route.path(&job), route.body()).await;
        assert_eq!(answer.status(), 409, "{route:?}");
    }
    assert_eq!(conflict(&server, &id).await["host"], "10.0.0.2");
    let answer = server.send_from(&key, HERE, "POST", "/api/workers/heartbeat", "{}").await;
    assert_eq!(answer.status(), 200, "who listens is not disturbed");
    drop(stream);
}

#[tokio::test]
async fn older_agents_can_be_refused_for_a_worker() {
    let server = Server::start().await;
    let older = json!({"name": "x", "gpu_info": {"accelerator": "cpu"}});
    let (id, key) = server.worker("old").await;
    server.post(&key, "/api/workers/register", older.clone()).await.ok(200);
    let edit = json!({"refuse_older_agents": true}).to_string();
    server.call(&By::Admin, "PATCH", &format!("/api/admin/workers/{id}"), edit).await.ok(200);
    server.post(&key, "/api/workers/register", older).await.problem(403, "older_agent_refused");
    server.register(&key, json!([])).await;
    let view = server.get(&By::Admin, &format!("/api/admin/workers/{id}")).await.ok(200);
    assert_eq!(view["settings"]["refuse_older_agents"], true);
}

#[tokio::test]
async fn the_hubs_token_in_an_older_agents_offer_is_on_record() {
    let server = Server::start().await;
    server.config("digits").await;
    let secret = json!({"value": "hf_0123456789", "shared": true}).to_string();
    server.call(&By::Admin, "PUT", "/api/secrets/HF_TOKEN", secret).await.ok(200);
    let (id, key) = server.worker("old").await;
    let older = json!({"name": "x", "gpu_info": {"accelerator": "cpu"}});
    server.post(&key, "/api/workers/register", older).await.ok(200);
    let mut events = server.stream(&key).await;
    let submit = json!({"config_name": "digits", "secrets": ["HF_TOKEN"]});
    let job = server.post(&By::Admin, "/api/queue/submit", submit).await.ok(201)["job_id"].clone();
    assert_eq!(events.offer().await.hf_token.as_deref(), Some("hf_0123456789"));

    let entries = server.get(&By::Admin, "/api/audit?action=secret.given").await.ok(200)["entries"].clone();
    let detail = json!({"attempt": 1, "names": ["HF_TOKEN"], "worker": id, "with_offer": true});
    assert_eq!((&entries[0]["target"], &entries[0]["detail"]), (&job, &detail), "{entries}");
    let secrets = server.get(&By::Admin, "/api/secrets").await.ok(200);
    assert!(secrets["secrets"][0]["given_at"].is_string(), "{secrets}");
}

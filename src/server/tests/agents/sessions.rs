//! A worker token is exchanged for a session: another holder of the token gains nothing and is detected.

use serde_json::{Value, json};

use crate::http::routes::{DeclaredRoute, RouteAccess};
use crate::service::workers::tokens::TokenUse;
use crate::tests::harness::{Actor, EventStreamReader, TestServer, read_response};

const AGENT_HOST: [u8; 4] = [10, 0, 0, 1];
const OTHER_HOST: [u8; 4] = [10, 0, 0, 2];

/// A route that an agent uses after its registration.
#[derive(Debug)]
struct AgentRoute {
    method: String,
    /// With `JOB` in place of the job's id.
    path: String,
    access: RouteAccess,
}

impl AgentRoute {
    /// Returns whether the route requires the token of an attempt instead of a session.
    fn requires_job_token(&self) -> bool {
        self.access == RouteAccess::Job && !self.path.contains("/status")
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

/// Returns all such routes of the server.
async fn routes() -> Vec<AgentRoute> {
    let declared = crate::http::declared_routes(&TestServer::start().await.app).into_iter();
    let agent_routes = declared.filter(|route| matches!(route.access, RouteAccess::Worker(_) | RouteAccess::Job));
    let route = |DeclaredRoute { method, path, access, .. }: DeclaredRoute| {
        let path = path.replace("{id}", "JOB").replace("{*path}", "a");
        let query = if access == RouteAccess::Job { "?attempt=1&offset=0" } else { "" };
        assert!(!path.contains('{'), "{path} has a parameter that this test does not know");
        AgentRoute { method: method.to_string(), path: format!("{path}{query}"), access }
    };
    let collected: Vec<AgentRoute> = agent_routes.map(route).collect();
    assert!(collected.len() >= 15, "{collected:?}");
    collected
}

/// Returns a client that has the worker token only.
fn with_token_only(key: &Actor) -> Actor {
    let Actor::Worker(agent) = key else { panic!("a worker's key") };
    Actor::Worker(agent.with_token_only())
}

async fn token_conflict(server: &TestServer, worker: &str) -> Value {
    server.get(&Actor::Admin, &format!("/api/admin/workers/{worker}")).await.expect_status(200)["token_conflict"]
        .clone()
}

#[tokio::test]
async fn stolen_worker_token_is_rejected_and_recorded_on_every_route() {
    for route in routes().await {
        let server = TestServer::start().await;
        server.put_config("digits").await;
        let (id, key) = server.create_worker("gpu-1").await;
        server.register(&key, json!([])).await;
        let mut events = EventStreamReader::new(server.open_stream_from(&key, AGENT_HOST).await);
        let job = server.submit("digits").await;
        events.next_offer().await;
        server.report_status(&key, &job, json!({"status": "running", "attempt": 1})).await.expect_status(200);
        assert_eq!(token_conflict(&server, &id).await, Value::Null);

        // On the agent's host, `doctor` may check the token while the agent runs.
        let from = if route.access == RouteAccess::Worker(TokenUse::Check) { OTHER_HOST } else { AGENT_HOST };
        let path = route.path(&job);
        let response = server.send_from(&with_token_only(&key), from, &route.method, &path, route.body()).await;
        read_response(response).await.expect_problem(409, "token_in_use");
        assert!(token_conflict(&server, &id).await["at"].is_string(), "no conflict is recorded on {route:?}");
        assert_eq!(server.job_status(&job).await, "running", "{route:?}");
        server.heartbeat(&key, json!([{"job_id": job, "attempt": 1}])).await;
    }
}

#[tokio::test]
async fn token_check_works_on_the_agents_host_only() {
    let server = TestServer::start().await;
    let (id, key) = server.create_worker("gpu-1").await;
    server.register(&key, json!([])).await;
    let _stream = server.open_stream_from(&key, AGENT_HOST).await;
    let token_only = with_token_only(&key);
    assert_eq!(server.send_from(&token_only, AGENT_HOST, "GET", "/api/workers/queue", "").await.status(), 200);
    assert_eq!(token_conflict(&server, &id).await, Value::Null);
    assert_eq!(server.send_from(&token_only, OTHER_HOST, "GET", "/api/workers/queue", "").await.status(), 409);
    assert_eq!(token_conflict(&server, &id).await["host"], "10.0.0.2");
}

#[tokio::test]
async fn agent_session_can_report_but_not_use_job_token_routes() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (_, key, mut events) = server.connect_worker("gpu-1").await;
    let job = server.submit("digits").await;
    events.next_offer().await;
    server.report_status(&key, &job, json!({"status": "running", "attempt": 1})).await.expect_status(200);
    let Actor::Worker(agent) = &key else { panic!("a worker's key") };
    let session = Actor::worker(agent.session().expect("a session"));
    for route in routes().await.into_iter().filter(AgentRoute::requires_job_token) {
        let response = server.call(&session, &route.method, &route.path(&job), route.body()).await;
        response.expect_problem(403, "job_token_required");
    }
    server
        .post(&session, "/api/workers/register", json!({"protocol": 1}))
        .await
        .expect_problem(401, "worker_token_invalid");
}

#[tokio::test]
async fn agent_session_ends_at_the_next_registration() {
    let server = TestServer::start().await;
    let (_, key) = server.create_worker("gpu-1").await;
    server.register(&key, json!([])).await;
    let first = key.clone();
    let Actor::Worker(agent) = &first else { panic!("a worker's key") };
    let session = Actor::worker(agent.session().expect("a session"));
    server.post(&session, "/api/workers/heartbeat", json!({})).await.expect_status(200);
    server.register(&key, json!([])).await;
    server.post(&session, "/api/workers/heartbeat", json!({})).await.expect_problem(409, "not_registered");
    server.post(&key, "/api/workers/heartbeat", json!({})).await.expect_status(200);
}

#[tokio::test]
async fn older_agents_token_is_rejected_from_another_host() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (id, key) = server.create_worker("old").await;
    let older = json!({"name": "x", "gpu_info": {"accelerator": "cpu"}, "persistent": true}).to_string();
    let registered = server.send_from(&key, AGENT_HOST, "POST", "/api/workers/register", older).await;
    assert_eq!(registered.status(), 200);
    let stream = server.open_stream_from(&key, AGENT_HOST).await;
    let job = server.submit("digits").await;
    // A second stream replaces the first one.
    let is_not_stream = |route: &AgentRoute| route.access != RouteAccess::Worker(TokenUse::Listen);
    for route in routes().await.into_iter().filter(is_not_stream) {
        let response = server.send_from(&key, OTHER_HOST, &route.method, &route.path(&job), route.body()).await;
        assert_eq!(response.status(), 409, "{route:?}");
    }
    assert_eq!(token_conflict(&server, &id).await["host"], "10.0.0.2");
    let response = server.send_from(&key, AGENT_HOST, "POST", "/api/workers/heartbeat", "{}").await;
    assert_eq!(response.status(), 200, "the connected agent is not affected");
    drop(stream);
}

#[tokio::test]
async fn worker_can_reject_older_agents() {
    let server = TestServer::start().await;
    let older = json!({"name": "x", "gpu_info": {"accelerator": "cpu"}});
    let (id, key) = server.create_worker("old").await;
    server.post(&key, "/api/workers/register", older.clone()).await.expect_status(200);
    let edit = json!({"reject_older_agents": true}).to_string();
    server.call(&Actor::Admin, "PATCH", &format!("/api/admin/workers/{id}"), edit).await.expect_status(200);
    server.post(&key, "/api/workers/register", older).await.expect_problem(403, "older_agent_rejected");
    server.register(&key, json!([])).await;
    let view = server.get(&Actor::Admin, &format!("/api/admin/workers/{id}")).await.expect_status(200);
    assert_eq!(view["settings"]["reject_older_agents"], true);
}

#[tokio::test]
async fn hub_token_in_an_older_agents_offer_is_recorded() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let secret = json!({"value": "hf_0123456789", "shared": true}).to_string();
    server.call(&Actor::Admin, "PUT", "/api/secrets/HF_TOKEN", secret).await.expect_status(200);
    let (id, key) = server.create_worker("old").await;
    let older = json!({"name": "x", "gpu_info": {"accelerator": "cpu"}});
    server.post(&key, "/api/workers/register", older).await.expect_status(200);
    let mut events = server.open_stream(&key).await;
    let submit = json!({"config_name": "digits", "secrets": ["HF_TOKEN"]});
    let job = server.post(&Actor::Admin, "/api/queue/submit", submit).await.expect_status(201)["job_id"].clone();
    assert_eq!(events.next_offer().await.hf_token.as_deref(), Some("hf_0123456789"));

    let entries =
        server.get(&Actor::Admin, "/api/audit?action=secret.delivered").await.expect_status(200)["entries"].clone();
    let detail = json!({"attempt": 1, "names": ["HF_TOKEN"], "worker": id, "with_offer": true});
    assert_eq!((&entries[0]["target"], &entries[0]["detail"]), (&job, &detail), "{entries}");
    let secrets = server.get(&Actor::Admin, "/api/secrets").await.expect_status(200);
    assert!(secrets["secrets"][0]["delivered_at"].is_string(), "{secrets}");
}

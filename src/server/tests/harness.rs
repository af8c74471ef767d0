//! A test server without a socket.

mod agent;
mod events;
pub mod passkey;
pub mod totp;

use std::sync::Arc;

use app::domain::disk_watermark::DiskFloor;
use app::domain::time::Millis;
use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, StatusCode, header};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

pub use self::agent::TestAgent;
pub use self::events::EventStreamReader;
use super::api_contract;
use crate::clock::ManualClock;
use crate::disk::ManualDisk;
use crate::files::audit_checkpoints::AuditCheckpointFile;
use crate::http::state::{AppParts, AppState, AuthMode};
use crate::random::CountingRandom;
use crate::service::access::Blocklist;
use crate::service::context::disk_space::DiskSpaceGuard;
use crate::service::{ServerPolicy, ServiceParts, Services};
use crate::store::Store;
use crate::store::postgres::PostgresStore;
use crate::store::sqlite::SqliteStore;
use crate::tls::Tls;
use crate::vault::Vault;

/// The admin's token.
pub const ADMIN: &str = "st_admin-token-of-the-tests";

/// The password of all users.
pub const PASSWORD: &str = "correct-horse-battery";

/// A server with its tasks and directories.
pub struct TestServer {
    pub app: AppState,
    pub clock: Arc<ManualClock>,
    pub disk: Arc<ManualDisk>,
    pub router: Router,
    pub directory: tempfile::TempDir,
}

/// A response with its body.
#[derive(Debug)]
pub struct TestResponse {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl TestResponse {
    /// Returns the body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.text()))
    }

    /// Returns the body as text; of a page the visible part, without texts for the browser's scripts.
    pub fn text(&self) -> String {
        let mut text = String::from_utf8_lossy(&self.body).into_owned();
        if let Some(start) = text.find("<template id=\"words\"") {
            let end = text[start..].find("</template>").map_or(text.len(), |length| start + length);
            text.replace_range(start..end, "");
        }
        text
    }

    /// Checks the status and returns the JSON.
    pub fn expect_status(self, status: u16) -> Value {
        assert_eq!(self.status.as_u16(), status, "{}", self.text());
        self.json()
    }

    /// Checks that it is a problem document with this status and code.
    pub fn expect_problem(self, status: u16, code: &str) -> Value {
        let document = self.json();
        assert_eq!((self.status.as_u16(), document["code"].as_str()), (status, Some(code)), "{document}");
        assert_eq!(self.headers[header::CONTENT_TYPE], "application/problem+json");
        let detail = document["detail"].as_str().unwrap_or_default();
        assert!(detail.ends_with(['.', '。']), "a sentence: {document}");
        assert_eq!(document["request_id"].as_str(), self.headers["x-request-id"].to_str().ok());
        document
    }
}

/// The sender of a request.
#[derive(Debug, Clone)]
pub enum Actor {
    Unauthenticated,
    Admin,
    Worker(TestAgent),
    Job(String),
    Token(String),
    Cookie(String),
}

impl Actor {
    /// Returns an agent with this token.
    pub fn worker(token: impl Into<String>) -> Self {
        Self::Worker(TestAgent::new(token.into()))
    }
}

fn policy() -> ServerPolicy {
    ServerPolicy {
        artifact_limit: 1_000,
        max_streams: 8,
        leader_term: Millis(300),
        server_life: Millis(300),
        ..ServerPolicy::default()
    }
}

impl TestServer {
    pub async fn start() -> Self {
        Self::start_as(AuthMode::Accounts).await
    }

    pub async fn start_as(mode: AuthMode) -> Self {
        Self::start_sqlite(mode, &policy()).await
    }

    /// Starts a server with a changed policy.
    pub async fn start_with(change: impl FnOnce(&mut ServerPolicy)) -> Self {
        let mut policy = policy();
        change(&mut policy);
        Self::start_sqlite(AuthMode::Accounts, &policy).await
    }

    /// Starts a server with TLS settings; serving over TLS is up to the caller.
    pub async fn start_with_tls(tls: Tls) -> Self {
        Self::start_with_all(AuthMode::Accounts, &policy(), Some(tls)).await
    }

    async fn start_sqlite(mode: AuthMode, policy: &ServerPolicy) -> Self {
        Self::start_with_all(mode, policy, None).await
    }

    async fn start_with_all(mode: AuthMode, policy: &ServerPolicy, tls: Option<Tls>) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let store = SqliteStore::open(directory.path(), "c_test").await.expect("a new database");
        let server = Self::from_store(mode, policy, directory, Arc::new(store), "c_test", tls).await;
        server.app.services.system.renew_leadership().await.expect("a database");
        server
    }

    /// Starts one of several servers on a PostgreSQL database, with this leader term. It receives the changes of the
    /// others, but runs no background tasks.
    pub async fn start_shared(name: &str, database: &str, leader_term: Millis) -> Self {
        Self::start_shared_with(name, database, |policy| policy.leader_term = leader_term).await
    }

    /// Like `start_shared`, with a changed policy.
    pub async fn start_shared_with(name: &str, database: &str, change: impl FnOnce(&mut ServerPolicy)) -> Self {
        let store = PostgresStore::open(database, name).await.expect("a database");
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut policy = policy();
        change(&mut policy);
        let server = Self::from_store(AuthMode::Accounts, &policy, directory, Arc::new(store), name, None).await;
        let services = Arc::clone(&server.app.services);
        tokio::spawn(server.app.shutdown.clone().run_until_cancelled_owned(async move {
            loop {
                services.system.follow_changes().await;
            }
        }));
        server
    }

    async fn from_store(
        mode: AuthMode,
        policy: &ServerPolicy,
        directory: tempfile::TempDir,
        store: Arc<dyn Store>,
        name: &str,
        tls: Option<Tls>,
    ) -> Self {
        let (clock, disk) = (Arc::new(ManualClock::new()), Arc::new(ManualDisk::new()));
        let parts = ServiceParts {
            store,
            clock: clock.clone(),
            random: Arc::new(CountingRandom::with_seed(name)),
            policy: *policy,
            server: name.to_owned(),
            token_signing_key: b"key".to_vec(),
            vault: Vault::new(directory.path().join("secrets.key")),
            disk_space: DiskSpaceGuard::new(disk.clone(), DiskFloor::Bytes(2 << 30), DiskFloor::Bytes(512 << 20)),
            blocklist: Blocklist::default(),
            checkpoints: AuditCheckpointFile::open(directory.path(), "sqlite", [7; 32]).expect("a new file"),
        };
        let services = Arc::new(Services::open(parts, directory.path()).expect("a new directory"));
        if mode == AuthMode::Accounts {
            services.access.apply_bootstrap_token(ADMIN).await.expect("a fresh database");
        }
        let app = AppState::new(AppParts {
            mode,
            address: "127.0.0.1:8001".to_owned(),
            tls,
            trusted_proxies: vec!["10.0.0.0/8".parse().expect("a network")],
            ..AppParts::without_listener(services, directory.path(), "life1".to_owned())
        });
        app.services.context.refresh_disk_space().expect("a manual disk");
        Self { router: crate::http::router(app.clone()), app, clock, disk, directory }
    }

    /// Sends a request and returns the response with an unread body.
    pub async fn open(
        &self,
        actor: &Actor,
        method: &str,
        path: &str,
        body: impl Into<Body>,
    ) -> axum::response::Response {
        let request = Request::builder().method(Method::try_from(method).expect("a method")).uri(path);
        let request = request.header(header::HOST, "localhost:8001");
        let request = match actor {
            Actor::Unauthenticated => request,
            Actor::Admin => request.header(header::AUTHORIZATION, format!("Bearer {ADMIN}")),
            Actor::Worker(agent) => {
                let (name, value) = agent.auth_header(self, path).await;
                request.header(name, value)
            }
            Actor::Job(token) => request.header("x-upload-token", token),
            Actor::Token(token) => request.header("x-api-key", token),
            Actor::Cookie(cookie) => request.header(header::COOKIE, cookie),
        };
        let request = if path.starts_with("/ui/") {
            request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        } else {
            request
        };
        let response = self.send(request.body(body.into()).expect("a request")).await;
        if let Actor::Worker(agent) = actor { agent.record_session(path, response).await } else { response }
    }

    /// Sends a request unchanged.
    pub async fn send(&self, request: Request<Body>) -> axum::response::Response {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let response = self.router.clone().oneshot(request).await.expect("the router always answers");
        api_contract::check(&self.app, method, &path, response).await
    }

    /// Sends a request and reads the response.
    pub async fn call(&self, actor: &Actor, method: &str, path: &str, body: impl Into<Body>) -> TestResponse {
        read_response(self.open(actor, method, path, body).await).await
    }

    pub async fn get(&self, actor: &Actor, path: &str) -> TestResponse {
        self.call(actor, "GET", path, Body::empty()).await
    }

    pub async fn post(&self, actor: &Actor, path: &str, body: Value) -> TestResponse {
        self.call(actor, "POST", path, body.to_string()).await
    }

    /// Adds a user; returns their signed-in browser.
    pub async fn add_user(&self, name: &str, role: &str) -> Actor {
        let body = json!({"name": name, "role": role, "password": PASSWORD});
        self.post(&Actor::Admin, "/api/admin/users", body).await.expect_status(201);
        self.log_in(name, PASSWORD).await.expect("a valid password")
    }

    /// Adds a user with a token that sees only their own jobs and no workers.
    pub async fn restricted_token(&self, name: &str) -> Actor {
        let actor = self.add_user(name, "researcher").await;
        let scopes = ["account.manage", "config.edit", "job.submit", "job.view.own", "job.cancel.own"];
        let created =
            self.post(&actor, "/api/account/tokens", json!({"name": "own", "scopes": scopes})).await.expect_status(201);
        Actor::Token(created["secret"].as_str().expect("text").to_owned())
    }

    /// Returns the id of a user.
    pub async fn user_id(&self, name: &str) -> String {
        let page = self.get(&Actor::Admin, "/api/admin/users").await.expect_status(200);
        let user = page["users"].as_array().expect("a list").iter().find(|user| user["name"] == name).cloned();
        user.expect("a user of this name")["id"].as_str().expect("text").to_owned()
    }

    /// Signs in; returns the browser on success.
    pub async fn log_in(&self, name: &str, password: &str) -> Option<Actor> {
        let form = format!("name={name}&password={password}");
        let response = self.call(&Actor::Unauthenticated, "POST", "/ui/login", form).await;
        let cookies =
            response.headers.get_all(header::SET_COOKIE).into_iter().filter_map(|cookie| cookie.to_str().ok());
        let session = cookies.filter_map(|cookie| cookie.split(';').next()).find(|pair| pair.starts_with("sid="));
        session.map(|session| Actor::Cookie(session.to_owned()))
    }

    /// Creates a worker; returns its id and token.
    pub async fn create_worker(&self, name: &str) -> (String, Actor) {
        let created = self.post(&Actor::Admin, "/api/admin/workers", json!({"name": name})).await.expect_status(201);
        let text = |key: &str| created[key].as_str().expect("text").to_owned();
        (text("worker_id"), Actor::worker(text("token")))
    }

    pub async fn put_config(&self, name: &str) {
        let body = json!({"files": {"config.json": "{\"--num_processes\": 1}", "multidatabackend.json": "[]"}});
        self.call(&Actor::Admin, "PUT", &format!("/api/configs/{name}"), body.to_string()).await.expect_status(200);
    }

    /// Submits a job; returns its id.
    pub async fn submit(&self, config: &str) -> String {
        let body = json!({"config_name": config, "target": "worker"});
        let response = self.post(&Actor::Admin, "/api/queue/submit", body).await.expect_status(201);
        response["job_id"].as_str().expect("text").to_owned()
    }

    pub async fn job(&self, id: &str) -> Value {
        self.get(&Actor::Admin, &format!("/api/queue/{id}")).await.expect_status(200)
    }

    pub async fn job_status(&self, id: &str) -> String {
        self.job(id).await["status"].as_str().expect("text").to_owned()
    }

    /// Advances the clock, and runs the reconcilers once.
    pub async fn advance(&self, duration: Millis) {
        self.clock.advance(duration);
        self.app.services.agents.check_health().await.expect("a database");
        self.app.services.jobs.sweep_offers().await.expect("a database");
        self.app.services.jobs.preempt().await.expect("a database");
        self.app.services.access.sweep_sessions().await.expect("a database");
        self.app.services.jobs.sweep_idempotency_keys().await.expect("a database");
    }
}

/// Reads a response with its body.
pub async fn read_response(response: axum::response::Response) -> TestResponse {
    let (parts, body) = response.into_parts();
    let body = body.collect().await.expect("a complete body").to_bytes().to_vec();
    TestResponse { status: parts.status, headers: parts.headers, body }
}

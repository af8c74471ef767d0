//! A server without a socket.

mod agent;
mod events;
pub mod passkey;
pub mod totp;

use std::sync::{Arc, Mutex};

use app::domain::time::Millis;
use app::domain::watermark::Floor;
use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, StatusCode, header};
use http_body_util::BodyExt;
use leptos::config::LeptosOptions;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

pub use self::agent::Agent;
pub use self::events::Events;
use super::described;
use crate::clock::{Clock, ManualClock};
use crate::disk::ManualDisk;
use crate::files::artifacts::Artifacts;
use crate::files::checkpoints::Checkpoints;
use crate::files::logs::Logs;
use crate::files::uploads::Uploads;
use crate::flashes::Flashes;
use crate::http::access::Mode;
use crate::http::ui::making::Making;
use crate::hub::Hub;
use crate::metrics::Metrics;
use crate::random::CountedRandom;
use crate::service::access::Doors;
use crate::service::audit::checkpoint::Signer;
use crate::service::audit::refused::Floods;
use crate::service::contention::Contention;
use crate::service::dispatch::hooks;
use crate::service::gpu_history::Histories;
use crate::service::gpus::Readings;
use crate::service::leader::Leadership;
use crate::service::presence::Presence;
use crate::service::space::Room;
use crate::service::storing::Storing;
use crate::service::{Core, Policy};
use crate::state::{App, Parts};
use crate::store::Store;
use crate::store::postgres::PostgresStore;
use crate::store::sqlite::SqliteStore;
use crate::tls::Tls;
use crate::vault::Vault;

/// The admin's token in these tests.
pub const ADMIN: &str = "st_admin-token-of-the-tests";

/// Everybody's password in these tests.
pub const PASSWORD: &str = "correct-horse-battery";

/// A server and what keeps it alive.
pub struct Server {
    pub app: App,
    pub clock: Arc<ManualClock>,
    pub disk: Arc<ManualDisk>,
    pub router: Router,
    pub directory: tempfile::TempDir,
}

/// An answer, read whole.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Answer {
    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.text()))
    }

    /// The body as text: of a page what it shows, without the sentences that it carries for the browser.
    pub fn text(&self) -> String {
        let mut text = String::from_utf8_lossy(&self.body).into_owned();
        if let Some(start) = text.find("<template id=\"words\"") {
            let end = text[start..].find("</template>").map_or(text.len(), |length| start + length);
            text.replace_range(start..end, "");
        }
        text
    }

    /// The JSON, if it is of this status.
    pub fn ok(self, status: u16) -> Value {
        assert_eq!(self.status.as_u16(), status, "{}", self.text());
        self.json()
    }

    /// Checks that it is a problem document of this status and code.
    pub fn problem(self, status: u16, code: &str) -> Value {
        let document = self.json();
        assert_eq!((self.status.as_u16(), document["code"].as_str()), (status, Some(code)), "{document}");
        assert_eq!(self.headers[header::CONTENT_TYPE], "application/problem+json");
        let detail = document["detail"].as_str().unwrap_or_default();
        assert!(detail.ends_with(['.', '。']), "a sentence: {document}");
        assert_eq!(document["request_id"].as_str(), self.headers["x-request-id"].to_str().ok());
        document
    }
}

/// Who asks.
#[derive(Debug, Clone)]
pub enum By {
    Nobody,
    Admin,
    Worker(Agent),
    Job(String),
    Token(String),
    Cookie(String),
}

impl By {
    /// An agent with this token.
    pub fn worker(token: impl Into<String>) -> Self {
        Self::Worker(Agent::new(token.into()))
    }
}

fn policy() -> Policy {
    Policy {
        artifact_limit: 1_000,
        max_streams: 8,
        leader_term: Millis(300),
        server_life: Millis(300),
        ..Policy::default()
    }
}

impl Server {
    pub async fn start() -> Self {
        Self::start_as(Mode::Accounts).await
    }

    pub async fn start_as(mode: Mode) -> Self {
        Self::start_alone(mode, &policy()).await
    }

    /// One with other numbers.
    pub async fn start_with(change: impl FnOnce(&mut Policy)) -> Self {
        let mut policy = policy();
        change(&mut policy);
        Self::start_alone(Mode::Accounts, &policy).await
    }

    /// One that speaks TLS, as whoever serves its router has to.
    pub async fn start_over(tls: Tls) -> Self {
        Self::start_as_with(Mode::Accounts, &policy(), Some(tls)).await
    }

    async fn start_alone(mode: Mode, policy: &Policy) -> Self {
        Self::start_as_with(mode, policy, None).await
    }

    async fn start_as_with(mode: Mode, policy: &Policy, tls: Option<Tls>) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let store = SqliteStore::open(directory.path(), "c_test").await.expect("fresh");
        let server = Self::with_store(mode, policy, directory, Arc::new(store), "c_test", tls).await;
        server.app.core.take_part().await.expect("a database");
        server
    }

    /// One of several servers on a PostgreSQL database, which leads for so long if it does. It hears what the others
    /// change, and takes part in nothing yet.
    pub async fn start_beside(name: &str, database: &str, leader_term: Millis) -> Self {
        Self::start_beside_with(name, database, |policy| policy.leader_term = leader_term).await
    }

    /// The same, with other numbers.
    pub async fn start_beside_with(name: &str, database: &str, change: impl FnOnce(&mut Policy)) -> Self {
        let store = PostgresStore::open(database, name).await.expect("a database");
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut policy = policy();
        change(&mut policy);
        let server = Self::with_store(Mode::Accounts, &policy, directory, Arc::new(store), name, None).await;
        let core = Arc::clone(&server.app.core);
        tokio::spawn(server.app.shutdown.clone().run_until_cancelled_owned(async move {
            loop {
                core.hear().await;
            }
        }));
        server
    }

    async fn with_store(
        mode: Mode,
        policy: &Policy,
        directory: tempfile::TempDir,
        store: Arc<dyn Store>,
        name: &str,
        tls: Option<Tls>,
    ) -> Self {
        let (clock, disk) = (Arc::new(ManualClock::new()), Arc::new(ManualDisk::new()));
        let core = Arc::new(Core {
            store,
            hub: Hub::default(),
            presence: Presence::default(),
            readings: Readings::default(),
            histories: Histories::at(directory.path()),
            contention: Contention::default(),
            doors: Doors::default(),
            floods: Floods::default(),
            signer: Signer::new(Checkpoints::open(directory.path(), "sqlite", [7; 32]).expect("fresh")),
            clock: clock.clone(),
            random: Arc::new(CountedRandom::named(name)),
            logs: Logs::open(directory.path().join("logs")).expect("fresh"),
            searches: policy.bounds.searches(),
            event_streams: policy.bounds.event_streams(),
            uploads: Uploads::open(directory.path().join("uploads")).expect("fresh"),
            artifacts: Artifacts::open(&directory.path().join("artifacts")).expect("fresh"),
            storing: Storing::default(),
            policy: *policy,
            vault: Vault::at(directory.path().join("secrets.key")),
            job_token_key: b"key".to_vec(),
            last_job_id: Mutex::default(),
            server: name.to_owned(),
            leadership: Leadership::default(),
            file_bytes: crate::service::file_bytes::FileBytes::default(),
            metrics: Metrics::new(clock.now()),
            room: Room::new(disk.clone(), Floor::Bytes(2 << 30), Floor::Bytes(512 << 20)),
        });
        core.store.attach(hooks(&core));
        if mode == Mode::Accounts {
            core.bootstrap_token(ADMIN).await.expect("a fresh database");
        }
        let app = App::new(Parts {
            core,
            mode,
            shutdown: CancellationToken::new(),
            epoch: "life1".to_owned(),
            address: "127.0.0.1:8001".to_owned(),
            tls,
            trusted_proxies: vec!["10.0.0.0/8".parse().expect("a network")],
            flashes: Flashes::default(),
            making: Making::default(),
            data: directory.path().to_owned(),
            settings: Vec::new(),
            leptos: LeptosOptions::builder().output_name("simpletuner").build(),
        });
        app.core.look_at_disk().expect("a disk by hand");
        Self { router: crate::http::router(app.clone()), app, clock, disk, directory }
    }

    /// Sends a request; nothing of the body is read yet.
    pub async fn open(&self, by: &By, method: &str, path: &str, body: impl Into<Body>) -> axum::response::Response {
        let request = Request::builder().method(Method::try_from(method).expect("a method")).uri(path);
        let request = request.header(header::HOST, "localhost:8001");
        let request = match by {
            By::Nobody => request,
            By::Admin => request.header(header::AUTHORIZATION, format!("Bearer {ADMIN}")),
            By::Worker(agent) => {
                let (name, value) = agent.header(self, path).await;
                request.header(name, value)
            }
            By::Job(token) => request.header("x-upload-token", token),
            By::Token(token) => request.header("x-api-key", token),
            By::Cookie(cookie) => request.header(header::COOKIE, cookie),
        };
        let request = if path.starts_with("/ui/") {
            request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        } else {
            request
        };
        let answer = self.send(request.body(body.into()).expect("a request")).await;
        if let By::Worker(agent) = by { agent.answered(path, answer).await } else { answer }
    }

    /// Sends a request as it is.
    pub async fn send(&self, request: Request<Body>) -> axum::response::Response {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let answer = self.router.clone().oneshot(request).await.expect("the router always answers");
        described::check(&self.app, method, &path, answer).await
    }

    /// Sends a request and reads its answer.
    pub async fn call(&self, by: &By, method: &str, path: &str, body: impl Into<Body>) -> Answer {
        read(self.open(by, method, path, body).await).await
    }

    pub async fn get(&self, by: &By, path: &str) -> Answer {
        self.call(by, "GET", path, Body::empty()).await
    }

    pub async fn post(&self, by: &By, path: &str, body: Value) -> Answer {
        self.call(by, "POST", path, body.to_string()).await
    }

    /// Adds somebody; returns their browser, which is logged in.
    pub async fn person(&self, name: &str, role: &str) -> By {
        let body = json!({"name": name, "role": role, "password": PASSWORD});
        self.post(&By::Admin, "/api/admin/users", body).await.ok(201);
        self.log_in(name, PASSWORD).await.expect("the password is right")
    }

    /// The id of somebody.
    pub async fn id_of(&self, name: &str) -> String {
        let page = self.get(&By::Admin, "/api/admin/users").await.ok(200);
        let user = page["users"].as_array().expect("a list").iter().find(|user| user["name"] == name).cloned();
        user.expect("somebody of this name")["id"].as_str().expect("text").to_owned()
    }

    /// Logs in; returns the browser, if it was let in.
    pub async fn log_in(&self, name: &str, password: &str) -> Option<By> {
        let form = format!("name={name}&password={password}");
        let answer = self.call(&By::Nobody, "POST", "/ui/login", form).await;
        let cookies = answer.headers.get_all(header::SET_COOKIE).into_iter().filter_map(|cookie| cookie.to_str().ok());
        let session = cookies.filter_map(|cookie| cookie.split(';').next()).find(|pair| pair.starts_with("sid="));
        session.map(|session| By::Cookie(session.to_owned()))
    }

    /// Makes a worker; returns its id and its key.
    pub async fn worker(&self, name: &str) -> (String, By) {
        let made = self.post(&By::Admin, "/api/admin/workers", json!({"name": name})).await.ok(201);
        let text = |key: &str| made[key].as_str().expect("text").to_owned();
        (text("worker_id"), By::worker(text("token")))
    }

    pub async fn config(&self, name: &str) {
        let body = json!({"files": {"config.json": "{\"--num_processes\": 1}", "multidatabackend.json": "[]"}});
        self.call(&By::Admin, "PUT", &format!("/api/configs/{name}"), body.to_string()).await.ok(200);
    }

    /// Submits a job; returns its id.
    pub async fn submit(&self, config: &str) -> String {
        let body = json!({"config_name": config, "target": "worker"});
        let answer = self.post(&By::Admin, "/api/queue/submit", body).await.ok(201);
        answer["job_id"].as_str().expect("text").to_owned()
    }

    pub async fn job(&self, id: &str) -> Value {
        self.get(&By::Admin, &format!("/api/queue/{id}")).await.ok(200)
    }

    pub async fn status_of(&self, id: &str) -> String {
        self.job(id).await["status"].as_str().expect("text").to_owned()
    }

    /// Moves the clock, and lets the reconcilers run once.
    pub async fn pass(&self, span: Millis) {
        self.clock.advance(span);
        self.app.core.check_health().await.expect("a database");
        self.app.core.sweep_offers().await.expect("a database");
        self.app.core.sweep_sessions().await.expect("a database");
        self.app.core.sweep_idempotency_keys().await.expect("a database");
    }
}

/// Reads an answer whole.
pub async fn read(answer: axum::response::Response) -> Answer {
    let (parts, body) = answer.into_parts();
    let body = body.collect().await.expect("a whole body").to_bytes().to_vec();
    Answer { status: parts.status, headers: parts.headers, body }
}

//! The server under load.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use reqwest::{Client, Method};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The API token of the admin.
pub const ADMIN: &str = "st_load-load-load-load-load-load";

/// A server, with an API client of its admin.
pub struct Server {
    pub http: Client,
    pub url: String,
    port: u16,
    child: Child,
    dir: TempDir,
    database: Option<String>,
}

impl Server {
    pub async fn start(postgres: bool) -> Self {
        let database = if postgres { Some(create_database()) } else { None };
        let server = Self::with_database(database).await;
        let files = json!({"files": {"config.json": "{}"}});
        server.api(Method::PUT, "/api/configs/load", Some(&files)).await;
        server
    }

    /// Starts another server on the same PostgreSQL database.
    pub async fn start_peer(&self) -> Self {
        assert!(self.database.is_some(), "servers share a PostgreSQL database only");
        Self::with_database(self.database.clone()).await
    }

    async fn with_database(database: Option<String>) -> Self {
        let dir = TempDir::with_prefix("simpletuner-load-").expect("a temporary directory");
        let port =
            std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
        let child = spawn(dir.path(), port, database.as_deref());
        let http = Client::builder().no_proxy().pool_max_idle_per_host(usize::MAX).tcp_nodelay(true).build();
        let http = http.expect("a client");
        let server = Self { http, url: format!("http://127.0.0.1:{port}"), port, child, dir, database };
        server.until_ready().await;
        server
    }

    /// Kills the server as a power cut would, and starts it again; returns the time of the start.
    pub async fn kill_and_restart(&mut self) -> Instant {
        self.child.kill().expect("a running server");
        self.child.wait().expect("a child");
        let started = Instant::now();
        self.child = spawn(self.dir.path(), self.port, self.database.as_deref());
        self.until_ready().await;
        started
    }

    /// Stops the server; returns the duration.
    pub async fn stop(&mut self) -> Duration {
        let started = Instant::now();
        let pid = self.child.id().to_string();
        let status = Command::new("kill").args(["-TERM", &pid]).status().expect("the program kill");
        assert!(status.success(), "the server has already ended");
        while self.child.try_wait().expect("a child").is_none() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        started.elapsed()
    }

    async fn until_ready(&self) {
        let end = Instant::now() + Duration::from_secs(30);
        while self.http.get(format!("{}/readyz", self.url)).send().await.is_err() {
            assert!(Instant::now() < end, "the server is not ready; see {}", self.dir.path().display());
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Sends a request; the response must have a successful status.
    pub async fn api(&self, method: Method, path: &str, body: Option<&Value>) -> Value {
        let request = self.http.request(method, format!("{}{path}", self.url)).bearer_auth(ADMIN);
        let request = if let Some(body) = body { request.json(body) } else { request };
        let response = request.send().await.expect("a response");
        let (status, text) = (response.status(), response.text().await.expect("a body"));
        assert!(status.is_success(), "{path} returned {status}: {text}");
        serde_json::from_str(&text).expect("JSON")
    }

    pub async fn submit(&self) -> String {
        let body = json!({"config_name": "load", "target": "worker"});
        let response = self.api(Method::POST, "/api/queue/submit", Some(&body)).await;
        response["job_id"].as_str().expect("a job id").to_owned()
    }

    /// Returns the resident memory in bytes and the CPU time in seconds.
    pub fn resource_usage(&self) -> (u64, f64) {
        let read = |name: &str| std::fs::read_to_string(format!("/proc/{}/{name}", self.child.id())).expect("proc(5)");
        let status = read("status");
        let kib = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("VmRSS");
        let kib: u64 = kib.trim().trim_end_matches(" kB").parse().expect("a number");
        let stat = read("stat");
        let fields: Vec<&str> = stat.rsplit(") ").next().expect("fields").split(' ').collect();
        // User and system time in ticks, of which Linux has 100 a second.
        let ticks = |index: usize| fields[index].parse::<f64>().expect("a number");
        (kib * 1_024, (ticks(11) + ticks(12)) / 100.0)
    }

    /// Returns how much of a core it uses during the next `span`, in percent.
    pub async fn cpu_share(&self, span: Duration) -> f64 {
        let (cpu, started) = (self.resource_usage().1, Instant::now());
        tokio::time::sleep(span).await;
        (self.resource_usage().1 - cpu) / started.elapsed().as_secs_f64() * 100.0
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(dir: &Path, port: u16, database: Option<&str>) -> Child {
    let dist = std::env::var_os("SIMPLETUNER_DIST").map_or_else(|| PathBuf::from("dist"), PathBuf::from);
    let log = std::fs::File::options().create(true).append(true).open(dir.join("server.log")).expect("a log");
    let mut command = Command::new(dist.join("simpletuner"));
    command.args(["server", "--port", &port.to_string(), "--data-dir"]).arg(dir.join("data"));
    command.env("SIMPLETUNER_BOOTSTRAP_ADMIN_TOKEN", ADMIN).env("SIMPLETUNER_LOCAL", "off");
    // The limits are too high to be reached, but they are still checked.
    for limit in ["RATE_LIMIT", "MAX_WAITING_JOBS_PER_USER", "MAX_API_TOKENS_PER_USER"] {
        command.env(format!("SIMPLETUNER_{limit}"), "1000000");
    }
    if let Some(database) = database {
        command.env("SIMPLETUNER_DATABASE_URL", database);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().expect("dist/simpletuner; run make build")
}

fn create_database() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let server =
        std::env::var("SIMPLETUNER_TEST_POSTGRES").expect("SIMPLETUNER_TEST_POSTGRES names a PostgreSQL server");
    let name = format!("load_{}_{}", std::process::id(), NUMBER.fetch_add(1, Ordering::SeqCst));
    let create = Command::new("psql").args(["-q", &server, "-c", &format!("CREATE DATABASE {name}")]).status();
    assert!(create.is_ok_and(|status| status.success()), "psql could not create a database");
    server.replacen("/postgres?", &format!("/{name}?"), 1)
}

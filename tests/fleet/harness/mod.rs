//! A fleet for one test: a server, its API, and hosts with agents, with cleanup.

mod api;
pub mod database;
pub mod environment;
mod fixture;
mod host;
pub mod machine;
mod network_proxy;
pub mod pooler;
mod process;
pub mod proxy;
pub mod trainers;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use sqlx::migrate::MigrateDatabase;
use tempfile::TempDir;
use tokio::process::Command;
use tokio::sync::{Semaphore, SemaphorePermit};

pub use api::Api;
pub use fixture::Fixture;
pub use host::{WorkerHost, sandbox_level};
pub use network_proxy::{NetworkCondition, NetworkProxy};
pub use process::{Program, processes_that_mention};

/// Upper limit for any wait, even on a busy machine.
pub const TIMEOUT: Duration = Duration::from_mins(1);
/// How often a state is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// More concurrent tests would only slow each other down on a small machine.
static SLOTS: Semaphore = Semaphore::const_new(4);
/// The admin's API token.
pub const ADMIN: &str = "st_fleet-tests-fleet-tests-fleet";

/// A silent worker is offline after 4 s; its agent sends a heartbeat every second.
pub const SHORT_HEARTBEAT_TIMEOUT: (&str, &str) = ("SIMPLETUNER_HEARTBEAT_TIMEOUT", "4");

/// Polls until the check returns a value.
pub async fn wait_until<T>(condition: &str, mut poll: impl AsyncFnMut() -> Option<T>) -> T {
    let end = Instant::now() + TIMEOUT;
    loop {
        if let Some(value) = poll().await {
            return value;
        }
        assert!(Instant::now() < end, "timed out after {} s waiting for {condition}", TIMEOUT.as_secs());
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Returns the path of a program under test.
pub fn program(name: &str) -> PathBuf {
    let Some(dist) = std::env::var_os("SIMPLETUNER_DIST") else {
        panic!(
            "SIMPLETUNER_DIST must name the directory that holds the programs to test; `scripts/test fleet` builds them"
        )
    };
    Path::new(&dist).join(name)
}

/// A command with an empty environment except for `PATH`.
pub fn command(name: &str, home: &Path) -> Command {
    let mut command = Command::new(program(name));
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", home);
    // Works with any free disk space.
    command.env("SIMPLETUNER_KEEP_FREE", "0");
    command
}

/// Creates an empty database on the PostgreSQL of the tests and returns its URL. It is removed with that PostgreSQL.
pub async fn new_database() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let server = std::env::var("SIMPLETUNER_TEST_POSTGRES")
        .expect("SIMPLETUNER_TEST_POSTGRES names a PostgreSQL server; scripts/test starts one");
    let name = format!("fleet_{}_{}", std::process::id(), NUMBER.fetch_add(1, Ordering::SeqCst));
    let address = server.replacen("/postgres?", &format!("/{name}?"), 1);
    sqlx::Postgres::create_database(&address).await.expect("permission to create a database");
    address
}

/// Returns the path of a file in this repository.
pub fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// A change to a command.
type CommandChange = Box<dyn Fn(&mut Command)>;

/// A server with its hosts and files.
pub struct TestFleet {
    pub api: Api,
    server: Option<Program>,
    port: u16,
    dir: TempDir,
    /// A database that servers share; `None` for one in the data directory.
    database: Option<String>,
    /// More variables for the server.
    settings: Vec<(&'static str, String)>,
    /// A change to the server's command.
    change: Option<CommandChange>,
    _slot: SemaphorePermit<'static>,
}

impl TestFleet {
    /// Starts a ready server with the example configurations, on the database engine of this test run.
    pub async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// Like `start`, with more variables for the server.
    pub async fn start_with(settings: &[(&'static str, &str)]) -> Self {
        let database = if Self::uses_postgres() { Some(new_database().await) } else { None };
        Self::new(database, settings).await
    }

    /// The database engine of this test run.
    fn uses_postgres() -> bool {
        std::env::var("SIMPLETUNER_FLEET_DATABASE").is_ok_and(|engine| engine == "postgres")
    }

    /// Like `start_with`, with a change to the server's command on each start.
    pub async fn start_with_change(settings: &[(&'static str, &str)], change: impl Fn(&mut Command) + 'static) -> Self {
        let mut fleet = Self::start_with(settings).await;
        fleet.kill_server().await;
        fleet.change = Some(Box::new(change));
        fleet.start_server().await;
        fleet
    }

    /// Starts a server with a database in its data directory, whatever the engine of this test run is.
    pub async fn start_embedded() -> Self {
        Self::new(None, &[]).await
    }

    /// Like `start_embedded`, with more variables for the server.
    pub async fn start_embedded_with(settings: &[(&'static str, &str)]) -> Self {
        Self::new(None, settings).await
    }

    /// Starts a server on a database that others can share.
    pub async fn start_shared() -> Self {
        Self::start_shared_with(&[]).await
    }

    /// Like `start_shared`, with more variables for the servers.
    pub async fn start_shared_with(settings: &[(&'static str, &str)]) -> Self {
        Self::new(Some(new_database().await), settings).await
    }

    /// Starts a server on the database with this URL.
    pub async fn start_on(database: String) -> Self {
        Self::new(Some(database), &[]).await
    }

    async fn new(database: Option<String>, settings: &[(&'static str, &str)]) -> Self {
        let mut fleet = Self::prepare(database, settings).await;
        fleet.start_server().await;
        fleet
    }

    /// Creates a fleet whose server is not started yet.
    async fn prepare(database: Option<String>, settings: &[(&'static str, &str)]) -> Self {
        let slot = SLOTS.acquire().await.expect("never closed");
        let dir = TempDir::with_prefix("simpletuner-fleet-").expect("a temporary directory");
        let settings = settings.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        Self { api: Api::new(""), server: None, port: 0, dir, database, settings, change: None, _slot: slot }
    }

    /// Starts another server on the same database and data.
    pub async fn second_server(&self) -> (Program, Api) {
        self.second_server_with(|_| ()).await
    }

    /// Like `second_server`, with a change to its command.
    pub async fn second_server_with(&self, change: impl FnOnce(&mut Command)) -> (Program, Api) {
        let mut command = self.server_command(0);
        change(&mut command);
        let server = Program::start(command, self.path().join("second-server.log"));
        let address = wait_until("the second server's address", async || server.address()).await;
        let api = Api::new(&address);
        wait_until("the second server to be ready", async || api.try_get("/readyz").await).await;
        (server, api)
    }

    fn server_command(&self, port: u16) -> Command {
        let mut command = command("simpletuner", self.path());
        command.args(["server", "--port", &port.to_string()]).env("SIMPLETUNER_BOOTSTRAP_ADMIN_TOKEN", ADMIN);
        command.arg("--data-dir").arg(self.data()).arg("--configs-dir").arg(repository("examples/configs"));
        command.env("SIMPLETUNER_LOCAL", "off").envs(self.settings.iter().map(|(name, value)| (*name, value.as_str())));
        if let Some(database) = &self.database {
            command.env("SIMPLETUNER_DATABASE_URL", database);
        }
        command
    }

    /// Returns the directory of this fleet.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Returns the server's data directory.
    pub fn data(&self) -> PathBuf {
        self.path().join("data")
    }

    /// Returns the server's port, which stays the same after a restart.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Starts the server: the first time on a port that the kernel chooses, then always on that one.
    pub async fn start_server(&mut self) {
        let log = self.path().join("server.log");
        let mut command = self.server_command(self.port);
        if let Some(change) = &self.change {
            change(&mut command);
        }
        let server = self.server.insert(Program::start(command, log));
        if self.port == 0 {
            self.api = Api::new(&wait_until("the server's address", async || server.address()).await);
            self.port = self.api.port();
        }
        wait_until("the server to be ready", async || self.api.try_get("/readyz").await).await;
    }

    /// Starts the server, which must exit; returns its exit code and its log.
    pub async fn start_server_in_vain(&self) -> (Option<i32>, String) {
        let mut server = Program::start(self.server_command(self.port), self.path().join("start-in-vain.log"));
        let code = server.wait().await;
        (code, server.output())
    }

    /// Restarts the server with another stderr.
    pub async fn restart_server_with_stderr(&mut self, stderr: Stdio) {
        self.kill_server().await;
        let log = self.path().join("server.log");
        self.server = Some(Program::start_with_stderr(self.server_command(self.port), log, Some(stderr)));
        wait_until("the server to be ready", async || self.api.try_get("/readyz").await).await;
    }

    /// Returns the running server.
    pub fn server(&mut self) -> &mut Program {
        self.server.as_mut().expect("a server")
    }

    /// Kills the server, like a power failure.
    pub async fn kill_server(&mut self) {
        self.server.take().expect("a server").kill().await;
    }

    /// Stops the server, like a service manager. Returns the exit code and its whole log.
    pub async fn stop_server(&mut self) -> (Option<i32>, String) {
        let mut server = self.server.take().expect("a server");
        server.signal(Signal::SIGTERM);
        let code = server.wait().await;
        (code, server.output())
    }

    /// Adds a host with a persistent worker of this name; its agent is not started yet.
    pub async fn add_host(&self, name: &str) -> WorkerHost {
        self.add_host_of_type(name, "persistent").await
    }

    /// Like `add_host`, with a worker of this type.
    pub async fn add_host_of_type(&self, name: &str, worker_type: &str) -> WorkerHost {
        let created = self.api.post("/api/admin/workers", &json!({"name": name, "worker_type": worker_type})).await;
        WorkerHost::new(self, name, worker_type, &created)
    }

    /// Submits a job and waits until it runs.
    pub async fn submit_running_job(&self) -> String {
        let job = self.api.submit("digits-quick").await;
        self.api.wait_for_job(&job, "running").await;
        job
    }

    /// Stores the configuration `digits-quick` under another name with these changes.
    pub async fn put_config(&self, name: &str, changes: &Value) {
        let example = repository("examples/configs/digits-quick");
        let mut files = serde_json::Map::new();
        for file in ["config.json", "multidatabackend.json", "prompts.json"] {
            let text = std::fs::read_to_string(example.join(file)).expect("an example");
            files.insert(file.to_owned(), text.into());
        }
        let mut config: Value = serde_json::from_str(files["config.json"].as_str().expect("text")).expect("JSON");
        for (key, value) in changes.as_object().expect("an object") {
            config[key] = value.clone();
        }
        files["config.json"] = config.to_string().into();
        self.api.put(&format!("/api/configs/{name}"), &json!({"files": files})).await;
    }

    fn print_logs(&self) {
        let entries = std::fs::read_dir(self.path()).into_iter().flatten().flatten();
        for path in entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "log")) {
            let text = std::fs::read(&path).unwrap_or_default();
            eprintln!("--- {}\n{}", path.display(), String::from_utf8_lossy(&text));
        }
    }
}

impl Drop for TestFleet {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.print_logs();
        }
        self.server = None;
        process::kill_all_that_mention(&self.path().to_string_lossy());
    }
}

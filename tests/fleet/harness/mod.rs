//! A fleet for one test: a server, its API, hosts with agents, and everything gone afterwards.

mod api;
mod host;
pub mod machine;
mod process;
pub mod proxy;
pub mod surroundings;
pub mod trainers;
mod wire;

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
pub use host::{Host, sandbox};
pub use process::{Program, processes_that_mention};
pub use wire::{Weather, Wire};

/// Nothing here takes longer, even on a busy machine.
pub const PATIENCE: Duration = Duration::from_mins(1);
/// How often a state is looked at.
const STEP: Duration = Duration::from_millis(20);
/// Trainers, agents and servers of more tests at once would only wait for each other on a small machine.
static TURNS: Semaphore = Semaphore::const_new(4);
/// The administrator's API token.
pub const ADMIN: &str = "st_fleet-tests-fleet-tests-fleet";

/// With it, a worker that is silent for 4 s is offline; its agent beats each second.
pub const SOON: (&str, &str) = ("SIMPLETUNER_HEARTBEAT_TIMEOUT", "4");

/// Looks until there is something to see.
pub async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(seen) = look().await {
            return seen;
        }
        assert!(Instant::now() < end, "waited {} s in vain for {what}", PATIENCE.as_secs());
        tokio::time::sleep(STEP).await;
    }
}

/// A program under test.
pub fn program(name: &str) -> PathBuf {
    let Some(dist) = std::env::var_os("SIMPLETUNER_DIST") else {
        panic!(
            "SIMPLETUNER_DIST must name the directory that holds the programs to test; `scripts/test fleet` builds them"
        )
    };
    Path::new(&dist).join(name)
}

/// A command with nothing of this process's environment but the `PATH`.
pub fn command(name: &str, home: &Path) -> Command {
    let mut command = Command::new(program(name));
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", home);
    // However full this machine's disk is.
    command.env("SIMPLETUNER_KEEP_FREE", "0");
    command
}

/// A new, empty database on the PostgreSQL of the tests, by its address. It goes with that PostgreSQL.
async fn fresh_database() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let server = std::env::var("SIMPLETUNER_TEST_POSTGRES")
        .expect("SIMPLETUNER_TEST_POSTGRES names a PostgreSQL server; scripts/test starts one");
    let name = format!("fleet_{}_{}", std::process::id(), NUMBER.fetch_add(1, Ordering::SeqCst));
    let address = server.replacen("/postgres?", &format!("/{name}?"), 1);
    sqlx::Postgres::create_database(&address).await.expect("the server lets us make a database of a new name");
    address
}

/// A file of this repository.
pub fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// What is changed about a command.
type Change = Box<dyn Fn(&mut Command)>;

/// A server and whatever hangs on it.
pub struct Fleet {
    /// The server's API.
    pub api: Api,
    server: Option<Program>,
    port: u16,
    dir: TempDir,
    /// A database that servers share; none for one of the server's own.
    database: Option<String>,
    /// More variables for the server.
    settings: Vec<(&'static str, String)>,
    /// What else is changed about the server's command.
    change: Option<Change>,
    _turn: SemaphorePermit<'static>,
}

impl Fleet {
    /// With a server that is ready and knows the example configurations, on the engine that this run is about.
    pub async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// The same with more variables for the server.
    pub async fn start_with(settings: &[(&'static str, &str)]) -> Self {
        let postgres = std::env::var("SIMPLETUNER_FLEET_DATABASE").is_ok_and(|engine| engine == "postgres");
        let database = if postgres { Some(fresh_database().await) } else { None };
        Self::on(database, settings).await
    }

    /// The same with a change to the server's command, each time it starts.
    pub async fn start_by(settings: &[(&'static str, &str)], change: impl Fn(&mut Command) + 'static) -> Self {
        let mut fleet = Self::start_with(settings).await;
        fleet.kill_server().await;
        fleet.change = Some(Box::new(change));
        fleet.start_server().await;
        fleet
    }

    /// With a server on a database of its own in its data directory, whatever this run is about.
    pub async fn start_embedded() -> Self {
        Self::on(None, &[]).await
    }

    /// The same with more variables for the server.
    pub async fn start_embedded_with(settings: &[(&'static str, &str)]) -> Self {
        Self::on(None, settings).await
    }

    /// With a server on a database that others can share.
    pub async fn start_shared() -> Self {
        Self::start_shared_with(&[]).await
    }

    /// The same with more variables for the servers.
    pub async fn start_shared_with(settings: &[(&'static str, &str)]) -> Self {
        Self::on(Some(fresh_database().await), settings).await
    }

    async fn on(database: Option<String>, settings: &[(&'static str, &str)]) -> Self {
        let turn = TURNS.acquire().await.expect("never closed");
        let dir = TempDir::with_prefix("simpletuner-fleet-").expect("a temporary directory");
        let settings = settings.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        let mut fleet =
            Self { api: Api::new(""), server: None, port: 0, dir, database, settings, change: None, _turn: turn };
        fleet.start_server().await;
        fleet
    }

    /// Another server beside the first, on the same database and data.
    pub async fn second_server(&self) -> (Program, Api) {
        self.second_server_by(|_| ()).await
    }

    /// The same with a change to its command.
    pub async fn second_server_by(&self, change: impl FnOnce(&mut Command)) -> (Program, Api) {
        let mut command = self.server_command(0);
        change(&mut command);
        let server = Program::start(command, self.path().join("second-server.log"));
        let address = until("the second server's address", async || server.address()).await;
        let api = Api::new(&address);
        until("the second server to be ready", async || api.try_get("/readyz").await).await;
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

    /// What this fleet keeps on disk.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Where the server keeps its data.
    pub fn data(&self) -> PathBuf {
        self.path().join("data")
    }

    /// The port that the server has, also after a restart.
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
            self.api = Api::new(&until("the server's address", async || server.address()).await);
            self.port = self.api.port();
        }
        until("the server to be ready", async || self.api.try_get("/readyz").await).await;
    }

    /// Starts the server anew with its stderr elsewhere.
    pub async fn restart_server_into(&mut self, stderr: Stdio) {
        self.kill_server().await;
        let log = self.path().join("server.log");
        self.server = Some(Program::start_into(self.server_command(self.port), log, Some(stderr)));
        until("the server to be ready", async || self.api.try_get("/readyz").await).await;
    }

    /// The server that runs.
    pub fn server(&mut self) -> &mut Program {
        self.server.as_mut().expect("a server")
    }

    /// As a power cut would.
    pub async fn kill_server(&mut self) {
        self.server.take().expect("a server").kill().await;
    }

    /// As a service manager would. Answers with the exit code and everything the server has ever said.
    pub async fn stop_server(&mut self) -> (Option<i32>, String) {
        let mut server = self.server.take().expect("a server");
        server.signal(Signal::SIGTERM);
        let code = server.ended().await;
        (code, server.said())
    }

    /// A machine with a persistent worker of this name; its agent is not started yet.
    pub async fn host(&self, name: &str) -> Host {
        self.host_of(name, "persistent").await
    }

    /// The same with a worker of this type.
    pub async fn host_of(&self, name: &str, worker_type: &str) -> Host {
        let created = self.api.post("/api/admin/workers", &json!({"name": name, "worker_type": worker_type})).await;
        Host::new(self, name, worker_type, &created)
    }

    /// Submits a job; answers once it runs.
    pub async fn running(&self) -> String {
        let job = self.api.submit("digits-quick").await;
        self.api.until_job(&job, "running").await;
        job
    }

    /// Stores the configuration `digits-quick` under another name and with these changes.
    pub async fn configure(&self, name: &str, changes: &Value) {
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

impl Drop for Fleet {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.print_logs();
        }
        self.server = None;
        process::end_all_that_mention(&self.path().to_string_lossy());
    }
}

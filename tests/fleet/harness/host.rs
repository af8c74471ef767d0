//! A worker host: its home directory, its trainer, and its agent, which can be restarted.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;
use tokio::process::Command;

use super::{Program, TestFleet, command, repository, wait_until};

pub struct WorkerHost {
    pub worker: String,
    pub token: String,
    name: String,
    url: String,
    home: PathBuf,
    log: PathBuf,
    trainer: Option<String>,
    flags: Vec<String>,
    variables: Vec<(&'static str, String)>,
}

impl WorkerHost {
    /// Creates the host of a worker that exists at the server.
    pub fn new(fleet: &TestFleet, name: &str, worker_type: &str, created: &Value) -> Self {
        let home = fleet.path().join(name);
        for dir in ["trainer", "meet"] {
            std::fs::create_dir_all(home.join(dir)).expect("a home directory");
        }
        // A sandboxed trainer may run as another user.
        std::fs::set_permissions(home.join("meet"), Permissions::from_mode(0o777)).expect("an open directory");
        let text = |key: &str| created[key].as_str().unwrap_or_else(|| panic!("no {key} in {created}")).to_owned();
        Self {
            worker: text("worker_id"),
            token: text("token"),
            name: name.to_owned(),
            url: fleet.api.url().to_owned(),
            log: fleet.path().join(format!("agent-{name}.log")),
            home,
            trainer: None,
            flags: if worker_type == "persistent" { vec!["--persistent".to_owned()] } else { Vec::new() },
            variables: Vec::new(),
        }
    }

    /// Uses this Python program as its trainer, instead of the example.
    pub fn with_python_trainer(mut self, python: &str) -> Self {
        let path = self.home.join("trainer/trainer.py");
        std::fs::write(&path, python).expect("a trainer");
        self.trainer = Some(format!("python3 {}", path.display()));
        self
    }

    /// Uses this trainer command.
    pub fn with_trainer_command(mut self, command: &str) -> Self {
        self.trainer = Some(command.to_owned());
        self
    }

    /// Adds flags for the agent.
    pub fn with_flags(mut self, flags: &[&str]) -> Self {
        self.flags.extend(flags.iter().map(|flag| (*flag).to_owned()));
        self
    }

    /// Adds a variable for the agent.
    pub fn with_variable(mut self, variable: (&'static str, String)) -> Self {
        self.variables.push(variable);
        self
    }

    /// Uses another server URL.
    pub fn with_url(mut self, url: &str) -> Self {
        url.clone_into(&mut self.url);
        self
    }

    /// Uses another token.
    pub fn with_token(mut self, token: &str) -> Self {
        token.clone_into(&mut self.token);
        self
    }

    /// Returns the work directory of its agent.
    pub fn work_dir(&self) -> PathBuf {
        self.home.join("work")
    }

    /// Returns the directory that a trainer shares with its test, also in a sandbox.
    pub fn meeting_dir(&self) -> PathBuf {
        self.home.join("meet")
    }

    /// Returns a file that a trainer has written in that directory.
    pub fn trainer_file(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.meeting_dir().join(name)).ok()
    }

    /// Lets trainers that wait at the gate continue.
    pub fn open_gate(&self) {
        std::fs::write(self.meeting_dir().join("gate"), "").expect("a gate");
    }

    /// Returns the output of an attempt's trainer in the agent's spool.
    pub fn trainer_log(&self, job: &str, attempt: u32) -> String {
        std::fs::read_to_string(self.attempt_dir(job, attempt).join("trainer.log")).expect("a trainer's log")
    }

    /// Waits until an attempt has ended on this host, reported to the server or not.
    pub async fn wait_for_attempt_end(&self, job: &str, attempt: u32) {
        let exit = self.attempt_dir(job, attempt).join("exit.json");
        wait_until("the trainer's end", async || exit.exists().then_some(())).await;
    }

    /// Returns the directory of an attempt.
    pub fn attempt_dir(&self, job: &str, attempt: u32) -> PathBuf {
        self.work_dir().join("jobs").join(job).join(attempt.to_string())
    }

    pub fn start(&self) -> Program {
        self.start_with_changes(|_| None)
    }

    /// Like `start`, with another stderr.
    pub fn start_with_stderr(&self, stderr: Stdio) -> Program {
        Program::start_with_stderr(self.agent_command(), self.log.clone(), Some(stderr))
    }

    /// Starts the agent with a change to its command.
    pub fn start_with_changes(&self, change: impl FnOnce(&mut Command) -> Option<Command>) -> Program {
        let mut command = self.agent_command();
        let command = change(&mut command).unwrap_or(command);
        Program::start(command, self.log.clone())
    }

    fn agent_command(&self) -> Command {
        let mut command = command("simpletuner-worker", &self.home);
        command
            .env("SIMPLETUNER_ORCHESTRATOR_URL", &self.url)
            .env("SIMPLETUNER_WORKER_TOKEN", &self.token)
            .env("SIMPLETUNER_WORKER_NAME", &self.name)
            .args(&self.flags);
        self.add_environment(&mut command);
        command
    }

    /// Starts the agent with a custom command, adding its directory and trainer only.
    pub fn start_command(&self, mut command: Command) -> Program {
        self.add_environment(&mut command);
        Program::start(command, self.log.clone())
    }

    fn add_environment(&self, command: &mut Command) {
        command.env("PYTHONPATH", example_trainer()).env("SIMPLETUNER_WORK_DIR", self.work_dir());
        command
            .env("MEET", self.meeting_dir())
            .env("SIMPLETUNER_PATHS", format!("meet={}:rw", self.meeting_dir().display()));
        command.env("SIMPLETUNER_SANDBOX_MIN", sandbox_level()).args(["--pass-env", "MEET"]);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.env("SIMPLETUNER_LOG_FORMAT", "text");
        if let Some(trainer) = &self.trainer {
            command.env("SIMPLETUNER_TRAINER", trainer);
        }
    }

    /// Returns the URL of its server.
    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn home(&self) -> &Path {
        &self.home
    }
}

/// Returns the sandbox level of this test run.
pub fn sandbox_level() -> String {
    std::env::var("SIMPLETUNER_TEST_SANDBOX").unwrap_or_else(|_| "auto".to_owned())
}

fn example_trainer() -> PathBuf {
    repository("examples/trainer")
}

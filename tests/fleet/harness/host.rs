//! A machine with a worker: its home directory, its trainer, and its agent, which can be started again and again.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;
use tokio::process::Command;

use super::{Fleet, Program, command, repository, until};

/// See the module.
pub struct Host {
    /// The worker's id.
    pub worker: String,
    /// The worker's token.
    pub token: String,
    name: String,
    url: String,
    home: PathBuf,
    log: PathBuf,
    trainer: Option<String>,
    flags: Vec<String>,
    variables: Vec<(&'static str, String)>,
}

impl Host {
    /// Of the worker that the server has created.
    pub fn new(fleet: &Fleet, name: &str, worker_type: &str, created: &Value) -> Self {
        let home = fleet.path().join(name);
        for dir in ["trainer", "meet"] {
            std::fs::create_dir_all(home.join(dir)).expect("a home directory");
        }
        // A confined trainer may have a user of its own.
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

    /// With this Python program as its trainer, in place of the example.
    pub fn training_with(mut self, python: &str) -> Self {
        let path = self.home.join("trainer/trainer.py");
        std::fs::write(&path, python).expect("a trainer");
        self.trainer = Some(format!("python3 {}", path.display()));
        self
    }

    /// With this trainer command.
    pub fn training_by(mut self, command: &str) -> Self {
        self.trainer = Some(command.to_owned());
        self
    }

    /// With more flags for the agent.
    pub fn flags(mut self, flags: &[&str]) -> Self {
        self.flags.extend(flags.iter().map(|flag| (*flag).to_owned()));
        self
    }

    /// With one more variable for the agent.
    pub fn with(mut self, variable: (&'static str, String)) -> Self {
        self.variables.push(variable);
        self
    }

    /// With another address for its server.
    pub fn reaching(mut self, url: &str) -> Self {
        url.clone_into(&mut self.url);
        self
    }

    /// With another token than its own.
    pub fn holding(mut self, token: &str) -> Self {
        token.clone_into(&mut self.token);
        self
    }

    /// Where its agent keeps everything.
    pub fn work_dir(&self) -> PathBuf {
        self.home.join("work")
    }

    /// Where a trainer and its test meet, confined or not.
    pub fn meet(&self) -> PathBuf {
        self.home.join("meet")
    }

    /// What a trainer has left there.
    pub fn left(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.meet().join(name)).ok()
    }

    /// Lets trainers that wait at the gate go on.
    pub fn open_gate(&self) {
        std::fs::write(self.meet().join("gate"), "").expect("a gate");
    }

    /// What an attempt's trainer has written, as the agent has it.
    pub fn trainer_log(&self, job: &str, attempt: u32) -> String {
        std::fs::read_to_string(self.attempt(job, attempt).join("trainer.log")).expect("a trainer's log")
    }

    /// Waits until an attempt has ended on this host, told to the server or not.
    pub async fn until_over(&self, job: &str, attempt: u32) {
        let exit = self.attempt(job, attempt).join("exit.json");
        until("the trainer's end", async || exit.exists().then_some(())).await;
    }

    /// The directory of one attempt.
    pub fn attempt(&self, job: &str, attempt: u32) -> PathBuf {
        self.work_dir().join("jobs").join(job).join(attempt.to_string())
    }

    /// Starts the agent.
    pub fn start(&self) -> Program {
        self.start_as(|_| None)
    }

    /// The same with its stderr elsewhere.
    pub fn start_into(&self, stderr: Stdio) -> Program {
        Program::start_into(self.usual_command(), self.log.clone(), Some(stderr))
    }

    /// Starts the agent by its usual command, made into another one.
    pub fn start_as(&self, made: impl FnOnce(&mut Command) -> Option<Command>) -> Program {
        let mut command = self.usual_command();
        let command = made(&mut command).unwrap_or(command);
        Program::start(command, self.log.clone())
    }

    fn usual_command(&self) -> Command {
        let mut command = command("simpletuner-worker", &self.home);
        command
            .env("SIMPLETUNER_ORCHESTRATOR_URL", &self.url)
            .env("SIMPLETUNER_WORKER_TOKEN", &self.token)
            .env("SIMPLETUNER_WORKER_NAME", &self.name)
            .args(&self.flags);
        self.equip(&mut command);
        command
    }

    /// Starts the agent by a command of one's own, to which only its directory and trainer are added.
    pub fn start_by(&self, mut command: Command) -> Program {
        self.equip(&mut command);
        Program::start(command, self.log.clone())
    }

    fn equip(&self, command: &mut Command) {
        command.env("PYTHONPATH", example_trainer()).env("SIMPLETUNER_WORK_DIR", self.work_dir());
        command.env("MEET", self.meet()).env("SIMPLETUNER_PATHS", format!("meet={}:rw", self.meet().display()));
        command.env("SIMPLETUNER_SANDBOX_MIN", sandbox()).args(["--pass-env", "MEET"]);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.env("SIMPLETUNER_LOG_FORMAT", "text");
        if let Some(trainer) = &self.trainer {
            command.env("SIMPLETUNER_TRAINER", trainer);
        }
    }

    /// The address under which it reaches its server.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its home directory.
    pub fn home(&self) -> &Path {
        &self.home
    }
}

/// How closely jobs are confined in this run of the tests.
pub fn sandbox() -> String {
    std::env::var("SIMPLETUNER_TEST_SANDBOX").unwrap_or_else(|_| "auto".to_owned())
}

fn example_trainer() -> PathBuf {
    repository("examples/trainer")
}

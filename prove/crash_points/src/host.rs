//! A host with an agent, whose trainer is a shell script.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use anyhow::{Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::client::{Change, Client, text};
use crate::program::Program;
use crate::wait::wait_for;

/// The file that the trainer writes.
pub const OUTPUT: &str = "sub/model.safetensors";
pub const OUTPUT_CONTENT: &[u8] = b"weights";
/// How many lines the trainer prints.
const LINES: usize = 24;

/// How agents are started.
#[derive(Debug, Clone)]
pub struct AgentSettings {
    /// The folder of the programs.
    pub dist: PathBuf,
    /// The directory of the trainer, which no crash changes.
    pub trainer: PathBuf,
    pub token: String,
}

impl AgentSettings {
    /// Writes the trainer: it prints numbered lines, with a pause, and then writes a file.
    pub fn new(dist: &Path, trainer: &Path, token: String) -> Result<Self> {
        fs::create_dir(trainer)?;
        let (half, output) = (LINES / 2, String::from_utf8_lossy(OUTPUT_CONTENT));
        let journal = trainer.join("journal");
        let journal = journal.display();
        let script = format!(
            "line() {{ echo \"line $1 of attempt $SIMPLETUNER_ATTEMPT\"; }}\n\
             echo started >>{journal}\nfor n in $(seq {half}); do line $n; done\nsleep 0.2\n\
             for n in $(seq {} {LINES}); do line $n; done\nmkdir -p ../output/sub\nprintf {output} >../output/{OUTPUT}\n\
             echo ended >>{journal}\n",
            half + 1
        );
        fs::write(trainer.join("trainer.sh"), script)?;
        Ok(Self { dist: dist.to_owned(), trainer: trainer.to_owned(), token })
    }

    /// Where trainers record their start and end.
    pub fn journal(&self) -> PathBuf {
        self.trainer.join("journal")
    }

    /// The agent with its state in `work`, for the server at a URL.
    pub fn program(&self, work: &Path, url: &str) -> Program {
        Program::new(self.dist.join("simpletuner-worker"))
            .arg("--persistent")
            .env("HOME", &self.trainer)
            .env("SIMPLETUNER_ORCHESTRATOR_URL", url)
            .env("SIMPLETUNER_WORKER_TOKEN", &self.token)
            .env("SIMPLETUNER_WORK_DIR", work)
            .env("SIMPLETUNER_TRAINER", format!("sh {}", self.trainer.join("trainer.sh").display()))
            .env("SIMPLETUNER_SANDBOX_MIN", "none")
            .env("SIMPLETUNER_KEEP_FREE", "0")
            .env("SIMPLETUNER_SPOT_NOTICE", "off")
            .env("SIMPLETUNER_LOG_FORMAT", "text")
    }
}

/// The output of a complete attempt.
pub fn full_log(attempt: u64) -> String {
    let lines: Vec<String> = (1..=LINES).map(|line| format!("line {line} of attempt {attempt}\n")).collect();
    lines.concat()
}

/// A running agent; it and what it has started are killed on drop.
pub struct Agent {
    child: Child,
    work: PathBuf,
}

impl Agent {
    /// Its messages are appended to a file.
    pub fn start(settings: &AgentSettings, work: &Path, url: &str, log: &Path) -> Result<Self> {
        let log = fs::File::options().create(true).append(true).open(log)?;
        let mut command = settings.program(work, url).command();
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn()?;
        Ok(Self { child, work: work.to_owned() })
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> Result<bool> {
        Ok(self.child.try_wait()?.is_none())
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        kill_all_that_mention(&self.work.to_string_lossy());
    }
}

/// Kills supervisors and trainers: they have the agent's directory in their command line or environment.
pub fn kill_all_that_mention(text: &str) {
    // The supervisor of a killed trainer may have just started another process.
    let _ = wait_for("the end of supervisors and trainers", || {
        let remaining = processes_that_mention(text);
        for pid in &remaining {
            // It may have ended already.
            let _ = kill(*pid, Signal::SIGKILL);
        }
        Ok(remaining.is_empty())
    });
}

fn processes_that_mention(text: &str) -> Vec<Pid> {
    let own = Pid::this();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok().map(Pid::from_raw));
    pids.filter(|pid| *pid != own)
        .filter(|pid| {
            let mentions = |file: &str| {
                let bytes = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
                bytes.windows(text.len()).any(|window| window == text.as_bytes())
            };
            mentions("cmdline") || mentions("environ")
        })
        .collect()
}

/// Creates a configuration and a worker; returns the worker's token.
pub fn add_worker(client: &Client) -> Result<String> {
    let files = json!({"files": {"config.json": "{}"}});
    client.change("config", &Change::new("PUT", "/api/configs/digits", &files))?;
    let worker = json!({"name": "host", "worker_type": "persistent"});
    text(&client.change("worker", &Change::new("POST", "/api/admin/workers", &worker))?, "token")
}

pub fn submit(client: &Client, id: &str) -> Result<String> {
    let body = json!({"config_name": "digits", "target": "worker"});
    text(&client.change(id, &Change::new("POST", "/api/queue/submit", &body))?, "job_id")
}

/// Waits until a job has ended; returns it.
pub fn wait_for_end(client: &Client, job: &str) -> Result<Value> {
    let mut view = Value::Null;
    let waited = wait_for("the end of the job", || {
        view = client.get(&format!("/api/queue/{job}"))?;
        Ok(["completed", "failed", "cancelled"].iter().any(|status| view["status"] == *status))
    });
    match waited {
        Ok(()) => Ok(view),
        Err(error) => bail!("{error:#}: {view}"),
    }
}

//! Log files survive rotation with the configuration in `docs/OPERATIONS.md`, whatever program opened them, and how.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::Command;

use crate::harness::{TestFleet, repository, wait_until};

/// The path of the logs in that configuration.
const LOGS: &str = "/var/log/simpletuner/*.log";
/// A path that the server logs for each of these requests.
const SUBMIT: &str = "/api/queue/submit";

#[tokio::test]
async fn server_log_continues_after_rotation() {
    for append in [true, false] {
        let mut fleet = TestFleet::start().await;
        let log = Log::of(&fleet, append);
        fleet.restart_server_with_stderr(log.opened(append)).await;
        for round in 1..=3 {
            fleet.api.submit("digits-quick").await;
            log.wait_for(SUBMIT).await;
            let before = log.text();
            log.rotate().await;
            assert_eq!(log.rotated(), before, "round {round}");
        }
        fleet.api.submit("digits-quick").await;
        log.wait_for(SUBMIT).await;
    }
}

#[tokio::test]
async fn agent_log_continues_after_rotation() {
    let fleet = TestFleet::start().await;
    let log = Log::of(&fleet, false);
    let host = fleet.add_host("gpu-1").await;
    let _agent = host.start_with_stderr(log.opened(false));
    for _ in 1..=3 {
        let job = fleet.api.submit("digits-quick").await;
        fleet.api.wait_for_job(&job, "completed").await;
        log.wait_for(&job).await;
        log.rotate().await;
        assert!(log.rotated().contains(&job));
    }
}

/// A log file with its own rotation.
struct Log {
    dir: PathBuf,
}

impl Log {
    fn of(fleet: &TestFleet, append: bool) -> Self {
        let log = Self { dir: fleet.path().join(format!("logs-{append}")) };
        fs::create_dir(&log.dir).expect("a directory");
        let guide = fs::read_to_string(repository("docs/OPERATIONS.md")).expect("the guide");
        let stanza = guide.split_once("```logrotate\n").and_then(|(_, rest)| rest.split_once("```"));
        let (stanza, _) = stanza.expect("docs/OPERATIONS.md has a stanza");
        assert!(stanza.contains(LOGS), "{stanza}");
        let stanza = stanza.replace(LOGS, &log.dir.join("*.log").display().to_string());
        fs::write(log.dir.join("stanza"), stanza).expect("a file");
        log
    }

    fn file(&self) -> PathBuf {
        self.dir.join("it.log")
    }

    /// Opened like `>>` or `>` in a shell.
    fn opened(&self, append: bool) -> Stdio {
        let file = if append {
            OpenOptions::new().create(true).append(true).open(self.file())
        } else {
            File::create(self.file())
        };
        file.expect("a log").into()
    }

    fn text(&self) -> String {
        read(&self.file())
    }

    /// Returns what the last rotation moved.
    fn rotated(&self) -> String {
        read(&self.dir.join("it.log.1"))
    }

    async fn wait_for(&self, text: &str) {
        wait_until("the log to continue", async || self.text().contains(text).then_some(())).await;
        assert!(!self.text().contains('\0'), "it has a hole where the rotation cut it");
    }

    async fn rotate(&self) {
        let mut logrotate = Command::new("/usr/sbin/logrotate");
        logrotate.arg("--force").arg("--state").arg(self.dir.join("state")).arg(self.dir.join("stanza"));
        let output = logrotate.output().await.expect("logrotate: `scripts/setup browser` installs it");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

fn read(file: &Path) -> String {
    fs::read_to_string(file).expect("text")
}

//! The agent in a terminal, and its log for machines.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use nix::pty::{Winsize, openpty};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tokio::process::{Child, Command};

use super::fake_orchestrator::FakeOrchestrator;
use super::test_host::{TestHost, binary, wait_until};

const WINDOW: Winsize = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
const ERASE: &str = "\r\u{1b}[K";

/// A terminal with an agent at its other end.
struct TestTerminal {
    output: Arc<Mutex<String>>,
    agent: Child,
}

impl TestTerminal {
    fn with(host: &TestHost, url: &str, format: Option<&str>) -> io::Result<Self> {
        let pty = openpty(&WINDOW, None).map_err(io::Error::from)?;
        let clone_side = |side: &OwnedFd| side.try_clone();
        let mut command = host.with_agent_env(Command::new(binary()), url);
        match format {
            Some(format) => command.env("SIMPLETUNER_LOG_FORMAT", format),
            None => command.env_remove("SIMPLETUNER_LOG_FORMAT"),
        };
        command.args(&host.flags).stdin(clone_side(&pty.slave)?).stdout(clone_side(&pty.slave)?).stderr(pty.slave);
        let agent = command.env("TERM", "xterm").kill_on_drop(true).spawn()?;
        let mut screen = File::from(pty.master);
        let output = Arc::new(Mutex::new(String::new()));
        let sink = Arc::clone(&output);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // Fails when the other end is closed.
            while let Ok(length @ 1..) = screen.read(&mut bytes) {
                sink.lock().expect("no panic").push_str(&String::from_utf8_lossy(&bytes[..length]));
            }
        });
        Ok(Self { output, agent })
    }

    fn contents(&self) -> String {
        self.output.lock().expect("no panic").clone()
    }

    async fn wait_for_text(&self, text: &str) {
        wait_until(text, || self.contents().contains(text).then_some(())).await;
    }

    /// Asks the agent to stop; returns all output.
    async fn wait_for_exit(mut self) -> io::Result<String> {
        let pid = self.agent.id().and_then(|pid| i32::try_from(pid).ok()).expect("a running agent");
        kill(Pid::from_raw(pid), Signal::SIGTERM).map_err(io::Error::from)?;
        self.agent.wait().await?;
        Ok(wait_until("the end", || Some(self.contents()).filter(|text| text.contains("disconnected"))).await)
    }
}

/// The lines on the screen after all output, the last one unfinished.
fn screen(output: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    let plain =
        output.replace("\u{1b}[?7l", "").replace("\u{1b}[?7h", "").replace(ERASE, "\u{1}").replace("\r\n", "\n");
    for c in plain.chars() {
        match (c, lines.last_mut()) {
            ('\n', _) => lines.push(String::new()),
            ('\u{1}', Some(last)) => last.clear(),
            (other, Some(last)) => last.push(other),
            (_, None) => {}
        }
    }
    lines
}

#[tokio::test]
async fn status_line_is_shown_and_removed() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host = TestHost::with_script("while [ ! -e ../control/go ]; do sleep 0.02; done")?.flags(&["--persistent"]);
    let terminal = TestTerminal::with(&host, &fake.url, None)?;
    terminal.wait_for_text("connected, idle").await;
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    terminal.wait_for_text("connected, busy with j_1").await;
    let event = json!({"at": "2024-01-15T10:30:00Z", "event": {"type": "training.status", "data": {"status": "running"},
        "progress": {"current": 3, "total": 10, "metrics": {"loss": 0.5}}}});
    let dir = host.attempt("j_1", 1);
    wait_until("the trainer", || dir.join("supervisor.json").exists().then_some(())).await;
    let mut events = std::fs::OpenOptions::new().append(true).create(true).open(dir.events_path())?;
    std::io::Write::write_all(&mut events, format!("{event}\n").as_bytes())?;
    terminal.wait_for_text("busy with j_1 (step 3/10, loss 0.5000)").await;
    std::fs::write(dir.control_dir().join("go"), "")?;
    fake.wait_for_status("completed").await;
    let output = terminal.wait_for_exit().await?;
    let lines = screen(&output);
    assert_eq!(lines.last().map(String::as_str), Some(""), "the status line was not removed: {output:?}");
    let log = &lines[..lines.len() - 1];
    assert!(log.len() > 3 && log.iter().all(|line| line.contains("INFO") || line.contains("WARN")), "{lines:#?}");
    assert!(!log.iter().any(|line| line.contains("connected, idle")), "the status line is not logged: {lines:#?}");
    Ok(())
}

#[tokio::test]
async fn text_format_has_no_status_line() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let terminal = TestTerminal::with(&TestHost::with_script("")?.flags(&["--persistent"]), &fake.url, Some("text"))?;
    terminal.wait_for_text("registered at").await;
    let output = terminal.wait_for_exit().await?;
    assert!(!output.contains(ERASE) && !output.contains("connected, idle"), "{output:?}");
    Ok(())
}

#[tokio::test]
async fn json_format_applies_to_every_line() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    fake.state().reject_token = true;
    let host = TestHost::with_script("")?;
    let mut command = host.with_agent_env(Command::new(binary()), &fake.url);
    let output = command.env_remove("SIMPLETUNER_LOG_FORMAT").stdin(Stdio::null()).output().await?;
    assert_eq!(output.status.code(), Some(77));
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let lines: Vec<Value> = stderr.lines().map(|line| serde_json::from_str(line).expect("JSON in each line")).collect();
    let last = lines.last().cloned().unwrap_or_default();
    assert_eq!((&last["level"], &last["fields"]["exit_code"]), (&json!("error"), &json!(77)), "{stderr}");
    Ok(())
}

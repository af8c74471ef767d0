//! After an upgrade: what an older agent and supervisor have left is taken up, and what a newer one has left is not touched.

use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::fake::Fake;
use super::host::{Host, until};
use crate::artifacts;
use crate::files::{AttemptDir, Sent, State, Uploaded};
use crate::process::{self, ProcId};

/// The files as version 1 writes them, in the middle of a run; what differs from host to host is in capitals.
const V1: [(&str, &str); 6] = [
    ("spec.json", include_str!("v1/spec.json")),
    ("state.json", include_str!("v1/state.json")),
    ("supervisor.json", include_str!("v1/supervisor.json")),
    ("secrets.json", include_str!("v1/secrets.json")),
    ("given.json", include_str!("v1/given.json")),
    ("trainer.log", include_str!("v1/trainer.log")),
];
/// And at its end.
const V1_EXIT: &str = include_str!("v1/exit.json");
const WHOLE: &str = "before 1\nbefore 2\nbefore 3\nafter 1\nafter 2\n";

/// Stands in for a supervisor of version 1 with its trainer: waits for `go`, goes on with the log, writes down the end.
fn supervisor(dir: &AttemptDir) -> io::Result<Child> {
    std::fs::write(dir.join("v1-exit.json"), V1_EXIT)?;
    let script = "while [ -e v1-exit.json ] && [ ! -e go ]; do sleep 0.02; done; printf 'after 1\\nafter 2\\n' >> trainer.log; mv v1-exit.json exit.json";
    Command::new("sh").args(["-c", script]).current_dir(dir.path()).stdin(Stdio::null()).spawn()
}

/// Lays the files down, for this process as supervisor and trainer.
fn lay(dir: &AttemptDir, process: ProcId) -> io::Result<()> {
    std::fs::create_dir_all(dir.output())?;
    for (name, text) in V1 {
        let pid = process.pid.to_string();
        let start = process.start.to_string();
        let text = text.replace("HOST_BOOT", &process::host_boot());
        let text = text.replace("SUPERVISOR_PID", &pid).replace("SUPERVISOR_START", &start);
        std::fs::write(dir.join(name), text.replace("TRAINER_PID", &pid).replace("TRAINER_START", &start))?;
    }
    std::fs::write(dir.events(), "")
}

#[tokio::test]
async fn an_older_versions_attempt_is_adopted() -> io::Result<()> {
    let fake = Fake::start().await?;
    // What the older agent has sent of the log.
    fake.shared().log = b"before 1\n".to_vec();
    let host = Host::with_script("")?.flags(&["--persistent"]);
    let dir = host.attempt("j_1", 1);
    std::fs::create_dir_all(dir.path())?;
    let mut supervisor = supervisor(&dir)?;
    let process = ProcId::of(i32::try_from(supervisor.id()).map_err(io::Error::other)?);
    lay(&dir, process.ok_or(io::ErrorKind::NotFound)?)?;

    let agent = host.start(&fake)?;
    let register = fake.until("a registration", |shared| shared.registers.first().cloned()).await;
    assert_eq!(register["attempts"], json!([{"job_id": "j_1", "attempt": 1}]));
    fake.until("the log so far", |shared| shared.log.ends_with(b"before 3\n").then_some(())).await;
    std::fs::write(dir.join("go"), "")?;
    supervisor.wait()?;
    let report = fake.status("completed").await;
    assert_eq!((&report["attempt"], &report["exit_code"]), (&json!(1), &json!(0)));
    assert_eq!(String::from_utf8_lossy(&fake.shared().log), WHOLE);
    assert_eq!((fake.words(), fake.shared().gaps), (vec!["completed".to_owned()], 0));
    agent.kill().await
}

#[tokio::test]
async fn an_older_versions_attempt_is_stopped_by_the_order_that_it_knows() -> io::Result<()> {
    let fake = Fake::start().await?;
    fake.shared().log = b"before 1\n".to_vec();
    let host = Host::with_script("")?.flags(&["--persistent"]);
    let dir = host.attempt("j_1", 1);
    std::fs::create_dir_all(dir.path())?;
    std::fs::write(dir.join("v1-exit.json"), V1_EXIT.replace("\"stopped\": null", "\"stopped\": \"cancelled\""))?;
    let script = "trap 'mv v1-exit.json exit.json' USR1; while [ -e v1-exit.json ]; do sleep 0.02; done";
    let mut supervisor =
        Command::new("sh").args(["-c", script]).current_dir(dir.path()).stdin(Stdio::null()).spawn()?;
    let process = ProcId::of(i32::try_from(supervisor.id()).map_err(io::Error::other)?);
    lay(&dir, process.ok_or(io::ErrorKind::NotFound)?)?;
    let agent = host.start(&fake)?;
    fake.until("a registration", |shared| shared.registers.first().cloned()).await;
    fake.stop("j_1", 1, "cancelled");
    fake.status("cancelled").await;
    supervisor.wait()?;
    let order: Value = dir.read("stop.json")?.unwrap_or_default();
    assert_eq!(order, json!({"cause": "cancelled", "grace_seconds": 30}));
    agent.kill().await
}

#[tokio::test]
async fn what_an_older_version_has_sent_is_not_sent_again() -> io::Result<()> {
    let fake = Fake::start().await?;
    fake.shared().log = b"before 1\n".to_vec();
    let host = Host::with_script("")?.flags(&["--persistent"]);
    let dir = host.attempt("j_1", 1);
    std::fs::create_dir_all(dir.path())?;
    let mut supervisor = supervisor(&dir)?;
    let process = ProcId::of(i32::try_from(supervisor.id()).map_err(io::Error::other)?);
    lay(&dir, process.ok_or(io::ErrorKind::NotFound)?)?;
    for name in ["sent.txt", "unsent.txt"] {
        std::fs::write(dir.output().join(name), name)?;
    }
    let known = artifacts::list(&dir.output())?.into_iter().map(|artifact| artifact.file);
    let known = known.filter(|file| file.path == "sent.txt").map(|file| Uploaded { sha256: "ab".repeat(32), ..file });
    let uploaded = serde_json::to_string(&known.collect::<Vec<_>>())?;
    let text = include_str!("v1/state.json").replace("\"uploaded\": []", &format!("\"uploaded\": {uploaded}"));
    std::fs::write(dir.join("state.json"), text)?;

    let agent = host.start(&fake)?;
    std::fs::write(dir.join("go"), "")?;
    fake.status("completed").await;
    supervisor.wait()?;
    assert_eq!(fake.shared().artifacts.keys().collect::<Vec<_>>(), ["unsent.txt"]);
    agent.kill().await?;
    // It is known from another place now.
    let state = dir.read::<State>("state.json")?.unwrap_or_default();
    assert_eq!(state.uploaded, []);
    let sent = Sent::read(&dir);
    assert!(artifacts::list(&dir.output())?.iter().all(|artifact| sent.has(&artifact.file)));
    Ok(())
}

/// What is in a directory, with its content.
fn content(dir: &Path) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            found.push((entry.file_name().to_string_lossy().into_owned(), std::fs::read(entry.path())?));
        }
    }
    found.sort();
    Ok(found)
}

#[tokio::test]
async fn a_newer_versions_attempt_is_left_alone() -> io::Result<()> {
    let fake = Fake::start().await?;
    let host = Host::with_script("")?.flags(&["--persistent"]);
    let dir = host.attempt("j_1", 1);
    let own = ProcId::of(i32::try_from(std::process::id()).map_err(io::Error::other)?);
    lay(&dir, own.ok_or(io::ErrorKind::NotFound)?)?;
    let newer = include_str!("v1/spec.json").replace("\"version\": 1", "\"version\": 2, \"unheard_of\": true");
    std::fs::write(dir.join("spec.json"), newer)?;
    let before = content(dir.path())?;
    let agent = host.start(&fake)?;
    let beats = |shared: &mut super::fake::Shared| (shared.heartbeats.len() > 1).then(|| shared.registers[0].clone());
    let register = fake.until("heartbeats", beats).await;
    assert_eq!(register["attempts"], json!([]));
    assert!(fake.words().is_empty() && fake.shared().log.is_empty());
    assert_eq!(content(dir.path())?, before);
    agent.kill().await
}

#[tokio::test]
async fn fields_that_nobody_here_knows_do_not_matter() -> io::Result<()> {
    let fake = Fake::start().await?;
    let host = Host::with_script("")?.flags(&["--persistent"]);
    let dir = host.attempt("j_1", 1);
    std::fs::create_dir_all(dir.path())?;
    let mut supervisor = supervisor(&dir)?;
    let process = ProcId::of(i32::try_from(supervisor.id()).map_err(io::Error::other)?);
    lay(&dir, process.ok_or(io::ErrorKind::NotFound)?)?;
    for name in ["spec.json", "state.json", "supervisor.json"] {
        let text = std::fs::read_to_string(dir.join(name))?;
        std::fs::write(dir.join(name), text.replacen('{', "{\"unheard_of\": {\"x\": [1]},", 1))?;
    }
    fake.shared().log = b"before 1\n".to_vec();
    std::fs::write(dir.join("go"), "")?;
    let agent = host.start(&fake)?;
    fake.status("completed").await;
    supervisor.wait()?;
    until("the end is written down", || dir.read::<State>("state.json").ok()??.delivered.then_some(())).await;
    agent.kill().await
}

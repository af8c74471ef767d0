//! After an upgrade: attempts of an older agent and supervisor are adopted, those of a newer one are left alone.

use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::fake_orchestrator::FakeOrchestrator;
use super::test_host::{TestHost, wait_until};
use crate::worker::artifacts;
use crate::worker::files::{AttemptDir, AttemptState, UploadedFile, UploadedFiles};
use crate::worker::process::{self, ProcId};

/// The files of version 1 in the middle of a run; values that depend on the host are in capitals.
const V1: [(&str, &str); 6] = [
    ("spec.json", include_str!("v1/spec.json")),
    ("state.json", include_str!("v1/state.json")),
    ("supervisor.json", include_str!("v1/supervisor.json")),
    ("secrets.json", include_str!("v1/secrets.json")),
    ("given.json", include_str!("v1/given.json")),
    ("trainer.log", include_str!("v1/trainer.log")),
];
/// The exit record of version 1.
const V1_EXIT: &str = include_str!("v1/exit.json");
const FULL_LOG: &str = "before 1\nbefore 2\nbefore 3\nafter 1\nafter 2\n";

/// Replaces a supervisor of version 1 with its trainer: waits for `go`, continues the log, records the exit.
fn supervisor(dir: &AttemptDir) -> io::Result<Child> {
    std::fs::write(dir.join("v1-exit.json"), V1_EXIT)?;
    let script = "while [ -e v1-exit.json ] && [ ! -e go ]; do sleep 0.02; done; printf 'after 1\\nafter 2\\n' >> trainer.log; mv v1-exit.json exit.json";
    Command::new("sh").args(["-c", script]).current_dir(dir.path()).stdin(Stdio::null()).spawn()
}

/// Writes the files, with this process as supervisor and trainer.
fn write_old_layout(dir: &AttemptDir, process: ProcId) -> io::Result<()> {
    std::fs::create_dir_all(dir.output_dir())?;
    for (name, text) in V1 {
        let pid = process.pid.to_string();
        let start = process.start.to_string();
        let text = text.replace("HOST_BOOT", process::host_boot_id());
        let text = text.replace("SUPERVISOR_PID", &pid).replace("SUPERVISOR_START", &start);
        std::fs::write(dir.join(name), text.replace("TRAINER_PID", &pid).replace("TRAINER_START", &start))?;
    }
    std::fs::write(dir.events_path(), "")
}

#[tokio::test]
async fn older_versions_attempt_is_adopted() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    // The part of the log that the older agent has uploaded.
    fake.state().log = b"before 1\n".to_vec();
    let host = TestHost::with_script("")?.flags(&["--persistent"]);
    let dir = host.attempt("j_1", 1);
    std::fs::create_dir_all(dir.path())?;
    let mut supervisor = supervisor(&dir)?;
    let process = ProcId::from_pid(i32::try_from(supervisor.id()).map_err(io::Error::other)?);
    write_old_layout(&dir, process.ok_or(io::ErrorKind::NotFound)?)?;

    let agent = host.start(&fake)?;
    let register = fake.wait_until("a registration", |shared| shared.registrations.first().cloned()).await;
    assert_eq!(register["attempts"], json!([{"job_id": "j_1", "attempt": 1}]));
    fake.wait_until("the log so far", |shared| shared.log.ends_with(b"before 3\n").then_some(())).await;
    std::fs::write(dir.join("go"), "")?;
    supervisor.wait()?;
    let report = fake.wait_for_status("completed").await;
    assert_eq!((&report["attempt"], &report["exit_code"]), (&json!(1), &json!(0)));
    assert_eq!(String::from_utf8_lossy(&fake.state().log), FULL_LOG);
    assert_eq!((fake.reported_statuses(), fake.state().gaps), (vec!["completed".to_owned()], 0));
    agent.kill().await
}

#[tokio::test]
async fn older_versions_attempt_obeys_its_stop_request() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    fake.state().log = b"before 1\n".to_vec();
    let host = TestHost::with_script("")?.flags(&["--persistent"]);
    let dir = host.attempt("j_1", 1);
    std::fs::create_dir_all(dir.path())?;
    std::fs::write(dir.join("v1-exit.json"), V1_EXIT.replace("\"stopped\": null", "\"stopped\": \"cancelled\""))?;
    let script = "trap 'mv v1-exit.json exit.json' USR1; while [ -e v1-exit.json ]; do sleep 0.02; done";
    let mut supervisor =
        Command::new("sh").args(["-c", script]).current_dir(dir.path()).stdin(Stdio::null()).spawn()?;
    let process = ProcId::from_pid(i32::try_from(supervisor.id()).map_err(io::Error::other)?);
    write_old_layout(&dir, process.ok_or(io::ErrorKind::NotFound)?)?;
    let agent = host.start(&fake)?;
    fake.wait_until("a registration", |shared| shared.registrations.first().cloned()).await;
    fake.stop("j_1", 1, "cancelled");
    fake.wait_for_status("cancelled").await;
    supervisor.wait()?;
    let order: Value = dir.read_json("stop.json")?.unwrap_or_default();
    assert_eq!(order, json!({"cause": "cancelled", "grace_seconds": 30}));
    agent.kill().await
}

#[tokio::test]
async fn older_versions_uploads_are_not_repeated() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    fake.state().log = b"before 1\n".to_vec();
    let host = TestHost::with_script("")?.flags(&["--persistent"]);
    let dir = host.attempt("j_1", 1);
    std::fs::create_dir_all(dir.path())?;
    let mut supervisor = supervisor(&dir)?;
    let process = ProcId::from_pid(i32::try_from(supervisor.id()).map_err(io::Error::other)?);
    write_old_layout(&dir, process.ok_or(io::ErrorKind::NotFound)?)?;
    for name in ["sent.txt", "unsent.txt"] {
        std::fs::write(dir.output_dir().join(name), name)?;
    }
    let uploaded_files = artifacts::list(&dir.output_dir())?.into_iter().map(|artifact| artifact.file);
    let uploaded_files = uploaded_files
        .filter(|file| file.path == "sent.txt")
        .map(|file| UploadedFile { sha256: "ab".repeat(32), ..file });
    let uploaded = serde_json::to_string(&uploaded_files.collect::<Vec<_>>())?;
    let text = include_str!("v1/state.json").replace("\"uploaded\": []", &format!("\"uploaded\": {uploaded}"));
    std::fs::write(dir.join("state.json"), text)?;

    let agent = host.start(&fake)?;
    std::fs::write(dir.join("go"), "")?;
    fake.wait_for_status("completed").await;
    supervisor.wait()?;
    assert_eq!(fake.state().artifacts.keys().collect::<Vec<_>>(), ["unsent.txt"]);
    agent.kill().await?;
    // Uploads are recorded in another file now.
    let state = dir.read_json::<AttemptState>("state.json")?.unwrap_or_default();
    assert_eq!(state.uploaded, []);
    let sent = UploadedFiles::load(&dir);
    assert!(artifacts::list(&dir.output_dir())?.iter().all(|artifact| sent.is_up_to_date(&artifact.file)));
    Ok(())
}

/// The files of a directory, with their content.
fn content(dir: &Path) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            files.push((entry.file_name().to_string_lossy().into_owned(), std::fs::read(entry.path())?));
        }
    }
    files.sort();
    Ok(files)
}

#[tokio::test]
async fn newer_versions_attempt_is_left_alone() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host = TestHost::with_script("")?.flags(&["--persistent"]);
    let dir = host.attempt("j_1", 1);
    let own_process = ProcId::from_pid(i32::try_from(std::process::id()).map_err(io::Error::other)?);
    write_old_layout(&dir, own_process.ok_or(io::ErrorKind::NotFound)?)?;
    let newer = include_str!("v1/spec.json").replace("\"version\": 1", "\"version\": 2, \"unheard_of\": true");
    std::fs::write(dir.join("spec.json"), newer)?;
    let before = content(dir.path())?;
    let agent = host.start(&fake)?;
    let registration_after_heartbeats = |shared: &mut super::fake_orchestrator::FakeState| {
        (shared.heartbeats.len() > 1).then(|| shared.registrations[0].clone())
    };
    let register = fake.wait_until("heartbeats", registration_after_heartbeats).await;
    assert_eq!(register["attempts"], json!([]));
    assert!(fake.reported_statuses().is_empty() && fake.state().log.is_empty());
    assert_eq!(content(dir.path())?, before);
    agent.kill().await
}

#[tokio::test]
async fn unknown_fields_are_ignored() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host = TestHost::with_script("")?.flags(&["--persistent"]);
    let dir = host.attempt("j_1", 1);
    std::fs::create_dir_all(dir.path())?;
    let mut supervisor = supervisor(&dir)?;
    let process = ProcId::from_pid(i32::try_from(supervisor.id()).map_err(io::Error::other)?);
    write_old_layout(&dir, process.ok_or(io::ErrorKind::NotFound)?)?;
    for name in ["spec.json", "state.json", "supervisor.json"] {
        let text = std::fs::read_to_string(dir.join(name))?;
        std::fs::write(dir.join(name), text.replacen('{', "{\"unheard_of\": {\"x\": [1]},", 1))?;
    }
    fake.state().log = b"before 1\n".to_vec();
    std::fs::write(dir.join("go"), "")?;
    let agent = host.start(&fake)?;
    fake.wait_for_status("completed").await;
    supervisor.wait()?;
    wait_until("the recorded exit", || dir.read_json::<AttemptState>("state.json").ok()??.delivered.then_some(()))
        .await;
    agent.kill().await
}

//! The start scripts of rented hosts, with the real agent; only the providers' own commands are replaced.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use nix::sys::signal::Signal;
use serde_json::json;
use sha2::{Digest, Sha256};
use tokio::process::Command;

use super::fake_orchestrator::FakeOrchestrator;
use super::test_host::{TestHost, binary};
use crate::clock::encode_hex;

fn script(name: &str) -> Command {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("deploy/start").join(name);
    let mut command = Command::new("sh");
    command.arg(path);
    command
}

/// A host with its provider's stop command, which records its arguments in `told`.
fn host(script: &str, stops_by: &str, variables: &[(&str, &str)]) -> io::Result<TestHost> {
    let mut host = TestHost::with_script(script)?;
    let stand_in = host.path().join(stops_by);
    std::fs::write(&stand_in, format!("#!/bin/sh\necho {stops_by} \"$@\" >>{}\n", host.path().join("told").display()))?;
    std::fs::set_permissions(&stand_in, std::fs::Permissions::from_mode(0o755))?;
    let path = format!("{}:{}", host.path().display(), std::env::var("PATH").unwrap_or_default());
    let agent = binary().display().to_string();
    let all = [("PATH", path.as_str()), ("SIMPLETUNER_WORKER_BIN", &agent)];
    let all = all.iter().chain(variables).map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    host.variables.extend(all);
    Ok(host)
}

fn provider_calls(host: &TestHost) -> String {
    std::fs::read_to_string(host.path().join("told")).unwrap_or_default()
}

#[tokio::test]
async fn idle_host_is_stopped() -> io::Result<()> {
    let pod = [("RUNPOD_POD_ID", "p1"), ("SIMPLETUNER_MAX_IDLE", "1s")];
    let instance = [("CONTAINER_ID", "77"), ("CONTAINER_API_KEY", "key"), ("SIMPLETUNER_MAX_IDLE", "1s")];
    let cases = [
        ("runpod.sh", "runpodctl", &pod[..], "runpod-p1", "runpodctl stop pod p1\n"),
        ("vast.sh", "vastai", &instance[..], "vast-77", "vastai stop instance 77 --api-key key\n"),
    ];
    for (file, stops_by, variables, name, expected) in cases {
        let fake = FakeOrchestrator::start().await?;
        let host = host("echo trained", stops_by, variables)?.flags(&["--persistent"]);
        fake.offer("j_1", 1, &json!({"config.json": "{}"}));
        let (code, output) = host.start_with(script(file), &fake.url)?.wait_for_exit().await?;
        assert_eq!(code, Some(0), "{output}");
        assert_eq!(fake.reported_statuses(), ["starting", "running", "completed"], "{output}");
        assert_eq!(fake.state().registrations[0]["name"], name);
        assert!(output.contains("ok    token: "), "the doctor was asked: {output}");
        assert!(!output.contains("the unknown variable"), "the scripts' own variables are not the agent's: {output}");
        assert_eq!(provider_calls(&host), expected, "{output}");
    }
    Ok(())
}

#[tokio::test]
async fn terminated_host_requeues_its_job() -> io::Result<()> {
    for (file, stops_by) in [("runpod.sh", "runpodctl"), ("vast.sh", "vastai")] {
        let fake = FakeOrchestrator::start().await?;
        let variables = [("RUNPOD_POD_ID", "p1"), ("SIMPLETUNER_KEEP_HOST", "1")];
        let host = host("trap 'exit 0' TERM; while true; do sleep 0.05; done", stops_by, &variables)?;
        let host = host.flags(&["--persistent"]);
        let started = host.start_with(script(file), &fake.url)?;
        fake.offer("j_1", 1, &json!({"config.json": "{}"}));
        fake.wait_for_status("running").await;
        started.signal(Signal::SIGTERM)?;
        let (code, output) = started.wait_for_exit().await?;
        assert_eq!(code, Some(143), "{output}");
        assert_eq!(fake.reported_statuses(), ["starting", "running", "requeue"], "{output}");
        assert_eq!(provider_calls(&host), "", "it was to be kept: {output}");
    }
    Ok(())
}

#[tokio::test]
async fn downloaded_agent_is_verified() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let from = format!("file://{}", binary().display());
    let sum = encode_hex(&Sha256::digest(std::fs::read(binary())?));
    let wrong = "0".repeat(64);
    for (sum, expected) in [(&sum, 0), (&wrong, 78)] {
        let variables = [
            ("SIMPLETUNER_WORKER_BIN", ""),
            ("SIMPLETUNER_WORKER_DOWNLOAD", from.as_str()),
            ("SIMPLETUNER_WORKER_SHA256", sum),
            ("SIMPLETUNER_MAX_IDLE", "1s"),
            ("RUNPOD_POD_ID", "p1"),
        ];
        let host = host("", "runpodctl", &variables)?;
        let (code, output) = host.start_with(script("runpod.sh"), &fake.url)?.wait_for_exit().await?;
        assert_eq!(code, Some(expected), "{output}");
        assert_eq!(output.contains("is not what SIMPLETUNER_WORKER_SHA256 says"), expected == 78, "{output}");
        assert_eq!(provider_calls(&host), "runpodctl stop pod p1\n", "a host that cannot work costs as well: {output}");
    }
    Ok(())
}

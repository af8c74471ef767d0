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
use crate::worker::clock::encode_hex;

fn script(name: &str) -> Command {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("deploy/start").join(name);
    let mut command = Command::new("sh");
    command.arg(path);
    command
}

/// A host with its provider's stop command, which records its arguments in `calls`.
fn host(script: &str, stop_command: &str, variables: &[(&str, &str)]) -> io::Result<TestHost> {
    let mut host = TestHost::with_script(script)?;
    let fake_command = host.path().join(stop_command);
    std::fs::write(
        &fake_command,
        format!("#!/bin/sh\necho {stop_command} \"$@\" >>{}\n", host.path().join("calls").display()),
    )?;
    std::fs::set_permissions(&fake_command, std::fs::Permissions::from_mode(0o755))?;
    let path = format!("{}:{}", host.path().display(), std::env::var("PATH").unwrap_or_default());
    let agent = binary().display().to_string();
    let all_variables = [("PATH", path.as_str()), ("SIMPLETUNER_WORKER_BIN", &agent)];
    let all_variables =
        all_variables.iter().chain(variables).map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    host.variables.extend(all_variables);
    Ok(host)
}

fn provider_calls(host: &TestHost) -> String {
    std::fs::read_to_string(host.path().join("calls")).unwrap_or_default()
}

#[tokio::test]
async fn idle_host_is_stopped() -> io::Result<()> {
    let pod = [("RUNPOD_POD_ID", "p1"), ("SIMPLETUNER_MAX_IDLE", "1s")];
    let instance = [("CONTAINER_ID", "77"), ("CONTAINER_API_KEY", "key"), ("SIMPLETUNER_MAX_IDLE", "1s")];
    let cases = [
        ("runpod.sh", "runpodctl", &pod[..], "runpod-p1", "runpodctl stop pod p1\n"),
        ("vast.sh", "vastai", &instance[..], "vast-77", "vastai stop instance 77 --api-key key\n"),
    ];
    for (file, stop_command, variables, name, expected) in cases {
        let fake = FakeOrchestrator::start().await?;
        let host = host("echo trained", stop_command, variables)?.flags(&["--persistent"]);
        fake.offer("j_1", 1, &json!({"config.json": "{}"}));
        let (code, output) = host.start_with(script(file), &fake.url)?.wait_for_exit().await?;
        assert_eq!(code, Some(0), "{output}");
        assert_eq!(fake.reported_statuses(), ["starting", "running", "completed"], "{output}");
        assert_eq!(fake.state().registrations[0]["name"], name);
        assert!(output.contains("ok    token: "), "the doctor ran: {output}");
        assert!(!output.contains("the unknown variable"), "the scripts' own variables are not the agent's: {output}");
        assert_eq!(provider_calls(&host), expected, "{output}");
    }
    Ok(())
}

#[tokio::test]
async fn terminated_host_requeues_its_job() -> io::Result<()> {
    for (file, stop_command) in [("runpod.sh", "runpodctl"), ("vast.sh", "vastai")] {
        let fake = FakeOrchestrator::start().await?;
        let variables = [("RUNPOD_POD_ID", "p1"), ("SIMPLETUNER_KEEP_HOST", "1")];
        let host = host("trap 'exit 0' TERM; while true; do sleep 0.05; done", stop_command, &variables)?;
        let host = host.flags(&["--persistent"]);
        let agent = host.start_with(script(file), &fake.url)?;
        fake.offer("j_1", 1, &json!({"config.json": "{}"}));
        fake.wait_for_status("running").await;
        agent.signal(Signal::SIGTERM)?;
        let (code, output) = agent.wait_for_exit().await?;
        assert_eq!(code, Some(143), "{output}");
        assert_eq!(fake.reported_statuses(), ["starting", "running", "requeue"], "{output}");
        assert_eq!(provider_calls(&host), "", "the host must not be stopped: {output}");
    }
    Ok(())
}

#[tokio::test]
async fn downloaded_agent_is_verified() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let download_url = format!("file://{}", binary().display());
    let sum = encode_hex(&Sha256::digest(std::fs::read(binary())?));
    let wrong_sum = "0".repeat(64);
    for (sum, expected) in [(&sum, 0), (&wrong_sum, 78)] {
        let variables = [
            ("SIMPLETUNER_WORKER_BIN", ""),
            ("SIMPLETUNER_WORKER_DOWNLOAD", download_url.as_str()),
            ("SIMPLETUNER_WORKER_SHA256", sum),
            ("SIMPLETUNER_MAX_IDLE", "1s"),
            ("RUNPOD_POD_ID", "p1"),
        ];
        let host = host("", "runpodctl", &variables)?;
        let (code, output) = host.start_with(script("runpod.sh"), &fake.url)?.wait_for_exit().await?;
        assert_eq!(code, Some(expected), "{output}");
        assert_eq!(output.contains("is not what SIMPLETUNER_WORKER_SHA256 says"), expected == 78, "{output}");
        assert_eq!(
            provider_calls(&host),
            "runpodctl stop pod p1\n",
            "a host that cannot work must be stopped too: {output}"
        );
    }
    Ok(())
}

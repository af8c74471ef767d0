//! The doctor as a process, on hosts with one problem each.

use std::io;
use std::process::Output;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::process::Command;

use super::fake_orchestrator::FakeOrchestrator;
use super::test_host::{TEST_TIMEOUT, TestHost, binary};
use super::tls::{orchestrator, orchestrator_expiring};

fn healthy_host() -> io::Result<TestHost> {
    TestHost::with_script("")
}

/// Runs the doctor through another program, such as `sh`; the doctor's flags come last.
async fn run_doctor_with(host: &TestHost, mut command: Command, url: &str) -> io::Result<Output> {
    command.args(&host.flags).kill_on_drop(true);
    let mut command = host.with_agent_env(command, url);
    tokio::time::timeout(TEST_TIMEOUT, command.output()).await.unwrap_or_else(|_| panic!("the doctor does not exit"))
}

/// Exit code and lines.
pub async fn run_doctor(host: &TestHost, url: &str) -> io::Result<(Option<i32>, String)> {
    let mut doctor = Command::new(binary());
    doctor.arg("doctor");
    let output = run_doctor_with(host, doctor, url).await?;
    Ok((output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned()))
}

/// Asserts that the report has one line that starts like this and contains these words; if a check fails, it is the
/// only one.
pub fn assert_line((code, report): &(Option<i32>, String), start: &str, words: &[&str]) {
    let lines: Vec<&str> = report.lines().filter(|line| line.starts_with(start)).collect();
    assert!(lines.len() == 1 && words.iter().all(|word| lines[0].contains(word)), "{start} {words:?}:\n{report}");
    let failed = report.lines().filter(|line| line.starts_with("fail")).count();
    assert!(failed <= 1 && *code == Some(i32::from(failed == 1)), "{code:?}\n{report}");
}

#[tokio::test]
async fn healthy_host_passes_without_side_effects() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host = healthy_host()?.flags(&["--gpu-count", "1"]);
    let report = run_doctor(&host, &fake.url).await?;
    for check in ["url", "dns", "tcp", "tls", "orchestrator", "clock", "token", "work directory", "gpu", "trainer"] {
        assert_line(&report, &format!("ok    {check}: "), &[]);
    }
    assert_eq!(report.0, Some(0), "{}", report.1);
    assert!(report.1.contains("  disk: ") && report.1.contains("  cgroup: "), "{}", report.1);
    assert!(!report.1.contains('\u{1b}'), "colors are for terminals: {}", report.1);
    assert!(!host.path().join("state").exists(), "nothing was created");
    let state = fake.state();
    assert_eq!(
        (state.registrations.len(), state.heartbeats.len(), state.streams, state.disconnects.len()),
        (0, 0, 0, 0)
    );
    Ok(())
}

#[tokio::test]
async fn json_output_is_an_array() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    fake.state().reject_token = true;
    let (code, report) = run_doctor(&healthy_host()?.flags(&["--json"]), &fake.url).await?;
    let lines: Vec<Value> = serde_json::from_str(&report)?;
    let token = lines.iter().find(|line| line["what"] == "token").cloned().unwrap_or_default();
    assert_eq!((code, &token["verdict"]), (Some(1), &json!("fail")), "{report}");
    assert!(token["advice"].is_string() && lines.iter().any(|line| line["verdict"] == "ok"), "{report}");
    Ok(())
}

#[tokio::test]
async fn closed_port_fails_tcp() -> io::Result<()> {
    let report = run_doctor(&healthy_host()?, "http://127.0.0.1:1").await?;
    assert_line(&report, "fail  tcp: ", &["Connection refused", "--host 0.0.0.0"]);
    assert_line(&report, "ok    work directory: ", &[]);
    Ok(())
}

#[tokio::test]
async fn unknown_host_name_fails_dns() -> io::Result<()> {
    // Too long for any name server.
    let name = "x".repeat(64);
    assert_line(
        &run_doctor(&healthy_host()?, &format!("http://{name}/")).await?,
        "fail  dns: ",
        &["was not found", "--orchestrator-url"],
    );
    Ok(())
}

#[tokio::test]
async fn invalid_url_does_not_hide_other_checks() -> io::Result<()> {
    let report = run_doctor(&healthy_host()?, "orchestrator:8001").await?;
    assert_line(&report, "fail  url: ", &["must start with http"]);
    assert_line(&report, "ok    trainer: ", &[]);
    Ok(())
}

#[tokio::test]
async fn missing_and_wrong_tokens_fail() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let mut host = healthy_host()?;
    host.variables.push(("SIMPLETUNER_WORKER_TOKEN".to_owned(), String::new()));
    assert_line(&run_doctor(&host, &fake.url).await?, "fail  token: ", &["no worker token"]);
    fake.state().reject_token = true;
    let report = run_doctor(&healthy_host()?, &fake.url).await?;
    assert_line(&report, "fail  token: ", &["Invalid token", "get a new token"]);
    assert_line(&report, "ok    orchestrator: ", &[]);
    Ok(())
}

#[tokio::test]
async fn token_is_moved_off_the_command_line() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let mut host = healthy_host()?.flags(&["--worker-token", "wt_test_token"]);
    host.variables.push(("SIMPLETUNER_WORKER_TOKEN".to_owned(), "wt_wrong".to_owned()));
    let mut doctor = Command::new(binary());
    doctor.arg("doctor");
    let output = run_doctor_with(&host, doctor, &fake.url).await?;
    let report = (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned());
    assert_line(&report, "ok    token: ", &["accepted"]);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(stderr.contains("visible to other users"), "{stderr}");
    Ok(())
}

#[tokio::test]
async fn untrusted_certificates_fail_tls() -> io::Result<()> {
    let (trusted, other) = (orchestrator("localhost").await?, orchestrator("localhost").await?);
    let certificate_text =
        "the server sent a certificate for localhost, issued by authority of the tests, valid until 2100-01-01";
    let rejected = "SSL certificate verify failed";
    let report_with = async |flags: &[&str], url: &str| run_doctor(&healthy_host()?.flags(flags), url).await;

    let report = report_with(&[], &trusted.fake.url).await?;
    assert_line(&report, "fail  tls: ", &[rejected, "has an untrusted certificate", certificate_text]);
    let files = tempfile::tempdir()?;
    let (own_ca, other_ca) = (files.path().join("own.pem"), files.path().join("wrong.pem"));
    std::fs::write(&own_ca, &trusted.authority)?;
    std::fs::write(&other_ca, &other.authority)?;
    let ca_flags = |file: &std::path::Path| ["--ca-file".to_owned(), file.display().to_string()];
    let report_with_ca = async |file: &std::path::Path, url: &str| {
        let flags = ca_flags(file);
        run_doctor(&healthy_host()?.flags(&[&flags[0], &flags[1]]), url).await
    };
    assert_line(
        &report_with_ca(&other_ca, &trusted.fake.url).await?,
        "fail  tls: ",
        &[rejected, "untrusted certificate"],
    );
    assert_line(
        &report_with_ca(&own_ca, &trusted.fake.url).await?,
        "ok    tls: ",
        &["for localhost", "until 2100-01-01"],
    );
    assert_line(&report_with_ca(&files.path().join("none"), &trusted.fake.url).await?, "fail  tls: ", &["--ca-file"]);

    let (own_pin, other_pin) = (trusted.fingerprint.to_string(), other.fingerprint.to_string());
    let report = report_with(&["--orchestrator-fingerprint", &own_pin], &trusted.fake.url).await?;
    assert_line(&report, "ok    tls: ", &["its key matches the fingerprint"]);
    let report = report_with(&["--orchestrator-fingerprint", &other_pin], &trusted.fake.url).await?;
    assert_line(&report, "fail  tls: ", &[rejected, "has a different key", &own_pin]);
    assert_line(&report_with(&["--ssl-no-verify"], &trusted.fake.url).await?, "warn  tls: ", &["not verified"]);
    assert!(trusted.fake.state().registrations.is_empty());
    Ok(())
}

#[tokio::test]
async fn certificates_for_other_names_and_expired_ones_fail() -> io::Result<()> {
    for (known, words) in [
        (
            orchestrator("elsewhere.example").await?,
            ["for other names", "the server sent a certificate for elsewhere.example"],
        ),
        (orchestrator_expiring("localhost", 2001).await?, ["has an expired certificate", "until 2001-01-01"]),
    ] {
        let host = healthy_host()?;
        let file = host.path().join("ca.pem");
        std::fs::write(&file, &known.authority)?;
        let host = host.flags(&["--ca-file", &file.to_string_lossy()]);
        let report = run_doctor(&host, &known.fake.url).await?;
        assert_line(&report, "fail  tls: ", &[&["SSL certificate verify failed"], &words[..]].concat());
    }
    Ok(())
}

#[tokio::test]
async fn other_server_fails_the_orchestrator_check() -> io::Result<()> {
    let socket = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", socket.local_addr()?);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = socket.accept().await {
            let mut request = [0; 4096];
            if stream.read(&mut request).await.is_ok_and(|length| length > 0) {
                let response = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";
                let _ = stream.write_all(response).await;
            }
        }
    });
    let (code, report) = run_doctor(&healthy_host()?, &url).await?;
    assert_eq!(code, Some(1));
    let line = report.lines().find(|line| line.starts_with("fail  orchestrator: ")).unwrap_or_default();
    assert!(line.contains("is not an orchestrator") && line.contains("--orchestrator-url"), "{report}");
    Ok(())
}

#[tokio::test]
async fn clock_skew_is_a_warning() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    fake.state().date = Some("Mon, 15 Jan 2024 10:30:00 GMT");
    assert_line(
        &run_doctor(&healthy_host()?, &fake.url).await?,
        "warn  clock: ",
        &["ahead of the orchestrator", "set-ntp"],
    );
    Ok(())
}

#[tokio::test]
async fn uncreatable_work_directory_fails() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let mut host = healthy_host()?;
    host.variables.push(("SIMPLETUNER_WORK_DIR".to_owned(), "/proc/none".to_owned()));
    let (code, report) = run_doctor(&host, &fake.url).await?;
    assert_eq!(code, Some(1), "{report}");
    assert!(report.contains("fail  work directory: cannot write to /proc"), "{report}");
    Ok(())
}

#[tokio::test]
async fn full_disk_fails() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host = healthy_host()?;
    let state = host.path().join("state");
    std::fs::create_dir(&state)?;
    // A full disk that only this process sees.
    let script =
        "mount -t tmpfs -o size=64k tmpfs \"$1\" && { cat /dev/zero >\"$1/fill\" 2>/dev/null; exec \"$2\" doctor; }";
    let mut doctor = Command::new("unshare");
    doctor.args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]).arg(&state).arg(binary());
    let output = run_doctor_with(&host, doctor, &fake.url).await?;
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{report}{}", String::from_utf8_lossy(&output.stderr));
    assert!(report.contains("fail  work directory: ") && report.contains("No space left on device"), "{report}");
    assert!(report.contains("fail  disk: 0 MiB free"), "{report}");
    Ok(())
}

#[tokio::test]
async fn running_agent_is_a_warning() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host = healthy_host()?.flags(&["--persistent"]);
    let _agent = host.start(&fake)?;
    fake.wait_until("a registration", |state| (!state.registrations.is_empty()).then_some(())).await;
    assert_line(&run_doctor(&host, &fake.url).await?, "warn  lock: ", &["an agent uses this work directory"]);
    let file_names: Vec<_> =
        std::fs::read_dir(host.path().join("state"))?.flatten().map(|entry| entry.file_name()).collect();
    assert!(file_names.iter().all(|name| !name.to_string_lossy().starts_with(".doctor")), "{file_names:?}");
    let heartbeat_count = fake.state().heartbeats.len();
    fake.wait_until("further heartbeats", |state| (state.heartbeats.len() > heartbeat_count).then_some(())).await;
    assert_eq!(fake.state().registrations.len(), 1);
    Ok(())
}

#[tokio::test]
async fn missing_trainers_fail() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let report = run_doctor(&TestHost::with_trainer("/does/not/exist --flag")?, &fake.url).await?;
    assert_line(&report, "fail  trainer: ", &["the program \"/does/not/exist\"", "--trainer"]);
    let report = run_doctor(&TestHost::with_trainer("python3 -m no_such_module.train")?, &fake.url).await?;
    assert_line(&report, "fail  trainer: ", &["the module \"no_such_module.train\"", "install SimpleTuner"]);
    let host = TestHost::with_trainer("python3 -m json.tool")?.flags(&["--gpu-count", "2"]);
    let (_, report) = run_doctor(&host, &fake.url).await?;
    assert!(report.contains("  accelerate: "), "{report}");
    Ok(())
}

#[tokio::test]
async fn low_open_file_limit_is_a_warning() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host = healthy_host()?;
    let mut doctor = Command::new("sh");
    doctor.args(["-c", "ulimit -n 256; exec \"$1\" doctor", "sh"]).arg(binary());
    let output = run_doctor_with(&host, doctor, &fake.url).await?;
    let report = (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned());
    assert_line(&report, "warn  open files: ", &["256", "LimitNOFILE"]);
    Ok(())
}

#[tokio::test]
async fn invalid_setting_fails() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let report = run_doctor(&healthy_host()?.flags(&["--label", "nonsense"]), &fake.url).await?;
    assert_line(&report, "fail  settings: ", &["key=value"]);
    Ok(())
}

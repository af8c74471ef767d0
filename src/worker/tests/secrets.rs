//! Secrets that the orchestrator stores for a job.

use std::collections::BTreeMap;
use std::io;

use serde_json::{Value, json};

use super::fake_orchestrator::FakeOrchestrator;
use super::test_host::{TestHost, wait_until};

const VALUE: &str = "hf_0123456789abcdef";

fn config() -> Value {
    json!({"config.json": "{}"})
}

async fn run(
    script: &str,
    change: impl FnOnce(&mut super::fake_orchestrator::FakeState),
) -> io::Result<(FakeOrchestrator, TestHost)> {
    run_on(TestHost::with_script(script)?, change).await
}

async fn run_on(
    host: TestHost,
    change: impl FnOnce(&mut super::fake_orchestrator::FakeState),
) -> io::Result<(FakeOrchestrator, TestHost)> {
    let fake = FakeOrchestrator::start().await?;
    fake.state().secrets = BTreeMap::from([("HF_TOKEN".to_owned(), VALUE.to_owned())]);
    change(&mut fake.state());
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    agent.wait_for_exit().await?;
    Ok((fake, host))
}

#[tokio::test]
async fn trainer_gets_secrets_and_its_log_is_masked() -> io::Result<()> {
    // Prints the value's length, the value, and then the value in two halves with a pause between them.
    let script = "echo ${#HF_TOKEN} >length; printf 'a %s b\\nhf_01234' \"$HF_TOKEN\"; sleep 0.6; echo 56789abcdef end";
    let (fake, host) = run(&format!("{script}; cat length"), |_| {}).await?;
    assert_eq!(fake.reported_statuses(), ["starting", "running", "completed"]);
    let stars = "*".repeat(VALUE.len());
    let log = String::from_utf8_lossy(&fake.state().log).into_owned();
    assert_eq!(log, format!("a {stars} b\n{stars} end\n{}\n", VALUE.len()));
    let dir = host.attempt("j_1", 1);
    assert!(!dir.join("given.json").exists() && !dir.join("secrets.json").exists(), "the secrets were not removed");
    Ok(())
}

#[tokio::test]
async fn held_back_line_is_sent_while_the_trainer_is_silent() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    fake.state().secrets = BTreeMap::from([("HF_TOKEN".to_owned(), VALUE.to_owned())]);
    let host = TestHost::with_script("echo 'step hf'; exec sleep 1000")?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    fake.wait_until("the whole line", |shared| (shared.log == b"step hf\n").then_some(())).await;
    agent.kill().await
}

#[tokio::test]
async fn errors_are_masked() -> io::Result<()> {
    let (fake, _host) = run("echo \"401: bad token $HF_TOKEN\"; exit 3", |_| {}).await?;
    let error = fake.state().statuses[2]["error"].as_str().unwrap_or_default().to_owned();
    assert!(error.contains("bad token ****") && !error.contains(VALUE), "{error}");
    Ok(())
}

#[tokio::test]
async fn colored_secret_in_an_error_is_masked() -> io::Result<()> {
    // Some libraries color numbers and paths like this.
    let script = "printf '401: bad token \\033[1;36m%s\\033[0m%s\\n' \"${HF_TOKEN%89abcdef}\" \"${HF_TOKEN#hf_01234567}\"; exit 3";
    let (fake, _host) = run(script, |_| {}).await?;
    let error = fake.state().statuses[2]["error"].as_str().unwrap_or_default().to_owned();
    assert!(error.ends_with(&format!("bad token {}", "*".repeat(VALUE.len()))), "{error}");
    let log = String::from_utf8_lossy(&fake.state().log).into_owned();
    assert_eq!(log, "401: bad token \u{1b}[1;36m***********\u{1b}[0m********\n");
    Ok(())
}

const EVENTS: &str = r#"
import base64, json, os, urllib.request
hook = json.load(open(os.environ["CONFIG_PATH"]))["webhook_config"][-1]
token = os.environ["HF_TOKEN"]
def send(event):
    request = urllib.request.Request(hook["callback_url"], json.dumps(event).encode(), {"X-API-Key": hook["auth_token"]})
    urllib.request.urlopen(request, timeout=5)
send({"type": "lifecycle.stage", "stage": {"key": "load", "label": "x" * 190 + token}})
send({"type": "lifecycle.stage", "stage": {"key": "load", "label": "Basic " + base64.b64encode(b"u:" + token.encode()).decode()}})
send({"type": "training.status", "data": {"status": token[:9] + "\u001b[0m" + token[9:]}, "progress": {"current": 1, "metrics": {token: 0.5}}})
"#;

#[tokio::test]
async fn events_are_masked() -> io::Result<()> {
    let (fake, _host) = run_on(TestHost::with_python(EVENTS)?, |_| {}).await?;
    let shared = fake.state();
    assert_eq!(shared.points.len(), 3, "{:?} {}", shared.statuses, String::from_utf8_lossy(&shared.log));
    let stage = |index: usize| shared.points[index]["stage"].as_str().unwrap_or_default().to_owned();
    assert_eq!(stage(0), format!("{}**********", "x".repeat(190)));
    assert_eq!(stage(1), format!("Basic dTp{}", "*".repeat(25)));
    assert_eq!(stage(2), format!("*********[0m{}", "*".repeat(VALUE.len() - 9)));
    assert_eq!(shared.points[2]["metrics"]["*".repeat(VALUE.len())], 0.5);
    Ok(())
}

#[tokio::test]
async fn invalid_secret_names_do_not_reach_the_trainer() -> io::Result<()> {
    let (fake, _host) = run("echo \"path is $PATH\"", |shared| {
        shared.secrets.insert("PATH".to_owned(), "/somewhere/else".to_owned());
        shared.secrets.insert("SIMPLETUNER_JOB_ID".to_owned(), "j_other_one".to_owned());
    })
    .await?;
    let log = String::from_utf8_lossy(&fake.state().log).into_owned();
    assert!(log.contains("path is /") && !log.contains("/somewhere/else"), "{log}");
    Ok(())
}

#[tokio::test]
async fn missing_secret_fails_the_job_with_a_reason() -> io::Result<()> {
    let (fake, _host) = run("echo never", |shared| shared.secrets_error = Some("secret_deleted")).await?;
    assert_eq!(fake.reported_statuses(), ["starting", "failed"]);
    assert!(fake.state().log.is_empty());
    Ok(())
}

#[tokio::test]
async fn next_agent_removes_leftover_secrets() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let host = TestHost::with_script("echo ran")?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    fake.wait_for_status("completed").await;
    let files = ["secrets.json", "given.json"].map(|name| host.attempt("j_1", 1).join(name));
    wait_until("the secrets to be removed", || files.iter().all(|file| !file.exists()).then_some(())).await;
    agent.kill().await?;
    for file in &files {
        std::fs::write(file, "{}")?;
    }
    let agent = host.start(&fake)?;
    wait_until("the secrets to be removed again", || files.iter().all(|file| !file.exists()).then_some(())).await;
    agent.kill().await
}

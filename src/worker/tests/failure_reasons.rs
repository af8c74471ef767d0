//! Why a trainer failed, as the agent reads it from the log.

use std::io;

use serde_json::{Value, json};

use super::fake_orchestrator::FakeOrchestrator;
use super::test_host::TestHost;

/// Output of torchrun when one of two ranks is out of memory.
const TORCHRUN: &str = include_str!("../../../app/domain/exit_diagnosis/recorded/torchrun_oom.txt");

/// Runs a trainer that prints this after other output and exits with code 1. Returns the report and the log.
async fn failure_report(host: &TestHost, before: &str, output: &str) -> io::Result<(Value, String)> {
    let fake = FakeOrchestrator::start().await?;
    std::fs::write(
        host.path().join("trainer/trainer.sh"),
        format!("{before}\ncat \"${{0%/*}}/output\" >&2\nexit 1\n"),
    )?;
    std::fs::write(host.path().join("trainer/output"), output)?;
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    let report = fake.wait_for_status("failed").await;
    agent.wait_for_exit().await?;
    let log = String::from_utf8_lossy(&fake.state().log).into_owned();
    Ok((report, log))
}

#[tokio::test]
async fn exception_of_the_failed_rank_is_reported_with_its_line() -> io::Result<()> {
    let host = TestHost::with_script("")?;
    let (report, log) = failure_report(&host, "seq 1 90000", TORCHRUN).await?;
    let error = report["error"].as_str().unwrap_or_default();
    let (headline, block) = error.split_once('\n').unwrap_or_default();
    assert!(headline.starts_with("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."), "{error}");
    assert!(block.starts_with("Traceback (most recent call last):\n  File \"/work/train.py\", line 212"), "{error}");
    assert!(!error.contains("SIGTERM") && !error.contains("[rank1]"), "{error}");
    let line = report["error_line"].as_u64().and_then(|line| usize::try_from(line).ok()).unwrap_or_default();
    let reported_line = log.lines().nth(line - 1).unwrap_or_default();
    assert!(
        line > 90_000 && reported_line.starts_with("[rank1]: torch.OutOfMemoryError: "),
        "line {line}: {reported_line}"
    );
    assert_eq!((report["exit_code"].as_i64(), host.attempt("j_1", 1).log_path().exists()), (Some(1), true));
    Ok(())
}

#[tokio::test]
async fn last_lines_are_reported_without_another_cause() -> io::Result<()> {
    let output = "step 7\nW1124 00:47:12 4700 torch/distributed/elastic/multiprocessing/api.py:897] Sending process 4714 closing \
                signal SIGTERM\n=====\n";
    let (report, _) = failure_report(&TestHost::with_script("")?, "", output).await?;
    assert_eq!(report["error"], "the trainer exited with code 1: step 7");
    assert_eq!(report["error_line"], Value::Null);
    Ok(())
}

#[tokio::test]
async fn error_event_is_reported() -> io::Result<()> {
    const ERROR_EVENT_TRAINER: &str = r#"
import json, os, sys, urllib.request
hook = json.load(open(os.environ["CONFIG_PATH"]))["webhook_config"][-1]
event = {"type": "error", "title": "Training failed", "message": "no data set is left to train on"}
headers = {"X-API-Key": hook["auth_token"], "Content-Type": "application/json"}
print("step 3", flush=True)
urllib.request.urlopen(urllib.request.Request(hook["callback_url"], json.dumps(event).encode(), headers), timeout=5)
sys.exit(1)
"#;
    let fake = FakeOrchestrator::start().await?;
    let host = TestHost::with_python(ERROR_EVENT_TRAINER)?;
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    let report = fake.wait_for_status("failed").await;
    agent.wait_for_exit().await?;
    assert_eq!(report["error"], "Training failed: no data set is left to train on");
    assert_eq!(report["error_line"], 2);
    let log = String::from_utf8_lossy(&fake.state().log).into_owned();
    assert_eq!(log, "step 3\n[event] ERROR Training failed: no data set is left to train on\n");
    Ok(())
}

//! Why a trainer failed, as the agent reads it in the log.

use std::io;

use serde_json::{Value, json};

use super::fake::Fake;
use super::host::Host;

/// What torchrun writes when one of two ranks is out of memory.
const TORCHRUN: &str = include_str!("../../../app/domain/ending/recorded/torchrun_oom.txt");

/// Runs a trainer that ends with this below other output, and exit code 1. Answers with the report and the log.
async fn failed_of(host: &Host, before: &str, said: &str) -> io::Result<(Value, String)> {
    let fake = Fake::start().await?;
    std::fs::write(host.path().join("trainer/trainer.sh"), format!("{before}\ncat \"${{0%/*}}/said\" >&2\nexit 1\n"))?;
    std::fs::write(host.path().join("trainer/said"), said)?;
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &json!({"config.json": "{}"}));
    let report = fake.status("failed").await;
    agent.end().await?;
    let log = String::from_utf8_lossy(&fake.shared().log).into_owned();
    Ok((report, log))
}

#[tokio::test]
async fn the_exception_of_the_rank_that_fell_is_reported_with_its_line() -> io::Result<()> {
    let host = Host::with_script("")?;
    let (report, log) = failed_of(&host, "seq 1 90000", TORCHRUN).await?;
    let error = report["error"].as_str().unwrap_or_default();
    let (headline, block) = error.split_once('\n').unwrap_or_default();
    assert!(headline.starts_with("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."), "{error}");
    assert!(block.starts_with("Traceback (most recent call last):\n  File \"/work/train.py\", line 212"), "{error}");
    assert!(!error.contains("SIGTERM") && !error.contains("[rank1]"), "{error}");
    let line = report["error_line"].as_u64().and_then(|line| usize::try_from(line).ok()).unwrap_or_default();
    let there = log.lines().nth(line - 1).unwrap_or_default();
    assert!(line > 90_000 && there.starts_with("[rank1]: torch.OutOfMemoryError: "), "line {line}: {there}");
    assert_eq!((report["exit_code"].as_i64(), host.attempt("j_1", 1).log().exists()), (Some(1), true));
    Ok(())
}

#[tokio::test]
async fn where_nothing_says_why_the_trainers_own_last_lines_do() -> io::Result<()> {
    let said = "step 7\nW1124 00:47:12 4700 torch/distributed/elastic/multiprocessing/api.py:897] Sending process 4714 closing \
                signal SIGTERM\n=====\n";
    let (report, _) = failed_of(&Host::with_script("")?, "", said).await?;
    assert_eq!(report["error"], "the trainer ended with exit code 1: step 7");
    assert_eq!(report["error_line"], Value::Null);
    Ok(())
}

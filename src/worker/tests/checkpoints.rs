//! Checkpoints: uploaded while the trainer runs, and restored where it resumes.

use std::io;

use serde_json::{Value, json};

use super::fake_orchestrator::{FakeOrchestrator, FakeState};
use super::test_host::TestHost;

/// Writes checkpoint 5 silently, and 10 with an event, then waits for a file, writes another one, and exits.
const TRAINER: &str = r#"
import json, os, time, urllib.request
config = json.load(open(os.environ["CONFIG_PATH"]))
hook, out = config["webhook_config"][-1], config["output_dir"]
def checkpoint(step, notify=True):
    os.makedirs(f"{out}/checkpoint-{step}/sub")
    for name in ["model.bin", "sub/state.json"]:
        open(f"{out}/checkpoint-{step}/{name}", "w").write(f"{step} {name}")
    event = {"type": "training.checkpoint", "checkpoint": {"path": f"{out}/checkpoint-{step}"}}
    headers = {"X-API-Key": hook["auth_token"], "Content-Type": "application/json"}
    if notify:
        urllib.request.urlopen(urllib.request.Request(hook["callback_url"], json.dumps(event).encode(), headers), timeout=5)
checkpoint(5, False), checkpoint(10)
while not os.path.exists("../control/go"): time.sleep(0.02)
checkpoint(15, False)
"#;

fn config() -> Value {
    json!({"config.json": "{}"})
}

fn complete_checkpoints(shared: &FakeState) -> Vec<&str> {
    shared.files.complete_checkpoints.iter().filter_map(|checkpoint| checkpoint["name"].as_str()).collect()
}

/// Returns which checkpoints were complete before the end and in total, and the uploaded paths.
async fn run_with_policy(policy: &str, during: usize) -> io::Result<(Vec<String>, Vec<String>, Vec<String>)> {
    let fake = FakeOrchestrator::start().await?;
    // It is missing when the checkpoint is reported as complete, and is sent again.
    fake.state().files.lost_file = Some("checkpoint-10/model.bin".to_owned());
    let host = TestHost::with_python(TRAINER)?;
    let agent = host.start(&fake)?;
    fake.offer_with("j_1", 1, &config(), json!({"checkpoints": policy}));
    host.supervisor("j_1", 1).await;
    let dir = host.attempt("j_1", 1);
    fake.wait_until("the checkpoints", |shared| (shared.files.complete_checkpoints.len() >= during).then_some(()))
        .await;
    let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect::<Vec<_>>();
    let before = owned(complete_checkpoints(&fake.state()));
    std::fs::write(dir.control_dir().join("go"), "")?;
    let (code, output) = agent.wait_for_exit().await?;
    assert_eq!(code, Some(0), "{output}");
    assert_eq!(fake.reported_statuses(), ["starting", "running", "completed"]);
    let shared = fake.state();
    Ok((before, owned(complete_checkpoints(&shared)), shared.artifacts.keys().cloned().collect()))
}

#[tokio::test]
async fn newest_checkpoint_is_uploaded_during_the_run_and_the_last_at_the_end() -> io::Result<()> {
    let (before, all, paths) = run_with_policy("last", 1).await?;
    assert_eq!(before, ["checkpoint-10"]);
    assert_eq!(all, ["checkpoint-10", "checkpoint-15"]);
    let checkpoint_paths = |step| [format!("checkpoint-{step}/model.bin"), format!("checkpoint-{step}/sub/state.json")];
    assert_eq!(paths, [checkpoint_paths(10), checkpoint_paths(15)].concat());
    Ok(())
}

#[tokio::test]
async fn checkpoint_policy_all_and_none_are_followed() -> io::Result<()> {
    let (before, all, paths) = run_with_policy("all", 2).await?;
    assert_eq!(before, ["checkpoint-10", "checkpoint-5"]);
    assert_eq!(all, ["checkpoint-10", "checkpoint-5", "checkpoint-15"]);
    assert_eq!(paths.len(), 6);

    let (before, all, paths) = run_with_policy("none", 0).await?;
    assert_eq!((before, all, paths), (vec![], vec![], vec![]));
    Ok(())
}

#[tokio::test]
async fn checkpoint_deleted_during_upload_is_skipped() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    fake.state().files.max_chunks = Some(1);
    let script = "set -e; cd ../output; mkdir checkpoint-5 checkpoint-6; truncate -s 40M checkpoint-5/model; \
                  touch -d '1 minute ago' checkpoint-5/model; echo x > checkpoint-6/x; \
                  while [ ! -e ../control/go ]; do sleep 0.02; done; rm -r checkpoint-5";
    let host = TestHost::with_script(script)?;
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    fake.wait_until("a chunk", |shared| (shared.files.chunks.len() == 1).then_some(())).await;
    std::fs::write(host.attempt("j_1", 1).control_dir().join("go"), "")?;
    fake.state().files.max_chunks = None;
    let (code, output) = agent.wait_for_exit().await?;
    assert_eq!(code, Some(0), "{output}");
    let shared = fake.state();
    assert_eq!(complete_checkpoints(&shared), ["checkpoint-6"]);
    assert_eq!(shared.artifacts.keys().collect::<Vec<_>>(), ["checkpoint-6/x"]);
    let report = shared.statuses.last().cloned().unwrap_or_default();
    assert_eq!((&report["status"], &report["error"]), (&json!("completed"), &Value::Null));
    Ok(())
}

#[tokio::test]
async fn leaving_host_uploads_the_last_checkpoint_before_requeue() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let script = "mkdir ../output/checkpoint-3 ../output/checkpoint-4; echo x > ../output/checkpoint-3/x; \
                  touch -d '1 minute ago' ../output/checkpoint-3/x; echo ready; sleep 1000 & \
                  trap 'echo half > ../output/checkpoint-4/half; kill -9 $$' TERM; wait";
    let host = TestHost::with_script(script)?;
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    fake.wait_until("the trainer's output", |shared| (!shared.log.is_empty()).then_some(())).await;
    agent.signal(nix::sys::signal::Signal::SIGTERM)?;
    let (code, output) = agent.wait_for_exit().await?;
    assert_eq!(code, Some(143), "{output}");
    assert_eq!(fake.reported_statuses(), ["starting", "running", "requeue"]);
    assert_eq!(complete_checkpoints(&fake.state()), ["checkpoint-3"]);
    assert_eq!(
        fake.state().artifacts.keys().collect::<Vec<_>>(),
        ["checkpoint-3/x"],
        "an incomplete checkpoint is not uploaded"
    );
    Ok(())
}

/// Prints what it resumes from.
const PRINT_RESUME: &str = "grep resume \"$CONFIG_PATH\"; cat ../output/checkpoint-*/* 2>/dev/null; true";

fn add_uploaded_checkpoint(fake: &FakeOrchestrator, name: &str) {
    let mut shared = fake.state();
    shared.files.checkpoint_name = name.to_owned();
    for (file, bytes) in [("big", "0123456789\n".repeat(10_000)), ("small", "the state\n".to_owned())] {
        shared.files.checkpoint_files.insert(format!("{name}/{file}"), bytes.into_bytes());
    }
}

#[tokio::test]
async fn next_attempt_resumes_from_a_rolling_checkpoint() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let script = "cd ../output; mkdir checkpoint-5-rolling; echo old > checkpoint-5-rolling/model; \
                  mkdir checkpoint-10-rolling; echo new > checkpoint-10-rolling/model; \
                  touch -d '1 minute ago' checkpoint-10-rolling/model; kill -9 $$";
    let first = TestHost::with_script(script)?;
    let agent = first.start(&fake)?;
    fake.offer("j_1", 1, &config());
    agent.wait_for_exit().await?;
    let sent: Vec<_> =
        fake.state().artifacts.iter().map(|(path, artifact)| (path.clone(), artifact.kind.clone())).collect();
    assert_eq!(sent, [("checkpoint-10-rolling/model".to_owned(), "checkpoint".to_owned())]);
    assert_eq!(complete_checkpoints(&fake.state()), ["checkpoint-10-rolling"]);
    drop(first);
    add_uploaded_checkpoint(&fake, "checkpoint-10-rolling");
    let second = TestHost::with_script(PRINT_RESUME)?;
    let agent = second.start(&fake)?;
    fake.offer("j_1", 2, &config());
    let (code, output) = agent.wait_for_exit().await?;
    assert_eq!(code, Some(0), "{output}");
    assert!(output.contains("resumes at step 10, with checkpoint-10-rolling from the orchestrator"), "{output}");
    assert_eq!(resumed_step(&fake.state()), Some(10));
    assert!(String::from_utf8_lossy(&fake.state().log).contains("\"resume_from_checkpoint\": \"latest\""));
    Ok(())
}

fn resumed_step(shared: &FakeState) -> Option<u64> {
    shared.statuses.iter().rfind(|report| report["status"] == "running")?["resumed_from_step"].as_u64()
}

#[tokio::test]
async fn retry_on_another_host_resumes_from_the_uploaded_checkpoint() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    add_uploaded_checkpoint(&fake, "checkpoint-500");
    fake.state().files.truncated_downloads = 1;
    let host = TestHost::with_script(PRINT_RESUME)?;
    let agent = host.start(&fake)?;
    fake.offer("j_1", 2, &config());
    let (code, output) = agent.wait_for_exit().await?;
    assert_eq!(code, Some(0), "{output}");
    assert!(output.contains("resumes at step 500, with checkpoint-500 from the orchestrator"), "{output}");
    let shared = fake.state();
    assert_eq!(resumed_step(&shared), Some(500));
    let log = String::from_utf8_lossy(&shared.log);
    assert!(log.contains("\"resume_from_checkpoint\": \"latest\"") && log.ends_with("the state\n"), "{log}");
    assert_eq!(log.matches("0123456789\n").count(), 10_000);
    let fetched = ["checkpoint-500/big", "checkpoint-500/big", "checkpoint-500/small"].map(str::to_owned);
    let offsets = [0, 55_000, 0];
    assert_eq!(shared.files.fetched, fetched.into_iter().zip(offsets).collect::<Vec<_>>());
    assert!(
        shared.artifacts.is_empty() && shared.files.complete_checkpoints.is_empty(),
        "the orchestrator already has it"
    );
    assert!(!host.attempt("j_1", 2).join("incoming").exists());
    Ok(())
}

#[tokio::test]
async fn checkpoint_replaced_during_download_is_followed_by_its_successor() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    add_uploaded_checkpoint(&fake, "checkpoint-500");
    fake.state().files.superseded_by = Some("checkpoint-600".to_owned());
    let host = TestHost::with_script(PRINT_RESUME)?;
    let agent = host.start(&fake)?;
    fake.offer("j_1", 2, &config());
    let (code, output) = agent.wait_for_exit().await?;
    assert_eq!(code, Some(0), "{output}");
    assert!(output.contains("resumes at step 600, with checkpoint-600 from the orchestrator"), "{output}");
    let shared = fake.state();
    assert_eq!(resumed_step(&shared), Some(600));
    let fetched = ["checkpoint-500/big", "checkpoint-600/big", "checkpoint-600/small"].map(|path| (path.to_owned(), 0));
    assert_eq!(shared.files.fetched, fetched);
    assert_eq!(String::from_utf8_lossy(&shared.log).matches("0123456789\n").count(), 10_000, "once");
    Ok(())
}

#[tokio::test]
async fn missing_checkpoint_is_requested_once() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    add_uploaded_checkpoint(&fake, "checkpoint-500");
    fake.state().files.reject_downloads = true;
    let host = TestHost::with_script(PRINT_RESUME)?;
    let agent = host.start(&fake)?;
    fake.offer("j_1", 2, &config());
    let (code, output) = agent.wait_for_exit().await?;
    assert_eq!(code, Some(0), "{output}");
    assert_eq!(output.matches("was deleted at the orchestrator").count(), 1, "{output}");
    assert!(output.contains("starts from the beginning"), "{output}");
    assert_eq!(fake.reported_statuses(), ["starting", "running", "completed"]);
    Ok(())
}

#[tokio::test]
async fn damaged_checkpoint_does_not_prevent_the_start() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    add_uploaded_checkpoint(&fake, "checkpoint-500");
    fake.state().files.is_damaged = true;
    let host = TestHost::with_script(PRINT_RESUME)?;
    let agent = host.start(&fake)?;
    fake.offer("j_1", 2, &config());
    let (code, output) = agent.wait_for_exit().await?;
    assert_eq!(code, Some(0), "{output}");
    assert!(
        output.contains("checkpoint-500/big arrived damaged") && output.contains("starts from the beginning"),
        "{output}"
    );
    assert_eq!(fake.reported_statuses(), ["starting", "running", "completed"]);
    assert_eq!(resumed_step(&fake.state()), None);
    assert!(fake.state().log.is_empty(), "an incomplete download was left");
    Ok(())
}

#[tokio::test]
async fn newer_of_local_and_uploaded_checkpoint_is_used() -> io::Result<()> {
    for (name, expected, fetched) in [("checkpoint-6", 7, 0), ("checkpoint-8", 8, 2)] {
        let fake = FakeOrchestrator::start().await?;
        let script =
            format!("{PRINT_RESUME}; mkdir -p ../output/checkpoint-7; echo w > ../output/checkpoint-7/w; exit 75");
        let host = TestHost::with_script(&script)?.flags(&["--persistent"]);
        let agent = host.start(&fake)?;
        fake.offer_with("j_1", 1, &config(), json!({"checkpoints": "none"}));
        fake.wait_for_status("requeue").await;
        add_uploaded_checkpoint(&fake, name);
        fake.offer_with("j_1", 2, &config(), json!({"checkpoints": "none"}));
        fake.wait_until("the second attempt", |shared| (shared.statuses.len() == 6).then_some(())).await;
        assert_eq!(resumed_step(&fake.state()), Some(expected), "{name}");
        assert_eq!(fake.state().files.fetched.len(), fetched, "{name}");
        agent.kill().await?;
    }
    Ok(())
}

#[tokio::test]
async fn stalled_checkpoint_upload_does_not_delay_a_cancel() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    fake.state().files.max_chunks = Some(1);
    let script = "cd ../output; mkdir checkpoint-5 checkpoint-6; truncate -s 40M checkpoint-5/model; \
                  touch -d '1 minute ago' checkpoint-5/model; echo x > checkpoint-6/x; exec sleep 1000";
    let host = TestHost::with_script(script)?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    fake.wait_until("a chunk", |shared| (shared.files.chunks.len() == 1).then_some(())).await;
    let cancelled_at = std::time::Instant::now();
    fake.stop("j_1", 1, "cancelled");
    fake.wait_for_status("cancelled").await;
    assert!(cancelled_at.elapsed() < std::time::Duration::from_secs(5), "{:?}", cancelled_at.elapsed());
    assert_eq!(complete_checkpoints(&fake.state()), [""; 0]);
    agent.kill().await
}

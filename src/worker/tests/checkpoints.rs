//! Checkpoints: sent while the trainer runs, and brought along where it goes on.

use std::io;

use serde_json::{Value, json};

use super::fake::{Fake, Shared};
use super::host::Host;

/// Makes checkpoint 5 without a word, and 10 of which it tells, then waits for a file, makes another one, and ends.
const TRAINER: &str = r#"
import json, os, time, urllib.request
config = json.load(open(os.environ["CONFIG_PATH"]))
hook, out = config["webhook_config"][-1], config["output_dir"]
def checkpoint(step, say=True):
    os.makedirs(f"{out}/checkpoint-{step}/sub")
    for name in ["model.bin", "sub/state.json"]:
        open(f"{out}/checkpoint-{step}/{name}", "w").write(f"{step} {name}")
    event = {"type": "training.checkpoint", "checkpoint": {"path": f"{out}/checkpoint-{step}"}}
    headers = {"X-API-Key": hook["auth_token"], "Content-Type": "application/json"}
    if say:
        urllib.request.urlopen(urllib.request.Request(hook["callback_url"], json.dumps(event).encode(), headers), timeout=5)
checkpoint(5, False), checkpoint(10)
while not os.path.exists("../control/go"): time.sleep(0.02)
checkpoint(15, False)
"#;

fn config() -> Value {
    json!({"config.json": "{}"})
}

fn whole(shared: &Shared) -> Vec<&str> {
    shared.files.whole.iter().filter_map(|mark| mark["name"].as_str()).collect()
}

/// What was said to be whole before the end, and in all, and the paths that were sent.
async fn by_policy(policy: &str, during: usize) -> io::Result<(Vec<String>, Vec<String>, Vec<String>)> {
    let fake = Fake::start().await?;
    // It is missed when the checkpoint is said to be whole, and comes again.
    fake.shared().files.lose = Some("checkpoint-10/model.bin".to_owned());
    let host = Host::with_python(TRAINER)?;
    let agent = host.start(&fake)?;
    fake.offer_with("j_1", 1, &config(), json!({"checkpoints": policy}));
    host.supervisor("j_1", 1).await;
    let dir = host.attempt("j_1", 1);
    fake.until("the checkpoints", |shared| (shared.files.whole.len() >= during).then_some(())).await;
    let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect::<Vec<_>>();
    let before = owned(whole(&fake.shared()));
    std::fs::write(dir.control().join("go"), "")?;
    let (code, said) = agent.end().await?;
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(fake.words(), ["starting", "running", "completed"]);
    let shared = fake.shared();
    Ok((before, owned(whole(&shared)), shared.artifacts.keys().cloned().collect()))
}

#[tokio::test]
async fn the_newest_checkpoint_is_sent_while_the_trainer_runs_and_the_last_at_the_end() -> io::Result<()> {
    let (before, all, paths) = by_policy("last", 1).await?;
    assert_eq!(before, ["checkpoint-10"]);
    assert_eq!(all, ["checkpoint-10", "checkpoint-15"]);
    let of = |step| [format!("checkpoint-{step}/model.bin"), format!("checkpoint-{step}/sub/state.json")];
    assert_eq!(paths, [of(10), of(15)].concat());
    Ok(())
}

#[tokio::test]
async fn every_checkpoint_or_none_is_sent_if_the_offer_says_so() -> io::Result<()> {
    let (before, all, paths) = by_policy("all", 2).await?;
    assert_eq!(before, ["checkpoint-10", "checkpoint-5"]);
    assert_eq!(all, ["checkpoint-10", "checkpoint-5", "checkpoint-15"]);
    assert_eq!(paths.len(), 6);

    let (before, all, paths) = by_policy("none", 0).await?;
    assert_eq!((before, all, paths), (vec![], vec![], vec![]));
    Ok(())
}

#[tokio::test]
async fn a_checkpoint_that_is_removed_while_it_is_sent_is_left_for_the_next() -> io::Result<()> {
    let fake = Fake::start().await?;
    fake.shared().files.most_pieces = Some(1);
    let script = "set -e; cd ../output; mkdir checkpoint-5 checkpoint-6; truncate -s 40M checkpoint-5/model; \
                  touch -d '1 minute ago' checkpoint-5/model; echo x > checkpoint-6/x; \
                  while [ ! -e ../control/go ]; do sleep 0.02; done; rm -r checkpoint-5";
    let host = Host::with_script(script)?;
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    fake.until("a piece", |shared| (shared.files.pieces.len() == 1).then_some(())).await;
    std::fs::write(host.attempt("j_1", 1).control().join("go"), "")?;
    fake.shared().files.most_pieces = None;
    let (code, said) = agent.end().await?;
    assert_eq!(code, Some(0), "{said}");
    let shared = fake.shared();
    assert_eq!(whole(&shared), ["checkpoint-6"]);
    assert_eq!(shared.artifacts.keys().collect::<Vec<_>>(), ["checkpoint-6/x"]);
    let end = shared.statuses.last().cloned().unwrap_or_default();
    assert_eq!((&end["status"], &end["error"]), (&json!("completed"), &Value::Null));
    Ok(())
}

#[tokio::test]
async fn a_host_that_leaves_sends_the_last_checkpoint_before_it_gives_the_job_back() -> io::Result<()> {
    let fake = Fake::start().await?;
    let script = "mkdir ../output/checkpoint-3 ../output/checkpoint-4; echo x > ../output/checkpoint-3/x; \
                  touch -d '1 minute ago' ../output/checkpoint-3/x; echo ready; sleep 1000 & \
                  trap 'echo half > ../output/checkpoint-4/half; kill -9 $$' TERM; wait";
    let host = Host::with_script(script)?;
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    fake.until("the trainer's word", |shared| (!shared.log.is_empty()).then_some(())).await;
    agent.signal(nix::sys::signal::Signal::SIGTERM)?;
    let (code, said) = agent.end().await?;
    assert_eq!(code, Some(143), "{said}");
    assert_eq!(fake.words(), ["starting", "running", "requeue"]);
    assert_eq!(whole(&fake.shared()), ["checkpoint-3"]);
    assert_eq!(fake.shared().artifacts.keys().collect::<Vec<_>>(), ["checkpoint-3/x"], "what may be half is not sent");
    Ok(())
}

/// Shows what it goes on from.
const SHOW: &str = "grep resume \"$CONFIG_PATH\"; cat ../output/checkpoint-*/* 2>/dev/null; true";

fn leave_behind(fake: &Fake, name: &str) {
    let mut shared = fake.shared();
    shared.files.earlier = name.to_owned();
    for (file, bytes) in [("big", "0123456789\n".repeat(10_000)), ("small", "the state\n".to_owned())] {
        shared.files.left_behind.insert(format!("{name}/{file}"), bytes.into_bytes());
    }
}

fn resumed(shared: &Shared) -> Option<u64> {
    shared.statuses.iter().rfind(|report| report["status"] == "running")?["resumed_from_step"].as_u64()
}

#[tokio::test]
async fn a_retry_on_another_host_goes_on_from_what_was_sent() -> io::Result<()> {
    let fake = Fake::start().await?;
    leave_behind(&fake, "checkpoint-500");
    fake.shared().files.cut_downloads = 1;
    let host = Host::with_script(SHOW)?;
    let agent = host.start(&fake)?;
    fake.offer("j_1", 2, &config());
    let (code, said) = agent.end().await?;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("goes on at step 500, with checkpoint-500 from the orchestrator"), "{said}");
    let shared = fake.shared();
    assert_eq!(resumed(&shared), Some(500));
    let log = String::from_utf8_lossy(&shared.log);
    assert!(log.contains("\"resume_from_checkpoint\": \"latest\"") && log.ends_with("the state\n"), "{log}");
    assert_eq!(log.matches("0123456789\n").count(), 10_000);
    let fetched = ["checkpoint-500/big", "checkpoint-500/big", "checkpoint-500/small"].map(str::to_owned);
    let offsets = [0, 55_000, 0];
    assert_eq!(shared.files.fetched, fetched.into_iter().zip(offsets).collect::<Vec<_>>());
    assert!(shared.artifacts.is_empty() && shared.files.whole.is_empty(), "it is there already");
    assert!(!host.attempt("j_1", 2).join("incoming").exists());
    Ok(())
}

#[tokio::test]
async fn what_is_gone_while_it_is_fetched_is_given_up_for_what_took_its_place() -> io::Result<()> {
    let fake = Fake::start().await?;
    leave_behind(&fake, "checkpoint-500");
    fake.shared().files.superseded_by = Some("checkpoint-600".to_owned());
    let host = Host::with_script(SHOW)?;
    let agent = host.start(&fake)?;
    fake.offer("j_1", 2, &config());
    let (code, said) = agent.end().await?;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("goes on at step 600, with checkpoint-600 from the orchestrator"), "{said}");
    let shared = fake.shared();
    assert_eq!(resumed(&shared), Some(600));
    let fetched = ["checkpoint-500/big", "checkpoint-600/big", "checkpoint-600/small"].map(|path| (path.to_owned(), 0));
    assert_eq!(shared.files.fetched, fetched);
    assert_eq!(String::from_utf8_lossy(&shared.log).matches("0123456789\n").count(), 10_000, "once");
    Ok(())
}

#[tokio::test]
async fn what_is_gone_and_still_named_is_asked_for_once() -> io::Result<()> {
    let fake = Fake::start().await?;
    leave_behind(&fake, "checkpoint-500");
    fake.shared().files.refuse_downloads = true;
    let host = Host::with_script(SHOW)?;
    let agent = host.start(&fake)?;
    fake.offer("j_1", 2, &config());
    let (code, said) = agent.end().await?;
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(said.matches("is gone from the orchestrator").count(), 1, "{said}");
    assert!(said.contains("begins at the beginning"), "{said}");
    assert_eq!(fake.words(), ["starting", "running", "completed"]);
    Ok(())
}

#[tokio::test]
async fn a_damaged_checkpoint_is_no_reason_not_to_begin() -> io::Result<()> {
    let fake = Fake::start().await?;
    leave_behind(&fake, "checkpoint-500");
    fake.shared().files.damaged = true;
    let host = Host::with_script(SHOW)?;
    let agent = host.start(&fake)?;
    fake.offer("j_1", 2, &config());
    let (code, said) = agent.end().await?;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("checkpoint-500/big arrived damaged") && said.contains("begins at the beginning"), "{said}");
    assert_eq!(fake.words(), ["starting", "running", "completed"]);
    assert_eq!(resumed(&fake.shared()), None);
    assert!(fake.shared().log.is_empty(), "no part of it is left");
    Ok(())
}

#[tokio::test]
async fn the_newer_of_the_hosts_and_the_orchestrators_checkpoints_counts() -> io::Result<()> {
    for (name, expected, fetched) in [("checkpoint-6", 7, 0), ("checkpoint-8", 8, 2)] {
        let fake = Fake::start().await?;
        let script = format!("{SHOW}; mkdir -p ../output/checkpoint-7; echo w > ../output/checkpoint-7/w; exit 75");
        let host = Host::with_script(&script)?.flags(&["--persistent"]);
        let agent = host.start(&fake)?;
        fake.offer_with("j_1", 1, &config(), json!({"checkpoints": "none"}));
        fake.status("requeue").await;
        leave_behind(&fake, name);
        fake.shared().log.clear();
        fake.offer_with("j_1", 2, &config(), json!({"checkpoints": "none"}));
        fake.until("the second attempt", |shared| (shared.statuses.len() == 6).then_some(())).await;
        assert_eq!(resumed(&fake.shared()), Some(expected), "{name}");
        assert_eq!(fake.shared().files.fetched.len(), fetched, "{name}");
        agent.kill().await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_checkpoint_that_does_not_get_through_holds_up_no_cancel() -> io::Result<()> {
    let fake = Fake::start().await?;
    fake.shared().files.most_pieces = Some(1);
    let script = "cd ../output; mkdir checkpoint-5 checkpoint-6; truncate -s 40M checkpoint-5/model; \
                  touch -d '1 minute ago' checkpoint-5/model; echo x > checkpoint-6/x; exec sleep 1000";
    let host = Host::with_script(script)?.flags(&["--persistent"]);
    let agent = host.start(&fake)?;
    fake.offer("j_1", 1, &config());
    fake.until("a piece", |shared| (shared.files.pieces.len() == 1).then_some(())).await;
    let began = std::time::Instant::now();
    fake.stop("j_1", 1, "cancelled");
    fake.status("cancelled").await;
    assert!(began.elapsed() < std::time::Duration::from_secs(5), "{:?}", began.elapsed());
    assert_eq!(whole(&fake.shared()), [""; 0]);
    agent.kill().await
}

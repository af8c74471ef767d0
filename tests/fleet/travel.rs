//! A host dies for good, and its job goes on elsewhere from where it was: the checkpoint came along.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::harness::{Fleet, Host, SOON, processes_that_mention, until};

/// As a power cut would.
fn lose(host: &Host) {
    loop {
        let left = processes_that_mention(&host.home().to_string_lossy());
        if left.is_empty() {
            return;
        }
        for (id, _) in left {
            // It may have ended since.
            let _ = kill(Pid::from_raw(id), Signal::SIGKILL);
        }
    }
}

async fn weights(fleet: &Fleet, job: &str) -> Value {
    let page = fleet.api.get(&format!("/api/queue/{job}/artifacts")).await;
    let artifacts = page["artifacts"].as_array().expect("artifacts");
    let last = artifacts.iter().rfind(|artifact| artifact["kind"] == "final").expect("weights");
    last["sha256"].clone()
}

#[tokio::test]
async fn a_job_goes_on_elsewhere_from_its_newest_checkpoint() {
    let fleet = Fleet::start_with(&[SOON]).await;
    let unhurried = json!({"--checkpointing_steps": 20, "example_step_delay_ms": 100});
    fleet.configure("unhurried", &unhurried).await;
    fleet.configure("straight", &json!({"--checkpointing_steps": 20})).await;
    let (first, second) = (fleet.host("mortal").await, fleet.host("heir").await);
    let agent = first.start();
    let job = fleet.api.submit("unhurried").await;
    until("a checkpoint to be on the server", async || {
        agent.said().contains("is kept by the orchestrator").then_some(())
    })
    .await;
    drop(agent);
    lose(&first);
    fleet.api.until_worker(&first.worker, "offline").await;

    let _heir = second.start();
    let done = fleet.api.until_job(&job, "completed").await;
    assert_eq!((&done["attempt"], &done["worker_id"]), (&json!(2), &json!(second.worker)), "{done:#}");
    let step = done["attempts"][1]["resumed_from_step"].as_u64().unwrap_or_else(|| panic!("{done:#}"));
    assert!(step >= 20 && step % 20 == 0 && step < 150, "{step}");
    assert!(fleet.api.log(&job).await.contains(&format!("{step}")), "the trainer went on from there");

    // What was interrupted is as good as what was not.
    let straight = fleet.api.submit("straight").await;
    fleet.api.until_job(&straight, "completed").await;
    assert_eq!(weights(&fleet, &job).await, weights(&fleet, &straight).await);
}

//! A host is lost, and its job resumes elsewhere from the uploaded checkpoint.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use crate::harness::{SHORT_HEARTBEAT_TIMEOUT, TestFleet, WorkerHost, processes_that_mention, wait_until};

/// Kills everything, like a power failure.
fn kill_host(host: &WorkerHost) {
    loop {
        let remaining = processes_that_mention(&host.home().to_string_lossy());
        if remaining.is_empty() {
            return;
        }
        for (id, _) in remaining {
            // It may have ended already.
            let _ = kill(Pid::from_raw(id), Signal::SIGKILL);
        }
    }
}

#[tokio::test]
async fn job_resumes_elsewhere_from_its_newest_checkpoint() {
    let fleet = TestFleet::start_with(&[SHORT_HEARTBEAT_TIMEOUT]).await;
    let unhurried = json!({"--checkpointing_steps": 20, "example_step_delay_ms": 100});
    fleet.put_config("unhurried", &unhurried).await;
    fleet.put_config("straight", &json!({"--checkpointing_steps": 20})).await;
    let (first, second) = (fleet.add_host("mortal").await, fleet.add_host("heir").await);
    let agent = first.start();
    let job = fleet.api.submit("unhurried").await;
    wait_until("a checkpoint to be on the server", async || {
        agent.output().contains("is stored at the orchestrator").then_some(())
    })
    .await;
    drop(agent);
    kill_host(&first);
    fleet.api.wait_for_worker(&first.worker, "offline").await;

    let _second_agent = second.start();
    let done = fleet.api.wait_for_job(&job, "completed").await;
    assert_eq!((&done["attempt"], &done["worker_id"]), (&json!(2), &json!(second.worker)), "{done:#}");
    let step = done["attempts"][1]["resumed_from_step"].as_u64().unwrap_or_else(|| panic!("{done:#}"));
    assert!(step >= 20 && step % 20 == 0 && step < 150, "{step}");
    assert!(fleet.api.log(&job).await.contains(&format!("{step}")), "the trainer continued from that step");

    // The result is the same as without the interruption.
    let straight = fleet.api.submit("straight").await;
    fleet.api.wait_for_job(&straight, "completed").await;
    assert_eq!(fleet.api.weights(&job).await, fleet.api.weights(&straight).await);
}

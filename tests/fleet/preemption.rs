//! A running job is stopped for another one, and continues from its checkpoint with the same result.

use serde_json::json;

use crate::harness::{TestFleet, wait_until};

#[tokio::test]
async fn idle_job_stops_for_another_and_continues_with_the_same_result() {
    let fleet = TestFleet::start().await;
    fleet.put_config("unhurried", &json!({"--checkpointing_steps": 20, "example_step_delay_ms": 100})).await;
    fleet.put_config("straight", &json!({"--checkpointing_steps": 20})).await;
    let host = fleet.add_host("shared").await;
    let agent = host.start();
    let idle = fleet.api.submit_with(&json!({"config_name": "unhurried", "target": "worker", "class": "idle"})).await;
    wait_until("a checkpoint to be on the server", async || {
        agent.output().contains("is stored at the orchestrator").then_some(())
    })
    .await;
    let normal = fleet.api.submit("straight").await;
    let stopped = wait_until("the idle job to be stopped", async || {
        let job = fleet.api.job(&idle).await;
        (job["loss_code"] == "preempted").then_some(job)
    })
    .await;
    let error = stopped["error"].as_str().expect("text");
    assert!(error.contains(&normal) && error.contains("It continues from step"), "{error}");
    fleet.api.wait_for_job(&normal, "completed").await;

    let done = fleet.api.wait_for_job(&idle, "completed").await;
    assert_eq!((&done["attempt"], &done["attempts"][0]["loss_code"]), (&json!(2), &json!("preempted")), "{done:#}");
    let step = done["attempts"][1]["resumed_from_step"].as_u64().unwrap_or_else(|| panic!("{done:#}"));
    // The trainer also saves when it is asked to stop.
    assert!((20..150).contains(&step), "{step}");
    assert_eq!(fleet.api.weights(&idle).await, fleet.api.weights(&normal).await, "as without the interruption");
}

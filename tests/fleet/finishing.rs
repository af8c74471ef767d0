//! A host with several places is asked to leave once what it runs has ended (`--on-stop finish`).

use nix::sys::signal::Signal;
use serde_json::json;

use crate::harness::{Fleet, trainers};

#[tokio::test]
async fn a_host_that_finishes_gets_no_job_and_one_that_it_was_offered_goes_elsewhere_at_once() {
    let fleet = Fleet::start().await;
    let flags = ["--max-jobs", "2", "--on-stop", "finish", "--gpu-count", "2"];
    let leaver = fleet.host("leaver").await.training_with(trainers::AT_THE_GATE).flags(&flags);
    let mut agent = leaver.start();
    fleet.api.until_worker(&leaver.worker, "idle").await;
    let wish = json!({"config_name": "digits-quick", "target": "worker", "gpu_count": 1});
    let finished = fleet.api.submit_with(&wish).await;
    fleet.api.until_job(&finished, "running").await;

    // It stands still when it is asked to leave and when it is offered something, so that both reach it together.
    agent.signal(Signal::SIGSTOP);
    let offered = fleet.api.submit_with(&wish).await;
    fleet.api.until_job(&offered, "offered").await;
    agent.signal(Signal::SIGTERM);
    agent.signal(Signal::SIGCONT);
    let waiting = fleet.api.until_job(&offered, "queued").await;
    assert!(waiting["attempt"] == 1 && waiting["losses"].as_u64().unwrap_or_default() == 0, "{waiting:#}");
    let later = fleet.api.submit_with(&wish).await;
    let host = fleet.host("stayer").await.flags(&["--gpu-count", "1"]);
    let _stayer = host.start();
    for (job, attempt) in [(&offered, 2), (&later, 1)] {
        let done = fleet.api.until_job(job, "completed").await;
        assert!(done["attempt"] == attempt && done["worker_id"] == json!(host.worker), "{done:#}");
    }

    leaver.open_gate();
    let done = fleet.api.until_job(&finished, "completed").await;
    assert!(done["attempt"] == 1 && done["worker_id"] == json!(leaver.worker), "{done:#}");
    assert_eq!(agent.ended().await, Some(143), "{}", agent.said());
}

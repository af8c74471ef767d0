//! A host with several slots stops after its running jobs have ended (`--on-stop finish`).

use nix::sys::signal::Signal;
use serde_json::json;

use crate::harness::{TestFleet, trainers};

#[tokio::test]
async fn finishing_host_gets_no_jobs_and_returns_offers_immediately() {
    let fleet = TestFleet::start().await;
    let flags = ["--max-jobs", "2", "--on-stop", "finish", "--gpu-count", "2"];
    let leaver = fleet.add_host("leaver").await.with_python_trainer(trainers::AT_THE_GATE).with_flags(&flags);
    let mut agent = leaver.start();
    fleet.api.wait_for_worker(&leaver.worker, "idle").await;
    let request = json!({"config_name": "digits-quick", "target": "worker", "gpu_count": 1});
    let finished = fleet.api.submit_with(&request).await;
    fleet.api.wait_for_job(&finished, "running").await;

    // Paused while it gets a signal to stop and an offer, so that both arrive together.
    agent.signal(Signal::SIGSTOP);
    let offered = fleet.api.submit_with(&request).await;
    fleet.api.wait_for_job(&offered, "offered").await;
    agent.signal(Signal::SIGTERM);
    agent.signal(Signal::SIGCONT);
    let waiting = fleet.api.wait_for_job(&offered, "queued").await;
    assert!(waiting["attempt"] == 1 && waiting["losses"].as_u64().unwrap_or_default() == 0, "{waiting:#}");
    let later = fleet.api.submit_with(&request).await;
    let host = fleet.add_host("stayer").await.with_flags(&["--gpu-count", "1"]);
    let _stayer = host.start();
    for (job, attempt) in [(&offered, 2), (&later, 1)] {
        let done = fleet.api.wait_for_job(job, "completed").await;
        assert!(done["attempt"] == attempt && done["worker_id"] == json!(host.worker), "{done:#}");
    }

    leaver.open_gate();
    let done = fleet.api.wait_for_job(&finished, "completed").await;
    assert!(done["attempt"] == 1 && done["worker_id"] == json!(leaver.worker), "{done:#}");
    assert_eq!(agent.wait().await, Some(143), "{}", agent.output());
}

//! The orchestrator's own machine as a worker.

use serde_json::json;

use crate::harness::{Fleet, until};

/// A trainer that runs until there is a gate in its home, which is the server's.
const AT_THE_GATE: &str = r#"sh -c 'until test -e "$HOME/gate"; do sleep 0.05; done'"#;

/// The worker that stands for this machine.
async fn local_worker(fleet: &Fleet) -> String {
    until("the local worker", async || {
        let workers = fleet.api.try_get("/api/admin/workers?status=idle").await?;
        let local = workers["workers"].as_array()?.iter().find(|worker| worker["local"] == true)?.clone();
        Some(local["id"].as_str()?.to_owned())
    })
    .await
}

#[tokio::test]
async fn a_local_job_outlives_the_server() {
    let mut fleet = Fleet::start_with(&[("SIMPLETUNER_LOCAL", "on"), ("SIMPLETUNER_TRAINER", AT_THE_GATE)]).await;
    let local = local_worker(&fleet).await;
    let job = fleet.api.submit_with(&json!({"config_name": "digits-quick", "target": "local"})).await;
    fleet.api.until_job(&job, "running").await;
    let remote = fleet.api.submit_with(&json!({"config_name": "digits-quick", "target": "worker"})).await;
    let why = fleet.api.get(&format!("/api/queue/{remote}/explain")).await;
    assert_eq!((&why["verdict"], &why["workers"][0]["blockers"][0]["code"]), (&"never".into(), &"wrong_target".into()));

    let (code, said) = fleet.stop_server().await;
    assert_eq!(code, Some(0), "{said}");
    fleet.start_server().await;
    fleet.api.until_heard_again(&local).await;
    fleet.kill_server().await;
    fleet.start_server().await;
    fleet.api.until_heard_again(&local).await;
    std::fs::write(fleet.path().join("gate"), "").expect("a gate");
    let done = fleet.api.until_job(&job, "completed").await;
    assert_eq!((&done["attempt"], &done["worker_id"]), (&1.into(), &local.into()), "{done:#}");
    assert_eq!(fleet.api.job(&remote).await["status"], "queued");
}

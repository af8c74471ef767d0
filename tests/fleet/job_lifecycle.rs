//! A job from submit to results.

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::harness::{ADMIN, TestFleet, trainers};

#[tokio::test]
async fn a_job_runs_from_submit_to_results() {
    let fleet = TestFleet::start().await;
    let host = fleet.add_host("trainer").await;
    let _agent = host.start();
    let job = fleet.api.submit("digits-quick").await;
    let done = fleet.api.wait_for_job(&job, "completed").await;

    assert_eq!(done["attempt"], 1);
    assert_eq!(done["worker_name"], "trainer");
    assert_eq!(done["attempts"][0]["exit_code"], 0, "{done:#}");
    assert_eq!(done["progress"]["step"], 150);
    assert_eq!(done["progress"]["percent"], 100.0);

    let log = fleet.api.log(&job).await;
    assert_eq!(log, host.trainer_log(&job, 1), "the server's log differs from the agent's");
    assert!(log.contains("150 steps"), "{log}");
    assert_eq!(done["attempts"][0]["log_bytes"], log.len());

    assert_progress(&fleet.api.get(&format!("/api/queue/{job}/progress")).await);
    assert_artifacts(&fleet, &job).await;
    fleet.api.wait_for_worker(&host.worker, "idle").await;
}

fn assert_progress(series: &Value) {
    let points = series["points"].as_array().expect("points");
    let steps: Vec<u64> = points.iter().filter_map(|point| point["step"].as_u64()).collect();
    assert!(steps.len() > 2 && steps.is_sorted(), "{steps:?}");
    let loss = |point: Option<&Value>| point.and_then(|point| point["loss"].as_f64()).expect("a loss");
    assert!(
        loss(points.last()) < loss(points.iter().find(|point| point["loss"].is_number())),
        "the loss did not decrease"
    );
}

async fn assert_artifacts(fleet: &TestFleet, job: &str) {
    let page = fleet.api.get(&format!("/api/queue/{job}/artifacts")).await;
    let artifacts = page["artifacts"].as_array().expect("artifacts");
    for artifact in artifacts {
        let bytes = fleet.api.get_bytes(artifact["url"].as_str().expect("a URL")).await;
        assert_eq!(artifact["size_bytes"], bytes.len(), "{artifact}");
        assert_eq!(artifact["sha256"], hex(&Sha256::digest(&bytes)), "{artifact}");
        if artifact["kind"] == "sample" {
            assert!(bytes.starts_with(b"\x89PNG\r\n\x1a\n"), "{artifact} is no PNG");
        }
    }
    let of_kind = |kind: &str| artifacts.iter().filter(|artifact| artifact["kind"] == kind).count();
    let finals: Vec<&Value> = artifacts.iter().filter(|artifact| artifact["kind"] == "final").collect();
    assert!(matches!(finals[..], [only] if only["path"] == "model.safetensors"), "{finals:?}");
    assert!(of_kind("sample") > 0 && of_kind("checkpoint") > 0, "{page:#}");
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat()
}

#[tokio::test]
async fn trainer_has_no_worker_credentials() {
    let fleet = TestFleet::start().await;
    let host = fleet.add_host("discreet").await.with_python_trainer(trainers::ENVIRONMENT);
    let _agent = host.start();
    let job = fleet.api.submit("digits-quick").await;
    fleet.api.wait_for_job(&job, "completed").await;

    let environment = fleet.api.log(&job).await;
    assert!(environment.contains(&format!("SIMPLETUNER_JOB_ID={job}\n")), "{environment}");
    assert!(environment.contains("\nCONFIG_PATH=") || environment.starts_with("CONFIG_PATH="), "{environment}");
    for secret in [host.token.as_str(), "wt_", ADMIN, "SIMPLETUNER_WORKER_TOKEN"] {
        assert!(!environment.contains(secret), "the trainer can read {secret:?}:\n{environment}");
    }
}

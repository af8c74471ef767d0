//! Trainers that fail, and what is said about it.

use serde_json::{Value, json};

use crate::harness::{Fleet, Host, trainers};

/// Runs a job that fails; answers with it and its log.
async fn failed(fleet: &Fleet, host: &Host, submit: &Value) -> (Value, String) {
    let _agent = host.start();
    let job = fleet.api.submit_with(submit).await;
    let failed = fleet.api.until_job(&job, "failed").await;
    assert_eq!(failed["attempts"].as_array().map(Vec::len), Some(1), "it was tried again: {failed:#}");
    (failed, fleet.api.log(&job).await)
}

#[tokio::test]
async fn a_trainers_own_failure_is_final() {
    let fleet = Fleet::start().await;
    let host = fleet.host("unlucky").await.training_with(trainers::FAILING);
    let (job, log) = failed(&fleet, &host, &json!({"config_name": "digits-quick"})).await;
    assert_eq!(job["attempts"][0]["exit_code"], 3);
    let error = job["error"].as_str().unwrap_or_default();
    assert!(error.contains("exit code 3") && error.contains("out of digits"), "{error}");
    assert_eq!(log, "all is well\nout of digits\n");
}

#[tokio::test]
async fn an_exception_of_the_example_trainer_is_shown() {
    let fleet = Fleet::start().await;
    fleet.configure("breaking", &json!({"example_fail_at_step": 3})).await;
    let host = fleet.host("example").await;
    let (job, log) = failed(&fleet, &host, &json!({"config_name": "breaking"})).await;
    assert!(job["error"].as_str().is_some_and(|error| error.contains("failing at step 3")), "{job:#}");
    assert!(log.contains("Traceback"), "{log}");
}

#[tokio::test]
async fn a_missing_trainer_is_named() {
    let fleet = Fleet::start().await;
    let host = fleet.host("empty").await.training_by("/nowhere/trainer --fast");
    let (job, _) = failed(&fleet, &host, &json!({"config_name": "digits-quick"})).await;
    let error = job["error"].as_str().unwrap_or_default();
    assert!(error.contains("/nowhere/trainer") && error.contains("--trainer"), "{error}");
}

#[tokio::test]
async fn exit_code_75_asks_for_another_try() {
    let fleet = Fleet::start().await;
    let host = fleet.host("retrying").await.training_with(trainers::WANTS_ANOTHER_TRY);
    let _agent = host.start();
    let job = fleet.api.submit("digits-quick").await;
    let done = fleet.api.until_job(&job, "completed").await;
    assert_eq!(done["attempt"], 2, "{done:#}");
    assert_eq!(done["attempts"][0]["outcome"], "lost", "{done:#}");
    assert_eq!(done["attempts"][1]["outcome"], "completed", "{done:#}");
    assert_eq!(fleet.api.log(&job).await, "attempt 2\n");
    let first = fleet.api.bytes(&format!("/api/queue/{job}/logs?raw=1&attempt=1")).await;
    assert_eq!(first, b"attempt 1\n");
}

#[tokio::test]
async fn retries_run_out() {
    let fleet = Fleet::start().await;
    let host = fleet.host("tired").await.training_with(trainers::WANTS_ANOTHER_TRY);
    let submit = json!({"config_name": "digits-quick", "max_retries": 0});
    let (job, _) = failed(&fleet, &host, &submit).await;
    assert!(job["error"].as_str().is_some_and(|error| error.contains("75")), "{job:#}");
}

//! Trainers that fail, and the reported reasons.

use serde_json::{Value, json};

use crate::harness::{TestFleet, WorkerHost, trainers, wait_until};

/// Runs a job that fails; returns it and its log.
async fn run_failing_job(fleet: &TestFleet, host: &WorkerHost, submit: &Value) -> (Value, String) {
    let _agent = host.start();
    let job = fleet.api.submit_with(submit).await;
    let failed = fleet.api.wait_for_job(&job, "failed").await;
    assert_eq!(failed["attempts"].as_array().map(Vec::len), Some(1), "it was tried again: {failed:#}");
    (failed, fleet.api.log(&job).await)
}

#[tokio::test]
async fn trainer_failure_is_final() {
    let fleet = TestFleet::start().await;
    let host = fleet.add_host("unlucky").await.with_python_trainer(trainers::FAILING);
    let (job, log) = run_failing_job(&fleet, &host, &json!({"config_name": "digits-quick"})).await;
    assert_eq!(job["attempts"][0]["exit_code"], 3);
    let error = job["error"].as_str().unwrap_or_default();
    assert!(error.contains("exited with code 3") && error.contains("out of digits"), "{error}");
    assert_eq!(log, "all is well\nout of digits\n");
}

#[tokio::test]
async fn an_exception_of_the_example_trainer_is_shown() {
    let fleet = TestFleet::start().await;
    fleet.put_config("breaking", &json!({"example_fail_at_step": 3})).await;
    let host = fleet.add_host("example").await;
    let (job, log) = run_failing_job(&fleet, &host, &json!({"config_name": "breaking"})).await;
    assert!(job["error"].as_str().is_some_and(|error| error.contains("failing at step 3")), "{job:#}");
    assert!(log.contains("Traceback"), "{log}");
}

#[tokio::test]
async fn missing_trainer_is_reported() {
    let fleet = TestFleet::start().await;
    let host = fleet.add_host("empty").await.with_trainer_command("/nowhere/trainer --fast");
    let _agent = host.start();
    let mut jobs = Vec::new();
    for _ in 0..3 {
        jobs.push(fleet.api.submit("digits-quick").await);
    }
    let explanation = wait_until("the explanation to name its worker", async || {
        let response = fleet.api.try_get(&format!("/api/queue/{}/explain", jobs[0])).await?;
        response["text"].as_str().filter(|text| text.contains("The agent accepts no new jobs")).map(str::to_owned)
    });
    let explanation = explanation.await;
    assert!(
        explanation.contains("the trainer is missing: the program \"/nowhere/trainer\" does not exist"),
        "{explanation}"
    );
    let worker = fleet.api.get(&format!("/api/admin/workers/{}", host.worker)).await;
    assert!(worker["unhealthy_reason"].as_str().is_some_and(|reason| explanation.contains(reason)), "{worker:#}");
    for job in &jobs {
        let job = fleet.api.job(job).await;
        assert_eq!((&job["status"], &job["attempt"]), (&json!("queued"), &json!(0)), "no job is used up: {job:#}");
    }
    // Another host with a trainer runs them, each as its first attempt.
    let healthy_host = fleet.add_host("able").await;
    let _healthy_agent = healthy_host.start();
    for job in &jobs {
        let done = fleet.api.wait_for_job(job, "completed").await;
        assert_eq!((&done["attempt"], &done["worker_name"]), (&json!(1), &json!("able")), "{done:#}");
    }
}

#[tokio::test]
async fn exit_code_75_requests_a_retry() {
    let fleet = TestFleet::start().await;
    let host = fleet.add_host("retrying").await.with_python_trainer(trainers::REQUESTS_RETRY);
    let _agent = host.start();
    let job = fleet.api.submit("digits-quick").await;
    let done = fleet.api.wait_for_job(&job, "completed").await;
    assert_eq!(done["attempt"], 2, "{done:#}");
    assert_eq!(done["attempts"][0]["outcome"], "lost", "{done:#}");
    assert_eq!(done["attempts"][1]["outcome"], "completed", "{done:#}");
    assert_eq!(fleet.api.log(&job).await, "attempt 2\n");
    let first = fleet.api.get_bytes(&format!("/api/queue/{job}/logs?raw=1&attempt=1")).await;
    assert_eq!(first, b"attempt 1\n");
}

#[tokio::test]
async fn retries_run_out() {
    let fleet = TestFleet::start().await;
    let host = fleet.add_host("tired").await.with_python_trainer(trainers::REQUESTS_RETRY);
    let submit = json!({"config_name": "digits-quick", "max_retries": 0});
    let (job, _) = run_failing_job(&fleet, &host, &submit).await;
    assert!(job["error"].as_str().is_some_and(|error| error.contains("75")), "{job:#}");
}

//! Causes each problem of "Troubleshooting" in the documentation, and checks that users find its message.

use serde_json::{Value, json};

use crate::harness::{TestFleet, WorkerHost, command, trainers};

/// Returns the last output of an agent that gives up or is rejected.
async fn final_output(host: &WorkerHost) -> String {
    let mut agent = host.start();
    agent.wait().await;
    agent.output()
}

async fn explanation_text(fleet: &TestFleet, job: &str) -> String {
    let explanation = fleet.api.get(&format!("/api/queue/{job}/explain")).await;
    explanation["text"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn connection_refused() {
    let mut fleet = TestFleet::start().await;
    let host = fleet.add_host_of_type("lost", "ephemeral").await.with_flags(&["--give-up-after", "1"]);
    fleet.kill_server().await;
    let output = final_output(&host).await;
    assert!(output.contains("Connection refused") && output.contains("--host 0.0.0.0"), "{output}");
}

#[tokio::test]
async fn invalid_token() {
    let fleet = TestFleet::start().await;
    let host = fleet.add_host("mistaken").await.with_token("wt_not-a-token");
    let output = final_output(&host).await;
    assert!(output.contains("Invalid token") && output.contains("rotated"), "{output}");
    // White space around a token is ignored.
    let host = fleet.add_host("copied").await;
    let padded = format!(" {}\n", host.token);
    let host = host.with_token(&padded);
    let _agent = host.start();
    fleet.api.wait_for_worker(&host.worker, "idle").await;
}

#[tokio::test]
async fn ssl_certificate_verify_failed() {
    let fleet = TestFleet::start_with(&[("SIMPLETUNER_SSL", "true")]).await;
    let host = fleet.add_host_of_type("strict", "ephemeral").await.with_flags(&["--give-up-after", "1"]);
    let output = final_output(&host).await;
    assert!(output.contains("SSL certificate verify failed") && output.contains("--ssl-no-verify"), "{output}");
    let host = fleet.add_host("trusting").await.with_flags(&["--ssl-no-verify"]);
    let _agent = host.start();
    fleet.api.wait_for_worker(&host.worker, "idle").await;
}

#[tokio::test]
async fn heartbeat_timeout() {
    let fleet = TestFleet::start_with(&[("SIMPLETUNER_HEARTBEAT_TIMEOUT", "4")]).await;
    let host = fleet.add_host("silent").await.with_python_trainer(trainers::AT_THE_GATE);
    let agent = host.start();
    let job = fleet.api.submit("digits-quick").await;
    fleet.api.wait_for_job(&job, "running").await;
    agent.kill().await;
    fleet.api.wait_for_worker(&host.worker, "offline").await;
    let job = fleet.api.wait_for_job(&job, "queued").await;
    let error = job["attempts"][0]["error"].as_str().unwrap_or_default();
    assert!(error.contains("heartbeat timeout"), "{job:#}");
    host.open_gate();
}

#[tokio::test]
async fn process_crash() {
    let fleet = TestFleet::start().await;
    fleet.put_config("breaking", &json!({"example_fail_at_step": 3})).await;
    let host = fleet.add_host("crashing").await;
    let _agent = host.start();
    let job = fleet.api.submit("breaking").await;
    fleet.api.wait_for_job(&job, "failed").await;
    let log = fleet.api.log(&job).await;
    assert!(log.contains("Traceback (most recent call last)"), "{log}");
}

#[tokio::test]
async fn no_idle_workers() {
    let fleet = TestFleet::start().await;
    let job = fleet.api.submit("digits-quick").await;
    assert!(explanation_text(&fleet, &job).await.starts_with("No idle workers"));
    let host = fleet.add_host("elsewhere").await;
    let _agent = host.start();
    fleet.api.wait_for_job(&job, "completed").await;
    let labelled = json!({"config_name": "digits-quick", "worker_labels": {"team": "nlp"}});
    let job = fleet.api.submit_with(&labelled).await;
    let text = explanation_text(&fleet, &job).await;
    assert!(text.starts_with("No idle workers") && text.contains("label team"), "{text}");
}

#[tokio::test]
async fn gpu_requirements_not_met() {
    let fleet = TestFleet::start().await;
    fleet.put_config("large", &json!({"--num_processes": 8})).await;
    let host = fleet.add_host("small").await;
    let _agent = host.start();
    fleet.api.wait_for_worker(&host.worker, "idle").await;
    let job = fleet.api.submit("large").await;
    let text = explanation_text(&fleet, &job).await;
    assert!(text.starts_with("GPU requirements not met"), "{text}");
    // A submit may request more GPUs than the worker has; the message names what to change.
    let submit: Value = json!({"config_name": "digits-quick", "gpu_count": 3});
    let job = fleet.api.submit_with(&submit).await;
    let text = explanation_text(&fleet, &job).await;
    assert!(text.starts_with("GPU requirements not met") && text.contains("3 GPUs"), "{text}");
}

/// Returns exit code and report of the doctor on this host.
async fn run_doctor(host: &WorkerHost) -> (Option<i32>, String) {
    let mut doctor = command("simpletuner", host.home());
    doctor.args(["worker", "doctor"]);
    doctor.env("SIMPLETUNER_ORCHESTRATOR_URL", host.url()).env("SIMPLETUNER_WORKER_TOKEN", &host.token);
    let mut doctor = host.start_command(doctor);
    (doctor.wait().await, doctor.output())
}

#[tokio::test]
async fn doctor_reports_each_problem() {
    let mut fleet = TestFleet::start().await;
    let host = fleet.add_host("new").await;
    let (code, report) = run_doctor(&host).await;
    assert_eq!(code, Some(0), "{report}");
    for check in ["tcp", "orchestrator", "clock", "token", "trainer"] {
        assert!(report.contains(&format!("ok    {check}: ")), "{check}: {report}");
    }
    let worker = fleet.api.get(&format!("/api/admin/workers/{}", host.worker)).await;
    assert!(worker["agent_version"].is_null() && worker["status"] != "idle", "it did not register: {worker:#}");

    let mistaken = fleet.add_host("mistaken").await.with_token("wt_not-a-token");
    let (code, report) = run_doctor(&mistaken).await;
    assert!(code == Some(1) && report.contains("fail  token: Invalid token: "), "{report}");
    fleet.kill_server().await;
    let (code, report) = run_doctor(&host).await;
    assert!(code == Some(1) && report.contains("fail  tcp: ") && report.contains("Connection refused"), "{report}");
}

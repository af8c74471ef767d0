//! Retry of a job: its starting point, revision and overrides.

use app::domain::job::StartPoint;
use app::domain::time::Millis;
use serde_json::{Value, json};

use super::CheckpointScenario;
use crate::service::policy::job_retention::JobRetention;
use crate::tests::harness::{Actor, TestServer};

const DAY: Millis = Millis::from_secs(86_400);

impl CheckpointScenario {
    /// Retries the job with this body; the new job runs.
    async fn retry_with(self, body: Value) -> Self {
        let path = format!("/api/queue/{}/retry", self.job);
        self.server.post(&Actor::Admin, &path, body).await.expect_status(201);
        self.start_next_attempt().await
    }

    /// Drains or resumes the worker.
    async fn drain(&self, drains: bool) {
        let verb = if drains { "drain" } else { "resume" };
        self.server
            .post(&Actor::Admin, &format!("/api/admin/workers/{}/{verb}", self.worker), json!({}))
            .await
            .expect_status(200);
    }

    async fn resume_point(&self) -> (Value, Value) {
        (self.server.job(&self.job).await["resume_from"].clone(), self.resume_checkpoint().await["name"].clone())
    }
}

#[tokio::test]
async fn completed_jobs_retry_from_scratch_and_failed_ones_resume() {
    let scenario = CheckpointScenario::start().await;
    scenario.save_checkpoint(100, "a hundred").await;
    scenario.report("completed").await;
    let completed = scenario.job.clone();
    let scenario = scenario.retry_with(json!({})).await;
    assert_eq!(
        scenario.resume_point().await,
        (json!("scratch"), json!("")),
        "nothing is left to train after the last checkpoint"
    );
    scenario.save_checkpoint(7, "seven").await;
    scenario.report("failed").await;
    let scenario = scenario.retry_with(json!({})).await;
    assert_eq!(
        scenario.resume_point().await,
        (json!("newest"), json!("checkpoint-7")),
        "no checkpoint from before the start from scratch"
    );
    scenario.report("failed").await;
    // Resuming from the end of a completed job must be requested.
    let server = scenario.server;
    let again =
        server.post(&Actor::Admin, &format!("/api/queue/{completed}/retry"), json!({"resume_from": "newest"})).await;
    let again = again.expect_status(201)["job_id"].as_str().expect("text").to_owned();
    assert_eq!(server.job(&again).await["resume_from"], StartPoint::NewestCheckpoint.to_string());
}

#[tokio::test]
async fn retry_resumes_from_the_named_checkpoint() {
    let scenario = CheckpointScenario::start().await;
    for (step, text) in [(100, "one"), (200, "two"), (300, "three")] {
        scenario.save_checkpoint(step, text).await;
    }
    scenario.report("failed").await;
    let points = scenario.server.job(&scenario.job).await["resumable"].clone();
    let names: Vec<&Value> = points.as_array().expect("a list").iter().map(|point| &point["name"]).collect();
    assert_eq!(names, ["checkpoint-300"], "the policy `last` removed the older ones");
    let path = format!("/api/queue/{}/retry", scenario.job);
    for unknown in ["checkpoint-100", "checkpoint-999", "", "../x"] {
        let problem = scenario.server.post(&Actor::Admin, &path, json!({"resume_from": unknown})).await;
        assert_eq!(problem.expect_problem(422, "out_of_range")["field"], "resume_from", "{unknown}");
    }
    let ada = scenario.server.add_user("ada", "admin").await;
    let rejected = scenario.server.post(&ada, &path, json!({"resume_from": "checkpoint-300"})).await;
    rejected.expect_problem(422, "out_of_range");
    let page = scenario.server.get(&Actor::Admin, &format!("/jobs/{}", scenario.job)).await.text();
    assert!(page.contains("Resume from checkpoint-300") && page.contains("From scratch"), "{page}");
    let scenario = scenario.retry_with(json!({"resume_from": "checkpoint-300"})).await;
    assert_eq!(scenario.resume_point().await, (json!("checkpoint-300"), json!("checkpoint-300")));
    assert_eq!(scenario.resume_file("checkpoint-300/model.bin", "").await.text(), "three");
    scenario.report("failed").await;
    let scenario = scenario.retry_with(json!({"resume_from": "scratch"})).await;
    assert_eq!(scenario.resume_point().await, (json!("scratch"), json!("")));
}

#[tokio::test]
async fn named_checkpoint_is_kept_until_the_job_ends() {
    for retention in [
        JobRetention { artifacts: Some(DAY), ..JobRetention::default() },
        JobRetention { jobs: Some(DAY), ..JobRetention::default() },
        JobRetention { artifact_bytes: Some(0), ..JobRetention::default() },
    ] {
        let scenario = CheckpointScenario::start_with(|policy| policy.retention = retention).await;
        scenario.save_checkpoint(300, "three").await;
        scenario.report("failed").await;
        let (saved_job, path) = (scenario.job.clone(), format!("/api/queue/{}/retry", scenario.job));
        // Its only worker is drained, so it waits.
        scenario.drain(true).await;
        let again = json!({"resume_from": "checkpoint-300"});
        scenario.server.post(&Actor::Admin, &path, again).await.expect_status(201);
        scenario.server.clock.advance(Millis(9 * DAY.0));
        assert_eq!(scenario.server.app.services.jobs.prune_jobs().await, Ok(0), "{retention:?}");
        scenario.drain(false).await;
        let scenario = scenario.start_next_attempt().await;
        assert_eq!(scenario.resume_point().await, (json!("checkpoint-300"), json!("checkpoint-300")), "{retention:?}");
        assert_eq!(scenario.resume_file("checkpoint-300/model.bin", "").await.text(), "three");
        scenario.report("completed").await;
        assert_ne!(scenario.server.app.services.jobs.prune_jobs().await, Ok(0), "{retention:?}");
        let files = scenario.server.directory.path().join("artifacts").join(saved_job);
        assert!(!files.exists(), "{retention:?}");
    }
}

async fn put_config(server: &TestServer, rate: f64) {
    let config = json!({"learning_rate": rate, "--seed": 7, "num_processes": 1}).to_string();
    let body = json!({"files": {"config.json": config}});
    server.call(&Actor::Admin, "PUT", "/api/configs/digits", body.to_string()).await.expect_status(200);
}

/// Returns the configuration of the attempt that is offered next.
async fn next_attempt_config(server: &TestServer, events: &mut super::EventStreamReader) -> (String, Value) {
    let offer = events.next_offer().await;
    let token = Actor::Job(offer.upload_token);
    let bundle = server.get(&token, &offer.bundle.url).await;
    assert_eq!(super::sha256(&bundle.text()), offer.bundle.sha256, "the bundle is the one that was offered");
    let files: Value = serde_json::from_str(&bundle.text()).expect("JSON");
    let config = serde_json::from_str(files["files"]["config.json"].as_str().expect("text")).expect("JSON");
    let job = offer.job_id.to_string();
    server.report_status(&token, &job, json!({"status": "failed", "attempt": 1})).await.expect_status(200);
    (job, config)
}

#[tokio::test]
async fn overrides_are_applied_and_shown_as_a_diff() {
    let server = TestServer::start().await;
    put_config(&server, 0.1).await;
    let (_, _, mut events) = server.connect_worker("gpu-1").await;
    let submit = |overrides: Value| json!({"config_name": "digits", "overrides": overrides});
    let body = submit(json!({"learning_rate": 1e-5, "seed": null, "num_processes": 1, "new": "x"}));
    server.post(&Actor::Admin, "/api/queue/submit", body).await.expect_status(201);
    let (job, config) = next_attempt_config(&server, &mut events).await;
    assert_eq!(config, json!({"learning_rate": 1e-5, "num_processes": 1, "new": "x"}));
    let diff = json!({
        "learning_rate": {"from": 0.1, "to": 1e-5}, "seed": {"from": 7, "to": null}, "new": {"from": null, "to": "x"},
    });
    assert_eq!(server.job(&job).await["overrides"], diff);
    let audit_log = server.get(&Actor::Admin, &format!("/api/queue/{job}/events")).await.expect_status(200);
    assert_eq!(audit_log["events"][0]["detail"]["overrides"], diff);
    let view = server.get(&Actor::Admin, &format!("/api/queue/{job}/config")).await;
    assert!(!view.text().contains("seed"), "the configuration as the job runs it");
    let page = server.get(&Actor::Admin, &format!("/jobs/{job}")).await.text();
    assert!(page.contains("<dt>Overrides"), "{page}");

    // A retry runs the original revision unless another one is requested.
    put_config(&server, 0.9).await;
    let retry = format!("/api/queue/{job}/retry");
    server.post(&Actor::Admin, &retry, json!({})).await.expect_status(201);
    let (again, config) = next_attempt_config(&server, &mut events).await;
    assert_eq!((&config["learning_rate"], &server.job(&again).await["config_revision"]), (&json!(1e-5), &json!(1)));
    server.post(&Actor::Admin, &retry, json!({"config_revision": 2, "overrides": {}})).await.expect_status(201);
    let (again, config) = next_attempt_config(&server, &mut events).await;
    assert_eq!((&config["learning_rate"], &config["--seed"]), (&json!(0.9), &json!(7)));
    assert_eq!(server.job(&again).await["overrides"], Value::Null);
    server.post(&Actor::Admin, &retry, json!({"config_revision": 2})).await.expect_status(201);
    let (again, config) = next_attempt_config(&server, &mut events).await;
    assert_eq!(config["learning_rate"], 1e-5);
    assert_eq!(server.job(&again).await["overrides"]["learning_rate"], json!({"from": 0.9, "to": 1e-5}));
    server.post(&Actor::Admin, &retry, json!({"config_revision": 9})).await.expect_problem(404, "config_not_found");
    for bad in [json!({"--seed": 1}), json!({"a b": 1}), json!({"x": "y".repeat(5_000)})] {
        let problem =
            server.post(&Actor::Admin, "/api/queue/submit", submit(bad)).await.expect_problem(422, "out_of_range");
        assert_eq!(problem["field"], "overrides");
    }
}

#[tokio::test]
async fn overrides_have_a_size_limit() {
    let server = TestServer::start().await;
    let config = json!({"learning_rate": 0.1, "note": "x".repeat(1 << 20)}).to_string();
    let body = json!({"files": {"config.json": config}});
    server.call(&Actor::Admin, "PUT", "/api/configs/digits", body.to_string()).await.expect_status(200);
    let submit = |overrides: Value| json!({"config_name": "digits", "overrides": overrides});
    let many: Value =
        (0..60).map(|n| (format!("k{n}"), json!("y".repeat(4_000)))).collect::<serde_json::Map<_, _>>().into();
    for large in [json!({"note": null}), json!({"note": "short"}), many] {
        let problem =
            server.post(&Actor::Admin, "/api/queue/submit", submit(large)).await.expect_problem(422, "out_of_range");
        assert_eq!(problem["field"], "overrides");
    }
    server.post(&Actor::Admin, "/api/queue/submit", submit(json!({"learning_rate": 1}))).await.expect_status(201);
    let list = server.get(&Actor::Admin, "/api/queue").await.expect_status(200);
    assert_eq!(list["jobs"][0]["overrides"], Value::Null, "lists contain no overrides");
}

#[tokio::test]
async fn edit_and_submit_starts_with_the_jobs_values() {
    let server = TestServer::start().await;
    put_config(&server, 0.125).await;
    let (_, _, mut events) = server.connect_worker("gpu-1").await;
    let body = json!({"config_name": "digits", "overrides": {"seed": 9}});
    server.post(&Actor::Admin, "/api/queue/submit", body).await.expect_status(201);
    let (job, _) = next_attempt_config(&server, &mut events).await;
    let page = server.get(&Actor::Admin, &format!("/jobs/{job}")).await.text();
    let start = page.find("/train?config=digits&amp;ran=digits%401").unwrap_or_else(|| panic!("{page}"));
    let address = page[start..].split('"').next().expect("an end").replace("&amp;", "&");
    let form = server.get(&Actor::Admin, &address).await.text();
    assert!(!form.contains("Newer revision available") && form.contains("value=\"seed=9\""), "{form}");
    put_config(&server, 0.625).await;
    let form = server.get(&Actor::Admin, &address).await.text();
    assert!(form.contains("Newer revision available") && form.contains("0.125") && form.contains("0.625"), "{form}");
    for (revision_field, revision, rate) in [("", 1, 0.125), ("&revision=digits%402", 2, 0.625)] {
        let form_body =
            format!("config=digits&ran=digits%401&overrides=seed%3D11&overrides=&target=worker{revision_field}");
        let response = server.call(&Actor::Admin, "POST", "/ui/jobs", form_body).await;
        assert!(response.headers["location"].to_str().is_ok_and(|to| to.starts_with("/jobs/")), "{response:?}");
        let (job, config) = next_attempt_config(&server, &mut events).await;
        assert_eq!((&config["learning_rate"], &config["--seed"]), (&json!(rate), &json!(11)));
        assert_eq!(server.job(&job).await["config_revision"], revision);
    }
}

//! Checkpoints that an attempt has uploaded, for later attempts.

mod forks;
mod keep_last;
mod preemption;
mod retries;

use app::domain::time::Millis;
use axum::http::{Request, StatusCode, header};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::service::ServerPolicy;
use crate::tests::harness::{Actor, EventStreamReader, TestResponse, TestServer, read_response};
use crate::tokens::hex;

fn sha256(text: &str) -> String {
    hex(&Sha256::digest(text))
}

/// Returns the entry of a file in a list.
fn file_entry(path: &str, text: &str) -> Value {
    json!({"path": path, "size_bytes": text.len(), "sha256": sha256(text)})
}

/// A job that runs on a worker, and the clients that report about it.
struct CheckpointScenario {
    server: TestServer,
    worker: String,
    key: Actor,
    events: EventStreamReader,
    job: String,
    attempt: u32,
    token: Actor,
}

impl CheckpointScenario {
    async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    async fn start_with(change: impl FnOnce(&mut ServerPolicy)) -> Self {
        let server = TestServer::start_with(change).await;
        server.put_config("digits").await;
        let (worker, key, events) = server.connect_worker("gpu-1").await;
        let job = server.submit("digits").await;
        Self { server, worker, key, events, job, attempt: 0, token: Actor::Unauthenticated }.start_next_attempt().await
    }

    /// Starts the next attempt, of this job or another.
    async fn start_next_attempt(mut self) -> Self {
        let offer = self.events.next_offer().await;
        self.job = offer.job_id.to_string();
        (self.attempt, self.token) = (offer.attempt.0, Actor::Job(offer.upload_token));
        self.report("running").await;
        self
    }

    async fn report(&self, status: &str) {
        let report = json!({"status": status, "attempt": self.attempt});
        self.server.report_status(&self.key, &self.job, report).await.expect_status(200);
    }

    /// The attempt is lost, and the next one starts.
    async fn lose_and_restart(self) -> Self {
        self.report("requeue").await;
        self.server.advance(Millis::from_secs(60)).await;
        self.start_next_attempt().await
    }

    /// A user retries the job.
    async fn retry(self, actor: &Actor) -> Self {
        let path = format!("/api/queue/{}/retry", self.job);
        self.server.call(actor, "POST", &path, "").await.expect_status(201);
        self.start_next_attempt().await
    }

    fn path(&self, rest: &str) -> String {
        format!("/api/workers/job/{}/{rest}", self.job)
    }

    async fn send_file(&self, path: &str, text: &'static str) {
        let path = self.path(&format!("artifacts/{path}?kind=checkpoint"));
        self.server.call(&self.token, "PUT", &path, text).await.expect_status(200);
    }

    async fn report_checkpoint(&self, name: &str, files: Value) -> TestResponse {
        self.server.post(&self.token, &self.path("checkpoint"), json!({"name": name, "files": files})).await
    }

    /// Uploads a checkpoint of two files and completes it.
    async fn save_checkpoint(&self, step: u32, text: &'static str) {
        let (name, files) = (format!("checkpoint-{step}"), ["model.bin", "sub/state.json"]);
        for file in files {
            self.send_file(&format!("{name}/{file}"), text).await;
        }
        let files: Vec<Value> = files.iter().map(|file| file_entry(&format!("{name}/{file}"), text)).collect();
        self.report_checkpoint(&name, json!(files)).await.expect_status(200);
    }

    async fn resume_checkpoint(&self) -> Value {
        self.server.get(&self.token, &self.path("checkpoint")).await.expect_status(200)
    }

    async fn resume_file(&self, path: &str, range: &str) -> TestResponse {
        let Actor::Job(token) = &self.token else { unreachable!("a job's token") };
        let request = Request::builder().uri(self.path(&format!("checkpoint/{path}"))).header("x-upload-token", token);
        read_response(self.server.send(request.header("range", range).body("".into()).expect("a request")).await).await
    }
}

#[tokio::test]
async fn next_attempt_gets_the_newest_complete_checkpoint() {
    let scenario = CheckpointScenario::start().await;
    assert_eq!(
        scenario.resume_checkpoint().await,
        json!({"name": "", "files": []}),
        "the first attempt starts from scratch"
    );
    scenario.save_checkpoint(900, "nine hundred").await;
    scenario.save_checkpoint(1000, "a thousand").await;
    scenario.send_file("checkpoint-2000/model.bin", "incomplete").await;
    assert_eq!(scenario.resume_checkpoint().await["name"], "", "an attempt does not resume from its own checkpoint");
    let scenario = scenario.lose_and_restart().await;
    let earlier = scenario.resume_checkpoint().await;
    assert_eq!((&earlier["name"], &earlier["attempt"]), (&json!("checkpoint-1000"), &json!(1)));
    let files = [
        file_entry("checkpoint-1000/model.bin", "a thousand"),
        file_entry("checkpoint-1000/sub/state.json", "a thousand"),
    ];
    assert_eq!(earlier["files"], json!(files));
    let file = scenario.resume_file("checkpoint-1000/sub/state.json", "").await;
    assert_eq!((file.status, file.text().as_str()), (StatusCode::OK, "a thousand"));
    assert_eq!(file.headers[header::ETAG], format!("\"{}\"", sha256("a thousand")));
    assert_eq!(file.headers[header::CONTENT_LENGTH], "10");
    scenario.save_checkpoint(950, "a step back").await;
    let scenario = scenario.lose_and_restart().await;
    assert_eq!(
        scenario.resume_checkpoint().await["name"],
        "checkpoint-1000",
        "the highest step, not the newest attempt"
    );
    scenario.save_checkpoint(1000, "the same step").await;
    let scenario = scenario.lose_and_restart().await;
    assert_eq!(scenario.resume_checkpoint().await["attempt"], 3, "of the same step, the one of the newest attempt");
}

#[tokio::test]
async fn job_page_shows_the_resume_checkpoint() {
    let scenario = CheckpointScenario::start().await;
    let resume_point = async |scenario: &CheckpointScenario| {
        let path = format!("/api/queue/{}/artifacts", scenario.job);
        scenario.server.get(&Actor::Admin, &path).await.expect_status(200)["resumes_from"].clone()
    };
    assert_eq!(resume_point(&scenario).await, Value::Null);
    scenario.save_checkpoint(100, "a hundred").await;
    scenario.send_file("checkpoint-200/model.bin", "incomplete").await;
    let point = json!({"job_id": scenario.job, "attempt": 1, "name": "checkpoint-100"});
    assert_eq!(resume_point(&scenario).await, point, "checkpoints of the running attempt count for the next one");
    let scenario = scenario.lose_and_restart().await;
    assert_eq!(resume_point(&scenario).await, point);
}

#[tokio::test]
async fn byte_ranges_of_files_can_be_requested() {
    let scenario = CheckpointScenario::start().await;
    scenario.save_checkpoint(5, "0123456789").await;
    let scenario = scenario.lose_and_restart().await;
    let rows = [
        ("bytes=0-3", "0123", "bytes 0-3/10"),
        ("bytes=7-", "789", "bytes 7-9/10"),
        ("bytes=9-40", "9", "bytes 9-9/10"),
    ];
    for (range, text, content_range) in rows {
        let part = scenario.resume_file("checkpoint-5/model.bin", range).await;
        assert_eq!((part.status, part.text().as_str()), (StatusCode::PARTIAL_CONTENT, text), "{range}");
        assert_eq!(part.headers[header::CONTENT_RANGE], content_range);
    }
    assert_eq!(
        scenario.resume_file("checkpoint-5/model.bin", "bytes=0-1,4-5").await.status,
        StatusCode::OK,
        "several ranges are not supported"
    );
    let problem =
        scenario.resume_file("checkpoint-5/model.bin", "bytes=10-").await.expect_problem(416, "range_not_satisfiable");
    assert_eq!(problem["size"], 10);
}

#[tokio::test]
async fn user_retry_resumes_from_the_last_checkpoint() {
    let scenario = CheckpointScenario::start().await;
    scenario.save_checkpoint(5, "five").await;
    scenario.report("failed").await;
    let scenario = scenario.retry(&Actor::Admin).await;
    assert_eq!(scenario.resume_checkpoint().await["name"], "checkpoint-5");
    scenario.report("failed").await;
    let scenario = scenario.retry(&Actor::Admin).await;
    assert_eq!(scenario.resume_checkpoint().await["name"], "checkpoint-5", "from the first of several retries");
    assert_eq!(scenario.resume_file("checkpoint-5/model.bin", "").await.text(), "five");
    scenario.save_checkpoint(3, "three").await;
    let scenario = scenario.lose_and_restart().await;
    assert_eq!(scenario.resume_checkpoint().await["name"], "checkpoint-5");
    scenario.report("failed").await;
    let ada = scenario.server.add_user("ada", "admin").await;
    let scenario = scenario.retry(&ada).await;
    assert_eq!(scenario.resume_checkpoint().await["name"], "", "no checkpoint from the job of another user");
    scenario.resume_file("checkpoint-5/model.bin", "").await.expect_problem(404, "artifact_not_found");
}

#[tokio::test]
async fn checkpoint_with_missing_or_different_files_is_incomplete() {
    let scenario = CheckpointScenario::start().await;
    scenario.send_file("checkpoint-5/a", "one").await;
    let files = |b: &str| json!([file_entry("checkpoint-5/a", "one"), file_entry("checkpoint-5/b", b)]);
    let problem =
        scenario.report_checkpoint("checkpoint-5", files("two")).await.expect_problem(409, "checkpoint_incomplete");
    assert_eq!(problem["path"], "checkpoint-5/b");
    scenario.send_file("checkpoint-5/b", "half").await;
    scenario.report_checkpoint("checkpoint-5", files("two")).await.expect_problem(409, "checkpoint_incomplete");
    scenario.send_file("checkpoint-5/b", "two").await;
    for _ in 0..2 {
        scenario.report_checkpoint("checkpoint-5", files("two")).await.expect_status(200);
    }
    scenario.send_file("checkpoint-5/b", "changed after that").await;
    let scenario = scenario.lose_and_restart().await;
    assert_eq!(scenario.resume_checkpoint().await["name"], "", "the old content is deleted");
    scenario.report_checkpoint("checkpoint-5", files("two")).await.expect_problem(409, "checkpoint_incomplete");
}

#[tokio::test]
async fn job_without_checkpoints_stores_none() {
    let scenario = CheckpointScenario::start().await;
    let job = json!({"config_name": "digits", "target": "worker", "checkpoints": "none"});
    scenario.server.post(&Actor::Admin, "/api/queue/submit", job).await.expect_status(201);
    scenario.report("completed").await;
    let scenario = scenario.start_next_attempt().await;
    scenario.send_file("samples/step-5.png", "an image").await;
    let digest = sha256("weights");
    for query in ["kind=checkpoint".to_owned(), format!("kind=checkpoint&offset=0&size=7&sha256={digest}")] {
        let path = scenario.path(&format!("artifacts/checkpoint-5/model.bin?{query}"));
        let upload = Request::builder().method("PUT").uri(path).header("x-content-sha256", &digest);
        let Actor::Job(token) = &scenario.token else { unreachable!("a job's token") };
        let request = upload.header("x-upload-token", token).body("weights".into()).expect("a request");
        read_response(scenario.server.send(request).await).await.expect_problem(400, "upload_rejected");
    }
    let files = json!([file_entry("checkpoint-5/model.bin", "weights")]);
    scenario.report_checkpoint("checkpoint-5", files).await.expect_problem(409, "checkpoint_incomplete");
}

#[tokio::test]
async fn invalid_input_is_rejected() {
    let scenario = CheckpointScenario::start().await;
    scenario.send_file("checkpoint-5/a", "one").await;
    let file_list = json!([file_entry("checkpoint-5/a", "one")]);
    for name in
        ["", "checkpoint-", "checkpoint-x", "checkpoint-5/a", "5", "checkpoint--5", "checkpoint-99999999999999999999"]
    {
        scenario.report_checkpoint(name, file_list.clone()).await.expect_problem(422, "out_of_range");
    }
    scenario.report_checkpoint("checkpoint-5", json!([])).await.expect_problem(422, "out_of_range");
    for path in ["../a", "checkpoint-5/../a", "checkpoint-50/a", "checkpoint-5", "/etc/passwd", "checkpoint-5//a"] {
        scenario
            .report_checkpoint("checkpoint-5", json!([file_entry(path, "one")]))
            .await
            .expect_problem(422, "invalid_path");
    }
    let twice = json!([file_entry("checkpoint-5/a", "one"), file_entry("checkpoint-5/a", "one")]);
    scenario.report_checkpoint("checkpoint-5", twice).await.expect_problem(422, "invalid_path");
    let many: Vec<Value> = (0..4_097).map(|n| file_entry(&format!("checkpoint-5/{n}"), "one")).collect();
    scenario.report_checkpoint("checkpoint-5", json!(many)).await.expect_problem(422, "too_large");
    scenario.report_checkpoint("checkpoint-5", file_list).await.expect_status(200);
    let scenario = scenario.lose_and_restart().await;
    for path in ["checkpoint-5/b", "checkpoint-5", "checkpoint-5/%2e%2e/a", "%2e%2e/%2e%2e/key"] {
        scenario.resume_file(path, "").await.expect_problem(404, "artifact_not_found");
    }
}

#[tokio::test]
async fn old_attempt_cannot_read_or_report_checkpoints() {
    let scenario = CheckpointScenario::start().await;
    scenario.save_checkpoint(5, "five").await;
    let (old_token, path) = (Actor::Job(job_token(&scenario)), scenario.path(""));
    let scenario = scenario.lose_and_restart().await;
    scenario.server.get(&old_token, &format!("{path}checkpoint")).await.expect_problem(409, "stale_attempt");
    scenario
        .server
        .get(&old_token, &format!("{path}checkpoint/checkpoint-5/model.bin"))
        .await
        .expect_problem(409, "stale_attempt");
    let body = json!({"name": "checkpoint-5", "files": [file_entry("checkpoint-5/model.bin", "five")]});
    scenario
        .server
        .post(&old_token, &format!("{path}checkpoint"), body.clone())
        .await
        .expect_problem(409, "stale_attempt");
    scenario.report("completed").await;
    scenario.server.post(&scenario.token, &format!("{path}checkpoint"), body).await.expect_problem(409, "job_ended");
}

fn job_token(scenario: &CheckpointScenario) -> String {
    let Actor::Job(token) = &scenario.token else { unreachable!("a job's token") };
    token.clone()
}

#[tokio::test]
async fn attempt_reports_its_resume_step() {
    let scenario = CheckpointScenario::start().await;
    scenario.save_checkpoint(500, "five hundred").await;
    let scenario = scenario.lose_and_restart().await;
    let report = json!({"status": "running", "attempt": 2, "resumed_from_step": 500});
    scenario.server.report_status(&scenario.key, &scenario.job, report).await.expect_status(200);
    let view = scenario.server.job(&scenario.job).await;
    let steps = [&view["attempts"][0]["resumed_from_step"], &view["attempts"][1]["resumed_from_step"]];
    assert_eq!(steps, [&json!(null), &json!(500)]);
    let page = scenario.server.get(&Actor::Admin, &format!("/jobs/{}", scenario.job)).await.text();
    assert!(page.contains("resumed from step 500"), "the page shows the step");
    let out_of_range = json!({"status": "running", "attempt": 2, "resumed_from_step": u64::MAX});
    scenario.server.report_status(&scenario.key, &scenario.job, out_of_range).await.expect_problem(422, "out_of_range");
}

#[tokio::test]
async fn event_contains_the_resume_step() {
    let scenario = CheckpointScenario::start().await;
    scenario.report("requeue").await;
    scenario.server.advance(Millis::from_secs(60)).await;
    let report = json!({"status": "running", "attempt": 2, "resumed_from_step": 7});
    scenario.server.report_status(&scenario.key, &scenario.job, report).await.expect_status(200);
    let events =
        scenario.server.get(&Actor::Admin, &format!("/api/queue/{}/events", scenario.job)).await.expect_status(200);
    let last = events["events"].as_array().and_then(|events| events.last()).cloned().expect("an event");
    assert_eq!((&last["event"], &last["detail"]["resumed_from_step"]), (&json!("job.running"), &json!(7)));
}

#[tokio::test]
async fn offer_contains_the_checkpoint_policy() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (_, key, mut events) = server.connect_worker("gpu-1").await;
    for (requested, policy) in
        [(json!(null), "last"), (json!("none"), "none"), (json!("all"), "all"), (json!("last"), "last")]
    {
        let mut body = json!({"config_name": "digits"});
        if !requested.is_null() {
            body["checkpoints"] = requested;
        }
        let job = server.post(&Actor::Admin, "/api/queue/submit", body).await.expect_status(201)["job_id"].clone();
        let job = job.as_str().expect("text");
        assert_eq!(events.next_offer().await.checkpoints.as_str(), policy);
        assert_eq!(server.job(job).await["checkpoints"], policy);
        server.report_status(&key, job, json!({"status": "completed", "attempt": 1})).await.expect_status(200);
    }
    let body = json!({"config_name": "digits", "checkpoints": "some"});
    server.post(&Actor::Admin, "/api/queue/submit", body).await.expect_problem(400, "invalid_json");
}

#[tokio::test]
async fn page_submits_the_same_as_the_api() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let ada = server.add_user("ada", "lead").await;
    let page = server.get(&ada, "/train").await.text();
    assert!(page.contains("name=\"exclusive\"") && page.contains("name=\"checkpoints\""), "{page}");
    for (form, exclusive, checkpoints) in
        [("", false, "last"), ("&exclusive=true&checkpoints=none", true, "none"), ("&checkpoints=all", false, "all")]
    {
        let response = server.call(&ada, "POST", "/ui/jobs", format!("config=digits{form}")).await;
        let page_path = response.headers[header::LOCATION].to_str().expect("ascii").to_owned();
        let job = server.job(page_path.strip_prefix("/jobs/").expect("a job's page")).await;
        assert_eq!((&job["exclusive"], &job["checkpoints"]), (&json!(exclusive), &json!(checkpoints)));
    }
}

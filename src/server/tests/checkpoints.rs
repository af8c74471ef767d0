//! Checkpoints that an attempt sent, for the attempts after it.

mod again;
mod last;

use app::domain::time::Millis;
use axum::http::{Request, StatusCode, header};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::harness::{Answer, By, Events, Server, read};
use crate::tokens::hex;

fn sha256(text: &str) -> String {
    hex(&Sha256::digest(text))
}

/// How a file is listed.
fn listed(path: &str, text: &str) -> Value {
    json!({"path": path, "size_bytes": text.len(), "sha256": sha256(text)})
}

/// A job that runs on a worker, and who says what of it.
struct Story {
    server: Server,
    key: By,
    events: Events,
    job: String,
    attempt: u32,
    token: By,
}

impl Story {
    async fn begin() -> Self {
        let server = Server::start().await;
        server.config("digits").await;
        let (_, key, events) = server.online("gpu-1").await;
        let job = server.submit("digits").await;
        Self { server, key, events, job, attempt: 0, token: By::Nobody }.next().await
    }

    /// The next attempt runs, of this job or another.
    async fn next(mut self) -> Self {
        let offer = self.events.offer().await;
        self.job = offer.job_id.to_string();
        (self.attempt, self.token) = (offer.attempt.0, By::Job(offer.upload_token));
        self.report("running").await;
        self
    }

    async fn report(&self, status: &str) {
        let report = json!({"status": status, "attempt": self.attempt});
        self.server.report(&self.key, &self.job, report).await.ok(200);
    }

    /// The attempt was lost by no fault of its own, and the next one runs.
    async fn again(self) -> Self {
        self.report("requeue").await;
        self.server.pass(Millis::seconds(60)).await;
        self.next().await
    }

    /// A person tries it again.
    async fn retried(self, by: &By) -> Self {
        let path = format!("/api/queue/{}/retry", self.job);
        self.server.call(by, "POST", &path, "").await.ok(201);
        self.next().await
    }

    fn path(&self, rest: &str) -> String {
        format!("/api/workers/job/{}/{rest}", self.job)
    }

    async fn send(&self, path: &str, text: &'static str) {
        let path = self.path(&format!("artifacts/{path}?kind=checkpoint"));
        self.server.call(&self.token, "PUT", &path, text).await.ok(200);
    }

    async fn say(&self, name: &str, files: Value) -> Answer {
        self.server.post(&self.token, &self.path("checkpoint"), json!({"name": name, "files": files})).await
    }

    /// Sends a checkpoint of two files, and says that it is whole.
    async fn save(&self, step: u32, text: &'static str) {
        let (name, files) = (format!("checkpoint-{step}"), ["model.bin", "sub/state.json"]);
        for file in files {
            self.send(&format!("{name}/{file}"), text).await;
        }
        let files: Vec<Value> = files.iter().map(|file| listed(&format!("{name}/{file}"), text)).collect();
        self.say(&name, json!(files)).await.ok(200);
    }

    async fn earlier(&self) -> Value {
        self.server.get(&self.token, &self.path("checkpoint")).await.ok(200)
    }

    async fn file(&self, path: &str, range: &str) -> Answer {
        let By::Job(token) = &self.token else { unreachable!("a job's token") };
        let request = Request::builder().uri(self.path(&format!("checkpoint/{path}"))).header("x-upload-token", token);
        read(self.server.send(request.header("range", range).body("".into()).expect("a request")).await).await
    }
}

#[tokio::test]
async fn the_next_attempt_is_told_of_the_newest_whole_checkpoint() {
    let story = Story::begin().await;
    assert_eq!(story.earlier().await, json!({"name": "", "files": []}), "the first one begins at the beginning");
    story.save(900, "nine hundred").await;
    story.save(1000, "a thousand").await;
    story.send("checkpoint-2000/model.bin", "not all of it came").await;
    assert_eq!(story.earlier().await["name"], "", "its own is no earlier one");
    let story = story.again().await;
    let earlier = story.earlier().await;
    assert_eq!((&earlier["name"], &earlier["attempt"]), (&json!("checkpoint-1000"), &json!(1)));
    let files =
        [listed("checkpoint-1000/model.bin", "a thousand"), listed("checkpoint-1000/sub/state.json", "a thousand")];
    assert_eq!(earlier["files"], json!(files));
    let file = story.file("checkpoint-1000/sub/state.json", "").await;
    assert_eq!((file.status, file.text().as_str()), (StatusCode::OK, "a thousand"));
    assert_eq!(file.headers[header::ETAG], format!("\"{}\"", sha256("a thousand")));
    assert_eq!(file.headers[header::CONTENT_LENGTH], "10");
    story.save(950, "a step back").await;
    let story = story.again().await;
    assert_eq!(story.earlier().await["name"], "checkpoint-1000", "the highest step, not the newest attempt");
    story.save(1000, "the same step").await;
    let story = story.again().await;
    assert_eq!(story.earlier().await["attempt"], 3, "of one step the newest attempt's");
}

#[tokio::test]
async fn people_are_told_from_where_an_attempt_that_follows_would_go_on() {
    let story = Story::begin().await;
    let told = async |story: &Story| {
        let path = format!("/api/queue/{}/artifacts", story.job);
        story.server.get(&By::Admin, &path).await.ok(200)["resumes_from"].clone()
    };
    assert_eq!(told(&story).await, Value::Null);
    story.save(100, "a hundred").await;
    story.send("checkpoint-200/model.bin", "not all of it came").await;
    let point = json!({"job_id": story.job, "attempt": 1, "name": "checkpoint-100"});
    assert_eq!(told(&story).await, point, "its own counts: the next attempt may");
    let story = story.again().await;
    assert_eq!(told(&story).await, point);
}

#[tokio::test]
async fn a_part_of_a_file_can_be_asked_for() {
    let story = Story::begin().await;
    story.save(5, "0123456789").await;
    let story = story.again().await;
    let rows = [
        ("bytes=0-3", "0123", "bytes 0-3/10"),
        ("bytes=7-", "789", "bytes 7-9/10"),
        ("bytes=9-40", "9", "bytes 9-9/10"),
    ];
    for (range, text, about) in rows {
        let part = story.file("checkpoint-5/model.bin", range).await;
        assert_eq!((part.status, part.text().as_str()), (StatusCode::PARTIAL_CONTENT, text), "{range}");
        assert_eq!(part.headers[header::CONTENT_RANGE], about);
    }
    assert_eq!(story.file("checkpoint-5/model.bin", "bytes=0-1,4-5").await.status, StatusCode::OK, "one at a time");
    let problem = story.file("checkpoint-5/model.bin", "bytes=10-").await.problem(416, "range_not_satisfiable");
    assert_eq!(problem["size"], 10);
}

#[tokio::test]
async fn a_persons_retry_goes_on_where_what_it_tries_again_was() {
    let story = Story::begin().await;
    story.save(5, "five").await;
    story.report("failed").await;
    let story = story.retried(&By::Admin).await;
    assert_eq!(story.earlier().await["name"], "checkpoint-5");
    story.report("failed").await;
    let story = story.retried(&By::Admin).await;
    assert_eq!(story.earlier().await["name"], "checkpoint-5", "all the way back");
    assert_eq!(story.file("checkpoint-5/model.bin", "").await.text(), "five");
    story.save(3, "three").await;
    let story = story.again().await;
    assert_eq!(story.earlier().await["name"], "checkpoint-5");
    story.report("failed").await;
    let ada = story.server.person("ada", "admin").await;
    let story = story.retried(&ada).await;
    assert_eq!(story.earlier().await["name"], "", "nothing of another person's job");
    story.file("checkpoint-5/model.bin", "").await.problem(404, "artifact_not_found");
}

#[tokio::test]
async fn what_is_not_here_as_it_is_described_is_not_whole() {
    let story = Story::begin().await;
    story.send("checkpoint-5/a", "one").await;
    let both = |b: &str| json!([listed("checkpoint-5/a", "one"), listed("checkpoint-5/b", b)]);
    let problem = story.say("checkpoint-5", both("two")).await.problem(409, "checkpoint_incomplete");
    assert_eq!(problem["path"], "checkpoint-5/b");
    story.send("checkpoint-5/b", "half").await;
    story.say("checkpoint-5", both("two")).await.problem(409, "checkpoint_incomplete");
    story.send("checkpoint-5/b", "two").await;
    for _ in 0..2 {
        story.say("checkpoint-5", both("two")).await.ok(200);
    }
    story.send("checkpoint-5/b", "changed after that").await;
    let story = story.again().await;
    assert_eq!(story.earlier().await["name"], "", "what it was is gone");
    story.say("checkpoint-5", both("two")).await.problem(409, "checkpoint_incomplete");
}

#[tokio::test]
async fn what_makes_no_sense_is_refused() {
    let story = Story::begin().await;
    story.send("checkpoint-5/a", "one").await;
    let one = json!([listed("checkpoint-5/a", "one")]);
    for name in
        ["", "checkpoint-", "checkpoint-x", "checkpoint-5/a", "5", "checkpoint--5", "checkpoint-99999999999999999999"]
    {
        story.say(name, one.clone()).await.problem(422, "out_of_range");
    }
    story.say("checkpoint-5", json!([])).await.problem(422, "out_of_range");
    for path in ["../a", "checkpoint-5/../a", "checkpoint-50/a", "checkpoint-5", "/etc/passwd", "checkpoint-5//a"] {
        story.say("checkpoint-5", json!([listed(path, "one")])).await.problem(422, "invalid_path");
    }
    let twice = json!([listed("checkpoint-5/a", "one"), listed("checkpoint-5/a", "one")]);
    story.say("checkpoint-5", twice).await.problem(422, "invalid_path");
    let many: Vec<Value> = (0..4_097).map(|n| listed(&format!("checkpoint-5/{n}"), "one")).collect();
    story.say("checkpoint-5", json!(many)).await.problem(422, "too_much");
    story.say("checkpoint-5", one).await.ok(200);
    let story = story.again().await;
    for path in ["checkpoint-5/b", "checkpoint-5", "checkpoint-5/%2e%2e/a", "%2e%2e/%2e%2e/key"] {
        story.file(path, "").await.problem(404, "artifact_not_found");
    }
}

#[tokio::test]
async fn an_old_attempt_is_told_nothing_and_says_nothing() {
    let story = Story::begin().await;
    story.save(5, "five").await;
    let (old, path) = (By::Job(token(&story)), story.path(""));
    let story = story.again().await;
    story.server.get(&old, &format!("{path}checkpoint")).await.problem(409, "old_attempt");
    story.server.get(&old, &format!("{path}checkpoint/checkpoint-5/model.bin")).await.problem(409, "old_attempt");
    let body = json!({"name": "checkpoint-5", "files": [listed("checkpoint-5/model.bin", "five")]});
    story.server.post(&old, &format!("{path}checkpoint"), body.clone()).await.problem(409, "old_attempt");
    story.report("completed").await;
    story.server.post(&story.token, &format!("{path}checkpoint"), body).await.problem(409, "job_ended");
}

fn token(story: &Story) -> String {
    let By::Job(token) = &story.token else { unreachable!("a job's token") };
    token.clone()
}

#[tokio::test]
async fn an_attempt_says_from_which_step_it_goes_on() {
    let story = Story::begin().await;
    story.save(500, "five hundred").await;
    let story = story.again().await;
    let report = json!({"status": "running", "attempt": 2, "resumed_from_step": 500});
    story.server.report(&story.key, &story.job, report).await.ok(200);
    let view = story.server.job(&story.job).await;
    let steps = [&view["attempts"][0]["resumed_from_step"], &view["attempts"][1]["resumed_from_step"]];
    assert_eq!(steps, [&json!(null), &json!(500)]);
    let page = story.server.get(&By::Admin, &format!("/jobs/{}", story.job)).await.text();
    assert!(page.contains("goes on from step 500"), "the page says so");
    let absurd = json!({"status": "running", "attempt": 2, "resumed_from_step": u64::MAX});
    story.server.report(&story.key, &story.job, absurd).await.problem(422, "out_of_range");
}

#[tokio::test]
async fn the_record_says_from_which_step_it_goes_on() {
    let story = Story::begin().await;
    story.report("requeue").await;
    story.server.pass(Millis::seconds(60)).await;
    let report = json!({"status": "running", "attempt": 2, "resumed_from_step": 7});
    story.server.report(&story.key, &story.job, report).await.ok(200);
    let events = story.server.get(&By::Admin, &format!("/api/queue/{}/events", story.job)).await.ok(200);
    let last = events["events"].as_array().and_then(|events| events.last()).cloned().expect("an event");
    assert_eq!((&last["event"], &last["detail"]["resumed_from_step"]), (&json!("job.running"), &json!(7)));
}

#[tokio::test]
async fn which_checkpoints_are_sent_is_told_with_the_offer() {
    let server = Server::start().await;
    server.config("digits").await;
    let (_, key, mut events) = server.online("gpu-1").await;
    for (asked, told) in
        [(json!(null), "last"), (json!("none"), "none"), (json!("all"), "all"), (json!("last"), "last")]
    {
        let mut body = json!({"config_name": "digits"});
        if !asked.is_null() {
            body["checkpoints"] = asked;
        }
        let job = server.post(&By::Admin, "/api/queue/submit", body).await.ok(201)["job_id"].clone();
        let job = job.as_str().expect("text");
        assert_eq!(events.offer().await.checkpoints.as_str(), told);
        assert_eq!(server.job(job).await["checkpoints"], told);
        server.report(&key, job, json!({"status": "completed", "attempt": 1})).await.ok(200);
    }
    let body = json!({"config_name": "digits", "checkpoints": "some"});
    server.post(&By::Admin, "/api/queue/submit", body).await.problem(400, "invalid_json");
}

#[tokio::test]
async fn the_page_submits_what_the_api_does() {
    let server = Server::start().await;
    server.config("digits").await;
    let ada = server.person("ada", "lead").await;
    let page = server.get(&ada, "/train").await.text();
    assert!(page.contains("name=\"exclusive\"") && page.contains("name=\"checkpoints\""), "{page}");
    for (form, exclusive, checkpoints) in
        [("", false, "last"), ("&exclusive=true&checkpoints=none", true, "none"), ("&checkpoints=all", false, "all")]
    {
        let answer = server.call(&ada, "POST", "/ui/jobs", format!("config=digits{form}")).await;
        let place = answer.headers[header::LOCATION].to_str().expect("ascii").to_owned();
        let job = server.job(place.strip_prefix("/jobs/").expect("a job's page")).await;
        assert_eq!((&job["exclusive"], &job["checkpoints"]), (&json!(exclusive), &json!(checkpoints)));
    }
}

//! Running a job again: where it begins, which revision it runs, and what it changes.

use app::domain::job::Start;
use serde_json::{Value, json};

use super::super::harness::{By, Server};
use super::Story;

impl Story {
    /// Tries it again as the body says; the new job is running.
    async fn retried_with(self, body: Value) -> Self {
        let path = format!("/api/queue/{}/retry", self.job);
        self.server.post(&By::Admin, &path, body).await.ok(201);
        self.next().await
    }

    async fn begins(&self) -> (Value, Value) {
        (self.server.job(&self.job).await["resume_from"].clone(), self.earlier().await["name"].clone())
    }
}

#[tokio::test]
async fn what_completed_begins_anew_and_what_failed_goes_on() {
    let story = Story::begin().await;
    story.save(100, "a hundred").await;
    story.report("completed").await;
    let completed = story.job.clone();
    let story = story.retried_with(json!({})).await;
    assert_eq!(
        story.begins().await,
        (json!("scratch"), json!("")),
        "nothing is left to train after the last checkpoint"
    );
    story.save(7, "seven").await;
    story.report("failed").await;
    let story = story.retried_with(json!({})).await;
    assert_eq!(story.begins().await, (json!("newest"), json!("checkpoint-7")), "not from before it was begun anew");
    story.report("failed").await;
    // Who wants to go on from the end of what completed says so.
    let server = story.server;
    let again =
        server.post(&By::Admin, &format!("/api/queue/{completed}/retry"), json!({"resume_from": "newest"})).await;
    let again = again.ok(201)["job_id"].as_str().expect("text").to_owned();
    assert_eq!(server.job(&again).await["resume_from"], Start::Newest.to_string());
}

#[tokio::test]
async fn it_is_resumed_from_the_checkpoint_that_is_named() {
    let story = Story::begin().await;
    for (step, text) in [(100, "one"), (200, "two"), (300, "three")] {
        story.save(step, text).await;
    }
    assert_eq!(story.server.job(&story.job).await["resumable"], Value::Null, "it has not ended");
    story.report("failed").await;
    let points = story.server.job(&story.job).await["resumable"].clone();
    let names: Vec<&Value> = points.as_array().expect("a list").iter().map(|point| &point["name"]).collect();
    assert_eq!(names, ["checkpoint-300"], "older ones gave way, as the policy says");
    let path = format!("/api/queue/{}/retry", story.job);
    for unknown in ["checkpoint-100", "checkpoint-999", "", "../x"] {
        let problem = story.server.post(&By::Admin, &path, json!({"resume_from": unknown})).await;
        assert_eq!(problem.problem(422, "out_of_range")["field"], "resume_from", "{unknown}");
    }
    let ada = story.server.person("ada", "admin").await;
    let refused = story.server.post(&ada, &path, json!({"resume_from": "checkpoint-300"})).await;
    refused.problem(422, "out_of_range");
    let page = story.server.get(&By::Admin, &format!("/jobs/{}", story.job)).await.text();
    assert!(page.contains("Resume from checkpoint-300") && page.contains("From scratch"), "{page}");
    let story = story.retried_with(json!({"resume_from": "checkpoint-300"})).await;
    assert_eq!(story.begins().await, (json!("checkpoint-300"), json!("checkpoint-300")));
    assert_eq!(story.file("checkpoint-300/model.bin", "").await.text(), "three");
    story.report("failed").await;
    let story = story.retried_with(json!({"resume_from": "scratch"})).await;
    assert_eq!(story.begins().await, (json!("scratch"), json!("")));
}

async fn stored(server: &Server, rate: f64) {
    let config = json!({"learning_rate": rate, "--seed": 7, "num_processes": 1}).to_string();
    let body = json!({"files": {"config.json": config}});
    server.call(&By::Admin, "PUT", "/api/configs/digits", body.to_string()).await.ok(200);
}

/// What the attempt that is offered next runs.
async fn ran(server: &Server, events: &mut super::Events) -> (String, Value) {
    let offer = events.offer().await;
    let token = By::Job(offer.upload_token);
    let bundle = server.get(&token, &offer.bundle.url).await;
    assert_eq!(super::sha256(&bundle.text()), offer.bundle.sha256, "the bundle is the one that was offered");
    let files: Value = serde_json::from_str(&bundle.text()).expect("JSON");
    let config = serde_json::from_str(files["files"]["config.json"].as_str().expect("text")).expect("JSON");
    let job = offer.job_id.to_string();
    server.report(&token, &job, json!({"status": "failed", "attempt": 1})).await.ok(200);
    (job, config)
}

#[tokio::test]
async fn values_of_one_job_are_changed_and_noted_as_a_diff() {
    let server = Server::start().await;
    stored(&server, 0.1).await;
    let (_, _, mut events) = server.online("gpu-1").await;
    let submit = |overrides: Value| json!({"config_name": "digits", "overrides": overrides});
    let asked = submit(json!({"learning_rate": 1e-5, "seed": null, "num_processes": 1, "new": "x"}));
    server.post(&By::Admin, "/api/queue/submit", asked).await.ok(201);
    let (job, config) = ran(&server, &mut events).await;
    assert_eq!(config, json!({"learning_rate": 1e-5, "num_processes": 1, "new": "x"}));
    let diff = json!({
        "learning_rate": {"from": 0.1, "to": 1e-5}, "seed": {"from": 7, "to": null}, "new": {"from": null, "to": "x"},
    });
    assert_eq!(server.job(&job).await["overrides"], diff);
    let trail = server.get(&By::Admin, &format!("/api/queue/{job}/events")).await.ok(200);
    assert_eq!(trail["events"][0]["detail"]["overrides"], diff);
    let shown = server.get(&By::Admin, &format!("/api/queue/{job}/config")).await;
    assert!(!shown.text().contains("seed"), "the configuration as the job runs it");
    let page = server.get(&By::Admin, &format!("/jobs/{job}")).await.text();
    assert!(page.contains("Changed for this job"), "{page}");

    // A newer revision changes nothing for a job that is run again, unless it is asked for.
    stored(&server, 0.9).await;
    let retry = format!("/api/queue/{job}/retry");
    server.post(&By::Admin, &retry, json!({})).await.ok(201);
    let (again, config) = ran(&server, &mut events).await;
    assert_eq!((&config["learning_rate"], &server.job(&again).await["config_revision"]), (&json!(1e-5), &json!(1)));
    server.post(&By::Admin, &retry, json!({"config_revision": 2, "overrides": {}})).await.ok(201);
    let (again, config) = ran(&server, &mut events).await;
    assert_eq!((&config["learning_rate"], &config["--seed"]), (&json!(0.9), &json!(7)));
    assert_eq!(server.job(&again).await["overrides"], Value::Null);
    server.post(&By::Admin, &retry, json!({"config_revision": 2})).await.ok(201);
    let (again, config) = ran(&server, &mut events).await;
    assert_eq!(config["learning_rate"], 1e-5);
    assert_eq!(server.job(&again).await["overrides"]["learning_rate"], json!({"from": 0.9, "to": 1e-5}));
    server.post(&By::Admin, &retry, json!({"config_revision": 9})).await.problem(404, "config_not_found");
    for bad in [json!({"--seed": 1}), json!({"a b": 1}), json!({"x": "y".repeat(5_000)})] {
        let problem = server.post(&By::Admin, "/api/queue/submit", submit(bad)).await.problem(422, "out_of_range");
        assert_eq!(problem["field"], "overrides");
    }
}

#[tokio::test]
async fn what_a_stranger_overrides_fills_neither_the_database_nor_a_list() {
    let server = Server::start().await;
    let config = json!({"learning_rate": 0.1, "note": "x".repeat(1 << 20)}).to_string();
    let body = json!({"files": {"config.json": config}});
    server.call(&By::Admin, "PUT", "/api/configs/digits", body.to_string()).await.ok(200);
    let submit = |overrides: Value| json!({"config_name": "digits", "overrides": overrides});
    let many: Value =
        (0..60).map(|n| (format!("k{n}"), json!("y".repeat(4_000)))).collect::<serde_json::Map<_, _>>().into();
    for large in [json!({"note": null}), json!({"note": "short"}), many] {
        let problem = server.post(&By::Admin, "/api/queue/submit", submit(large)).await.problem(422, "out_of_range");
        assert_eq!(problem["field"], "overrides");
    }
    server.post(&By::Admin, "/api/queue/submit", submit(json!({"learning_rate": 1}))).await.ok(201);
    let list = server.get(&By::Admin, "/api/queue").await.ok(200);
    assert_eq!(list["jobs"][0]["overrides"], Value::Null, "only where one job is asked for");
}

#[tokio::test]
async fn changing_and_submitting_starts_from_what_the_job_ran() {
    let server = Server::start().await;
    stored(&server, 0.125).await;
    let (_, _, mut events) = server.online("gpu-1").await;
    let body = json!({"config_name": "digits", "overrides": {"seed": 9}});
    server.post(&By::Admin, "/api/queue/submit", body).await.ok(201);
    let (job, _) = ran(&server, &mut events).await;
    let page = server.get(&By::Admin, &format!("/jobs/{job}")).await.text();
    let start = page.find("/train?config=digits&amp;ran=digits%401").unwrap_or_else(|| panic!("{page}"));
    let address = page[start..].split('"').next().expect("an end").replace("&amp;", "&");
    let form = server.get(&By::Admin, &address).await.text();
    assert!(!form.contains("There is a newer revision") && form.contains("value=\"seed=9\""), "{form}");
    stored(&server, 0.625).await;
    let form = server.get(&By::Admin, &address).await.text();
    assert!(form.contains("There is a newer revision") && form.contains("0.125") && form.contains("0.625"), "{form}");
    for (chosen, revision, rate) in [("", 1, 0.125), ("&revision=digits%402", 2, 0.625)] {
        let sent = format!("config=digits&ran=digits%401&overrides=seed%3D11&overrides=&target=worker{chosen}");
        let answer = server.call(&By::Admin, "POST", "/ui/jobs", sent).await;
        assert!(answer.headers["location"].to_str().is_ok_and(|to| to.starts_with("/jobs/")), "{answer:?}");
        let (job, config) = ran(&server, &mut events).await;
        assert_eq!((&config["learning_rate"], &config["--seed"]), (&json!(rate), &json!(11)));
        assert_eq!(server.job(&job).await["config_revision"], revision);
    }
}

//! A host whose agent says that it is fit for no new job: nothing is offered to it, and whoever waits is told why.

use serde_json::{Value, json};

use app::domain::time::Millis;

use super::harness::{By, Server};

const FULL: &str = "less than 10.0 GiB is free on the disk of /var/lib/w";

async fn beat(server: &Server, key: &By, unfit: Option<&str>) {
    let body = unfit.map_or_else(|| json!({}), |why| json!({"unfit": why}));
    server.post(key, "/api/workers/heartbeat", body).await.ok(200);
}

async fn show(server: &Server, id: &str) -> Value {
    server.get(&By::Admin, &format!("/api/admin/workers/{id}")).await.ok(200)
}

async fn on_record(server: &Server) -> Vec<Value> {
    let page = server.get(&By::Admin, "/api/audit?action=worker.fitness").await.ok(200);
    page["entries"].as_array().expect("a list").iter().map(|entry| entry["detail"].clone()).collect()
}

/// A worker without GPUs that takes two jobs, and says this when it registers.
async fn online(server: &Server, unfit: Option<&str>) -> (String, By, super::harness::Events) {
    server.config("digits").await;
    let (id, key) = server.worker("cpu-1").await;
    let body = json!({"protocol": 1, "persistent": true, "accelerator_type": "cpu", "max_jobs": 2, "unfit": unfit});
    server.post(&key, "/api/workers/register", body).await.ok(200);
    let mut events = server.stream(&key).await;
    events.of_type("drain").await;
    (id, key, events)
}

#[tokio::test]
async fn it_keeps_what_it_has_and_gets_nothing_until_it_is_fit() {
    let server = Server::start().await;
    let (id, key, mut events) = online(&server, None).await;
    let first = server.submit("digits").await;
    assert_eq!(events.offer().await.job_id.as_str(), first);
    server.report(&key, &first, json!({"status": "running", "attempt": 1})).await.ok(200);
    beat(&server, &key, Some(FULL)).await;
    assert_eq!(
        (server.status_of(&first).await.as_str(), &show(&server, &id).await["unfit"]),
        ("running", &json!(FULL))
    );
    let waits = server.submit("digits").await;
    let explained = server.get(&By::Admin, &format!("/api/queue/{waits}/explain")).await.ok(200);
    let blocker = &explained["workers"][0]["blockers"][0];
    assert_eq!(
        (&explained["verdict"], &blocker["code"], &blocker["found"]),
        (&json!("away"), &json!("unfit"), &json!(FULL))
    );
    assert_eq!(blocker["text"], format!("Its agent takes no new job: {FULL}."));
    assert!(explained["text"].as_str().is_some_and(|text| text.contains(FULL)), "{explained}");
    assert_eq!(server.status_of(&waits).await, "queued");
    beat(&server, &key, None).await;
    assert_eq!(events.offer().await.job_id.as_str(), waits, "it is planned at once");
    assert_eq!(show(&server, &id).await.get("unfit"), None);
    assert_eq!(on_record(&server).await, [json!({"unfit": null}), json!({"unfit": FULL})]);
}

#[tokio::test]
async fn a_registration_says_it_too() {
    let server = Server::start().await;
    let (id, key, mut events) = online(&server, Some("the disk\n is full")).await;
    assert_eq!(show(&server, &id).await["unfit"], "the disk is full", "what moves a cursor is left out");
    let waits = server.submit("digits").await;
    assert_eq!(server.status_of(&waits).await, "queued");
    beat(&server, &key, None).await;
    assert_eq!(events.offer().await.job_id.as_str(), waits);
}

#[tokio::test]
async fn what_is_known_or_only_said_in_other_words_is_not_written_each_time() {
    let server = Server::start().await;
    let (id, key, _events) = online(&server, None).await;
    let commits = || server.app.core.metrics.commits.sizes.counted().count;
    beat(&server, &key, Some("a")).await;
    let before = commits();
    for words in ["a", "b", "c", "b"] {
        beat(&server, &key, Some(words)).await;
    }
    assert_eq!(
        (commits(), &show(&server, &id).await["unfit"]),
        (before + 1, &json!("b")),
        "the first other words only"
    );
    let long = "x".repeat(1_000);
    server.clock.advance(app::domain::time::Millis::seconds(60));
    beat(&server, &key, Some(&long)).await;
    assert_eq!(show(&server, &id).await["unfit"].as_str().map(str::len), Some(256));
}

#[tokio::test]
async fn a_host_that_is_fit_and_unfit_in_turn_does_not_fill_the_trail() {
    let server = Server::start_with(|policy| policy.quotas = policy.quotas.with_worker_changes(2)).await;
    let (id, key, _events) = server.online("gpu-1").await;
    for n in 0..200 {
        let unfit = (n % 2 == 0).then_some("the disk is full");
        server.post(&key, "/api/workers/heartbeat", json!({"attempts": [], "unfit": unfit})).await.ok(200);
    }
    let entries = async || {
        let trail =
            server.get(&By::Admin, &format!("/api/audit?action=worker.fitness&target={id}&limit=500")).await.ok(200);
        trail["entries"].as_array().expect("a list").len()
    };
    // Six changes at once, of which it took two to come online.
    assert!((2..=12).contains(&entries().await), "{}", entries().await);
    let worker = server.get(&By::Admin, &format!("/api/admin/workers/{id}")).await.ok(200);
    assert_eq!(worker["unfit"], "the disk is full", "it gets no job until it may be fit again");
    server.clock.advance(Millis::seconds(60));
    server.post(&key, "/api/workers/heartbeat", json!({"attempts": []})).await.ok(200);
    let worker = server.get(&By::Admin, &format!("/api/admin/workers/{id}")).await.ok(200);
    assert_eq!(worker["unfit"], Value::Null);
}

#[tokio::test]
async fn an_agent_that_registers_anew_all_the_time_is_told_to_wait() {
    let server = Server::start_with(|policy| policy.quotas = policy.quotas.with_worker_changes(2)).await;
    let (id, key) = server.worker("gpu-1").await;
    let register = async |n: usize| {
        let body = json!({"name": "x", "protocol": 1, "persistent": true, "accelerator_type": "cpu", "agent_version": n.to_string()});
        server.post(&key, "/api/workers/register", body).await
    };
    for n in 0..6 {
        register(n).await.ok(200);
    }
    let refused = register(6).await.problem(429, "too_many_requests");
    assert!(refused["detail"].as_str().is_some_and(|detail| detail.contains("--worker-change-limit")), "{refused}");
    register(5).await.ok(200);
    server.clock.advance(Millis::seconds(30));
    register(7).await.ok(200);
    let trail = server.get(&By::Admin, &format!("/api/audit?action=worker.registered&target={id}")).await.ok(200);
    assert_eq!(trail["entries"].as_array().expect("a list").len(), 7);
}

/// A worker that gives jobs directories of these names.
async fn giving(server: &Server, name: &str, paths: Value) -> (String, super::harness::Events) {
    let (id, key) = server.worker(name).await;
    let body = json!({"protocol": 1, "persistent": true, "accelerator_type": "cpu", "paths": paths});
    server.post(&key, "/api/workers/register", body).await.ok(200);
    (id, server.stream(&key).await)
}

#[tokio::test]
async fn a_job_waits_for_a_worker_that_has_its_directories() {
    let server = Server::start().await;
    let backend =
        json!([{"instance_data_dir": "{data_root}/cats", "cache_dir_vae": "{output_dir}/vae", "caption": "{x}"}]);
    let files = json!({"files": {"config.json": "{}", "multidatabackend.json": backend.to_string()}});
    server.call(&By::Admin, "PUT", "/api/configs/cats", files.to_string()).await.ok(200);
    let (bare, _events) = giving(&server, "bare", json!([])).await;
    let job = server.submit("cats").await;
    assert_eq!(server.status_of(&job).await, "queued", "it fails there in 20 ms");
    let explained = server.get(&By::Admin, &format!("/api/queue/{job}/explain")).await.ok(200);
    let says = explained["workers"].as_array().expect("a list").iter().find(|says| says["worker_id"] == bare);
    let blocker = &says.expect("every worker answers")["blockers"][0];
    assert_eq!((&blocker["code"], &blocker["found"]), (&json!("lacks_paths"), &json!("{data_root}")));
    let (_, mut events) = giving(&server, "with-data", json!(["data_root"])).await;
    assert_eq!(events.offer().await.job_id.as_str(), job);
}

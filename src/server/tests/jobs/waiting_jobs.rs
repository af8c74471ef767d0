//! Explanation, preview, page, list and overview agree on why a job is pending.

use app::domain::time::Millis;
use serde_json::{Value, json};

use crate::tests::harness::{Actor, TestServer};
use crate::tests::ui::pages::{log_in, page};

/// Connects a worker with these GPUs at a site.
async fn connect_worker_with_gpus(
    server: &TestServer,
    name: &str,
    site: &str,
    count: u32,
) -> (String, crate::tests::harness::EventStreamReader) {
    let (id, key) = create_labelled_worker(server, name, site).await;
    let gpu = |n: u32| json!({"index": n, "uuid": format!("GPU-{name}-{n}"), "name": "A100", "vram_gb": 40.0});
    let gpus: Vec<Value> = (0..count).map(gpu).collect();
    let body = json!({"protocol": 1, "persistent": true, "accelerator_type": "cuda", "gpus": gpus, "max_jobs": 1});
    server.post(&key, "/api/workers/register", body).await.expect_status(200);
    (id, server.open_stream(&key).await)
}

/// Creates a worker at a site that has never connected.
async fn create_labelled_worker(server: &TestServer, name: &str, site: &str) -> (String, Actor) {
    let body = json!({"name": name, "labels": {"site": site}});
    let created = server.post(&Actor::Admin, "/api/admin/workers", body).await.expect_status(201);
    let text = |key: &str| created[key].as_str().expect("text").to_owned();
    (text("worker_id"), Actor::worker(text("token")))
}

fn merge(body: &Value, fields: &Value) -> String {
    let mut body = body.clone();
    body.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
    body.to_string()
}

/// Returns the responses to a submit and to its preview.
async fn submit(server: &TestServer, requirements: Value) -> (Value, Value) {
    let send = async |fields| {
        let body = merge(&submit_body(&requirements), &fields);
        server.call(&Actor::Admin, "POST", "/api/queue/submit", body).await
    };
    let preview = send(json!({"dry_run": true})).await.expect_status(200);
    (send(json!({})).await.expect_status(201), preview)
}

fn submit_body(requirements: &Value) -> Value {
    serde_json::from_str(&merge(&json!({"config_name": "digits"}), requirements)).expect("an object")
}

async fn explain(server: &TestServer, submitted: &Value) -> Value {
    let id = submitted["job_id"].as_str().expect("text");
    server.get(&Actor::Admin, &format!("/api/queue/{id}/explain")).await.expect_status(200)
}

async fn stuck_alerts(server: &TestServer) -> Vec<Value> {
    let overview = server.get(&Actor::Admin, "/api/overview").await.expect_status(200);
    let is_about_jobs = |entry: &&Value| matches!(entry["kind"].as_str(), Some("stuck" | "more_stuck"));
    overview["attention"].as_array().expect("a list").iter().filter(is_about_jobs).cloned().collect()
}

#[tokio::test]
async fn never_connected_workers_do_not_match() {
    const REASON: &str = "4 workers: 3 have site=graz, 1 of them has connected before, 0 of them have 16 GPUs.";
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (_, _events) = connect_worker_with_gpus(&server, "large", "graz", 8).await;
    let (_, _other) = connect_worker_with_gpus(&server, "small", "wien", 1).await;
    create_labelled_worker(&server, "never-1", "graz").await;
    create_labelled_worker(&server, "never-2", "graz").await;
    let requirements = json!({"gpu_count": 16, "worker_labels": {"site": "graz"}});
    let (pending, preview) = submit(&server, requirements).await;
    let explained = explain(&server, &pending).await;
    assert_eq!(explained["workers"], preview["explanation"]["workers"]);
    for explanation in [&explained, &preview["explanation"]] {
        assert_eq!(
            (&explanation["verdict"], &explanation["summary"]["text"]),
            (&json!("unsatisfiable"), &json!(REASON))
        );
        let text = explanation["text"].as_str().expect("text");
        assert!(text.starts_with("GPU requirements not met") && text.contains("Closest match is large"), "{text}");
        let workers = explanation["workers"].as_array().expect("a list");
        assert!(workers.iter().all(|worker| worker["matches"] == false), "{workers:?}");
        let names: Vec<_> = workers.iter().map(|worker| &worker["name"]).collect();
        assert_eq!(names, ["large", "small", "never-1", "never-2"]);
        let blocker = &workers[3]["blockers"][0];
        assert_eq!(blocker["code"], "never_connected");
        assert_eq!(blocker["text"], "The agent has never connected, so its GPUs are unknown.");
    }
    let steps: Vec<_> =
        explained["summary"]["steps"].as_array().expect("a list").iter().map(|step| &step["remaining"]).collect();
    assert_eq!(steps, [3, 1, 0]);
    assert_eq!(pending["warning"], REASON);

    // The other views agree.
    let id = pending["job_id"].as_str().expect("text");
    assert_eq!(server.job(id).await["fits_none"], true);
    assert_eq!(server.get(&Actor::Admin, "/api/queue").await.expect_status(200)["jobs"][0]["fits_none"], true);
    let cookies = log_in(&server).await;
    let html = page(&server, &cookies, &format!("/jobs/{id}")).await;
    assert!(html.contains(REASON) && !html.contains("Position 1") && !html.contains("Next in queue"), "{html}");
    assert!(!page(&server, &cookies, "/jobs").await.contains("Position 1"));
    let train = page(&server, &cookies, "/train?config=digits&target=auto&gpus=16&labels=site%3Dgraz").await;
    assert!(train.contains(REASON) && !train.contains("Position in the queue"), "{train}");
    assert_eq!(stuck_alerts(&server).await, [] as [Value; 0]);
    server.advance(Millis::from_secs(61)).await;
    let alerts = stuck_alerts(&server).await;
    assert_eq!((alerts.len(), &alerts[0]["count"], &alerts[0]["job_id"]), (1, &json!(1), &pending["job_id"]));
    assert_eq!(
        alerts[0]["summary"]["steps"].as_array().and_then(|steps| steps.last()).expect("a step")["requirement"],
        "gpu_count"
    );
}

#[tokio::test]
async fn never_connected_worker_is_the_advice_without_others() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    create_labelled_worker(&server, "never-1", "graz").await;
    let (pending, _) = submit(&server, json!({"gpu_count": 16})).await;
    let explained = explain(&server, &pending).await;
    assert_eq!((&explained["verdict"], &pending["warning"]), (&json!("worker_unavailable"), &json!(null)));
    assert_eq!(explained["summary"]["text"], "1 worker: 0 have connected before.");
    assert_eq!(server.job(pending["job_id"].as_str().expect("text")).await.get("fits_none"), None);
}

#[tokio::test]
async fn disabled_local_worker_explains_local_jobs() {
    const REASON: &str =
        "This server runs no jobs itself: add a GPU and a trainer, start it with --local on, or use the target Auto.";
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let missing = "Not available: this server runs no jobs itself.";
    let cookies = log_in(&server).await;
    assert!(page(&server, &cookies, "/train").await.contains(missing));
    let (pending, preview) = submit(&server, json!({"target": "local"})).await;
    for explanation in [&explain(&server, &pending).await, &preview["explanation"]] {
        assert_eq!((&explanation["verdict"], &explanation["text"]), (&json!("no_local_worker"), &json!(REASON)));
    }
    assert_eq!(pending["warning"], REASON);
    let train = page(&server, &cookies, "/train?config=digits&target=local").await;
    assert!(train.contains("This server runs no jobs itself: add a GPU"), "{train}");

    // The same applies to a remote worker.
    let (_, _events) = connect_worker_with_gpus(&server, "gpu-1", "graz", 1).await;
    let (pending, _) = submit(&server, json!({"target": "local"})).await;
    assert_eq!(explain(&server, &pending).await["text"], REASON);
    server.app.services.workers.local_worker("local-here").await.expect("created");
    assert!(!page(&server, &cookies, "/train").await.contains(missing));
    assert_eq!(explain(&server, &pending).await["verdict"], "worker_unavailable");
}

#[tokio::test]
async fn pending_jobs_with_equal_requirements_are_grouped() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (_, _events) = connect_worker_with_gpus(&server, "gpu-1", "wien", 1).await;
    let submit_many = async |site: &str, count: usize| {
        for _ in 0..count {
            submit(&server, json!({"worker_labels": {"site": site}})).await;
        }
    };
    submit_many("graz", 12).await;
    let cookies = log_in(&server).await;
    let html = page(&server, &cookies, "/").await;
    assert!(html.contains("12 jobs are queued.") && !html.contains("Submit a job to get started."), "{html}");
    for position in 1..=12 {
        assert!(!html.contains(&format!("Position {position}")), "{position}");
    }
    server.advance(Millis::from_secs(61)).await;
    let alerts = stuck_alerts(&server).await;
    assert_eq!((alerts.len(), &alerts[0]["count"]), (1, &json!(12)));
    assert_eq!(alerts[0]["summary"]["text"], "1 worker: 0 have site=graz.");
    let html = page(&server, &cookies, "/").await;
    for words in [
        "12 jobs queued",
        "No matching worker is available",
        "1 worker: 0 have site=graz.",
        "phase=waiting&amp;label=site%3Dgraz",
    ] {
        assert!(html.contains(words), "{words}: {html}");
    }
    for site in ["a", "b", "c", "d", "e", "f"] {
        submit_many(site, 2).await;
    }
    server.advance(Millis::from_secs(61)).await;
    let alerts = stuck_alerts(&server).await;
    let counts: Vec<_> = alerts.iter().map(|entry| (entry["kind"].as_str().expect("text"), &entry["count"])).collect();
    assert_eq!(counts.len(), 6);
    assert!(counts.contains(&("stuck", &json!(12))));
    assert_eq!(counts[5], ("more_stuck", &json!(4)));
    assert!(page(&server, &cookies, "/").await.contains("4 more jobs queued"));
}

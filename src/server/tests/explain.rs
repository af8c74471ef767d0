//! Why a job waits, and what people do about it.

use axum::http::{Request, header};
use serde_json::{Value, json};

use super::harness::{ADMIN, By, Server, read};
use super::pages::{log_in, page};

/// A worker with these GPUs, all of one model, that listens.
async fn with_gpus(server: &Server, name: &str, count: u32, max_jobs: u32) -> (String, By, super::harness::Events) {
    let (id, key) = server.worker(name).await;
    let gpu = |n: u32| json!({"index": n, "uuid": format!("GPU-{name}-{n}"), "name": "A100", "vram_gb": 40.0});
    let gpus: Vec<Value> = (0..count).map(gpu).collect();
    let body =
        json!({"protocol": 1, "persistent": true, "accelerator_type": "cuda", "gpus": gpus, "max_jobs": max_jobs});
    server.post(&key, "/api/workers/register", body).await.ok(200);
    let events = server.stream(&key).await;
    (id, key, events)
}

async fn submit(server: &Server, more: Value) -> Value {
    let mut body = json!({"config_name": "digits"});
    body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    server.post(&By::Admin, "/api/queue/submit", body).await.ok(201)
}

/// A worker whose agent says that its team is nlp, and listens.
async fn with_reported_team(server: &Server) -> (String, super::harness::Events) {
    let (id, key) = server.worker("gpu-1").await;
    let body = json!({"protocol": 1, "persistent": true, "accelerator_type": "cpu", "labels": {"team": "nlp"}});
    server.post(&key, "/api/workers/register", body).await.ok(200);
    (id, server.stream(&key).await)
}

#[tokio::test]
async fn reported_labels_can_be_ignored_on_one_worker() {
    let server = Server::start().await;
    server.config("digits").await;
    let (id, mut events) = with_reported_team(&server).await;
    let worker = format!("/api/admin/workers/{id}");
    let ignore = |ignore: bool| json!({"ignore_reported_labels": ignore}).to_string();
    let view = server.call(&By::Admin, "PATCH", &worker, ignore(true)).await.ok(200);
    let shown = (&view["labels"], &view["reported_labels"], &view["ignore_reported_labels"]);
    assert_eq!(shown, (&json!({}), &json!({"team": "nlp"}), &json!(true)));
    let waits = submit(&server, json!({"worker_labels": {"team": "nlp"}})).await;
    assert_eq!(explain(&server, &waits).await["workers"][0]["blockers"][0]["code"], "label");
    let found = async || server.get(&By::Admin, "/api/admin/workers?label=team=n*").await.ok(200)["total"].clone();
    assert_eq!(found().await, 0);
    let view = server.call(&By::Admin, "PATCH", &worker, ignore(false)).await.ok(200);
    assert_eq!(view["labels"], json!({"team": "nlp"}));
    assert_eq!(events.offer().await.job_id.as_str(), waits["job_id"].as_str().expect("text"));
    assert_eq!(found().await, 1);
}

#[tokio::test]
async fn reported_labels_can_be_ignored_on_all_workers() {
    let server = Server::start_with(|policy| policy.ignore_reported_labels = true).await;
    server.config("digits").await;
    let (id, _events) = with_reported_team(&server).await;
    let waits = submit(&server, json!({"worker_labels": {"team": "nlp"}})).await;
    assert_eq!(explain(&server, &waits).await["workers"][0]["blockers"][0]["code"], "label");
    let view = server.get(&By::Admin, &format!("/api/admin/workers/{id}")).await.ok(200);
    assert_eq!((&view["labels"], &view["ignore_reported_labels"]), (&json!({}), &json!(true)));
}

async fn explain(server: &Server, submitted: &Value) -> Value {
    let id = submitted["job_id"].as_str().expect("text");
    server.get(&By::Admin, &format!("/api/queue/{id}/explain")).await.ok(200)
}

#[tokio::test]
async fn each_worker_says_what_does_not_fit_and_what_would_help() {
    let server = Server::start().await;
    server.config("digits").await;
    let waits = submit(&server, json!({"gpu_count": 2, "worker_labels": {"team": "nlp"}})).await;
    let nobody = explain(&server, &waits).await;
    assert_eq!((&nobody["verdict"], &nobody["workers"]), (&json!("no_workers"), &json!([])));
    let (id, _, _one) = with_gpus(&server, "small", 1, 1).await;
    let never = explain(&server, &waits).await;
    assert_eq!(never["verdict"], "never");
    let blockers = &never["workers"][0]["blockers"];
    assert_eq!((&blockers[0]["code"], &blockers[1]["code"]), (&json!("label"), &json!("gpu_count")));
    assert_eq!(blockers[0]["text"], "The job asks for team=nlp, and this worker has no label team.");
    assert_eq!(blockers[0]["change"], "Give the worker the label team=nlp, or do not ask for it.");
    assert_eq!(blockers[1]["text"], "The job asks for 2 GPUs, and this worker has 1.");
    assert!(never["text"].as_str().is_some_and(|text| text.starts_with("No idle workers that match")));
    let (_, _, mut two) = with_gpus(&server, "large", 2, 1).await;
    let labelled = |worker: &str| format!("/api/admin/workers/{worker}");
    let workers = server.get(&By::Admin, "/api/admin/workers").await.ok(200);
    let large = workers["workers"][0]["id"].as_str().expect("text").to_owned();
    assert_ne!(large, id);
    server.call(&By::Admin, "PATCH", &labelled(&large), json!({"labels": {"team": "nlp"}}).to_string()).await.ok(200);
    assert_eq!(
        two.offer().await.job_id.as_str(),
        waits["job_id"].as_str().expect("text"),
        "labels changed: it is planned"
    );
    assert_eq!(explain(&server, &waits).await["verdict"], "not_waiting");
    server.get(&By::Admin, "/api/queue/j_none/explain").await.problem(404, "job_not_found");
}

#[tokio::test]
async fn a_dry_run_says_what_would_happen_and_does_nothing() {
    let server = Server::start().await;
    server.config("digits").await;
    let ask = async |more: Value| {
        let mut body = json!({"config_name": "digits", "dry_run": true});
        body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        server.post(&By::Admin, "/api/queue/submit", body).await
    };
    let (id, _, _events) = with_gpus(&server, "gpu", 2, 1).await;
    let fits = ask(json!({"gpu_count": 2})).await.ok(200);
    assert_eq!((&fits["dry_run"], &fits["allocated_worker_id"]), (&json!(true), &json!(id)));
    assert_eq!((&fits["queue_position"], &fits["explanation"]["verdict"]), (&json!(null), &json!("fits")));
    let waits = ask(json!({"gpu_count": 3})).await.ok(200);
    assert_eq!((&waits["queue_position"], &waits["explanation"]["verdict"]), (&json!(1), &json!("never")));
    ask(json!({"priority": 51})).await.problem(422, "out_of_range");
    ask(json!({"config_name": "nope"})).await.problem(404, "config_not_found");
    assert_eq!(server.get(&By::Admin, "/api/queue").await.ok(200)["total"], 0);
}

#[tokio::test]
async fn several_jobs_share_a_host_each_with_its_own_gpus() {
    let server = Server::start().await;
    server.config("digits").await;
    let (id, key, mut events) = with_gpus(&server, "shared", 2, 2).await;
    let (first, second) = (submit(&server, json!({})).await, submit(&server, json!({})).await);
    let third = submit(&server, json!({})).await;
    let (one, two) = (events.offer().await, events.offer().await);
    assert_eq!((one.gpus.len(), two.gpus.len()), (1, 1));
    assert_ne!(one.gpus, two.gpus, "a GPU is granted to one job (I3)");
    assert_eq!((&first["allocated_worker_id"], &second["allocated_worker_id"]), (&json!(id), &json!(id)));
    assert_eq!(explain(&server, &third).await["workers"][0]["blockers"][0]["code"], "occupied");
    server.report(&key, one.job_id.as_str(), json!({"status": "completed", "attempt": 1})).await.ok(200);
    assert_eq!(events.offer().await.gpus, one.gpus, "the GPU that came free");
}

#[tokio::test]
async fn the_urgent_come_first_and_priority_can_be_changed() {
    let server = Server::start().await;
    server.config("digits").await;
    let (low, high) = (submit(&server, json!({"priority": 0})).await, submit(&server, json!({"priority": 50})).await);
    assert_eq!((&low["queue_position"], &high["queue_position"]), (&json!(1), &json!(1)));
    let path = |job: &Value| format!("/api/queue/{}/priority", job["job_id"].as_str().expect("text"));
    server.post(&By::Admin, &path(&high), json!({"priority": 51})).await.problem(422, "out_of_range");
    server.post(&By::Admin, &path(&high), json!({"priority": 256})).await.problem(400, "invalid_json");
    let demoted = server.post(&By::Admin, &path(&high), json!({"priority": 0})).await.ok(200);
    assert_eq!((&demoted["priority"], &demoted["queue_position"]), (&json!(0), &json!(2)));
    server.post(&By::Admin, &path(&high), json!({"priority": 1})).await.ok(200);
    let (_, key, mut events) = server.online("gpu").await;
    let taken = events.offer().await.job_id.to_string();
    assert_eq!(json!(taken), high["job_id"]);
    server.report(&key, &taken, json!({"status": "completed", "attempt": 1})).await.ok(200);
    server.post(&By::Admin, &path(&high), json!({"priority": 5})).await.problem(409, "job_ended");
}

#[tokio::test]
async fn a_persons_retry_is_a_job_of_its_own() {
    let server = Server::start().await;
    server.config("digits").await;
    let first = submit(&server, json!({"priority": 30, "worker_labels": {"team": "n*"}})).await;
    let id = first["job_id"].as_str().expect("text");
    let retry = format!("/api/queue/{id}/retry");
    server.call(&By::Admin, "POST", &retry, "").await.problem(409, "job_not_ended");
    server.call(&By::Admin, "POST", &format!("/api/queue/{id}/cancel"), "").await.ok(200);
    let again = server.call(&By::Admin, "POST", &retry, "").await.ok(201);
    let view = server.job(again["job_id"].as_str().expect("text")).await;
    assert_eq!((&view["retry_of"], &view["priority"]), (&json!(id), &json!(30)));
    assert_eq!((&view["worker_labels"], &view["status"]), (&json!({"team": "n*"}), &json!("queued")));
    assert_eq!(server.status_of(id).await, "cancelled");
}

#[tokio::test]
async fn one_key_makes_one_job() {
    let server = Server::start().await;
    server.config("digits").await;
    let send = async |key: &'static str, body: Value| {
        let request = Request::builder().method("POST").uri("/api/queue/submit").header("idempotency-key", key);
        let request = request.header(header::HOST, "localhost:8001").header("x-api-key", ADMIN);
        read(server.send(request.body(body.to_string().into()).expect("a request")).await).await
    };
    let body = json!({"config_name": "digits"});
    let (one, two) = tokio::join!(send("k1", body.clone()), send("k1", body.clone()));
    let first = one.ok(201);
    assert_eq!(first["job_id"], two.ok(201)["job_id"]);
    send("k1", json!({"config_name": "digits", "priority": 1})).await.problem(422, "idempotency_key_reused");
    send("", body.clone()).await.problem(422, "out_of_range");
    assert_ne!(send("k2", body.clone()).await.ok(201)["job_id"], first["job_id"]);
    server.pass(app::domain::time::Millis::seconds(86_401)).await;
    assert_ne!(send("k1", body).await.ok(201)["job_id"], first["job_id"], "a day later it is another submit");
}

#[tokio::test]
async fn what_a_sentence_is_about_is_told_beside_it() {
    let server = Server::start_with(|policy| policy.limits.jobs = Some(1)).await;
    server.config("digits").await;
    let (_, key, mut events) = with_gpus(&server, "gpu", 2, 2).await;
    let large = submit(&server, json!({"gpu_count": 2, "min_vram_gb": 80.0})).await;
    let blocker = explain(&server, &large).await["workers"][0]["blockers"][0].clone();
    let told = [&blocker["code"], &blocker["wanted"], &blocker["found"], &blocker["gpus"]];
    assert_eq!(told, [&json!("vram"), &json!("80"), &json!("40"), &json!(2)]);
    submit(&server, json!({})).await;
    let runs = events.offer().await;
    server.report(&key, runs.job_id.as_str(), json!({"status": "running", "attempt": 1})).await.ok(200);
    let waits = explain(&server, &submit(&server, json!({})).await).await;
    assert_eq!((&waits["verdict"], &waits["limit"]), (&json!("limited"), &json!({"jobs": 1, "per_user": false})));
}

#[tokio::test]
async fn a_sandbox_that_a_host_cannot_make_is_told_with_its_reason() {
    const WHY: &str = "AppArmor keeps programs from making user namespaces";
    let server = Server::start().await;
    server.config("digits").await;
    let (id, key) = server.worker("cpu-1").await;
    let sandbox = json!({"least": "files", "most": "files", "why_not_more": WHY});
    let body = json!({"protocol": 1, "persistent": true, "accelerator_type": "cpu", "sandbox": sandbox});
    server.post(&key, "/api/workers/register", body).await.ok(200);
    let _events = server.stream(&key).await;
    let cookies = log_in(&server).await;
    let shown = page(&server, &cookies, &format!("/admin/workers/{id}")).await;
    assert!(shown.contains(&format!("files: jobs open only the files they are given ({WHY})")), "{shown}");

    let waits = submit(&server, json!({"sandbox": "full"})).await;
    let explained = explain(&server, &waits).await;
    let blocker = &explained["workers"][0]["blockers"][0];
    assert_eq!(
        (&blocker["code"], &blocker["wanted"], &blocker["found"], &blocker["why"]),
        (&json!("sandbox"), &json!("full"), &json!("files"), &json!(WHY))
    );
    let text = format!("The job asks for a sandbox of level full, and this worker has files at most: {WHY}.");
    assert_eq!(blocker["text"], text);
    let change = "Ask for files, or see why its host cannot do more: simpletuner-worker doctor says it.";
    assert_eq!(blocker["change"], change);
    let job = waits["job_id"].as_str().expect("text");
    let shown = page(&server, &cookies, &format!("/jobs/{job}")).await;
    for words in
        ["The job asks for a sandbox of level full, and this worker has files at most.", WHY, "Ask for “files”"]
    {
        assert!(shown.contains(words), "{words}: {shown}");
    }
}

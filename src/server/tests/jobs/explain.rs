//! Why a job is pending, and the actions that help.

use axum::http::{Request, header};
use serde_json::{Value, json};

use crate::tests::harness::{ADMIN, Actor, TestServer, read_response};
use crate::tests::ui::pages::{log_in, page};

/// Connects a worker with these GPUs, all of one model.
async fn connect_worker_with_gpus(
    server: &TestServer,
    name: &str,
    count: u32,
    max_jobs: u32,
) -> (String, Actor, crate::tests::harness::EventStreamReader) {
    let (id, key) = server.create_worker(name).await;
    let gpu = |n: u32| json!({"index": n, "uuid": format!("GPU-{name}-{n}"), "name": "A100", "vram_gb": 40.0});
    let gpus: Vec<Value> = (0..count).map(gpu).collect();
    let body =
        json!({"protocol": 1, "persistent": true, "accelerator_type": "cuda", "gpus": gpus, "max_jobs": max_jobs});
    server.post(&key, "/api/workers/register", body).await.expect_status(200);
    let events = server.open_stream(&key).await;
    (id, key, events)
}

async fn submit(server: &TestServer, fields: Value) -> Value {
    let mut body = json!({"config_name": "digits"});
    body.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
    server.post(&Actor::Admin, "/api/queue/submit", body).await.expect_status(201)
}

/// Connects a worker whose agent reports the label team=nlp.
async fn connect_worker_with_reported_team(server: &TestServer) -> (String, crate::tests::harness::EventStreamReader) {
    let (id, key) = server.create_worker("gpu-1").await;
    let body = json!({"protocol": 1, "persistent": true, "accelerator_type": "cpu", "labels": {"team": "nlp"}});
    server.post(&key, "/api/workers/register", body).await.expect_status(200);
    (id, server.open_stream(&key).await)
}

#[tokio::test]
async fn reported_labels_can_be_ignored_on_one_worker() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (id, mut events) = connect_worker_with_reported_team(&server).await;
    let worker = format!("/api/admin/workers/{id}");
    let ignore = |ignore: bool| json!({"ignore_reported_labels": ignore}).to_string();
    let view = server.call(&Actor::Admin, "PATCH", &worker, ignore(true)).await.expect_status(200);
    let shown = (&view["labels"], &view["reported_labels"], &view["ignore_reported_labels"]);
    assert_eq!(shown, (&json!({}), &json!({"team": "nlp"}), &json!(true)));
    let pending = submit(&server, json!({"worker_labels": {"team": "nlp"}})).await;
    assert_eq!(explain(&server, &pending).await["workers"][0]["blockers"][0]["code"], "label");
    let matching_count = async || {
        server.get(&Actor::Admin, "/api/admin/workers?label=team=n*").await.expect_status(200)["total"].clone()
    };
    assert_eq!(matching_count().await, 0);
    let view = server.call(&Actor::Admin, "PATCH", &worker, ignore(false)).await.expect_status(200);
    assert_eq!(view["labels"], json!({"team": "nlp"}));
    assert_eq!(events.next_offer().await.job_id.as_str(), pending["job_id"].as_str().expect("text"));
    assert_eq!(matching_count().await, 1);
}

#[tokio::test]
async fn reported_labels_can_be_ignored_on_all_workers() {
    let server = TestServer::start_with(|policy| policy.ignore_reported_labels = true).await;
    server.put_config("digits").await;
    let (id, _events) = connect_worker_with_reported_team(&server).await;
    let pending = submit(&server, json!({"worker_labels": {"team": "nlp"}})).await;
    assert_eq!(explain(&server, &pending).await["workers"][0]["blockers"][0]["code"], "label");
    let view = server.get(&Actor::Admin, &format!("/api/admin/workers/{id}")).await.expect_status(200);
    assert_eq!((&view["labels"], &view["ignore_reported_labels"]), (&json!({}), &json!(true)));
}

async fn explain(server: &TestServer, submitted: &Value) -> Value {
    let id = submitted["job_id"].as_str().expect("text");
    server.get(&Actor::Admin, &format!("/api/queue/{id}/explain")).await.expect_status(200)
}

#[tokio::test]
async fn explanation_lists_blockers_and_fixes_per_worker() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let pending = submit(&server, json!({"gpu_count": 2, "worker_labels": {"team": "nlp"}})).await;
    let without_workers = explain(&server, &pending).await;
    assert_eq!((&without_workers["verdict"], &without_workers["workers"]), (&json!("no_workers"), &json!([])));
    let (id, _, _small_events) = connect_worker_with_gpus(&server, "small", 1, 1).await;
    let unsatisfiable = explain(&server, &pending).await;
    assert_eq!(unsatisfiable["verdict"], "unsatisfiable");
    let blockers = &unsatisfiable["workers"][0]["blockers"];
    assert_eq!((&blockers[0]["code"], &blockers[1]["code"]), (&json!("label"), &json!("gpu_count")));
    assert_eq!(blockers[0]["text"], "The job requires team=nlp, and this worker has no label team.");
    assert_eq!(blockers[0]["change"], "Add the label team=nlp to the worker, or remove it from the job.");
    assert_eq!(blockers[1]["text"], "The job requires 2 GPUs, and this worker has 1.");
    assert_eq!(blockers[1]["change"], "Request at most 1 GPU.");
    assert!(unsatisfiable["text"].as_str().is_some_and(|text| text.starts_with("No idle workers that match")));
    let (_, _, mut large_events) = connect_worker_with_gpus(&server, "large", 2, 1).await;
    let worker_path = |worker: &str| format!("/api/admin/workers/{worker}");
    let workers = server.get(&Actor::Admin, "/api/admin/workers").await.expect_status(200);
    let large = workers["workers"][0]["id"].as_str().expect("text").to_owned();
    assert_ne!(large, id);
    server
        .call(&Actor::Admin, "PATCH", &worker_path(&large), json!({"labels": {"team": "nlp"}}).to_string())
        .await
        .expect_status(200);
    assert_eq!(
        large_events.next_offer().await.job_id.as_str(),
        pending["job_id"].as_str().expect("text"),
        "after a change of labels the job is offered"
    );
    assert_eq!(explain(&server, &pending).await["verdict"], "not_waiting");
    server.get(&Actor::Admin, "/api/queue/j_none/explain").await.expect_problem(404, "job_not_found");
}

/// The closest 50 workers are listed, and the others are counted.
#[tokio::test]
async fn large_fleet_is_explained_by_its_closest_workers() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    for n in 0..53 {
        connect_worker_with_gpus(&server, &format!("small-{n:02}"), 1, 1).await;
    }
    for n in 0..4 {
        server.create_worker(&format!("new-{n}")).await;
    }
    let (_, _, _events) = connect_worker_with_gpus(&server, "labelled", 2, 1).await;
    let pending = submit(&server, json!({"gpu_count": 2, "worker_labels": {"team": "nlp"}})).await;
    let explanation = explain(&server, &pending).await;
    let listed = explanation["workers"].as_array().expect("a list");
    assert_eq!((listed.len(), &listed[0]["name"], &listed[1]["name"]), (50, &json!("labelled"), &json!("small-00")));
    let others = json!([{"code": "label", "workers": 8}]);
    assert_eq!((&explanation["unlisted"], &explanation["summary"]["workers"]), (&others, &json!(58)));
    let job = pending["job_id"].as_str().expect("text");
    let cookies = log_in(&server).await;
    for (path, rest) in [("", "48 more workers"), ("?workers=all", "8 more workers")] {
        let html = page(&server, &cookies, &format!("/jobs/{job}{path}")).await;
        assert!(html.contains(rest), "{path}: {html}");
    }
}

#[tokio::test]
async fn dry_run_previews_without_submitting() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let preview = async |more: Value| {
        let mut body = json!({"config_name": "digits", "dry_run": true});
        body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        server.post(&Actor::Admin, "/api/queue/submit", body).await
    };
    let (id, _, _events) = connect_worker_with_gpus(&server, "gpu", 2, 1).await;
    let fits = preview(json!({"gpu_count": 2})).await.expect_status(200);
    assert_eq!((&fits["dry_run"], &fits["allocated_worker_id"]), (&json!(true), &json!(id)));
    assert_eq!((&fits["queue_position"], &fits["explanation"]["verdict"]), (&json!(null), &json!("fits")));
    let pending = preview(json!({"gpu_count": 3})).await.expect_status(200);
    assert_eq!((&pending["queue_position"], &pending["explanation"]["verdict"]), (&json!(1), &json!("unsatisfiable")));
    preview(json!({"priority": 51})).await.expect_problem(422, "out_of_range");
    preview(json!({"config_name": "nope"})).await.expect_problem(404, "config_not_found");
    assert_eq!(server.get(&Actor::Admin, "/api/queue").await.expect_status(200)["total"], 0);
}

#[tokio::test]
async fn several_jobs_share_a_host_each_with_its_own_gpus() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (id, key, mut events) = connect_worker_with_gpus(&server, "shared", 2, 2).await;
    let (first, second) = (submit(&server, json!({})).await, submit(&server, json!({})).await);
    let third = submit(&server, json!({})).await;
    let (first_offer, second_offer) = (events.next_offer().await, events.next_offer().await);
    assert_eq!((first_offer.gpus.len(), second_offer.gpus.len()), (1, 1));
    assert_ne!(first_offer.gpus, second_offer.gpus, "a GPU is granted to one job (I3)");
    assert_eq!((&first["allocated_worker_id"], &second["allocated_worker_id"]), (&json!(id), &json!(id)));
    assert_eq!(explain(&server, &third).await["workers"][0]["blockers"][0]["code"], "occupied");
    server
        .report_status(&key, first_offer.job_id.as_str(), json!({"status": "completed", "attempt": 1}))
        .await
        .expect_status(200);
    assert_eq!(events.next_offer().await.gpus, first_offer.gpus, "the GPU that became available");
}

#[tokio::test]
async fn higher_priority_runs_first_and_can_be_changed() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (low, high) = (submit(&server, json!({"priority": 0})).await, submit(&server, json!({"priority": 50})).await);
    assert_eq!((&low["queue_position"], &high["queue_position"]), (&json!(1), &json!(1)));
    let path = |job: &Value| format!("/api/queue/{}/priority", job["job_id"].as_str().expect("text"));
    server.post(&Actor::Admin, &path(&high), json!({"priority": 51})).await.expect_problem(422, "out_of_range");
    server.post(&Actor::Admin, &path(&high), json!({"priority": 256})).await.expect_problem(400, "invalid_json");
    let demoted = server.post(&Actor::Admin, &path(&high), json!({"priority": 0})).await.expect_status(200);
    assert_eq!((&demoted["priority"], &demoted["queue_position"]), (&json!(0), &json!(2)));
    server.post(&Actor::Admin, &path(&high), json!({"priority": 1})).await.expect_status(200);
    let (_, key, mut events) = server.connect_worker("gpu").await;
    let offered = events.next_offer().await.job_id.to_string();
    assert_eq!(json!(offered), high["job_id"]);
    server.report_status(&key, &offered, json!({"status": "completed", "attempt": 1})).await.expect_status(200);
    server.post(&Actor::Admin, &path(&high), json!({"priority": 5})).await.expect_problem(409, "job_ended");
}

#[tokio::test]
async fn user_retry_creates_a_new_job() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let first = submit(&server, json!({"priority": 30, "worker_labels": {"team": "n*"}})).await;
    let id = first["job_id"].as_str().expect("text");
    let retry = format!("/api/queue/{id}/retry");
    server.call(&Actor::Admin, "POST", &retry, "").await.expect_problem(409, "job_not_ended");
    server.call(&Actor::Admin, "POST", &format!("/api/queue/{id}/cancel"), "").await.expect_status(200);
    let retried_job = server.call(&Actor::Admin, "POST", &retry, "").await.expect_status(201);
    let view = server.job(retried_job["job_id"].as_str().expect("text")).await;
    assert_eq!((&view["retry_of"], &view["priority"]), (&json!(id), &json!(30)));
    assert_eq!((&view["worker_labels"], &view["status"]), (&json!({"team": "n*"}), &json!("queued")));
    assert_eq!(server.job_status(id).await, "cancelled");
}

#[tokio::test]
async fn idempotency_key_creates_one_job() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let send = async |key: &'static str, body: Value| {
        let request = Request::builder().method("POST").uri("/api/queue/submit").header("idempotency-key", key);
        let request = request.header(header::HOST, "localhost:8001").header("x-api-key", ADMIN);
        read_response(server.send(request.body(body.to_string().into()).expect("a request")).await).await
    };
    let body = json!({"config_name": "digits"});
    let (first_response, second_response) = tokio::join!(send("k1", body.clone()), send("k1", body.clone()));
    let first = first_response.expect_status(201);
    assert_eq!(first["job_id"], second_response.expect_status(201)["job_id"]);
    send("k1", json!({"config_name": "digits", "priority": 1})).await.expect_problem(422, "idempotency_key_reused");
    send("", body.clone()).await.expect_problem(422, "out_of_range");
    assert_ne!(send("k2", body.clone()).await.expect_status(201)["job_id"], first["job_id"]);
    server.advance(app::domain::time::Millis::from_secs(86_401)).await;
    assert_ne!(
        send("k1", body).await.expect_status(201)["job_id"],
        first["job_id"],
        "a day later it is another submit"
    );
}

#[tokio::test]
async fn sentences_have_structured_parameters() {
    let server = TestServer::start_with(|policy| policy.limits.jobs = Some(1)).await;
    server.put_config("digits").await;
    let (_, key, mut events) = connect_worker_with_gpus(&server, "gpu", 2, 2).await;
    let large = submit(&server, json!({"gpu_count": 2, "min_vram_gb": 80.0})).await;
    let blocker = explain(&server, &large).await["workers"][0]["blockers"][0].clone();
    let parameters = [&blocker["code"], &blocker["wanted"], &blocker["found"], &blocker["gpus"]];
    assert_eq!(parameters, [&json!("vram"), &json!("80"), &json!("40"), &json!(2)]);
    submit(&server, json!({})).await;
    let offer = events.next_offer().await;
    server
        .report_status(&key, offer.job_id.as_str(), json!({"status": "running", "attempt": 1}))
        .await
        .expect_status(200);
    let pending = explain(&server, &submit(&server, json!({})).await).await;
    assert_eq!((&pending["verdict"], &pending["limit"]), (&json!("limited"), &json!({"jobs": 1, "per_user": false})));
}

#[tokio::test]
async fn unsupported_sandbox_is_explained() {
    const REASON: &str = "AppArmor keeps programs from making user namespaces";
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (id, key) = server.create_worker("cpu-1").await;
    let sandbox = json!({"least": "files", "most": "files", "why_not_more": REASON});
    let body = json!({"protocol": 1, "persistent": true, "accelerator_type": "cpu", "sandbox": sandbox});
    server.post(&key, "/api/workers/register", body).await.expect_status(200);
    let _events = server.open_stream(&key).await;
    let cookies = log_in(&server).await;
    let html = page(&server, &cookies, &format!("/admin/workers/{id}")).await;
    assert!(html.contains(&format!("files: jobs can access only the files they are given ({REASON})")), "{html}");

    let pending = submit(&server, json!({"sandbox": "full"})).await;
    let explained = explain(&server, &pending).await;
    let blocker = &explained["workers"][0]["blockers"][0];
    assert_eq!(
        (&blocker["code"], &blocker["wanted"], &blocker["found"], &blocker["why"]),
        (&json!("sandbox"), &json!("full"), &json!("files"), &json!(REASON))
    );
    let text = format!("The job requires sandbox level full, and this worker has at most files. {REASON}.");
    assert_eq!(blocker["text"], text);
    let change = "Use files, or run simpletuner-worker doctor on the host to see why higher levels are unavailable.";
    assert_eq!(blocker["change"], change);
    let job = pending["job_id"].as_str().expect("text");
    let html = page(&server, &cookies, &format!("/jobs/{job}")).await;
    for words in
        ["The job requires sandbox level full, and this worker has at most files.", REASON, "Use files, or run"]
    {
        assert!(html.contains(words), "{words}: {html}");
    }
}

#[tokio::test]
async fn sentences_are_in_the_language_asked_for() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (_, _, _events) = connect_worker_with_gpus(&server, "gpu-1", 2, 1).await;
    let in_spanish = async |method: &str, path: &str, body: Value| {
        let request = Request::builder().method(method).uri(path).header(header::HOST, "localhost:8001");
        let request = request.header(header::AUTHORIZATION, format!("Bearer {ADMIN}"));
        let request = request.header(header::ACCEPT_LANGUAGE, "es-AR, en;q=0.5");
        let request = request.header(header::CONTENT_TYPE, "application/json").body(body.to_string().into());
        read_response(server.send(request.expect("a request")).await).await
    };
    let submit_body = json!({"config_name": "digits", "gpu_count": 4});
    let submitted = in_spanish("POST", "/api/queue/submit", submit_body.clone()).await.expect_status(201);
    assert_eq!(submitted["warning"], "1 worker: 0 tienen 4 GPU.", "{submitted}");
    let path = format!("/api/queue/{}/explain", submitted["job_id"].as_str().expect("text"));
    let explanation = in_spanish("GET", &path, Value::Null).await.expect_status(200);
    let blocker = &explanation["workers"][0]["blockers"][0];
    let text = explanation["text"].as_str().expect("text");
    assert!(text.starts_with("No se cumplen los requisitos de GPU") && text.contains("gpu-1"), "{text}");
    assert!(text.contains(blocker["change"].as_str().expect("text")), "{text}");
    assert_eq!(explanation["summary"]["text"], submitted["warning"]);
    let preview = json!({"dry_run": true, "config_name": "digits", "gpu_count": 4});
    let preview = in_spanish("POST", "/api/queue/submit", preview).await.expect_status(200);
    assert_eq!(preview["explanation"], explanation);

    // Codes and parameters are the same in all languages, and English is the default.
    let english = server.get(&Actor::Admin, &path).await.expect_status(200);
    assert!(english["text"].as_str().is_some_and(|text| text.starts_with("GPU requirements not met")), "{english}");
    for field in ["code", "wanted", "found"] {
        assert_eq!(english["workers"][0]["blockers"][0][field], blocker[field]);
    }
}

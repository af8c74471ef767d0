//! `/api/admin/workers`

use app::domain::ids::WorkerId;
use app::domain::time::Millis;
use app::protocol::topic::Topic;
use axum::http::header;
use serde_json::{Value, json};

use crate::tests::harness::{Actor, TestServer};

#[tokio::test]
async fn worker_is_created_and_its_token_shown_once() {
    let server = TestServer::start().await;
    let body = json!({"name": " gpu worker 1 ", "worker_type": "persistent", "labels": {"team": "nlp"}});
    let created = server.post(&Actor::Admin, "/api/admin/workers", body).await.expect_status(201);
    let token = created["token"].as_str().expect("a token");
    assert_eq!(created["name"], "gpu worker 1");
    let command = created["connection_command"].as_str().expect("a command");
    assert!(command.starts_with(&format!("SIMPLETUNER_WORKER_TOKEN={token} simpletuner worker ")), "{command}");
    assert!(
        command.ends_with("--orchestrator-url http://localhost:8001 --name 'gpu worker 1' --persistent"),
        "{command}"
    );
    let list = server.get(&Actor::Admin, "/api/admin/workers").await;
    assert!(!list.text().contains(token), "a token is shown once");
    let worker = &list.json()["workers"][0];
    assert_eq!((&worker["id"], &worker["status"]), (&created["worker_id"], &json!("offline")));
    assert_eq!((&worker["last_heartbeat"], &worker["worker_type"]), (&json!(null), &json!("persistent")));
}

#[tokio::test]
async fn worker_without_a_type_becomes_ephemeral_by_its_command() {
    let server = TestServer::start().await;
    let body = json!({"name": "worker-1", "labels": {"location": "us-west", "gpu_type": "a100", "team": "nlp"}});
    let created = server.post(&Actor::Admin, "/api/admin/workers", body).await.expect_status(201);
    let command = created["connection_command"].as_str().expect("a command");
    assert!(command.ends_with("--orchestrator-url http://localhost:8001 --name worker-1"), "{command}");
    let path = format!("/api/admin/workers/{}", created["worker_id"].as_str().expect("text"));
    let worker_type = async || server.get(&Actor::Admin, &path).await.expect_status(200)["worker_type"].clone();
    assert_eq!(worker_type().await, json!(null), "its agent determines the type");
    let key = Actor::worker(created["token"].as_str().expect("text"));
    // An agent without `--persistent`.
    server.post(&key, "/api/workers/register", json!({"protocol": 1, "persistent": false})).await.expect_status(200);
    assert_eq!(worker_type().await, "ephemeral");
}

#[tokio::test]
async fn invalid_input_is_explained_and_changes_nothing() {
    let server = TestServer::start().await;
    let create = async |body: &str| server.call(&Actor::Admin, "POST", "/api/admin/workers", body.to_owned()).await;
    create("{").await.expect_problem(400, "invalid_json");
    create("{}").await.expect_problem(400, "invalid_json");
    create(r#"["x", null, {}, false]"#).await.expect_problem(400, "invalid_json");
    create(r#"{"name": "x", "worker_type": "banana"}"#).await.expect_problem(400, "invalid_json");
    create(r#"{"name": "  "}"#).await.expect_problem(422, "invalid_name");
    create(r#"{"name": "a\u0007b"}"#).await.expect_problem(422, "invalid_name");
    create(r#"{"name": "a\u202eb"}"#).await.expect_problem(422, "invalid_name");
    create(r#"{"name": "x", "labels": {"k": "\u2066v"}}"#).await.expect_problem(422, "invalid_labels");
    create(&json!({"name": "x".repeat(65)}).to_string()).await.expect_problem(422, "invalid_name");
    let many: std::collections::BTreeMap<_, _> = (0..33).map(|n| (n.to_string(), "")).collect();
    create(&json!({"name": "x", "labels": many}).to_string()).await.expect_problem(422, "invalid_labels");
    create(&json!({"name": "x".repeat(300 << 10)}).to_string()).await.expect_problem(413, "body_too_large");
    assert_eq!(server.get(&Actor::Admin, "/api/admin/workers").await.expect_status(200)["total"], 0);
    let worker = create(r#"{"name": "x"}"#).await.expect_status(201);
    create(r#"{"name": "x"}"#).await.expect_problem(409, "name_taken");
    let drain = format!("/api/admin/workers/{}/drain", worker["worker_id"].as_str().expect("text"));
    server.call(&Actor::Admin, "POST", &drain, "\u{c}").await.expect_problem(400, "invalid_json");
    server.call(&Actor::Admin, "POST", &drain, "").await.expect_status(200);
}

#[tokio::test]
async fn the_list_is_filtered_counted_and_paged() {
    let server = TestServer::start().await;
    for n in 0..120 {
        server.create_worker(&format!("w{n:03}")).await;
    }
    let (_, _, _events) = server.connect_worker("online-one").await;
    let get =
        async |query: &str| server.get(&Actor::Admin, &format!("/api/admin/workers{query}")).await.expect_status(200);
    let all = get("").await;
    assert_eq!((all["workers"].as_array().map(Vec::len), &all["total"]), (Some(121), &json!(121)));
    assert_eq!((&all["counts"]["idle"], &all["counts"]["offline"]), (&json!(1), &json!(120)));
    let idle = get("?status=idle").await;
    assert_eq!((&idle["workers"][0]["name"], &idle["total"]), (&json!("online-one"), &json!(1)));
    assert_eq!(get("?q=W11").await["total"], 10);
    let first = get("?limit=50").await;
    let second = get(&format!("?limit=100&cursor={}", first["next_cursor"].as_str().expect("more"))).await;
    assert_eq!(first["workers"].as_array().map(Vec::len), Some(50));
    assert_eq!((second["workers"].as_array().map(Vec::len), second.get("next_cursor")), (Some(71), None));
    assert_eq!((&second["before"], &second["previous_cursor"]), (&json!(50), &json!("")));
    let third = get("?limit=20&cursor=w089").await;
    assert_eq!((&third["before"], &third["workers"][0]["name"]), (&json!(91), &json!("w090")), "after online-one too");
    let previous = get(&format!("?limit=20&cursor={}", third["previous_cursor"].as_str().expect("more"))).await;
    assert_eq!((&previous["workers"][0]["name"], &previous["before"]), (&json!("w070"), &json!(71)));
    assert_eq!(previous["next_cursor"], "w089", "the page before ends where this one begins");
}

#[tokio::test]
async fn list_is_sorted_and_cursors_keep_the_order() {
    let server = TestServer::start().await;
    for (name, gpus) in [("one", 1), ("four", 4), ("four-b", 4), ("two", 2)] {
        let (_, key) = server.create_worker(name).await;
        let gpu = |n| json!({"index": n, "uuid": format!("GPU-{name}-{n}"), "name": "A100"});
        let gpus: Vec<_> = (0..gpus).map(gpu).collect();
        server
            .post(&key, "/api/workers/register", json!({"protocol": 1, "persistent": true, "gpus": gpus}))
            .await
            .expect_status(200);
    }
    server.create_worker("none").await;
    let get =
        async |query: &str| server.get(&Actor::Admin, &format!("/api/admin/workers?{query}")).await.expect_status(200);
    let names = |page: &Value| -> Vec<String> {
        let workers = page["workers"].as_array().expect("a list");
        workers.iter().map(|worker| worker["name"].as_str().expect("text").to_owned()).collect()
    };
    assert_eq!(names(&get("sort=-gpus").await), ["four", "four-b", "two", "one", "none"]);
    assert_eq!(names(&get("sort=-name").await), ["two", "one", "none", "four-b", "four"]);
    assert_eq!(names(&get("sort=seen").await)[0], "none", "workers without a contact come first");
    assert_eq!(names(&get("sort=status").await)[4], "none");
    let first = get("sort=-gpus&limit=1").await;
    let second = get(&format!("sort=-gpus&limit=2&cursor={}", first["next_cursor"].as_str().expect("more"))).await;
    assert_eq!((names(&second), &second["before"]), (vec!["four-b".to_owned(), "two".to_owned()], &json!(1)));
    server.get(&Actor::Admin, "/api/admin/workers?sort=age").await.expect_problem(422, "out_of_range");
}

#[tokio::test]
async fn list_is_searched_counted_and_exported() {
    let server = TestServer::start().await;
    for (name, model, team) in
        [("a", "NVIDIA A100-SXM4-80GB", "nlp"), ("b", "NVIDIA H100", "nlp"), ("c,=1", "NVIDIA H100", "vision")]
    {
        let new_worker = json!({"name": name, "labels": {"team": team}});
        let created = server.post(&Actor::Admin, "/api/admin/workers", new_worker).await.expect_status(201);
        let key = Actor::worker(created["token"].as_str().expect("text"));
        let gpus = json!([{"index": 0, "uuid": format!("GPU-{name}"), "name": model}]);
        server
            .post(&key, "/api/workers/register", json!({"protocol": 1, "persistent": true, "gpus": gpus}))
            .await
            .expect_status(200);
    }
    server.create_worker("never").await;
    let get =
        async |query: &str| server.get(&Actor::Admin, &format!("/api/admin/workers?{query}")).await.expect_status(200);
    assert_eq!(get("q=gpu:h100*%20label.team=nlp").await["workers"][0]["name"], "b");
    assert_eq!(get("q=-gpu:h100%20-status:never").await["workers"][0]["name"], "a");
    let narrowed = get("facets=true&q=gpu:h100&status=connecting&label=team%3Dnlp&limit=1").await;
    assert_eq!((&narrowed["total"], &narrowed["q"]), (&json!(1), &json!("gpu:h100 status:connecting label.team=nlp")));
    let facet = |about: &str, value: &str| {
        let all = narrowed["facets"].as_array().expect("a list").iter();
        all.clone().find(|facet| facet["about"] == about && facet["value"] == value).expect("the facet").clone()
    };
    let vision = facet("label", "team=vision");
    assert_eq!((&vision["count"], &vision["chosen"]), (&json!(1), &json!(false)));
    assert_eq!(vision["q"], "gpu:h100 status:connecting label.team=vision");
    let a100 = facet("gpu", "NVIDIA A100-SXM4-80GB");
    let query = a100["q"].as_str().expect("text").replace(' ', "%20").replace('"', "%22");
    assert_eq!((&a100["count"], &get(&format!("q={query}")).await["total"]), (&json!(1), &json!(1)));
    assert_eq!(facet("status", "never")["count"], 0);
    for (query, reason) in [("color:red", "key"), ("status:sleepy", "value"), ("gpu:", "empty"), ("%22a", "quote")] {
        let rejected = server.get(&Actor::Admin, &format!("/api/admin/workers?q={query}")).await;
        assert_eq!(rejected.expect_problem(422, "invalid_search")["why"], reason);
    }
    let csv = server.get(&Actor::Admin, "/api/admin/workers/export?q=label.team=vision").await;
    assert_eq!(csv.headers["content-type"], "text/csv; charset=utf-8");
    let text = csv.text();
    assert_eq!(text.lines().count(), 2);
    assert!(text.contains("\"c,=1\",connecting,persistent,1,NVIDIA H100,team=vision,"), "{text}");
}

#[tokio::test]
async fn worker_shows_its_settings_and_each_gpu_model() {
    let server = TestServer::start().await;
    let new_worker = json!({"name": "mixed", "labels": {"team": "nlp"}});
    let created = server.post(&Actor::Admin, "/api/admin/workers", new_worker).await.expect_status(201);
    let key = Actor::worker(created["token"].as_str().expect("text"));
    let path = format!("/api/admin/workers/{}", created["worker_id"].as_str().expect("text"));
    let register = async |models: [&str; 4]| {
        let gpu = |(n, model)| json!({"index": n, "uuid": format!("GPU-{n}"), "name": model});
        let gpus: Vec<_> = models.into_iter().enumerate().map(gpu).collect();
        let body = json!({"protocol": 1, "persistent": true, "gpus": gpus, "labels": {"team": "audio", "rack": "7"}});
        server.post(&key, "/api/workers/register", body).await.expect_status(200);
        server.get(&Actor::Admin, &path).await.expect_status(200)
    };
    let mixed = register(["A100", "H100", "A100", "H100"]).await;
    assert_eq!(mixed["gpu_models"], json!([{"name": "A100", "count": 2}, {"name": "H100", "count": 2}]));
    assert_eq!(
        mixed["settings"],
        json!({"labels": {"team": "nlp"}, "ignore_reported_labels": false, "reject_older_agents": false})
    );
    assert_eq!(mixed["labels"], json!({"team": "nlp", "rack": "7"}));
    assert_eq!(mixed["registered_at"], mixed["status_since"]);
    let uniform = register(["A100"; 4]).await;
    assert_eq!((uniform.get("gpu_models"), &uniform["gpu_count"]), (None, &json!(4)));
    let list = server.get(&Actor::Admin, "/api/admin/workers").await.expect_status(200);
    assert_eq!(list["workers"][0].get("settings"), None, "lists do not contain settings");
}

#[tokio::test]
async fn drain_lasts_until_a_user_resumes() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (id, key, mut events) = server.connect_worker("gpu-1").await;
    assert_eq!(events.next_of_type("drain").await["drain"], false);
    let drained =
        server.post(&Actor::Admin, &format!("/api/admin/workers/{id}/drain"), json!({"reason": "driver"})).await;
    assert_eq!(drained.expect_status(200)["status"], "draining");
    assert_eq!(events.next_of_type("drain").await["drain"], true);
    let job = server.submit("digits").await;
    assert!(server.heartbeat(&key, json!([])).await.drain);
    drop(events);
    server.register(&key, json!([])).await;
    let mut events = server.open_stream(&key).await;
    assert_eq!(events.next_of_type("drain").await["drain"], true);
    assert_eq!(server.job_status(&job).await, "queued");
    let resumed =
        server.call(&Actor::Admin, "POST", &format!("/api/admin/workers/{id}/resume"), "").await.expect_status(200);
    assert_eq!(resumed["draining"], false);
    assert_eq!(events.next_offer().await.job_id.as_str(), job);
}

#[tokio::test]
async fn missing_worker_token_error_names_the_header() {
    let server = TestServer::start().await;
    for (method, path) in
        [("POST", "/api/workers/register"), ("POST", "/api/workers/heartbeat"), ("GET", "/api/workers/queue")]
    {
        let response = server.call(&Actor::Unauthenticated, method, path, "{}").await;
        assert_eq!(response.headers[header::WWW_AUTHENTICATE], "X-Worker-Token", "{path}");
        let problem = response.expect_problem(401, "worker_token_missing");
        assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains("X-Worker-Token")), "{problem}");
    }
}

#[tokio::test]
async fn lost_connection_differs_from_a_new_one() {
    let server = TestServer::start().await;
    let (id, key) = server.create_worker("gpu-1").await;
    let view = async || {
        let view = server.get(&Actor::Admin, &format!("/api/admin/workers/{id}")).await.expect_status(200);
        (view["status"].as_str().map(str::to_owned), view["connection_lost"].as_bool())
    };
    let connecting = || Some("connecting".to_owned());
    server.register(&key, json!([])).await;
    assert_eq!(view().await, (connecting(), None));
    let mut changes =
        server.app.services.context.notifier.subscribe_topic(&Topic::Worker(WorkerId::parse(&id).expect("an id")));
    let mut events = server.open_stream(&key).await;
    events.next_of_type("drain").await;
    assert_eq!(view().await, (Some("idle".to_owned()), None));
    changes.borrow_and_update();
    drop(events);
    while view().await != (connecting(), Some(true)) {
        changes.changed().await.expect("the end of the stream is notified");
    }
    let page = server.get(&Actor::Admin, "/admin/workers").await.text();
    assert!(page.contains("Connection lost"), "{page}");
    server.register(&key, json!([])).await;
    assert_eq!(view().await, (connecting(), None));
}

#[tokio::test]
async fn only_offline_workers_are_deleted() {
    let server = TestServer::start().await;
    let (id, key, events) = server.connect_worker("gpu-1").await;
    let path = format!("/api/admin/workers/{id}");
    server.call(&Actor::Admin, "DELETE", &path, "").await.expect_problem(409, "worker_connected");
    server.post(&key, "/api/workers/disconnect", json!({})).await.expect_status(200);
    drop(events);
    server.call(&Actor::Admin, "DELETE", &path, "").await.expect_status(200);
    server.call(&Actor::Admin, "DELETE", &path, "").await.expect_problem(404, "worker_not_found");
    server.get(&Actor::Admin, &path).await.expect_problem(404, "worker_not_found");
    server.post(&key, "/api/workers/heartbeat", json!({})).await.expect_problem(409, "not_registered");
    server.post(&key, "/api/workers/register", json!({})).await.expect_problem(401, "worker_token_invalid");
    let (never_seen, _) = server.create_worker("gpu-2").await;
    server.call(&Actor::Admin, "DELETE", &format!("/api/admin/workers/{never_seen}"), "").await.expect_status(200);
}

#[tokio::test]
async fn worker_of_a_crashed_agent_is_deleted_unless_it_runs_a_job() {
    let server = TestServer::start().await;
    let (id, key, events) = server.connect_worker("gpu-1").await;
    server.drop_stream(&id, events).await;
    let page = server.get(&Actor::Admin, &format!("/admin/workers/{id}/delete")).await.text();
    assert!(!page.contains("<button disabled"), "{page}");
    server.call(&Actor::Admin, "DELETE", &format!("/api/admin/workers/{id}"), "").await.expect_status(200);
    server.post(&key, "/api/workers/register", json!({})).await.expect_problem(401, "worker_token_invalid");

    server.put_config("digits").await;
    let (id, key, mut events) = server.connect_worker("gpu-2").await;
    let job = server.submit("digits").await;
    events.next_offer().await;
    server.report_status(&key, &job, json!({"status": "running", "attempt": 1})).await.expect_status(200);
    server.drop_stream(&id, events).await;
    let path = format!("/api/admin/workers/{id}");
    let until = server.app.services.context.now() + server.app.services.context.policy.heartbeat_timeout;
    assert_eq!(server.get(&Actor::Admin, &path).await.expect_status(200)["offline_at"], until.to_string());
    let rejected = server.call(&Actor::Admin, "DELETE", &path, "").await.expect_problem(409, "worker_connected");
    let detail = rejected["detail"].as_str().expect("text");
    assert!(detail.contains("lost its connection") && detail.contains(&until.to_string()), "{detail}");
    let page = server.get(&Actor::Admin, &format!("/admin/workers/{id}/delete")).await.text();
    assert!(page.contains("<button disabled") && page.contains("it can be deleted after"), "{page}");
    server.advance(server.app.services.context.policy.heartbeat_timeout).await;
    server.advance(Millis(1)).await;
    server.call(&Actor::Admin, "DELETE", &path, "").await.expect_status(200);
}

#[tokio::test]
async fn rotated_token_is_rejected_and_its_streams_end() {
    let server = TestServer::start().await;
    let (id, old, mut events) = server.connect_worker("gpu-1").await;
    events.next_of_type("drain").await;
    let rotated =
        server.call(&Actor::Admin, "POST", &format!("/api/admin/workers/{id}/token"), "").await.expect_status(200);
    assert!(events.next().await.is_none(), "the open stream ends");
    server.post(&old, "/api/workers/heartbeat", json!({})).await.expect_problem(401, "worker_token_invalid");
    let new = Actor::worker(rotated["token"].as_str().expect("text"));
    server.register(&new, json!([])).await;
    server
        .call(&Actor::Admin, "POST", "/api/admin/workers/w_none/token", "")
        .await
        .expect_problem(404, "worker_not_found");
}

#[tokio::test]
async fn worker_is_offline_after_rotation_unless_it_runs_a_job() {
    let server = TestServer::start().await;
    let (id, _, _events) = server.connect_worker("gpu-1").await;
    let worker = format!("/api/admin/workers/{id}");
    let rotate = async |overlap: u32| {
        server
            .post(&Actor::Admin, &format!("{worker}/token"), json!({"overlap_seconds": overlap}))
            .await
            .expect_status(200)
    };
    let status = async || server.get(&Actor::Admin, &worker).await.expect_status(200)["status"].clone();
    let key = Actor::worker(rotate(600).await["token"].as_str().expect("text"));
    assert_eq!(status().await, "idle", "the old token still works");
    server.register(&key, json!([])).await;
    server.put_config("digits").await;
    let mut events = server.open_stream(&key).await;
    let job = server.submit("digits").await;
    events.next_offer().await;
    server.report_status(&key, &job, json!({"status": "running", "attempt": 1})).await.expect_status(200);
    rotate(0).await;
    assert_eq!((status().await, server.job_status(&job).await.as_str()), (json!("busy"), "running"), "it continues");
    server.call(&Actor::Admin, "DELETE", &worker, "").await.expect_problem(409, "worker_connected");

    let (id, _, _others) = server.connect_worker("gpu-2").await;
    let worker = format!("/api/admin/workers/{id}");
    server.call(&Actor::Admin, "POST", &format!("{worker}/token"), "").await.expect_status(200);
    let audit_log =
        server.get(&Actor::Admin, &format!("/api/audit?action=worker.offline&target={id}")).await.expect_status(200);
    assert_eq!(audit_log["entries"][0]["detail"]["cause"], "token_rotated");
    server.call(&Actor::Admin, "DELETE", &worker, "").await.expect_status(200);
}

#[tokio::test]
async fn ephemeral_worker_runs_one_job() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (id, key) = server.create_worker("spot").await;
    server.post(&key, "/api/workers/register", json!({"protocol": 1, "persistent": false})).await.expect_status(200);
    let mut events = server.open_stream(&key).await;
    let (first, second) = (server.submit("digits").await, server.submit("digits").await);
    let offered = events.next_offer().await.job_id.to_string();
    let other = if offered == first { second } else { first };
    server.report_status(&key, &offered, json!({"status": "completed", "attempt": 1})).await.expect_status(200);
    assert_eq!(server.job_status(&other).await, "queued");
    let view = server.get(&Actor::Admin, &format!("/api/admin/workers/{id}")).await.expect_status(200);
    assert_eq!(view["status"], "draining");
    server.post(&key, "/api/workers/disconnect", json!({})).await.expect_status(200);
    server.post(&key, "/api/workers/register", json!({})).await.expect_problem(401, "worker_retired");
}

#[tokio::test]
async fn ephemeral_worker_finishes_parallel_jobs() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (_, key) = server.create_worker("spot").await;
    let registration = |attempts: Value| {
        let gpu = |n| json!({"index": n, "uuid": format!("GPU-{n}"), "name": "A100"});
        json!({"protocol": 1, "persistent": false, "max_jobs": 2, "gpus": [gpu(0), gpu(1)], "attempts": attempts})
    };
    server.post(&key, "/api/workers/register", registration(json!([]))).await.expect_status(200);
    let _events = server.open_stream(&key).await;
    let (first, second) = (server.submit("digits").await, server.submit("digits").await);
    for (job, status) in [(&first, "running"), (&second, "running"), (&first, "completed")] {
        server.report_status(&key, job, json!({"status": status, "attempt": 1})).await.expect_status(200);
    }
    let third = server.submit("digits").await;
    // Its connection breaks, and it reconnects with the job it still runs.
    let claims = registration(json!([{"job_id": second, "attempt": 1}]));
    server.post(&key, "/api/workers/register", claims).await.expect_status(200);
    assert_eq!(
        (server.job_status(&second).await.as_str(), server.job_status(&third).await.as_str()),
        ("running", "queued")
    );
    server.report_status(&key, &second, json!({"status": "completed", "attempt": 1})).await.expect_status(200);
    server.post(&key, "/api/workers/register", registration(json!([]))).await.expect_problem(401, "worker_retired");
}

#[tokio::test]
async fn disconnecting_worker_returns_its_offer() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (_, key, _events) = server.connect_worker("a-leaves").await;
    let job = server.submit("digits").await;
    assert_eq!(server.job_status(&job).await, "offered");
    let (id, _, _others) = server.connect_worker("b-stays").await;
    server.post(&key, "/api/workers/disconnect", json!({})).await.expect_status(200);
    let view = server.job(&job).await;
    assert_eq!((&view["status"], &view["worker_id"], &view["attempt"]), (&json!("offered"), &json!(id), &json!(2)));
}

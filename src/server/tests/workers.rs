//! `/api/admin/workers`

use axum::http::header;
use serde_json::{Value, json};

use super::harness::{By, Server};

#[tokio::test]
async fn a_worker_is_made_and_its_token_shown_once() {
    let server = Server::start().await;
    let body = json!({"name": " gpu worker 1 ", "worker_type": "persistent", "labels": {"team": "nlp"}});
    let made = server.post(&By::Admin, "/api/admin/workers", body).await.ok(201);
    let token = made["token"].as_str().expect("a token");
    assert_eq!(made["name"], "gpu worker 1");
    let command = made["connection_command"].as_str().expect("a command");
    assert!(command.starts_with(&format!("SIMPLETUNER_WORKER_TOKEN={token} simpletuner worker ")), "{command}");
    assert!(
        command.ends_with("--orchestrator-url http://localhost:8001 --name 'gpu worker 1' --persistent"),
        "{command}"
    );
    let listed = server.get(&By::Admin, "/api/admin/workers").await;
    assert!(!listed.text().contains(token), "a token is shown once");
    let worker = &listed.json()["workers"][0];
    assert_eq!((&worker["id"], &worker["status"]), (&made["worker_id"], &json!("offline")));
    assert_eq!((&worker["last_heartbeat"], &worker["worker_type"]), (&json!(null), &json!("persistent")));
}

#[tokio::test]
async fn bad_input_is_named_and_changes_nothing() {
    let server = Server::start().await;
    let make = async |body: &str| server.call(&By::Admin, "POST", "/api/admin/workers", body.to_owned()).await;
    make("{").await.problem(400, "invalid_json");
    make("{}").await.problem(400, "invalid_json");
    make(r#"["x", null, {}, false]"#).await.problem(400, "invalid_json");
    make(r#"{"name": "x", "worker_type": "banana"}"#).await.problem(400, "invalid_json");
    make(r#"{"name": "  "}"#).await.problem(422, "invalid_name");
    make(r#"{"name": "a\u0007b"}"#).await.problem(422, "invalid_name");
    make(r#"{"name": "a\u202eb"}"#).await.problem(422, "invalid_name");
    make(r#"{"name": "x", "labels": {"k": "\u2066v"}}"#).await.problem(422, "invalid_labels");
    make(&json!({"name": "x".repeat(65)}).to_string()).await.problem(422, "invalid_name");
    let many: std::collections::BTreeMap<_, _> = (0..33).map(|n| (n.to_string(), "")).collect();
    make(&json!({"name": "x", "labels": many}).to_string()).await.problem(422, "invalid_labels");
    make(&json!({"name": "x".repeat(300 << 10)}).to_string()).await.problem(413, "body_too_large");
    assert_eq!(server.get(&By::Admin, "/api/admin/workers").await.ok(200)["total"], 0);
    let worker = make(r#"{"name": "x"}"#).await.ok(201);
    make(r#"{"name": "x"}"#).await.problem(409, "name_taken");
    let drain = format!("/api/admin/workers/{}/drain", worker["worker_id"].as_str().expect("text"));
    server.call(&By::Admin, "POST", &drain, "\u{c}").await.problem(400, "invalid_json");
    server.call(&By::Admin, "POST", &drain, "").await.ok(200);
}

#[tokio::test]
async fn the_list_is_filtered_counted_and_paged() {
    let server = Server::start().await;
    for n in 0..120 {
        server.worker(&format!("w{n:03}")).await;
    }
    let (_, _, _events) = server.online("online-one").await;
    let get = async |query: &str| server.get(&By::Admin, &format!("/api/admin/workers{query}")).await.ok(200);
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
    let back = get(&format!("?limit=20&cursor={}", third["previous_cursor"].as_str().expect("more"))).await;
    assert_eq!((&back["workers"][0]["name"], &back["before"]), (&json!("w070"), &json!(71)));
    assert_eq!(back["next_cursor"], "w089", "the page before ends where this one begins");
}

#[tokio::test]
async fn the_list_is_sorted_and_a_cursor_goes_on_in_that_order() {
    let server = Server::start().await;
    for (name, gpus) in [("one", 1), ("four", 4), ("four-b", 4), ("two", 2)] {
        let (_, key) = server.worker(name).await;
        let gpu = |n| json!({"index": n, "uuid": format!("GPU-{name}-{n}"), "name": "A100"});
        let gpus: Vec<_> = (0..gpus).map(gpu).collect();
        server
            .post(&key, "/api/workers/register", json!({"protocol": 1, "persistent": true, "gpus": gpus}))
            .await
            .ok(200);
    }
    server.worker("none").await;
    let get = async |query: &str| server.get(&By::Admin, &format!("/api/admin/workers?{query}")).await.ok(200);
    let names = |page: &Value| -> Vec<String> {
        let workers = page["workers"].as_array().expect("a list");
        workers.iter().map(|worker| worker["name"].as_str().expect("text").to_owned()).collect()
    };
    assert_eq!(names(&get("sort=-gpus").await), ["four", "four-b", "two", "one", "none"]);
    assert_eq!(names(&get("sort=-name").await), ["two", "one", "none", "four-b", "four"]);
    assert_eq!(names(&get("sort=seen").await)[0], "none", "who was never heard of comes first");
    assert_eq!(names(&get("sort=status").await)[4], "none");
    let first = get("sort=-gpus&limit=1").await;
    let second = get(&format!("sort=-gpus&limit=2&cursor={}", first["next_cursor"].as_str().expect("more"))).await;
    assert_eq!((names(&second), &second["before"]), (vec!["four-b".to_owned(), "two".to_owned()], &json!(1)));
    server.get(&By::Admin, "/api/admin/workers?sort=age").await.problem(422, "out_of_range");
}

#[tokio::test]
async fn the_list_is_asked_in_words_counted_by_what_is_left_and_exported() {
    let server = Server::start().await;
    for (name, model, team) in
        [("a", "NVIDIA A100-SXM4-80GB", "nlp"), ("b", "NVIDIA H100", "nlp"), ("c,=1", "NVIDIA H100", "vision")]
    {
        let wanted = json!({"name": name, "labels": {"team": team}});
        let made = server.post(&By::Admin, "/api/admin/workers", wanted).await.ok(201);
        let key = By::worker(made["token"].as_str().expect("text"));
        let gpus = json!([{"index": 0, "uuid": format!("GPU-{name}"), "name": model}]);
        server
            .post(&key, "/api/workers/register", json!({"protocol": 1, "persistent": true, "gpus": gpus}))
            .await
            .ok(200);
    }
    server.worker("never").await;
    let get = async |query: &str| server.get(&By::Admin, &format!("/api/admin/workers?{query}")).await.ok(200);
    assert_eq!(get("q=gpu:h100*%20label.team=nlp").await["workers"][0]["name"], "b");
    assert_eq!(get("q=-gpu:h100%20-status:never").await["workers"][0]["name"], "a");
    let narrowed = get("facets=true&q=gpu:h100&status=connecting&label=team%3Dnlp&limit=1").await;
    assert_eq!((&narrowed["total"], &narrowed["q"]), (&json!(1), &json!("gpu:h100 status:connecting label.team=nlp")));
    let facet = |about: &str, value: &str| {
        let all = narrowed["facets"].as_array().expect("a list").iter();
        all.clone().find(|facet| facet["about"] == about && facet["value"] == value).expect("it is offered").clone()
    };
    let vision = facet("label", "team=vision");
    assert_eq!((&vision["count"], &vision["chosen"]), (&json!(1), &json!(false)));
    assert_eq!(vision["q"], "gpu:h100 status:connecting label.team=vision");
    let a100 = facet("gpu", "NVIDIA A100-SXM4-80GB");
    let asked = a100["q"].as_str().expect("text").replace(' ', "%20").replace('"', "%22");
    assert_eq!((&a100["count"], &get(&format!("q={asked}")).await["total"]), (&json!(1), &json!(1)));
    assert_eq!(facet("status", "never")["count"], 0);
    for (asked, why) in [("color:red", "key"), ("status:sleepy", "value"), ("gpu:", "empty"), ("%22a", "quote")] {
        let refused = server.get(&By::Admin, &format!("/api/admin/workers?q={asked}")).await;
        assert_eq!(refused.problem(422, "invalid_search")["why"], why);
    }
    let csv = server.get(&By::Admin, "/api/admin/workers/export?q=label.team=vision").await;
    assert_eq!(csv.headers["content-type"], "text/csv; charset=utf-8");
    let text = csv.text();
    assert_eq!(text.lines().count(), 2);
    assert!(text.contains("\"c,=1\",connecting,persistent,1,NVIDIA H100,team=vision,"), "{text}");
}

#[tokio::test]
async fn a_worker_tells_what_was_set_and_of_mixed_gpus_each_model() {
    let server = Server::start().await;
    let wanted = json!({"name": "mixed", "labels": {"team": "nlp"}});
    let made = server.post(&By::Admin, "/api/admin/workers", wanted).await.ok(201);
    let key = By::worker(made["token"].as_str().expect("text"));
    let path = format!("/api/admin/workers/{}", made["worker_id"].as_str().expect("text"));
    let register = async |models: [&str; 4]| {
        let gpu = |(n, model)| json!({"index": n, "uuid": format!("GPU-{n}"), "name": model});
        let gpus: Vec<_> = models.into_iter().enumerate().map(gpu).collect();
        let body = json!({"protocol": 1, "persistent": true, "gpus": gpus, "labels": {"team": "audio", "rack": "7"}});
        server.post(&key, "/api/workers/register", body).await.ok(200);
        server.get(&By::Admin, &path).await.ok(200)
    };
    let mixed = register(["A100", "H100", "A100", "H100"]).await;
    assert_eq!(mixed["gpu_models"], json!([{"name": "A100", "count": 2}, {"name": "H100", "count": 2}]));
    assert_eq!(
        mixed["settings"],
        json!({"labels": {"team": "nlp"}, "ignore_reported_labels": false, "refuse_older_agents": false})
    );
    assert_eq!(mixed["labels"], json!({"team": "nlp", "rack": "7"}));
    assert_eq!(mixed["registered_at"], mixed["status_since"]);
    let alike = register(["A100"; 4]).await;
    assert_eq!((alike.get("gpu_models"), &alike["gpu_count"]), (None, &json!(4)));
    let listed = server.get(&By::Admin, "/api/admin/workers").await.ok(200);
    assert_eq!(listed["workers"][0].get("settings"), None, "a list does not say it");
}

#[tokio::test]
async fn a_drain_holds_until_a_person_undoes_it() {
    let server = Server::start().await;
    server.config("digits").await;
    let (id, key, mut events) = server.online("gpu-1").await;
    assert_eq!(events.of_type("drain").await["drain"], false);
    let drained = server.post(&By::Admin, &format!("/api/admin/workers/{id}/drain"), json!({"reason": "driver"})).await;
    assert_eq!(drained.ok(200)["status"], "draining");
    assert_eq!(events.of_type("drain").await["drain"], true);
    let job = server.submit("digits").await;
    assert!(server.heartbeat(&key, json!([])).await.drain);
    drop(events);
    server.register(&key, json!([])).await;
    let mut events = server.stream(&key).await;
    assert_eq!(events.of_type("drain").await["drain"], true);
    assert_eq!(server.status_of(&job).await, "queued");
    let resumed = server.call(&By::Admin, "POST", &format!("/api/admin/workers/{id}/resume"), "").await.ok(200);
    assert_eq!(resumed["draining"], false);
    assert_eq!(events.offer().await.job_id.as_str(), job);
}

#[tokio::test]
async fn a_request_without_a_workers_token_is_told_which_header_is_missing() {
    let server = Server::start().await;
    for (method, path) in
        [("POST", "/api/workers/register"), ("POST", "/api/workers/heartbeat"), ("GET", "/api/workers/queue")]
    {
        let answer = server.call(&By::Nobody, method, path, "{}").await;
        assert_eq!(answer.headers[header::WWW_AUTHENTICATE], "X-Worker-Token", "{path}");
        let problem = answer.problem(401, "worker_token_missing");
        assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains("X-Worker-Token")), "{problem}");
    }
}

#[tokio::test]
async fn only_a_worker_that_is_away_is_deleted() {
    let server = Server::start().await;
    let (id, key, events) = server.online("gpu-1").await;
    let path = format!("/api/admin/workers/{id}");
    server.call(&By::Admin, "DELETE", &path, "").await.problem(409, "worker_connected");
    server.post(&key, "/api/workers/disconnect", json!({})).await.ok(200);
    drop(events);
    server.call(&By::Admin, "DELETE", &path, "").await.ok(200);
    server.call(&By::Admin, "DELETE", &path, "").await.problem(404, "worker_not_found");
    server.get(&By::Admin, &path).await.problem(404, "worker_not_found");
    server.post(&key, "/api/workers/heartbeat", json!({})).await.problem(409, "not_registered");
    server.post(&key, "/api/workers/register", json!({})).await.problem(401, "worker_token_refused");
    let (never_seen, _) = server.worker("gpu-2").await;
    server.call(&By::Admin, "DELETE", &format!("/api/admin/workers/{never_seen}"), "").await.ok(200);
}

#[tokio::test]
async fn a_rotated_token_opens_nothing_and_ends_its_streams() {
    let server = Server::start().await;
    let (id, old, mut events) = server.online("gpu-1").await;
    events.of_type("drain").await;
    let rotated = server.call(&By::Admin, "POST", &format!("/api/admin/workers/{id}/token"), "").await.ok(200);
    assert!(events.next().await.is_none(), "the open stream ends");
    server.post(&old, "/api/workers/heartbeat", json!({})).await.problem(401, "worker_token_refused");
    let new = By::worker(rotated["token"].as_str().expect("text"));
    server.register(&new, json!([])).await;
    server.call(&By::Admin, "POST", "/api/admin/workers/w_none/token", "").await.problem(404, "worker_not_found");
}

#[tokio::test]
async fn an_ephemeral_worker_takes_one_job() {
    let server = Server::start().await;
    server.config("digits").await;
    let (id, key) = server.worker("spot").await;
    server.post(&key, "/api/workers/register", json!({"protocol": 1, "persistent": false})).await.ok(200);
    let mut events = server.stream(&key).await;
    let (first, second) = (server.submit("digits").await, server.submit("digits").await);
    let taken = events.offer().await.job_id.to_string();
    let other = if taken == first { second } else { first };
    server.report(&key, &taken, json!({"status": "completed", "attempt": 1})).await.ok(200);
    assert_eq!(server.status_of(&other).await, "queued");
    let view = server.get(&By::Admin, &format!("/api/admin/workers/{id}")).await.ok(200);
    assert_eq!(view["status"], "draining");
    server.post(&key, "/api/workers/disconnect", json!({})).await.ok(200);
    server.post(&key, "/api/workers/register", json!({})).await.problem(401, "worker_token_spent");
}

#[tokio::test]
async fn an_ephemeral_worker_sees_through_what_it_runs_beside_its_first_job() {
    let server = Server::start().await;
    server.config("digits").await;
    let (_, key) = server.worker("spot").await;
    let hello = |attempts: Value| {
        let gpu = |n| json!({"index": n, "uuid": format!("GPU-{n}"), "name": "A100"});
        json!({"protocol": 1, "persistent": false, "max_jobs": 2, "gpus": [gpu(0), gpu(1)], "attempts": attempts})
    };
    server.post(&key, "/api/workers/register", hello(json!([]))).await.ok(200);
    let _events = server.stream(&key).await;
    let (first, second) = (server.submit("digits").await, server.submit("digits").await);
    for (job, status) in [(&first, "running"), (&second, "running"), (&first, "completed")] {
        server.report(&key, job, json!({"status": status, "attempt": 1})).await.ok(200);
    }
    let third = server.submit("digits").await;
    // Its connection breaks, and it comes back with what it still runs.
    let claims = hello(json!([{"job_id": second, "attempt": 1}]));
    server.post(&key, "/api/workers/register", claims).await.ok(200);
    assert_eq!(
        (server.status_of(&second).await.as_str(), server.status_of(&third).await.as_str()),
        ("running", "queued")
    );
    server.report(&key, &second, json!({"status": "completed", "attempt": 1})).await.ok(200);
    server.post(&key, "/api/workers/register", hello(json!([]))).await.problem(401, "worker_token_spent");
}

#[tokio::test]
async fn a_worker_that_leaves_gives_its_offer_back() {
    let server = Server::start().await;
    server.config("digits").await;
    let (_, key, _events) = server.online("a-leaves").await;
    let job = server.submit("digits").await;
    assert_eq!(server.status_of(&job).await, "offered");
    let (id, _, _others) = server.online("b-stays").await;
    server.post(&key, "/api/workers/disconnect", json!({})).await.ok(200);
    let view = server.job(&job).await;
    assert_eq!((&view["status"], &view["worker_id"], &view["attempt"]), (&json!("offered"), &json!(id), &json!(2)));
}

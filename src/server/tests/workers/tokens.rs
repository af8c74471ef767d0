//! Worker tokens: expiry, allowed networks, and conflicts of two agents.

use app::domain::ids::WorkerId;
use app::domain::time::Millis;
use app::protocol::topic::Topic;
use axum::body::Body;
use axum::http::{Request, header};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::http::edge::request::Peer;
use crate::tests::harness::{Actor, EventStreamReader, TestResponse, TestServer, read_response};
use crate::tests::ui::pages;
use crate::tokens::hex;

/// Sends a worker's request from an address, or from an unknown one.
async fn send_from(
    server: &TestServer,
    key: &Actor,
    host: &str,
    method: &str,
    path: &str,
    body: Value,
) -> TestResponse {
    let (name, value) = match key {
        Actor::Worker(agent) => agent.auth_header(server, path).await,
        Actor::Job(token) => ("x-upload-token", token.clone()),
        other => panic!("only agents have an address: {other:?}"),
    };
    let request = Request::builder().method(method).uri(path).header(header::HOST, "localhost:8001");
    let mut request = request.header(name, value).body(Body::from(body.to_string())).expect("a request");
    if let Ok(host) = host.parse() {
        request.extensions_mut().insert(Peer(host));
    }
    let response = server.send(request).await;
    read_response(if let Actor::Worker(agent) = key { agent.record_session(path, response).await } else { response })
        .await
}

async fn create(server: &TestServer, body: Value) -> (String, Actor) {
    let created = server.post(&Actor::Admin, "/api/admin/workers", body).await.expect_status(201);
    let text = |key: &str| created[key].as_str().expect("text").to_owned();
    (text("worker_id"), Actor::worker(text("token")))
}

async fn rotate(server: &TestServer, id: &str, body: Value) -> Actor {
    let rotated = server.post(&Actor::Admin, &format!("/api/admin/workers/{id}/token"), body).await.expect_status(200);
    Actor::worker(rotated["token"].as_str().expect("text"))
}

async fn view(server: &TestServer, id: &str) -> Value {
    server.get(&Actor::Admin, &format!("/api/admin/workers/{id}")).await.expect_status(200)
}

/// Returns the reasons of rejections in the audit log, oldest first.
async fn reasons(server: &TestServer, action: &str) -> Vec<String> {
    let page = server.get(&Actor::Admin, &format!("/api/audit?action={action}")).await.expect_status(200);
    let entries = page["entries"].as_array().expect("a list").iter().rev();
    entries.map(|entry| entry["detail"]["reason"].as_str().unwrap_or("none").to_owned()).collect()
}

async fn wait_for_end(mut events: EventStreamReader) -> bool {
    while events.next().await.is_some() {}
    true
}

#[tokio::test]
async fn expired_token_is_rejected_and_its_stream_ends() {
    let server = TestServer::start().await;
    let (id, key) = create(&server, json!({"name": "rented", "expires_in_seconds": 3_600})).await;
    let expiry = view(&server, &id).await["token_expires_at"].clone();
    assert!(expiry.as_str().is_some_and(|expiry| expiry.starts_with("2024-")), "{expiry}");
    server.register(&key, json!([])).await;
    // So close to its expiry, the stream waits for nothing else.
    server.clock.advance(Millis(3_599_500));
    let mut events = server.open_stream(&key).await;
    events.next_of_type("drain").await;
    server.clock.advance(Millis(500));
    assert!(wait_for_end(events).await);
    server.post(&key, "/api/workers/heartbeat", json!({})).await.expect_problem(401, "worker_token_expired");
    server.post(&key, "/api/workers/register", json!({})).await.expect_problem(401, "worker_token_expired");
    assert_eq!(reasons(&server, "access.denied").await, ["worker_token_expired"]);
    assert_eq!(reasons(&server, "worker.registration_rejected").await, ["worker_token_expired"]);
    let new_key = rotate(&server, &id, json!({})).await;
    assert_eq!(view(&server, &id).await["token_expires_at"], json!(null), "no other expiry was requested");
    server.register(&new_key, json!([])).await;
}

#[tokio::test]
async fn token_lifetimes_are_validated() {
    let server = TestServer::start().await;
    let make = async |body: Value| server.post(&Actor::Admin, "/api/admin/workers", body).await;
    for end in [json!({"expires_in_seconds": 0}), json!({"expires_at": "2020-01-01T00:00:00Z"})] {
        let mut body = end.clone();
        body["name"] = json!("x");
        make(body).await.expect_problem(422, "out_of_range");
        let (id, _) = server.create_worker(&end.to_string().replace('"', "")).await;
        server
            .post(&Actor::Admin, &format!("/api/admin/workers/{id}/token"), end)
            .await
            .expect_problem(422, "out_of_range");
    }
    let both = json!({"name": "x", "expires_in_seconds": 9, "expires_at": "2030-01-01T00:00:00Z"});
    make(both).await.expect_problem(422, "out_of_range");
    make(json!({"name": "x", "expires_in_seconds": u32::MAX})).await.expect_problem(422, "out_of_range");
    make(json!({"name": "x", "allowed_networks": ["10.0.0.0/33"]})).await.expect_problem(422, "invalid_network");
    make(json!({"name": "x", "allowed_networks": vec!["::1"; 33]})).await.expect_problem(422, "too_large");
    let (id, _) = create(&server, json!({"name": "x", "expires_at": "2024-06-01T00:00:00Z"})).await;
    assert_eq!(view(&server, &id).await["token_expires_at"], "2024-06-01T00:00:00.000Z");
    let path = format!("/api/admin/workers/{id}/token");
    server.post(&Actor::Admin, &path, json!({"overlap_seconds": 604_801})).await.expect_problem(422, "out_of_range");
}

#[tokio::test]
async fn overlap_keeps_the_old_token_until_the_new_one_is_used() {
    let server = TestServer::start().await;
    let (id, old, mut events) = server.connect_worker("gpu-1").await;
    events.next_of_type("drain").await;
    let new = rotate(&server, &id, json!({"overlap_seconds": 600})).await;
    server.heartbeat(&old, json!([])).await;
    assert!(view(&server, &id).await["old_token_ends_at"].is_string());
    server.post(&new, "/api/workers/heartbeat", json!({})).await.expect_problem(409, "token_in_use");
    server.heartbeat(&old, json!([])).await;
    server.register(&new, json!([])).await;
    assert!(wait_for_end(events).await, "the stream with the old token");
    server.post(&old, "/api/workers/heartbeat", json!({})).await.expect_problem(409, "not_registered");
    server.post(&old, "/api/workers/register", json!({})).await.expect_problem(401, "worker_token_invalid");
    assert_eq!(view(&server, &id).await["old_token_ends_at"], json!(null));

    let newest = rotate(&server, &id, json!({"overlap_seconds": 600})).await;
    server.clock.advance(Millis::from_secs(600));
    server.post(&new, "/api/workers/heartbeat", json!({})).await.expect_problem(401, "worker_token_invalid");
    server.register(&newest, json!([])).await;
}

#[tokio::test]
async fn pending_request_with_a_rotated_token_is_rejected() {
    let server = TestServer::start().await;
    let (id, key) = server.create_worker("gpu-1").await;
    server.register(&key, json!([])).await;
    let mut changes =
        server.app.services.context.notifier.subscribe_topic(&Topic::Worker(WorkerId::parse(&id).expect("an id")));
    let next_response = server.get(&key, "/api/workers/next?wait=60");
    let rotated = async {
        // It is connected, so it waits.
        changes.changed().await.expect("a notifier");
        rotate(&server, &id, json!({})).await
    };
    let (response, _) = tokio::join!(next_response, rotated);
    response.expect_problem(401, "worker_token_invalid");
}

#[tokio::test]
async fn agent_is_accepted_from_allowed_networks_only() {
    let server = TestServer::start().await;
    let networks = json!(["10.1.0.0/16", "2001:db8::/32"]);
    let (id, key) = create(&server, json!({"name": "gpu-1", "allowed_networks": networks})).await;
    let register = json!({"protocol": 1, "persistent": true});
    let path = "/api/workers/register";
    for host in ["192.0.2.1", "2001:db9::1", "nowhere"] {
        send_from(&server, &key, host, "POST", path, register.clone()).await.expect_problem(403, "network_not_allowed");
    }
    assert_eq!(view(&server, &id).await["last_heartbeat"], json!(null), "a rejected request is no contact");
    send_from(&server, &key, "2001:db8::7", "POST", path, register.clone()).await.expect_status(200);
    assert_eq!(view(&server, &id).await["last_used_from"], "2001:db8::7");
    server.app.services.agents.flush_presence().await.expect("a database");
    assert_eq!(view(&server, &id).await["last_used_from"], "2001:db8::7");
    send_from(&server, &key, "192.0.2.1", "POST", "/api/workers/heartbeat", json!({}))
        .await
        .expect_problem(403, "network_not_allowed");
    assert_eq!(reasons(&server, "worker.registration_rejected").await, ["network_not_allowed"; 3]);
    assert_eq!(reasons(&server, "access.denied").await, ["network_not_allowed"]);

    let stream = EventStreamReader::new(server.open_stream_from(&key, [10, 1, 0, 9]).await);
    let edit = json!({"allowed_networks": ["192.0.2.0/24"]});
    server.call(&Actor::Admin, "PATCH", &format!("/api/admin/workers/{id}"), edit.to_string()).await.expect_status(200);
    assert!(wait_for_end(stream).await, "it is no longer allowed there");
    send_from(&server, &key, "192.0.2.1", "POST", "/api/workers/register", register).await.expect_status(200);
}

#[tokio::test]
async fn rejected_agent_is_shown_while_waiting_for_first_contact() {
    let server = TestServer::start().await;
    let (id, key) = create(&server, json!({"name": "gpu-1", "allowed_networks": ["10.1.0.0/16"]})).await;
    let rejection = async || view(&server, &id).await.get("last_rejection").cloned().unwrap_or_default();
    assert_eq!(rejection().await, json!(null));
    let mut changes =
        server.app.services.context.notifier.subscribe_topic(&Topic::Worker(WorkerId::parse(&id).expect("an id")));
    let (register, path) = (json!({"name": "gpu-1"}), "/api/workers/register");
    let invalid_key = Actor::worker("wt_cut");
    send_from(&server, &invalid_key, "192.0.2.9", "POST", path, register.clone())
        .await
        .expect_problem(401, "worker_token_invalid");
    changes.changed().await.expect("the waiting page is notified");
    let latest = rejection().await;
    assert_eq!((&latest["reason"], &latest["from"]), (&json!("worker_token_invalid"), &json!("192.0.2.9")));
    send_from(&server, &key, "192.0.2.1", "POST", path, register.clone())
        .await
        .expect_problem(403, "network_not_allowed");
    let latest = rejection().await;
    assert_eq!((&latest["reason"], &latest["from"]), (&json!("network_not_allowed"), &json!("192.0.2.1")));
    assert!(latest["at"].is_string());
    // Nothing was rejected with a new token yet.
    server.clock.advance(Millis::from_secs(1));
    let new = rotate(&server, &id, json!({})).await;
    assert_eq!(rejection().await, json!(null));
    send_from(&server, &key, "10.1.0.1", "POST", path, register.clone())
        .await
        .expect_problem(401, "worker_token_invalid");
    assert_eq!(rejection().await["reason"], "worker_token_invalid");
    send_from(&server, &new, "10.1.0.1", "POST", path, register).await.expect_status(200);
    assert_eq!(rejection().await, json!(null), "the agent has registered");
}

#[tokio::test]
async fn agent_address_is_resolved_behind_a_trusted_proxy() {
    let server = TestServer::start().await;
    let (_, key) = create(&server, json!({"name": "gpu-1", "allowed_networks": ["203.0.113.0/24"]})).await;
    let Actor::Worker(agent) = &key else { unreachable!("a worker's token") };
    let token = agent.token();
    let call = async |proxy: [u8; 4], client: &str| {
        let request = Request::builder().method("POST").uri("/api/workers/register").header("x-worker-token", token);
        let request = request.header(header::HOST, "localhost:8001").header("x-forwarded-for", client);
        read_response(
            server.send(request.extension(Peer(proxy.into())).body(Body::from("{}")).expect("a request")).await,
        )
        .await
    };
    call([10, 0, 0, 1], "198.51.100.1").await.expect_problem(403, "network_not_allowed");
    call([192, 0, 2, 1], "203.0.113.9").await.expect_problem(403, "network_not_allowed");
    call([10, 0, 0, 1], "203.0.113.9").await.expect_status(200);
}

#[tokio::test]
async fn two_agents_with_one_token_raise_a_lasting_alert() {
    let server = TestServer::start().await;
    let (id, key) = server.create_worker("gpu-1").await;
    let register = |install: &str| json!({"protocol": 1, "install_id": install, "host": format!("host-{install}")});
    server.post(&key, "/api/workers/register", register("a")).await.expect_status(200);
    let register_second_agent = async || {
        server.clock.advance(Millis::from_secs(20));
        server.post(&key, "/api/workers/register", register("b")).await.expect_problem(409, "token_in_use");
    };
    register_second_agent().await;
    assert_eq!(view(&server, &id).await["token_conflict"]["host"], "host-b");
    let page = server.get(&Actor::Admin, &format!("/admin/workers/{id}")).await.text();
    assert!(page.contains("Token used by two agents") && page.contains("host-b"), "{page}");
    assert!(server.get(&Actor::Admin, "/admin/workers").await.text().contains("Token used by two agents"));
    server.call(&Actor::Admin, "POST", &format!("/ui/workers/{id}/settle"), "").await;
    assert_eq!(view(&server, &id).await["token_conflict"], json!(null));
    register_second_agent().await;
    rotate(&server, &id, json!({})).await;
    assert_eq!(view(&server, &id).await["token_conflict"], json!(null), "a rotation resolves the conflict");
}

#[tokio::test]
async fn form_creates_and_rotates_limited_tokens() {
    let server = TestServer::start().await;
    let form = "name=gpu-1&worker_type=persistent&expires_in_days=30&networks=10.0.0.0%2F8%2C+%3A%3A1";
    let response = server.call(&Actor::Admin, "POST", "/ui/workers", form).await;
    let page = response.headers[header::LOCATION].to_str().expect("ascii").to_owned();
    let id = page.rsplit('/').next().expect("an id").to_owned();
    let created = view(&server, &id).await;
    assert_eq!(created["allowed_networks"], json!(["10.0.0.0/8", "::1/128"]));
    assert_eq!(created["token_expires_at"], "2024-02-14T10:30:00.000Z");
    let html = server.get(&Actor::Admin, &page).await.text();
    assert!(html.contains("10.0.0.0/8, ::1/128") && html.contains("14 Feb 2024, 10:30:00 UTC"), "{html}");
    server
        .call(&Actor::Admin, "POST", &format!("/ui/workers/{id}/token"), "overlap_seconds=3600&expires_in_days=")
        .await;
    let rotated = view(&server, &id).await;
    assert_eq!((&rotated["token_expires_at"], rotated["old_token_ends_at"].is_string()), (&json!(null), true));
    assert!(rotated["token_unused_ends_at"].is_string(), "no expiry was chosen");
}

#[tokio::test]
async fn page_waits_for_the_agent_after_a_rotation() {
    let server = TestServer::start().await;
    let (id, _, _events) = server.connect_worker("gpu-1").await;
    server.clock.advance(Millis::from_secs(60));
    let (location, cookies) = pages::post(
        &server,
        &pages::log_in(&server).await,
        &format!("/ui/workers/{id}/token"),
        "overlap_seconds=&expires_in_days=",
    )
    .await;
    let html = pages::page(&server, &cookies, &location).await;
    assert!(html.contains("Waiting for the agent to connect") && !html.contains("contact is-here"), "{html}");
    let before = view(&server, &id).await;
    assert!(before["registered_at"].as_str() < before["token_created_at"].as_str(), "{before}");

    let (_, after) = html.split_once("SIMPLETUNER_WORKER_TOKEN=").expect("the command to copy");
    let token: String = after.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
    server.clock.advance(Millis::from_secs(1));
    server.register(&Actor::worker(token), json!([])).await;
    let registered = view(&server, &id).await;
    assert!(registered["registered_at"].as_str() > registered["token_created_at"].as_str(), "{registered}");
}

#[tokio::test]
async fn job_token_is_valid_for_one_attempt() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (_, key, mut events) = server.connect_worker("gpu-1").await;
    let job = server.submit("digits").await;
    let first = Actor::Job(events.next_offer().await.upload_token);
    let report = async |token: &Actor, body: Value| server.report_status(token, &job, body).await;
    let put = async |token: &Actor, resource: &str| {
        let path = format!("/api/workers/job/{job}/{resource}");
        server.call(token, "PUT", &path, "x").await
    };
    report(&first, json!({"status": "running", "attempt": 1})).await.expect_status(200);
    report(&first, json!({"status": "running", "attempt": 2})).await.expect_problem(403, "other_attempt");
    put(&first, "logs?attempt=1&offset=0").await.expect_status(200);
    server.post(&key, "/api/workers/disconnect", json!({})).await.expect_status(200);
    server.advance(Millis::from_secs(500)).await;
    let (_, _, mut other_events) = server.connect_worker("gpu-2").await;
    server.advance(Millis::from_secs(10)).await;
    let second = Actor::Job(other_events.next_offer().await.upload_token);
    for resource in ["logs?attempt=1&offset=1", "artifacts/late.bin?attempt=1"] {
        put(&first, resource).await.expect_problem(409, "stale_attempt");
    }
    report(&first, json!({"status": "completed", "attempt": 1})).await.expect_problem(409, "stale_attempt");
    report(&second, json!({"status": "completed", "attempt": 2})).await.expect_status(200);
    // A lost report may be repeated; other reports are rejected.
    report(&second, json!({"status": "completed", "attempt": 2})).await.expect_status(200);
    report(&second, json!({"status": "failed", "attempt": 2})).await.expect_problem(409, "job_ended");
    put(&second, "artifacts/late.bin?attempt=2").await.expect_problem(409, "job_ended");
    let bundle = format!("/api/workers/job/{job}/bundle?attempt=2");
    server.get(&second, &bundle).await.expect_problem(409, "job_ended");
    server.get(&second, "/api/queue").await.expect_problem(401, "not_authenticated");
    server.post(&second, "/api/workers/heartbeat", json!({})).await.expect_problem(401, "worker_token_missing");
}

#[tokio::test]
async fn job_token_is_limited_to_its_workers_networks() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (_, key) = create(&server, json!({"name": "gpu-1", "allowed_networks": ["10.1.0.0/16"]})).await;
    let register = json!({"protocol": 1, "persistent": true, "accelerator_type": "cpu"});
    send_from(&server, &key, "10.1.0.9", "POST", "/api/workers/register", register).await.expect_status(200);
    let mut events = EventStreamReader::new(server.open_stream_from(&key, [10, 1, 0, 9]).await);
    let job = server.submit("digits").await;
    let token = Actor::Job(events.next_offer().await.upload_token);
    let (path, running) = (format!("/api/workers/job/{job}/status"), json!({"status": "running", "attempt": 1}));
    send_from(&server, &token, "192.0.2.1", "POST", &path, running.clone())
        .await
        .expect_problem(403, "network_not_allowed");
    send_from(&server, &token, "10.1.0.9", "POST", &path, running).await.expect_status(200);
}

#[tokio::test]
async fn unused_worker_token_expires_after_thirty_days() {
    let server = TestServer::start().await;
    let (idle, idle_key) = server.create_worker("idle").await;
    let (used, used_key) = server.create_worker("used").await;
    assert_eq!(view(&server, &idle).await["token_unused_ends_at"], "2024-02-14T10:30:00.000Z");
    let page = server.get(&Actor::Admin, &format!("/admin/workers/{idle}")).await.text();
    assert!(page.contains("unless an agent registers first"), "{page}");
    server.register(&used_key, json!([])).await;
    assert_eq!(view(&server, &used).await["token_unused_ends_at"], json!(null));
    let limited = json!({"name": "chosen", "expires_in_seconds": 60 * 86_400});
    let limited = server.post(&Actor::Admin, "/api/admin/workers", limited).await.expect_status(201);
    let limited = Actor::worker(limited["token"].as_str().expect("text"));

    server.advance(Millis::from_secs(30 * 86_400)).await;
    let body = json!({"protocol": 1});
    server.post(&idle_key, "/api/workers/register", body.clone()).await.expect_problem(401, "worker_token_expired");
    server.post(&used_key, "/api/workers/register", body.clone()).await.expect_status(200);
    server.post(&limited, "/api/workers/register", body.clone()).await.expect_status(200);
    // The new token of a rotation has new limits.
    let rotated =
        server.post(&Actor::Admin, &format!("/api/admin/workers/{idle}/token"), json!({})).await.expect_status(200);
    let new_key = Actor::worker(rotated["token"].as_str().expect("text"));
    server.post(&new_key, "/api/workers/register", body).await.expect_status(200);
}

#[tokio::test]
async fn only_the_sha256_of_a_token_is_stored() {
    let server = TestServer::start().await;
    let (id, key) = create(&server, json!({"name": "gpu-1"})).await;
    let Actor::Worker(agent) = &key else { panic!("a worker's key") };
    let hash = hex(&Sha256::digest(agent.token()));
    let mut tx = server.app.services.context.read().await.expect("a database");
    let stored = tx.worker_by_token(&hash).await.expect("readable").expect("a worker with this hash");
    assert_eq!((stored.worker.id.as_str(), stored.credential.digest.as_str()), (id.as_str(), hash.as_str()));
    drop(tx);
    for file in std::fs::read_dir(server.directory.path()).expect("readable").flatten() {
        let bytes = std::fs::read(file.path()).unwrap_or_default();
        let found = bytes.windows(agent.token().len()).any(|window| window == agent.token().as_bytes());
        assert!(!found, "the token is in {}", file.path().display());
    }
}

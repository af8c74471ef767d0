//! `GET /api/events`

use app::domain::ids::JobId;
use app::protocol::topic::Topic;
use axum::body::Body;
use serde_json::{Value, json};

use super::harness::{By, Events, Server};

async fn listen(server: &Server, query: &str) -> Events {
    listen_as(server, &By::Admin, query).await
}

async fn listen_as(server: &Server, by: &By, query: &str) -> Events {
    Events::of(server.open(by, "GET", &format!("/api/events{query}"), Body::empty()).await)
}

async fn submit_as(server: &Server, by: &By) -> String {
    let body = json!({"config_name": "digits", "target": "worker"});
    server.post(by, "/api/queue/submit", body).await.ok(201)["job_id"].as_str().expect("text").to_owned()
}

/// Every topic up to this one.
async fn topics_until(events: &mut Events, last: &str) -> Vec<String> {
    let mut all = Vec::new();
    while !all.iter().any(|topic| topic == last) {
        let news = events.next().await.unwrap_or_else(|| panic!("the stream ended before {last}: {all:?}"));
        all.extend(news["topics"].as_array().expect("a list").iter().filter_map(Value::as_str).map(str::to_owned));
    }
    all
}

#[tokio::test]
async fn a_listener_is_told_what_changed_and_can_resume() {
    let server = Server::start().await;
    let mut events = listen(&server, "?topics=workers").await;
    let start = events.next().await.expect("the first message always comes");
    assert_eq!((&start["topics"], &start["resync"]), (&json!([]), &json!(false)));
    server.config("digits").await;
    server.submit("digits").await;
    server.worker("gpu-1").await;
    let news = events.next().await.expect("news");
    assert_eq!(news["topics"], json!(["workers"]), "only what was asked for");
    drop(events);
    server.worker("gpu-2").await;
    let after = news["version"].as_str().expect("text");
    let mut resumed = listen(&server, &format!("?topics=workers,jobs&after={after}")).await;
    assert_eq!(resumed.next().await.expect("what was missed")["topics"], json!(["workers"]));
}

#[tokio::test]
async fn a_listener_of_another_life_fetches_everything() {
    let server = Server::start().await;
    for stale in ["otherlife-3", "life1-999999", "nonsense"] {
        let mut events = listen(&server, &format!("?after={stale}")).await;
        assert_eq!(events.next().await.expect("a message")["resync"], true, "{stale}");
    }
}

#[tokio::test]
async fn streams_end_when_the_server_stops() {
    let server = Server::start().await;
    let mut events = listen(&server, "").await;
    events.next().await.expect("the first message");
    let (_, _, mut worker) = server.online("gpu-1").await;
    server.app.shutdown.cancel();
    while events.next().await.is_some() {}
    while worker.next().await.is_some() {}
}

#[tokio::test]
async fn researcher_hears_only_of_her_own_jobs() {
    let server = Server::start().await;
    server.config("digits").await;
    let (ada, eve) = (server.person("ada", "researcher").await, server.person("eve", "researcher").await);
    let mut events = listen_as(&server, &eve, "").await;
    events.next().await.expect("the first message");
    let (hers, own) = (submit_as(&server, &ada).await, submit_as(&server, &eve).await);
    for job in [&hers, &own] {
        server.app.core.hub.bump([Topic::Log(JobId::parse(job).expect("an id"))]);
    }
    server.worker("gpu-1").await;
    server.config("last").await;
    let told = topics_until(&mut events, "configs").await;
    for topic in [format!("job:{own}"), format!("log:{own}"), "jobs".to_owned(), "workers".to_owned()] {
        assert!(told.contains(&topic), "{topic}: {told:?}");
    }
    let others = |topic: &&String| topic.contains(&hers) || topic.starts_with("worker:") || *topic == "trail";
    assert_eq!(told.iter().find(others), None, "{told:?}");
}

#[tokio::test]
async fn topics_asked_for_by_name_are_filtered_too() {
    let server = Server::start().await;
    server.config("digits").await;
    let (ada, eve) = (server.person("ada", "researcher").await, server.person("eve", "researcher").await);
    let job = submit_as(&server, &ada).await;
    let (worker, _) = server.worker("gpu-1").await;
    let query = format!("?topics=job:{job},log:{job},worker:{worker},trail,gpus,configs");
    let mut events = listen_as(&server, &eve, &query).await;
    events.next().await.expect("the first message");
    server.app.core.hub.bump([Topic::Log(JobId::parse(&job).expect("an id")), Topic::Gpus]);
    server.post(&ada, &format!("/api/queue/{job}/cancel"), json!({})).await.ok(200);
    server.post(&By::Admin, &format!("/api/admin/workers/{worker}/drain"), json!({})).await.ok(200);
    server.config("last").await;
    assert_eq!(topics_until(&mut events, "configs").await, ["configs"]);
}

#[tokio::test]
async fn viewer_hears_of_all_jobs_and_admin_of_all() {
    let server = Server::start().await;
    server.config("digits").await;
    let vic = server.person("vic", "viewer").await;
    let (mut viewer, mut admin) = (listen_as(&server, &vic, "").await, listen(&server, "").await);
    for events in [&mut viewer, &mut admin] {
        events.next().await.expect("the first message");
    }
    let (job, (worker, _)) = (server.submit("digits").await, server.worker("gpu-1").await);
    server.post(&By::Admin, &format!("/api/admin/workers/{worker}/drain"), json!({})).await.ok(200);
    server.config("last").await;
    let (seen, all) = (topics_until(&mut viewer, "configs").await, topics_until(&mut admin, "configs").await);
    let has = |told: &[String], topic: &str| told.iter().any(|one| one == topic);
    let (job, worker) = (format!("job:{job}"), format!("worker:{worker}"));
    assert!(has(&seen, &job) && !has(&seen, &worker) && !has(&seen, "trail"), "{seen:?}");
    assert!(has(&all, &job) && has(&all, &worker) && has(&all, "trail"), "{all:?}");
}

#[tokio::test]
async fn after_a_change_of_role_the_stream_ends_and_tells_less() {
    let server = Server::start().await;
    server.config("digits").await;
    let lea = server.person("lea", "lead").await;
    let mut events = listen_as(&server, &lea, "").await;
    let first = events.next().await.expect("the first message");
    let edit = json!({"role": "researcher"}).to_string();
    let path = format!("/api/admin/users/{}", server.id_of("lea").await);
    server.call(&By::Admin, "PATCH", &path, edit).await.ok(200);
    let job = format!("job:{}", server.submit("digits").await);
    let mut told = Vec::new();
    while let Some(news) = events.next().await {
        told.push(news["topics"].to_string());
    }
    assert!(!told.iter().any(|topics| topics.contains(&job)), "{told:?}");
    let after = first["version"].as_str().expect("text");
    let mut resumed = listen_as(&server, &lea, &format!("?after={after}")).await;
    server.config("last").await;
    let told = topics_until(&mut resumed, "configs").await;
    assert!(!told.contains(&job), "{told:?}");
}

#[tokio::test]
async fn a_person_has_so_many_event_streams_and_nobody_else_has_fewer_for_it() {
    let server = Server::start_with(|policy| policy.bounds.event_streams_per_user = 2).await;
    let (ada, bob) = (server.person("ada", "viewer").await, server.person("bob", "viewer").await);
    let open = async |by: &By| server.open(by, "GET", "/api/events", Body::empty()).await;
    let (first, _second) = (open(&ada).await, open(&ada).await);
    let refused = server.get(&ada, "/api/events").await.problem(429, "too_many_event_streams");
    assert!(refused["detail"].as_str().is_some_and(|detail| detail.contains("--max-event-streams-per-user")));
    assert_eq!(open(&bob).await.status(), 200);
    drop(first);
    assert_eq!(open(&ada).await.status(), 200, "one has ended");
}

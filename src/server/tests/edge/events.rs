//! `GET /api/events`

use app::domain::ids::JobId;
use app::protocol::topic::Topic;
use axum::body::Body;
use serde_json::{Value, json};

use crate::tests::harness::{Actor, EventStreamReader, TestServer};

async fn listen(server: &TestServer, query: &str) -> EventStreamReader {
    listen_as(server, &Actor::Admin, query).await
}

async fn listen_as(server: &TestServer, actor: &Actor, query: &str) -> EventStreamReader {
    EventStreamReader::new(server.open(actor, "GET", &format!("/api/events{query}"), Body::empty()).await)
}

async fn submit_as(server: &TestServer, actor: &Actor) -> String {
    let body = json!({"config_name": "digits", "target": "worker"});
    server.post(actor, "/api/queue/submit", body).await.expect_status(201)["job_id"].as_str().expect("text").to_owned()
}

/// Returns the topics up to and including this one.
async fn topics_until(events: &mut EventStreamReader, last: &str) -> Vec<String> {
    let mut topics = Vec::new();
    while !topics.iter().any(|topic| topic == last) {
        let event = events.next().await.unwrap_or_else(|| panic!("the stream ended before {last}: {topics:?}"));
        topics.extend(event["topics"].as_array().expect("a list").iter().filter_map(Value::as_str).map(str::to_owned));
    }
    topics
}

#[tokio::test]
async fn listener_gets_changes_and_can_resume() {
    let server = TestServer::start().await;
    let mut events = listen(&server, "?topics=workers").await;
    let start = events.next().await.expect("the first message");
    assert_eq!((&start["topics"], &start["resync"]), (&json!([]), &json!(false)));
    server.put_config("digits").await;
    server.submit("digits").await;
    server.create_worker("gpu-1").await;
    let event = events.next().await.expect("event");
    assert_eq!(event["topics"], json!(["workers"]), "only requested topics");
    drop(events);
    server.create_worker("gpu-2").await;
    let after = event["version"].as_str().expect("text");
    let mut resumed = listen(&server, &format!("?topics=workers,jobs&after={after}")).await;
    assert_eq!(resumed.next().await.expect("the missed change")["topics"], json!(["workers"]));
}

#[tokio::test]
async fn listener_of_an_earlier_process_reloads_everything() {
    let server = TestServer::start().await;
    for stale in ["otherlife-3", "life1-999999", "nonsense"] {
        let mut events = listen(&server, &format!("?after={stale}")).await;
        assert_eq!(events.next().await.expect("a message")["resync"], true, "{stale}");
    }
}

#[tokio::test]
async fn streams_end_when_the_server_stops() {
    let server = TestServer::start().await;
    let mut events = listen(&server, "").await;
    events.next().await.expect("the first message");
    let (_, _, mut worker) = server.connect_worker("gpu-1").await;
    server.app.shutdown.cancel();
    while events.next().await.is_some() {}
    while worker.next().await.is_some() {}
}

#[tokio::test]
async fn listener_gets_changes_of_visible_jobs_only() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (ada, eve) = (server.add_user("ada", "researcher").await, server.restricted_token("eve").await);
    let mut events = listen_as(&server, &eve, "").await;
    events.next().await.expect("the first message");
    let (other_job, own_job) = (submit_as(&server, &ada).await, submit_as(&server, &eve).await);
    for job in [&other_job, &own_job] {
        server.app.services.context.notifier.notify([Topic::Log(JobId::parse(job).expect("an id"))]);
    }
    server.create_worker("gpu-1").await;
    server.put_config("last").await;
    let topics = topics_until(&mut events, "configs").await;
    for topic in [format!("job:{own_job}"), format!("log:{own_job}"), "jobs".to_owned(), "workers".to_owned()] {
        assert!(topics.contains(&topic), "{topic}: {topics:?}");
    }
    let is_hidden = |topic: &&String| topic.contains(&other_job) || topic.starts_with("worker:") || *topic == "audit";
    assert_eq!(topics.iter().find(is_hidden), None, "{topics:?}");
}

#[tokio::test]
async fn requested_topics_are_filtered_by_permission() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (ada, eve) = (server.add_user("ada", "researcher").await, server.restricted_token("eve").await);
    let job = submit_as(&server, &ada).await;
    let (worker, _) = server.create_worker("gpu-1").await;
    let query = format!("?topics=job:{job},log:{job},worker:{worker},audit,gpus,configs");
    let mut events = listen_as(&server, &eve, &query).await;
    events.next().await.expect("the first message");
    server.app.services.context.notifier.notify([Topic::Log(JobId::parse(&job).expect("an id")), Topic::Gpus]);
    server.post(&ada, &format!("/api/queue/{job}/cancel"), json!({})).await.expect_status(200);
    server.post(&Actor::Admin, &format!("/api/admin/workers/{worker}/drain"), json!({})).await.expect_status(200);
    server.put_config("last").await;
    assert_eq!(topics_until(&mut events, "configs").await, ["configs"]);
}

#[tokio::test]
async fn viewer_gets_all_job_changes_and_admin_everything() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let vic = server.add_user("vic", "viewer").await;
    let (mut viewer, mut admin) = (listen_as(&server, &vic, "").await, listen(&server, "").await);
    for events in [&mut viewer, &mut admin] {
        events.next().await.expect("the first message");
    }
    let (job, (worker, _)) = (server.submit("digits").await, server.create_worker("gpu-1").await);
    server.post(&Actor::Admin, &format!("/api/admin/workers/{worker}/drain"), json!({})).await.expect_status(200);
    server.put_config("last").await;
    let (viewer_topics, admin_topics) =
        (topics_until(&mut viewer, "configs").await, topics_until(&mut admin, "configs").await);
    let has = |topics: &[String], topic: &str| topics.iter().any(|other| other == topic);
    let (job, worker) = (format!("job:{job}"), format!("worker:{worker}"));
    assert!(
        has(&viewer_topics, &job) && has(&viewer_topics, &worker) && !has(&viewer_topics, "audit"),
        "{viewer_topics:?}"
    );
    assert!(has(&admin_topics, &job) && has(&admin_topics, &worker) && has(&admin_topics, "audit"), "{admin_topics:?}");
}

#[tokio::test]
async fn role_change_ends_the_stream() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let lea = server.add_user("lea", "admin").await;
    let mut events = listen_as(&server, &lea, "").await;
    let first = events.next().await.expect("the first message");
    let edit = json!({"role": "lead"}).to_string();
    let path = format!("/api/admin/users/{}", server.user_id("lea").await);
    server.call(&Actor::Admin, "PATCH", &path, edit).await.expect_status(200);
    let job = format!("job:{}", server.submit("digits").await);
    while events.next().await.is_some() {}
    let after = first["version"].as_str().expect("text");
    let mut resumed = listen_as(&server, &lea, &format!("?after={after}")).await;
    server.put_config("last").await;
    let topics = topics_until(&mut resumed, "configs").await;
    assert!(topics.contains(&job) && !topics.iter().any(|topic| topic == "audit"), "{topics:?}");
}

#[tokio::test]
async fn event_streams_are_limited_per_user() {
    let server = TestServer::start_with(|policy| policy.usage_limits.event_streams_per_user = 2).await;
    let (ada, bob) = (server.add_user("ada", "viewer").await, server.add_user("bob", "viewer").await);
    let open = async |actor: &Actor| server.open(actor, "GET", "/api/events", Body::empty()).await;
    let (first, _second) = (open(&ada).await, open(&ada).await);
    let rejected = server.get(&ada, "/api/events").await.expect_problem(429, "too_many_event_streams");
    assert!(rejected["detail"].as_str().is_some_and(|detail| detail.contains("--max-event-streams-per-user")));
    assert_eq!(open(&bob).await.status(), 200);
    drop(first);
    assert_eq!(open(&ada).await.status(), 200, "one stream has ended");
}

//! Whether the server can be watched.

use app::domain::time::Millis;
use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use serde_json::{Value, json};

use super::harness::{ADMIN, Answer, By, Server, read};
use crate::http::request::Peer;

/// Asks for the metrics from an address, with headers.
async fn metrics(server: &Server, host: [u8; 4], headers: &[(&'static str, &str)]) -> Answer {
    let mut request = Request::builder().uri("/metrics").extension(Peer(host.into()));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    read(server.send(request.body(Body::empty()).expect("a request")).await).await
}

const HERE: [u8; 4] = [127, 0, 0, 1];
const LOCAL: (&str, &str) = ("host", "localhost:8001");

/// The value of a line that starts so.
fn value(page: &str, name: &str) -> f64 {
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in\n{page}")).parse().expect("a number")
}

#[tokio::test]
async fn readiness_names_each_check() {
    let server = Server::start().await;
    for path in ["/readyz", "/api/cloud/health/ready"] {
        let ready = server.get(&By::Nobody, path).await.ok(200);
        assert_eq!(ready["status"], "ok", "{ready}");
        for check in ["database", "migrations", "clock", "leader", "disk", "stopping"] {
            assert_eq!(ready["checks"][check]["status"], "ok", "{check}: {ready}");
        }
    }
    server.get(&By::Nobody, "/api/cloud/health/live").await.ok(200);
}

#[tokio::test]
async fn a_server_that_stops_is_not_ready() {
    let server = Server::start().await;
    server.app.shutdown.cancel();
    let ready = server.get(&By::Nobody, "/readyz").await.ok(503);
    assert_eq!((&ready["status"], &ready["checks"]["stopping"]["status"]), (&json!("failed"), &json!("failed")));
}

#[tokio::test]
async fn a_clock_that_is_behind_the_record_is_found() {
    let server = Server::start().await;
    server.worker("gpu-1").await;
    server.clock.advance(Millis::seconds(-59));
    server.get(&By::Nobody, "/readyz").await.ok(200);
    server.clock.advance(Millis::seconds(-3_600));
    let ready = server.get(&By::Nobody, "/readyz").await.ok(503);
    assert_eq!(ready["checks"]["clock"]["status"], "failed", "{ready}");
}

#[tokio::test]
async fn writing_is_tried_only_when_nothing_was_written_lately() {
    let server = Server::start().await;
    let probe = async || server.app.core.read().await.expect("a reader").setting("readiness_probe").await;
    server.worker("gpu-1").await;
    server.get(&By::Nobody, "/readyz").await.ok(200);
    assert_eq!(probe().await, Ok(None), "a commit of a moment ago says it");
    server.clock.advance(Millis::seconds(6));
    server.get(&By::Nobody, "/readyz").await.ok(200);
    let written = probe().await.expect("readable");
    assert!(written.is_some());
    server.clock.advance(Millis::seconds(4));
    server.get(&By::Nobody, "/readyz").await.ok(200);
    assert_eq!(probe().await, Ok(written), "and so does the last probe");
}

#[tokio::test]
async fn a_schema_of_another_version_is_found() {
    let server = Server::start().await;
    let file = format!("sqlite://{}/orchestrator.db", server.directory.path().display());
    let newer = sqlx::SqlitePool::connect(&file).await.expect("the database");
    sqlx::query(
        "UPDATE _sqlx_migrations SET version = 9999 WHERE version = (SELECT max(version) FROM _sqlx_migrations)",
    )
    .execute(&newer)
    .await
    .expect("written");
    let ready = server.get(&By::Nobody, "/readyz").await.ok(503);
    assert_eq!(ready["checks"]["migrations"]["status"], "failed", "{ready}");
}

#[tokio::test]
async fn metrics_need_a_token_wherever_they_are_asked_from() {
    let server = Server::start().await;
    metrics(&server, HERE, &[LOCAL]).await.problem(401, "not_authenticated");
    metrics(&server, [10, 1, 2, 3], &[LOCAL]).await.problem(401, "not_authenticated");
    metrics(&server, HERE, &[("host", "evil.example")]).await.problem(401, "not_authenticated");
    metrics(&server, HERE, &[LOCAL, ("x-forwarded-for", "127.0.0.1")]).await.problem(401, "not_authenticated");
    metrics(&server, [10, 1, 2, 3], &[LOCAL, ("x-forwarded-for", "127.0.0.1")]).await.problem(401, "not_authenticated");
    let admin = format!("Bearer {ADMIN}");
    let answer = metrics(&server, [10, 1, 2, 3], &[LOCAL, ("authorization", &admin)]).await;
    assert_eq!(answer.status, StatusCode::OK);
    assert!(answer.headers[header::CONTENT_TYPE].to_str().expect("text").starts_with("application/openmetrics-text"));
    let lead = server.person("grace", "lead").await;
    let token = server.post(&lead, "/api/account/tokens", json!({"name": "all"})).await.ok(201);
    let token = token["secret"].as_str().expect("text").to_owned();
    let denied =
        metrics(&server, [10, 1, 2, 3], &[LOCAL, ("x-api-key", &token)]).await.problem(403, "permission_denied");
    assert!(denied["detail"].as_str().is_some_and(|detail| detail.contains("ops.metrics")), "{denied}");
    let narrow = json!({"name": "prometheus", "scopes": ["ops.metrics"]});
    let token = server.post(&By::Admin, "/api/account/tokens", narrow).await.ok(201);
    let token = token["secret"].as_str().expect("text").to_owned();
    let answer = metrics(&server, [10, 1, 2, 3], &[LOCAL, ("x-api-key", &token)]).await;
    assert_eq!(answer.status, StatusCode::OK, "a token for that alone");
}

#[tokio::test]
async fn a_job_on_its_way_is_measured() {
    let server = Server::start().await;
    server.config("digits").await;
    let (_, key, mut events) = server.online("gpu-1").await;
    server.worker("never-seen").await;
    let job = server.submit("digits").await;
    events.offer().await;
    server.clock.advance(Millis::seconds(2));
    server.report(&key, &job, json!({"status": "starting", "attempt": 1})).await.ok(200);
    server.submit("digits").await;
    server.clock.advance(Millis::seconds(40));
    server.get(&By::Token("st_wrong".to_owned()), "/api/queue").await.problem(401, "wrong_token");
    server.get(&By::worker("wt_wrong"), "/api/workers/queue").await.problem(401, "worker_token_refused");
    let page = server.get(&By::Admin, "/metrics").await.text();
    for (name, expected) in [
        ("simpletuner_workers{state=\"busy\"}", 1.0),
        ("simpletuner_workers{state=\"offline\"}", 1.0),
        ("simpletuner_jobs{state=\"queued\"}", 1.0),
        ("simpletuner_jobs{state=\"starting\"}", 1.0),
        ("simpletuner_queue_oldest_seconds", 40.0),
        ("simpletuner_heartbeat_age_seconds_max", 40.0),
        ("simpletuner_dispatch_offer_seconds_count", 1.0),
        ("simpletuner_dispatch_accept_seconds_sum", 2.0),
        ("simpletuner_open_streams{of=\"workers\"}", 1.0),
        ("simpletuner_tls_unverified_workers", 0.0),
        ("simpletuner_unauthenticated_requests_total{of=\"people\"}", 1.0),
        ("simpletuner_unauthenticated_requests_total{of=\"workers\"}", 1.0),
        ("simpletuner_http_requests_total{route=\"/api/queue/submit\",status=\"2xx\"}", 2.0),
        ("simpletuner_disk_full", 0.0),
        ("simpletuner_uptime_seconds", 42.0),
    ] {
        assert!((value(&page, name) - expected).abs() < 1e-9, "{name} is {}", value(&page, name));
    }
    assert!(value(&page, "simpletuner_commit_seconds_count") >= 5.0);
    assert!(value(&page, "simpletuner_audit_entries") >= 5.0);
    assert!(value(&page, "process_resident_memory_bytes") > 1e6);
    assert!(page.ends_with("# EOF\n") && !page.contains(&job), "no id is a label");
}

#[tokio::test]
async fn an_agent_that_verifies_no_certificate_is_counted() {
    let server = Server::start().await;
    let (_, key) = server.worker("gpu-1").await;
    let body = json!({"name": "x", "protocol": 1, "persistent": true, "accelerator_type": "cpu", "tls_verify": false});
    server.post(&key, "/api/workers/register", body).await.ok(200);
    let page = server.get(&By::Admin, "/metrics").await.text();
    assert!((value(&page, "simpletuner_tls_unverified_workers") - 1.0).abs() < 1e-9);
}

#[tokio::test]
async fn what_is_no_route_is_counted_as_one() {
    let server = Server::start().await;
    for n in 0..5 {
        server.get(&By::Admin, &format!("/api/nowhere/{n}")).await.problem(404, "no_such_route");
    }
    let page = server.get(&By::Admin, "/metrics").await.text();
    assert!(!page.contains("nowhere"), "{page}");
}

#[tokio::test]
async fn a_listener_apart_answers_its_three_routes_and_nothing_else() {
    let server = Server::start().await;
    let router = crate::http::health::apart(server.app.clone());
    let ask = async |path: &str| {
        let request = Request::builder().uri(path).extension(Peer([10, 1, 2, 3].into())).body(Body::empty());
        tower::ServiceExt::oneshot(router.clone(), request.expect("a request")).await.expect("an answer").status()
    };
    for path in ["/metrics", "/healthz", "/readyz"] {
        assert_eq!(ask(path).await, StatusCode::OK, "{path}");
    }
    for path in ["/", "/api/queue", "/api/session", "/login"] {
        assert_eq!(ask(path).await, StatusCode::NOT_FOUND, "{path}");
    }
}

#[tokio::test]
async fn metrics_are_told_without_a_database() {
    let server = Server::start().await;
    server.app.core.store.close().await;
    metrics(&server, HERE, &[LOCAL]).await.problem(401, "not_authenticated");
    // Whether a token is good, nobody can say now; the listener apart takes none.
    let router = crate::http::health::apart(server.app.clone());
    let request = Request::builder().uri("/metrics").body(Body::empty()).expect("a request");
    let page = read(tower::ServiceExt::oneshot(router, request).await.expect("an answer")).await.text();
    assert!(page.contains("simpletuner_uptime_seconds"), "{page}");
    let ready: Value = server.get(&By::Nobody, "/readyz").await.ok(503);
    assert_eq!(ready["checks"]["database"]["status"], "failed");
}

/// What nginx's `proxy_pass http://127.0.0.1:8001;` sends when nothing else is set: its own connection from loopback,
/// the address as the host, and no word about the client.
#[tokio::test]
async fn a_plain_reverse_proxy_on_the_same_host_does_not_publish_metrics() {
    let server = Server::start().await;
    let plain = [("host", "127.0.0.1:8001"), ("connection", "close"), ("user-agent", "curl/8.5.0")];
    metrics(&server, HERE, &plain).await.problem(401, "not_authenticated");
    let admin = format!("Bearer {ADMIN}");
    let with_token = [plain[0], plain[1], ("authorization", &admin)];
    assert_eq!(metrics(&server, HERE, &with_token).await.status, StatusCode::OK);
}

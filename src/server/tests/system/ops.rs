//! Metrics and health.

use app::domain::time::Millis;
use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use serde_json::{Value, json};

use crate::http::edge::request::Peer;
use crate::tests::harness::{ADMIN, Actor, TestResponse, TestServer, read_response};

/// Requests the metrics from an address, with headers.
async fn metrics(server: &TestServer, host: [u8; 4], headers: &[(&'static str, &str)]) -> TestResponse {
    let mut request = Request::builder().uri("/metrics").extension(Peer(host.into()));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    read_response(server.send(request.body(Body::empty()).expect("a request")).await).await
}

const LOOPBACK: [u8; 4] = [127, 0, 0, 1];
const LOCALHOST_HEADER: (&str, &str) = ("host", "localhost:8001");

/// Returns the value of the line with this prefix.
fn value(page: &str, name: &str) -> f64 {
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in\n{page}")).parse().expect("a number")
}

#[tokio::test]
async fn readiness_names_each_check() {
    let server = TestServer::start().await;
    for path in ["/readyz", "/api/cloud/health/ready"] {
        let ready = server.get(&Actor::Unauthenticated, path).await.expect_status(200);
        assert_eq!(ready["status"], "ok", "{ready}");
        for check in ["database", "migrations", "clock", "leader", "disk", "stopping"] {
            assert_eq!(ready["checks"][check]["status"], "ok", "{check}: {ready}");
        }
    }
    server.get(&Actor::Unauthenticated, "/api/cloud/health/live").await.expect_status(200);
}

#[tokio::test]
async fn stopping_server_is_not_ready() {
    let server = TestServer::start().await;
    server.app.shutdown.cancel();
    let ready = server.get(&Actor::Unauthenticated, "/readyz").await.expect_status(503);
    assert_eq!((&ready["status"], &ready["checks"]["stopping"]["status"]), (&json!("failed"), &json!("failed")));
}

#[tokio::test]
async fn clock_behind_the_database_is_detected() {
    let server = TestServer::start().await;
    server.create_worker("gpu-1").await;
    server.clock.advance(Millis::from_secs(-59));
    server.get(&Actor::Unauthenticated, "/readyz").await.expect_status(200);
    server.clock.advance(Millis::from_secs(-3_600));
    let ready = server.get(&Actor::Unauthenticated, "/readyz").await.expect_status(503);
    assert_eq!(ready["checks"]["clock"]["status"], "failed", "{ready}");
}

#[tokio::test]
async fn write_check_runs_only_without_recent_writes() {
    let server = TestServer::start().await;
    let probe = async || server.app.services.context.read().await.expect("a reader").setting("readiness_probe").await;
    server.create_worker("gpu-1").await;
    server.get(&Actor::Unauthenticated, "/readyz").await.expect_status(200);
    assert_eq!(probe().await, Ok(None), "a recent commit makes the check unnecessary");
    server.clock.advance(Millis::from_secs(6));
    server.get(&Actor::Unauthenticated, "/readyz").await.expect_status(200);
    let written = probe().await.expect("readable");
    assert!(written.is_some());
    server.clock.advance(Millis::from_secs(4));
    server.get(&Actor::Unauthenticated, "/readyz").await.expect_status(200);
    assert_eq!(probe().await, Ok(written), "the last probe is recent enough");
}

#[tokio::test]
async fn schema_of_a_newer_version_is_detected() {
    let server = TestServer::start().await;
    let file = format!("sqlite://{}/orchestrator.db", server.directory.path().display());
    let migrated = sqlx::SqlitePool::connect(&file).await.expect("the database");
    sqlx::query(
        "UPDATE _sqlx_migrations SET version = 9999 WHERE version = (SELECT max(version) FROM _sqlx_migrations)",
    )
    .execute(&migrated)
    .await
    .expect("written");
    let ready = server.get(&Actor::Unauthenticated, "/readyz").await.expect_status(200);
    assert_eq!(ready["checks"]["migrations"]["status"], "warning", "{ready}");
    sqlx::query("UPDATE generation SET oldest_schema = 9999").execute(&migrated).await.expect("written");
    let ready = server.get(&Actor::Unauthenticated, "/readyz").await.expect_status(503);
    assert_eq!(ready["checks"]["migrations"]["status"], "failed", "{ready}");
}

#[tokio::test]
async fn metrics_require_a_token_from_every_address() {
    let server = TestServer::start().await;
    metrics(&server, LOOPBACK, &[LOCALHOST_HEADER]).await.expect_problem(401, "not_authenticated");
    metrics(&server, [10, 1, 2, 3], &[LOCALHOST_HEADER]).await.expect_problem(401, "not_authenticated");
    metrics(&server, LOOPBACK, &[("host", "evil.example")]).await.expect_problem(401, "not_authenticated");
    metrics(&server, LOOPBACK, &[LOCALHOST_HEADER, ("x-forwarded-for", "127.0.0.1")])
        .await
        .expect_problem(401, "not_authenticated");
    metrics(&server, [10, 1, 2, 3], &[LOCALHOST_HEADER, ("x-forwarded-for", "127.0.0.1")])
        .await
        .expect_problem(401, "not_authenticated");
    let admin = format!("Bearer {ADMIN}");
    let response = metrics(&server, [10, 1, 2, 3], &[LOCALHOST_HEADER, ("authorization", &admin)]).await;
    assert_eq!(response.status, StatusCode::OK);
    assert!(response.headers[header::CONTENT_TYPE].to_str().expect("text").starts_with("application/openmetrics-text"));
    let lead = server.add_user("grace", "lead").await;
    let token = server.post(&lead, "/api/account/tokens", json!({"name": "all"})).await.expect_status(201);
    let token = token["secret"].as_str().expect("text").to_owned();
    let denied = metrics(&server, [10, 1, 2, 3], &[LOCALHOST_HEADER, ("x-api-key", &token)])
        .await
        .expect_problem(403, "permission_denied");
    assert!(denied["detail"].as_str().is_some_and(|detail| detail.contains("ops.metrics")), "{denied}");
    let narrow = json!({"name": "prometheus", "scopes": ["ops.metrics"]});
    let token = server.post(&Actor::Admin, "/api/account/tokens", narrow).await.expect_status(201);
    let token = token["secret"].as_str().expect("text").to_owned();
    let response = metrics(&server, [10, 1, 2, 3], &[LOCALHOST_HEADER, ("x-api-key", &token)]).await;
    assert_eq!(response.status, StatusCode::OK, "a token with the scope ops.metrics only");
}

#[tokio::test]
async fn job_durations_are_measured() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (_, key, mut events) = server.connect_worker("gpu-1").await;
    server.create_worker("never-seen").await;
    let job = server.submit("digits").await;
    events.next_offer().await;
    server.clock.advance(Millis::from_secs(2));
    server.report_status(&key, &job, json!({"status": "starting", "attempt": 1})).await.expect_status(200);
    server.submit("digits").await;
    server.clock.advance(Millis::from_secs(40));
    server.get(&Actor::Token("st_wrong".to_owned()), "/api/queue").await.expect_problem(401, "wrong_token");
    server.get(&Actor::worker("wt_wrong"), "/api/workers/queue").await.expect_problem(401, "worker_token_invalid");
    let page = server.get(&Actor::Admin, "/metrics").await.text();
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
        ("simpletuner_unauthenticated_requests_total{of=\"users\"}", 1.0),
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
async fn older_metrics_format_is_supported() {
    let server = TestServer::start().await;
    let admin = format!("Bearer {ADMIN}");
    let get = async |accept: &str| metrics(&server, LOOPBACK, &[("authorization", &admin), ("accept", accept)]).await;
    let counter = "# TYPE simpletuner_rejections_total counter\n";
    let older = get("application/vnd.google.protobuf;q=0.7,text/plain;version=0.0.4;q=0.3").await;
    assert_eq!(older.headers[header::CONTENT_TYPE], "text/plain; version=0.0.4; charset=utf-8");
    let text = older.text();
    assert!(text.contains(counter) && !text.contains("# EOF"), "{text}");
    let prometheus = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
    for accept in [prometheus, "*/*"] {
        let newer = get(accept).await.text();
        assert!(!newer.contains(counter) && newer.ends_with("# EOF\n"), "{accept}: {newer}");
    }
}

#[tokio::test]
async fn every_metric_in_alert_rules_exists() {
    let server = TestServer::start().await;
    server.connect_worker("gpu-1").await;
    server.app.services.context.metrics.loops.get("planner");
    let page = server.get(&Actor::Admin, "/metrics").await.text();
    let rules = include_str!("../../../../deploy/prometheus/simpletuner.rules.yml");
    let expressions: Vec<_> = rules.lines().filter_map(|line| line.trim().strip_prefix("expr: ")).collect();
    let is_name_char = |c: char| c.is_ascii_alphanumeric() || c == '_';
    for expression in expressions.iter().filter(|expression| !expression.starts_with("up{")) {
        let (_, rest) = expression.split_once("simpletuner_").expect("a metric with our prefix");
        let name = format!("simpletuner_{}", rest.split(|c| !is_name_char(c)).next().unwrap_or_default());
        // A label that an alert rule uses must be in the metrics.
        let label = rest.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map(|(label, _)| label);
        let sample = label.map_or_else(|| name.clone(), |label| format!("{name}{{{label}}}"));
        let found = |line: &str| line.strip_prefix(&sample).is_some_and(|rest| rest.starts_with([' ', '{']));
        assert!(page.lines().any(found), "{expression}: no {sample} in\n{page}");
    }
    let guide = include_str!("../../../../docs/OPERATIONS.md");
    let alerts: Vec<_> = rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    assert_eq!(alerts.len(), expressions.len());
    assert_eq!(alerts.len(), guide.matches("| `Simpletuner").count(), "the guide has rows of unknown alerts");
    for alert in alerts {
        assert!(guide.contains(&format!("| `{alert}` |")), "docs/OPERATIONS.md lacks {alert}");
    }
}

#[tokio::test]
async fn agent_without_certificate_verification_is_counted() {
    let server = TestServer::start().await;
    let (_, key) = server.create_worker("gpu-1").await;
    let body = json!({"name": "x", "protocol": 1, "persistent": true, "accelerator_type": "cpu", "tls_verify": false});
    server.post(&key, "/api/workers/register", body).await.expect_status(200);
    let page = server.get(&Actor::Admin, "/metrics").await.text();
    assert!((value(&page, "simpletuner_tls_unverified_workers") - 1.0).abs() < 1e-9);
}

#[tokio::test]
async fn unknown_routes_are_counted_together() {
    let server = TestServer::start().await;
    for n in 0..5 {
        server.get(&Actor::Admin, &format!("/api/nowhere/{n}")).await.expect_problem(404, "no_such_route");
    }
    let page = server.get(&Actor::Admin, "/metrics").await.text();
    assert!(!page.contains("nowhere"), "{page}");
}

#[tokio::test]
async fn metrics_listener_serves_three_routes_only() {
    let server = TestServer::start().await;
    let router = crate::http::system::health::metrics_router(server.app.clone());
    let get = async |path: &str| {
        let request = Request::builder().uri(path).extension(Peer([10, 1, 2, 3].into())).body(Body::empty());
        tower::ServiceExt::oneshot(router.clone(), request.expect("a request")).await.expect("a response").status()
    };
    for path in ["/metrics", "/healthz", "/readyz"] {
        assert_eq!(get(path).await, StatusCode::OK, "{path}");
    }
    for path in ["/", "/api/queue", "/api/session", "/login"] {
        assert_eq!(get(path).await, StatusCode::NOT_FOUND, "{path}");
    }
}

#[tokio::test]
async fn metrics_work_without_a_database() {
    let server = TestServer::start().await;
    server.app.services.context.store.close().await;
    metrics(&server, LOOPBACK, &[LOCALHOST_HEADER]).await.expect_problem(401, "not_authenticated");
    // Tokens cannot be checked now; the separate listener requires none.
    let router = crate::http::system::health::metrics_router(server.app.clone());
    let request = Request::builder().uri("/metrics").body(Body::empty()).expect("a request");
    let page = read_response(tower::ServiceExt::oneshot(router, request).await.expect("a response")).await.text();
    assert!(page.contains("simpletuner_uptime_seconds"), "{page}");
    let ready: Value = server.get(&Actor::Unauthenticated, "/readyz").await.expect_status(503);
    assert_eq!(ready["checks"]["database"]["status"], "failed");
}

/// The requests of nginx's `proxy_pass http://127.0.0.1:8001;` without further settings: from loopback, with the
/// address as the host, and without headers about the client.
#[tokio::test]
async fn reverse_proxy_on_the_same_host_does_not_publish_metrics() {
    let server = TestServer::start().await;
    let plain = [("host", "127.0.0.1:8001"), ("connection", "close"), ("user-agent", "curl/8.5.0")];
    metrics(&server, LOOPBACK, &plain).await.expect_problem(401, "not_authenticated");
    let admin = format!("Bearer {ADMIN}");
    let with_token = [plain[0], plain[1], ("authorization", &admin)];
    assert_eq!(metrics(&server, LOOPBACK, &with_token).await.status, StatusCode::OK);
}

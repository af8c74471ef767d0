//! Errors read alike, and a database that is away is no disaster.

use axum::http::{StatusCode, header};
use serde_json::json;

use super::harness::{By, Server};
use crate::store::Store;

#[tokio::test]
async fn what_is_no_route_is_a_problem_document() {
    let server = Server::start().await;
    server.get(&By::Admin, "/api/nowhere").await.problem(404, "no_such_route");
    server.call(&By::Admin, "PATCH", "/api/queue", "").await.problem(405, "method_not_allowed");
}

#[tokio::test]
async fn a_database_that_is_away_is_503_and_health_says_so() {
    let server = Server::start().await;
    let (_, key) = server.worker("gpu-1").await;
    assert_eq!(server.get(&By::Nobody, "/readyz").await.status, StatusCode::OK);
    let store: &std::sync::Arc<dyn Store> = &server.app.core.store;
    store.close().await;
    let answer = server.get(&By::Admin, "/api/queue").await;
    assert_eq!(answer.headers[header::RETRY_AFTER], "2");
    let problem = answer.problem(503, "database_unavailable");
    assert!(!problem.to_string().to_lowercase().contains("sqlite"), "no inner text leaves: {problem}");
    server.post(&key, "/api/workers/heartbeat", json!({})).await.problem(503, "database_unavailable");
    assert_eq!(server.get(&By::Nobody, "/readyz").await.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(server.get(&By::Nobody, "/healthz").await.status, StatusCode::OK);
}

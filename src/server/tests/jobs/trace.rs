//! A job belongs to the trace of its submit.

use axum::http::Request;
use serde_json::json;

use crate::tests::harness::{ADMIN, Actor, TestResponse, TestServer, read_response};

const TRACEPARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const TRACE_ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

async fn submit(server: &TestServer, traceparent: Option<&str>) -> TestResponse {
    let mut request = Request::builder().method("POST").uri("/api/queue/submit").header("x-api-key", ADMIN);
    if let Some(trace) = traceparent {
        request = request.header("traceparent", trace);
    }
    let body = json!({"config_name": "digits"}).to_string();
    read_response(server.send(request.body(body.into()).expect("a request")).await).await
}

fn trace_response(response: &TestResponse) -> String {
    response.headers["traceresponse"].to_str().expect("ascii").to_owned()
}

#[tokio::test]
async fn trace_of_a_submit_continues_in_the_offer() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (_, _key, mut events) = server.connect_worker("gpu-1").await;
    let response = submit(&server, Some(TRACEPARENT)).await;
    let trace = trace_response(&response);
    let job = response.expect_status(201)["job_id"].as_str().expect("text").to_owned();
    assert!(trace.starts_with(&format!("00-{TRACE_ID}-")) && trace.ends_with("-01") && trace != TRACEPARENT, "{trace}");
    let offer = events.next_offer().await;
    assert_eq!((offer.job_id.as_str(), offer.traceparent.as_deref()), (job.as_str(), Some(trace.as_str())));
    let file = format!("sqlite://{}/orchestrator.db", server.directory.path().display());
    let pool = sqlx::SqlitePool::connect(&file);
    let stored: Option<String> = sqlx::query_scalar("SELECT traceparent FROM jobs WHERE id = $1")
        .bind(&job)
        .fetch_one(&pool.await.expect("the database"))
        .await
        .expect("the job");
    assert_eq!(stored, Some(trace), "the trace is stored, so that any server can continue it");
}

#[tokio::test]
async fn invalid_trace_starts_a_new_one() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let mut trace_ids = Vec::new();
    for traceparent in [None, Some("00-broken"), Some("00-00000000000000000000000000000000-00f067aa0ba902b7-01")] {
        let response = submit(&server, traceparent).await;
        let trace = trace_response(&response);
        response.expect_status(201);
        let parsed = app::domain::trace_context::TraceContext::parse(&trace).expect("a trace");
        assert!(!trace.contains(TRACE_ID) && !trace_ids.contains(&parsed.trace_id().to_owned()), "{trace}");
        trace_ids.push(parsed.trace_id().to_owned());
    }
}

#[tokio::test]
async fn retry_belongs_to_its_own_trace() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let response = submit(&server, Some(TRACEPARENT)).await;
    let job = response.expect_status(201)["job_id"].as_str().expect("text").to_owned();
    server.call(&Actor::Admin, "POST", &format!("/api/queue/{job}/cancel"), "").await.expect_status(200);
    let retry_response = server.call(&Actor::Admin, "POST", &format!("/api/queue/{job}/retry"), "").await;
    assert!(!trace_response(&retry_response).contains(TRACE_ID));
    retry_response.expect_status(201);
}

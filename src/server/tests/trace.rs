//! A job belongs to the trace of its submit, on its whole way.

use axum::http::Request;
use serde_json::json;

use super::harness::{ADMIN, Answer, By, Server, read};

const GIVEN: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

async fn submit(server: &Server, traceparent: Option<&str>) -> Answer {
    let mut request = Request::builder().method("POST").uri("/api/queue/submit").header("x-api-key", ADMIN);
    if let Some(trace) = traceparent {
        request = request.header("traceparent", trace);
    }
    let body = json!({"config_name": "digits"}).to_string();
    read(server.send(request.body(body.into()).expect("a request")).await).await
}

fn told(answer: &Answer) -> String {
    answer.headers["traceresponse"].to_str().expect("ascii").to_owned()
}

#[tokio::test]
async fn a_submits_trace_goes_on_with_the_offer() {
    let server = Server::start().await;
    server.config("digits").await;
    let (_, _key, mut events) = server.online("gpu-1").await;
    let answer = submit(&server, Some(GIVEN)).await;
    let trace = told(&answer);
    let job = answer.ok(201)["job_id"].as_str().expect("text").to_owned();
    assert!(trace.starts_with(&format!("00-{ID}-")) && trace.ends_with("-01") && trace != GIVEN, "{trace}");
    let offer = events.offer().await;
    assert_eq!((offer.job_id.as_str(), offer.traceparent.as_deref()), (job.as_str(), Some(trace.as_str())));
    let file = format!("sqlite://{}/orchestrator.db", server.directory.path().display());
    let row = sqlx::SqlitePool::connect(&file);
    let kept: Option<String> = sqlx::query_scalar("SELECT traceparent FROM jobs WHERE id = $1")
        .bind(&job)
        .fetch_one(&row.await.expect("the database"))
        .await
        .expect("the job");
    assert_eq!(kept, Some(trace), "another server, and this one after a restart, goes on with it");
}

#[tokio::test]
async fn without_a_trace_that_makes_sense_a_new_one_begins() {
    let server = Server::start().await;
    server.config("digits").await;
    let mut seen = Vec::new();
    for given in [None, Some("00-broken"), Some("00-00000000000000000000000000000000-00f067aa0ba902b7-01")] {
        let answer = submit(&server, given).await;
        let trace = told(&answer);
        answer.ok(201);
        let parsed = app::domain::trace::Trace::parse(&trace).expect("a trace");
        assert!(!trace.contains(ID) && !seen.contains(&parsed.id().to_owned()), "{trace}");
        seen.push(parsed.id().to_owned());
    }
}

#[tokio::test]
async fn a_retry_belongs_to_its_own_requests_trace() {
    let server = Server::start().await;
    server.config("digits").await;
    let answer = submit(&server, Some(GIVEN)).await;
    let job = answer.ok(201)["job_id"].as_str().expect("text").to_owned();
    server.call(&By::Admin, "POST", &format!("/api/queue/{job}/cancel"), "").await.ok(200);
    let again = server.call(&By::Admin, "POST", &format!("/api/queue/{job}/retry"), "").await;
    assert!(!told(&again).contains(ID));
    again.ok(201);
}

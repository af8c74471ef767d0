//! What pages say where there is nothing to show: only what can still come.

use serde_json::json;

use super::harness::{By, Server};
use super::older::older;
use super::pages::{log_in, page};

/// The sentences that stand on a page in elements of their own, of these.
async fn said<'s>(server: &Server, path: &str, sentences: &[&'s str]) -> Vec<&'s str> {
    let shown = page(server, &log_in(server).await, path).await.replace("<!>", "");
    sentences.iter().copied().filter(|sentence| shown.contains(&format!(">{sentence}<"))).collect()
}

const COMING: [&str; 4] = [
    "The curves start with the first step that the trainer reports.",
    "Validation images appear here as the trainer makes them.",
    "Checkpoints and weights appear here as soon as the worker has sent them.",
    "The log starts when a worker takes the job.",
];
const OVER: [&str; 4] = [
    "The trainer reported no steps.",
    "The job made no validation images.",
    "This job sent no files.",
    "No worker took the job, so there is no log.",
];
const OLDER: &str = "Its worker has an older agent, which sends no steps, no validation images and no log.";

#[tokio::test]
async fn a_cancelled_job_promises_nothing() {
    let server = Server::start().await;
    server.config("digits").await;
    let job = server.submit("digits").await;
    let here = format!("/jobs/{job}");
    let all = [COMING, OVER].concat();
    assert_eq!(said(&server, &here, &all).await, COMING);
    server.call(&By::Admin, "POST", &format!("/api/queue/{job}/cancel"), "").await.ok(200);
    assert_eq!(said(&server, &here, &all).await, OVER);
    let shown = page(&server, &log_in(&server).await, &here).await;
    assert!(!shown.contains("class=\"readings\"") && !shown.contains("job-percent"), "{shown}");
}

#[tokio::test]
async fn of_an_older_agent_nothing_is_expected_that_it_never_sends() {
    let server = Server::start().await;
    server.config("digits").await;
    let (_, _, mut events) = older(&server).await;
    let job = server.submit("digits").await;
    events.of_type("job_submit").await;
    assert_eq!(server.job(&job).await["older_agent"], true);
    let here = format!("/jobs/{job}");
    assert_eq!(said(&server, &here, &[&COMING[..], &[OLDER]].concat()).await, [COMING[2], OLDER]);

    let (_, _, _events) = server.online("gpu-1").await;
    let body = json!({"config_name": "digits", "target": "worker"});
    let other = server.post(&By::Admin, "/api/queue/submit", body).await.ok(201)["job_id"].clone();
    assert_eq!(server.job(other.as_str().expect("an id")).await.get("older_agent"), None);
}

#[tokio::test]
async fn a_worker_says_whether_jobs_start_there() {
    let server = Server::start().await;
    let (id, _, _events) = server.online("gpu-1").await;
    let here = format!("/admin/workers/{id}");
    let all = ["The next job that matches starts here.", "It takes no new jobs while it drains."];
    assert_eq!(said(&server, &here, &all).await, [all[0]]);
    server.post(&By::Admin, &format!("/api/admin/workers/{id}/drain"), json!({})).await.ok(200);
    assert_eq!(said(&server, &here, &all).await, [all[1]]);
}

//! Pages without content explain only what can still appear.

use serde_json::json;

use super::pages::{log_in, page};
use crate::tests::agents::older::connect_older_agent;
use crate::tests::harness::{Actor, TestServer};

/// Returns which of these sentences a page shows in elements of their own.
async fn shown_sentences<'s>(server: &TestServer, path: &str, sentences: &[&'s str]) -> Vec<&'s str> {
    let html = page(server, &log_in(server).await, path).await.replace("<!>", "");
    sentences.iter().copied().filter(|sentence| html.contains(&format!(">{sentence}<"))).collect()
}

/// Returns which of these sentences the views of a job show. Its overview has no empty panels.
async fn shown_in_views<'s>(server: &TestServer, job: &str, sentences: &[&'s str]) -> Vec<&'s str> {
    let overview = shown_sentences(server, &format!("/jobs/{job}"), sentences).await;
    assert_eq!(overview, [] as [&str; 0]);
    let mut shown = Vec::new();
    for view in ["?show=charts", "?show=samples", "?show=files", "/log"] {
        shown.extend(shown_sentences(server, &format!("/jobs/{job}{view}"), sentences).await);
    }
    shown
}

const PENDING_TEXTS: [&str; 4] =
    ["No metrics yet.", "No samples yet.", "No files yet.", "The log appears when the job starts."];
const ENDED_TEXTS: [&str; 4] = [
    "No metrics reported.",
    "This job produced no samples.",
    "This job produced no files.",
    "No log: the job never started.",
];
const OLDER_AGENT_TEXT: &str = "The worker's older agent sends no metrics, samples or log.";

#[tokio::test]
async fn cancelled_job_shows_no_pending_results() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let job = server.submit("digits").await;
    let all = [PENDING_TEXTS, ENDED_TEXTS].concat();
    assert_eq!(shown_in_views(&server, &job, &all).await, PENDING_TEXTS);
    server.call(&Actor::Admin, "POST", &format!("/api/queue/{job}/cancel"), "").await.expect_status(200);
    assert_eq!(shown_in_views(&server, &job, &all).await, ENDED_TEXTS);
    let html = page(&server, &log_in(&server).await, &format!("/jobs/{job}")).await;
    assert!(!html.contains("class=\"readings\"") && !html.contains("job-percent"), "{html}");
}

#[tokio::test]
async fn older_agent_shows_no_missing_data() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (_, _, mut events) = connect_older_agent(&server).await;
    let job = server.submit("digits").await;
    events.next_of_type("job_submit").await;
    assert_eq!(server.job(&job).await["older_agent"], true);
    assert_eq!(
        shown_in_views(&server, &job, &[&PENDING_TEXTS[..], &[OLDER_AGENT_TEXT]].concat()).await,
        [OLDER_AGENT_TEXT, OLDER_AGENT_TEXT, PENDING_TEXTS[2], OLDER_AGENT_TEXT]
    );

    let (_, _, _events) = server.connect_worker("gpu-1").await;
    let body = json!({"config_name": "digits", "target": "worker"});
    let other = server.post(&Actor::Admin, "/api/queue/submit", body).await.expect_status(201)["job_id"].clone();
    assert_eq!(server.job(other.as_str().expect("an id")).await.get("older_agent"), None);
}

#[tokio::test]
async fn worker_page_tells_whether_jobs_start_there() {
    let server = TestServer::start().await;
    let (id, _, _events) = server.connect_worker("gpu-1").await;
    let path = format!("/admin/workers/{id}");
    let all = ["Ready for the next matching job.", "Draining: accepts no new jobs."];
    assert_eq!(shown_sentences(&server, &path, &all).await, [all[0]]);
    server.post(&Actor::Admin, &format!("/api/admin/workers/{id}/drain"), json!({})).await.expect_status(200);
    assert_eq!(shown_sentences(&server, &path, &all).await, [all[1]]);
}

#[tokio::test]
async fn unreported_values_are_not_shown_as_none() {
    let server = TestServer::start().await;
    let (unconnected, _) = server.create_worker("gpu-1").await;
    let (bare, key) = server.create_worker("cpu-1").await;
    let pages = async || {
        let session = log_in(&server).await;
        let count = async |id: &str| {
            page(&server, &session, &format!("/admin/workers/{id}"))
                .await
                .replace("<!>", "")
                .matches(">No GPU<")
                .count()
        };
        let list = page(&server, &session, "/admin/workers").await.matches("title=\"No GPU\"").count();
        (count(&unconnected).await, count(&bare).await, list)
    };
    assert_eq!(pages().await, (0, 0, 0), "neither has registered yet");
    server.register(&key, json!([])).await;
    let (unconnected, bare, list) = pages().await;
    assert!(
        unconnected == 0 && bare > 0 && list == 1,
        "one has registered without a GPU: {unconnected}, {bare}, {list}"
    );
}

#[tokio::test]
async fn empty_configuration_list_shows_how_to_add_one() {
    let server = TestServer::start().await;
    for path in ["/configs", "/train"] {
        let html = page(&server, &log_in(&server).await, path).await.replace("<!>", "");
        let (_, instructions) = html.split_once("No configurations yet").expect("the text of an empty list");
        let (button, instructions) = instructions.split_once("</a>").expect("a button");
        assert!(button.contains("class=\"btn") && button.contains("href=\"/configs/new\""), "{path}: {button}");
        let lines: Vec<&str> =
            instructions.split("<p class=\"w-full\">").skip(1).filter_map(|line| line.split("</p>").next()).collect();
        let [cli, api] = lines[..] else { panic!("{path}: {lines:?}") };
        assert!(cli.starts_with("CLI: <code") && cli.contains("simpletuner configs push DIRECTORY"), "{path}: {cli}");
        assert!(api.starts_with("API: <code") && api.contains("PUT /api/configs/{name}"), "{path}: {api}");
    }
}

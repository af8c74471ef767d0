//! Searches in the logs of many jobs.

use axum::body::Body;
use serde_json::{Value, json};

use crate::tests::harness::{Actor, EventStreamReader, TestServer};
use crate::tests::logs::lines::put;
use crate::tests::ui::pages::{log_in, page};

/// A server with one worker.
struct Fleet {
    server: TestServer,
    key: Actor,
    events: EventStreamReader,
}

impl Fleet {
    async fn start() -> Self {
        let server = TestServer::start().await;
        let (_, key, events) = server.connect_worker("gpu-1").await;
        Self { server, key, events }
    }

    /// Runs a job of this configuration, whose log is this text, until it fails.
    async fn run_job(&mut self, config: &str, log: impl Into<Body>) -> String {
        let Self { server, key, events } = self;
        server.put_config(config).await;
        let job = server.submit(config).await;
        let token = Actor::Job(events.next_offer().await.upload_token);
        server.report_status(key, &job, json!({"status": "running", "attempt": 1})).await.expect_status(200);
        put(server, &job, &token, "offset=0", log).await;
        let failed = json!({"status": "failed", "attempt": 1, "error": "gone", "exit_code": 1});
        server.report_status(key, &job, failed).await.expect_status(200);
        job
    }
}

async fn search(server: &TestServer, query: &str) -> Value {
    server.get(&Actor::Admin, &format!("/api/queue/logs/search?{query}")).await.expect_status(200)
}

/// Returns the jobs that were found, each with the numbers of its matching lines.
fn found(page: &Value) -> Vec<(String, Vec<u64>)> {
    let lines = |found: &Value| {
        found["matches"].as_array().expect("matches").iter().filter_map(|line| line["line"].as_u64()).collect()
    };
    let job = |found: &Value| (found["job"]["job_id"].as_str().expect("an ID").to_owned(), lines(found));
    page["jobs"].as_array().expect("jobs").iter().map(job).collect()
}

#[tokio::test]
async fn logs_of_all_jobs_are_searched_newest_first() {
    let mut fleet = Fleet::start().await;
    let first = fleet.run_job("flux", "start\nNaN in layer 3\n\x1b[31mnan\x1b[0m\nnan\nnan\n").await;
    let second = fleet.run_job("sdxl", b"\xff\xfe\r 10%\rhidden nan\rshown\n[nan]\n".to_vec()).await;
    fleet.run_job("quiet", "no match\n").await;
    let server = fleet.server;
    let all = search(&server, "q=nan").await;
    assert_eq!(found(&all), [(second.clone(), vec![2]), (first.clone(), vec![2, 3, 4])]);
    assert_eq!((&all["searched"], &all["next_cursor"]), (&json!(3), &Value::Null));
    assert_eq!(all["jobs"][1]["matches"][1]["text"], "nan", "without colors");
    assert_eq!(found(&search(&server, "q=NaN").await), [(first.clone(), vec![2])], "capitals are significant");
    assert_eq!(found(&search(&server, "q=nan&jobs=config:sdxl").await), [(second.clone(), vec![2])]);
    assert_eq!(found(&search(&server, "q=nan&config=flux").await), [(first.clone(), vec![2, 3, 4])]);
    assert_eq!(found(&search(&server, "q=layer%20%5Cd&regex=true").await), [(first.clone(), vec![2])]);
    assert_eq!(found(&search(&server, "q=layer%20%5Cd").await), []);
    let rest = search(&server, "q=nan&cursor=1.").await;
    assert_eq!((found(&rest).len(), &rest["searched"]), (2, &json!(2)));
    for (query, status, problem) in [
        ("q=", 422, "out_of_range"),
        ("q=a&cursor=x", 422, "out_of_range"),
        ("q=a&jobs=status:x", 422, "invalid_search"),
        ("q=a%28&regex=true", 422, "invalid_pattern"),
    ] {
        let response = server.get(&Actor::Admin, &format!("/api/queue/logs/search?{query}")).await;
        response.expect_problem(status, problem);
    }

    let cookie = log_in(&server).await;
    let html = page(&server, &cookie, "/jobs/logs?q=nan&config=flux").await;
    assert!(html.contains(&format!("/jobs/{first}/log?attempt=1&amp;line=3&amp;q=nan")), "{html}");
    assert!(!html.contains(&second) && html.contains("1 job searched"), "{html}");
}

#[tokio::test]
async fn search_covers_only_visible_jobs() {
    let mut fleet = Fleet::start().await;
    fleet.run_job("flux", "needle\n").await;
    let restricted = fleet.server.restricted_token("ada").await;
    let page = fleet.server.get(&restricted, "/api/queue/logs/search?q=needle").await.expect_status(200);
    assert_eq!((found(&page).len(), &page["searched"]), (0, &json!(0)));
    assert_eq!(found(&search(&fleet.server, "q=needle").await).len(), 1);
}

//! Corrupt rows do not affect others.

use app::domain::time::Millis;
use serde_json::{Value, json};

use crate::store::conformance::{execute_raw, fresh_database};
use crate::tests::harness::{Actor, TestServer};

fn field_values(page: &Value, list: &str, field: &str) -> Vec<Value> {
    page[list].as_array().expect("a list").iter().map(|item| item[field].clone()).collect()
}

#[tokio::test]
async fn corrupt_worker_and_job_rows_do_not_affect_others() {
    let database = fresh_database().await;
    let running_server = TestServer::start_shared("c_before", &database, Millis::from_secs(3_600)).await;
    running_server.put_config("digits").await;
    let (corrupt, _) = running_server.create_worker("broken").await;
    let (_, intact) = running_server.create_worker("intact").await;
    running_server.register(&intact, json!([])).await;
    let mut jobs = Vec::new();
    for _ in 0..3 {
        jobs.push(running_server.submit("digits").await);
        running_server.clock.advance(Millis(1));
    }
    execute_raw(&database, "UPDATE workers SET labels = 'no JSON' WHERE name = 'broken'").await;
    execute_raw(&database, "UPDATE jobs SET labels = 'no JSON' WHERE id = (SELECT min(id) FROM jobs)").await;
    execute_raw(&database, "UPDATE jobs SET state = 'banana' WHERE id = (SELECT max(id) FROM jobs)").await;

    // A server that starts with the corrupt rows.
    let server = TestServer::start_shared("c_after", &database, Millis::from_secs(3_600)).await;
    server.app.services.system.renew_leadership().await.expect("a database");
    let workers = server.get(&Actor::Admin, "/api/admin/workers").await.expect_status(200);
    assert_eq!(field_values(&workers, "workers", "name"), ["intact"]);
    let queue = server.get(&Actor::Admin, "/api/queue").await.expect_status(200);
    assert_eq!(field_values(&queue, "jobs", "job_id"), [json!(jobs[1])]);
    let response = server.get(&Actor::Admin, &format!("/api/admin/workers/{corrupt}")).await;
    response.expect_problem(500, "inconsistent_row");
    server.get(&Actor::Admin, &format!("/api/queue/{}", jobs[0])).await.expect_problem(500, "inconsistent_row");

    // Planning skips the corrupt job, although it is the oldest.
    let mut events = server.open_stream(&intact).await;
    assert_eq!(events.next_offer().await.job_id.as_str(), jobs[1]);
    server.report_status(&intact, &jobs[1], json!({"status": "running", "attempt": 1})).await.expect_status(200);
    let next = server.submit("digits").await;
    server.advance(Millis::from_secs(121)).await;
    let workers = server.get(&Actor::Admin, "/api/admin/workers").await.expect_status(200);
    assert_eq!(
        field_values(&workers, "workers", "status"),
        ["offline"],
        "the health check marks the silent worker offline"
    );
    assert_eq!((server.job_status(&jobs[1]).await, server.job_status(&next).await), ("queued".into(), "queued".into()));

    // The same applies to a server that was running before.
    running_server.submit("digits").await;
    let queue = running_server.get(&Actor::Admin, "/api/queue").await.expect_status(200);
    assert_eq!(queue["jobs"].as_array().map(Vec::len), Some(3));
}

//! Corrupt rows do not affect others.

use app::domain::time::Millis;
use serde_json::{Value, json};

use crate::store::conformance::{execute_raw, fresh_database};
use crate::tests::harness::{Actor, TestServer};

fn field_values(page: &Value, list: &str, field: &str) -> Vec<Value> {
    page[list].as_array().expect("a list").iter().map(|one| one[field].clone()).collect()
}

#[tokio::test]
async fn corrupt_worker_and_job_rows_do_not_affect_others() {
    let database = fresh_database().await;
    let before = TestServer::start_shared("c_before", &database, Millis::from_secs(3_600)).await;
    before.put_config("digits").await;
    let (broken, _) = before.create_worker("broken").await;
    let (_, sound) = before.create_worker("sound").await;
    before.register(&sound, json!([])).await;
    let mut jobs = Vec::new();
    for _ in 0..3 {
        jobs.push(before.submit("digits").await);
        before.clock.advance(Millis(1));
    }
    execute_raw(&database, "UPDATE workers SET labels = 'no JSON' WHERE name = 'broken'").await;
    execute_raw(&database, "UPDATE jobs SET labels = 'no JSON' WHERE id = (SELECT min(id) FROM jobs)").await;
    execute_raw(&database, "UPDATE jobs SET state = 'banana' WHERE id = (SELECT max(id) FROM jobs)").await;

    // A server without earlier state.
    let server = TestServer::start_shared("c_after", &database, Millis::from_secs(3_600)).await;
    server.app.services.system.renew_leadership().await.expect("a database");
    let workers = server.get(&Actor::Admin, "/api/admin/workers").await.expect_status(200);
    assert_eq!(field_values(&workers, "workers", "name"), ["sound"]);
    let queue = server.get(&Actor::Admin, "/api/queue").await.expect_status(200);
    assert_eq!(field_values(&queue, "jobs", "job_id"), [json!(jobs[1])]);
    let response = server.get(&Actor::Admin, &format!("/api/admin/workers/{broken}")).await;
    response.expect_problem(500, "inconsistent_row");
    server.get(&Actor::Admin, &format!("/api/queue/{}", jobs[0])).await.expect_problem(500, "inconsistent_row");

    // Planning skips the corrupt one, although it is the oldest.
    let mut events = server.open_stream(&sound).await;
    assert_eq!(events.next_offer().await.job_id.as_str(), jobs[1]);
    server.report_status(&sound, &jobs[1], json!({"status": "running", "attempt": 1})).await.expect_status(200);
    let next = server.submit("digits").await;
    server.advance(Millis::from_secs(121)).await;
    let workers = server.get(&Actor::Admin, "/api/admin/workers").await.expect_status(200);
    assert_eq!(
        field_values(&workers, "workers", "status"),
        ["offline"],
        "the health pass came to the one that fell silent"
    );
    assert_eq!((server.job_status(&jobs[1]).await, server.job_status(&next).await), ("queued".into(), "queued".into()));

    // So does a server that has been running all the time.
    before.submit("digits").await;
    let queue = before.get(&Actor::Admin, "/api/queue").await.expect_status(200);
    assert_eq!(queue["jobs"].as_array().map(Vec::len), Some(3));
}

//! Rows that make no sense: what they speak of is in nobody's way.

use app::domain::time::Millis;
use serde_json::{Value, json};

use super::harness::{By, Server};
use crate::store::conformance::{damage, fresh_database};

fn each(page: &Value, list: &str, field: &str) -> Vec<Value> {
    page[list].as_array().expect("a list").iter().map(|one| one[field].clone()).collect()
}

#[tokio::test]
async fn a_broken_worker_and_a_broken_job_stop_nothing() {
    let database = fresh_database().await;
    let before = Server::start_beside("c_before", &database, Millis::seconds(3_600)).await;
    before.config("digits").await;
    let (broken, _) = before.worker("broken").await;
    let (_, sound) = before.worker("sound").await;
    before.register(&sound, json!([])).await;
    let mut jobs = Vec::new();
    for _ in 0..3 {
        jobs.push(before.submit("digits").await);
        before.clock.advance(Millis(1));
    }
    damage(&database, "UPDATE workers SET labels = 'no JSON' WHERE name = 'broken'").await;
    damage(&database, "UPDATE jobs SET labels = 'no JSON' WHERE id = (SELECT min(id) FROM jobs)").await;
    damage(&database, "UPDATE jobs SET state = 'banana' WHERE id = (SELECT max(id) FROM jobs)").await;

    // One that remembers nothing from before.
    let server = Server::start_beside("c_after", &database, Millis::seconds(3_600)).await;
    server.app.core.take_part().await.expect("a database");
    let workers = server.get(&By::Admin, "/api/admin/workers").await.ok(200);
    assert_eq!(each(&workers, "workers", "name"), ["sound"]);
    let queue = server.get(&By::Admin, "/api/queue").await.ok(200);
    assert_eq!(each(&queue, "jobs", "job_id"), [json!(jobs[1])]);
    let asked = server.get(&By::Admin, &format!("/api/admin/workers/{broken}")).await;
    asked.problem(500, "inconsistent_row");
    server.get(&By::Admin, &format!("/api/queue/{}", jobs[0])).await.problem(500, "inconsistent_row");

    // Planning passes the broken one by, though it waits for longest.
    let mut events = server.stream(&sound).await;
    assert_eq!(events.offer().await.job_id.as_str(), jobs[1]);
    server.report(&sound, &jobs[1], json!({"status": "running", "attempt": 1})).await.ok(200);
    let next = server.submit("digits").await;
    server.pass(Millis::seconds(121)).await;
    let workers = server.get(&By::Admin, "/api/admin/workers").await.ok(200);
    assert_eq!(each(&workers, "workers", "status"), ["offline"], "the health pass came to the one that fell silent");
    assert_eq!((server.status_of(&jobs[1]).await, server.status_of(&next).await), ("queued".into(), "queued".into()));

    // And so does a server that was running all the time.
    before.submit("digits").await;
    let queue = before.get(&By::Admin, "/api/queue").await.ok(200);
    assert_eq!(queue["jobs"].as_array().map(Vec::len), Some(3));
}

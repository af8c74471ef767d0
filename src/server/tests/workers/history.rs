//! `/api/admin/workers/{id}/attempts` and `…/events`.

use app::domain::time::Millis;
use serde_json::{Value, json};

use crate::tests::harness::{Actor, TestServer};

async fn get_list(server: &TestServer, id: &str, resource: &str, query: &str) -> Value {
    server.get(&Actor::Admin, &format!("/api/admin/workers/{id}/{resource}{query}")).await.expect_status(200)
}

/// Submits a job to the connected worker, and ends its attempt after this many seconds.
async fn run_attempt(server: &TestServer, key: &Actor, status: &str, seconds: i64) -> String {
    let job = server.submit("digits").await;
    server.report_status(key, &job, json!({"status": "running", "attempt": 1})).await.expect_status(200);
    server.advance(Millis::from_secs(seconds)).await;
    server.heartbeat(key, json!([{"job_id": job, "attempt": 1, "phase": "running"}])).await;
    let error = (status == "failed").then_some("no memory");
    server.report_status(key, &job, json!({"status": status, "attempt": 1, "error": error})).await.expect_status(200);
    job
}

#[tokio::test]
async fn worker_shows_its_attempts_and_recent_outcomes() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (id, key, _events) = server.connect_worker("gpu-1").await;
    let none = get_list(&server, &id, "attempts", "").await;
    assert_eq!((&none["attempts"], &none["record"]["attempts"]), (&json!([]), &json!(0)));
    assert_eq!(none["record"]["success_percent"], json!(null), "without attempts there is no rate");

    let first = run_attempt(&server, &key, "completed", 70).await;
    for _ in 0..2 {
        run_attempt(&server, &key, "failed", 5).await;
    }
    let last = run_attempt(&server, &key, "failed", 5).await;
    let response = get_list(&server, &id, "attempts", "").await;
    let jobs: Vec<_> =
        response["attempts"].as_array().expect("a list").iter().map(|attempt| &attempt["job_id"]).collect();
    assert_eq!((jobs.len(), jobs[0], jobs[3]), (4, &json!(last), &json!(first)), "newest first");
    let newest = &response["attempts"][0];
    assert_eq!((&newest["config_name"], &newest["attempt"]), (&json!("digits"), &json!(1)));
    assert_eq!((&newest["outcome"], &newest["error"]), (&json!("failed"), &json!("no memory")));
    let record = &response["record"];
    assert_eq!((&record["attempts"], &record["completed"], &record["failed"]), (&json!(4), &json!(1), &json!(3)));
    assert_eq!((&record["success_percent"], &record["fast_failures"]), (&json!(25.0), &json!(3)));
    let attention = server.get(&Actor::Admin, "/api/overview").await.expect_status(200)["attention"].clone();
    let alert = attention.as_array().expect("a list").iter().find(|entry| entry["kind"] == "fast_failures");
    assert_eq!(alert.expect("an alert")["count"], 3, "the overview counts the same");

    run_attempt(&server, &key, "failed", 70).await;
    let record = get_list(&server, &id, "attempts", "").await["record"].clone();
    assert_eq!(
        (&record["fast_failures"], &record["failed"]),
        (&json!(0), &json!(4)),
        "a later attempt has lasted longer"
    );
}

#[tokio::test]
async fn attempts_of_the_worker_are_paged() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (id, key, events) = server.connect_worker("gpu-1").await;
    for _ in 0..3 {
        run_attempt(&server, &key, "completed", 1).await;
    }
    drop(events);
    let (other, _, _events) = server.connect_worker("gpu-2").await;
    let first = get_list(&server, &id, "attempts", "?limit=2").await;
    let cursor = first["next_cursor"].as_str().expect("more");
    let second = get_list(&server, &id, "attempts", &format!("?limit=2&cursor={cursor}")).await;
    assert_eq!((second["attempts"].as_array().map(Vec::len), second.get("next_cursor")), (Some(1), None));
    assert_ne!(second["attempts"][0]["job_id"], first["attempts"][1]["job_id"]);
    assert_eq!(second["record"], first["record"], "the record is about all attempts");
    assert_eq!(get_list(&server, &other, "attempts", "").await["attempts"], json!([]));
    for resource in ["attempts", "events"] {
        let path = format!("/api/admin/workers/{id}/{resource}");
        server.get(&Actor::Admin, &format!("{path}?cursor=soon")).await.expect_problem(422, "out_of_range");
        server
            .get(&Actor::Admin, &format!("/api/admin/workers/w_none/{resource}"))
            .await
            .expect_problem(404, "worker_not_found");
        let lead = server.add_user(&format!("lead-{resource}"), "lead").await;
        server.get(&lead, &path).await.expect_problem(403, "permission_denied");
    }
}

#[tokio::test]
async fn worker_events_are_listed_newest_first() {
    let server = TestServer::start().await;
    let (id, _, _events) = server.connect_worker("gpu-1").await;
    let (_, _, _others) = server.connect_worker("gpu-2").await;
    let path = format!("/api/admin/workers/{id}");
    server.post(&Actor::Admin, &format!("{path}/drain"), json!({"reason": "riser cable"})).await.expect_status(200);
    let ada = server.add_user("ada", "admin").await;
    server.post(&ada, &format!("{path}/resume"), json!({})).await.expect_status(200);
    let response = get_list(&server, &id, "events", "").await;
    let events = response["events"].as_array().expect("a list");
    let names: Vec<_> = events.iter().map(|event| event["event"].as_str().expect("text")).collect();
    let expected = ["worker.resumed", "worker.drained", "worker.online", "worker.registered", "worker.created"];
    assert_eq!(names, expected);
    assert_eq!((&events[0]["actor"], &events[2]["actor"]), (&json!("ada"), &json!(format!("worker:{id}"))));
    assert_eq!(events[1]["detail"]["reason"], "riser cable");
    let first = get_list(&server, &id, "events", "?limit=4").await;
    let cursor = first["next_cursor"].as_str().expect("more");
    let second = get_list(&server, &id, "events", &format!("?limit=4&cursor={cursor}")).await;
    assert_eq!(second["events"].as_array().map(Vec::len), Some(1));
    assert_eq!(second["events"][0], events[4]);
}

#[tokio::test]
async fn worker_shows_its_status_of_the_last_day() {
    let server = TestServer::start().await;
    let (id, _) = server.create_worker("new").await;
    let statuses = async |id: &str| {
        let worker = server.get(&Actor::Admin, &format!("/api/admin/workers/{id}")).await.expect_status(200);
        let all = worker["last_day"].as_array().expect("a list").clone();
        assert_eq!(all.last().expect("a status")["since"], worker["status_since"]);
        all.iter().map(|span| span["status"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(statuses(&id).await, [json!(null)], "it has never connected");

    server.put_config("digits").await;
    let (id, key, _events) = server.connect_worker("gpu-1").await;
    server.advance(Millis::from_secs(5)).await;
    run_attempt(&server, &key, "completed", 70).await;
    let path = format!("/api/admin/workers/{id}");
    server.advance(Millis::from_secs(5)).await;
    server.post(&Actor::Admin, &format!("{path}/drain"), json!({})).await.expect_status(200);
    server.advance(Millis::from_secs(5)).await;
    assert_eq!(statuses(&id).await, ["idle", "busy", "idle", "draining"]);
    let page = server.get(&Actor::Admin, "/api/admin/workers").await.expect_status(200);
    assert_eq!(page["workers"][0]["last_day"], json!(null), "lists do not contain it");
}

#[tokio::test]
async fn token_shows_creator_and_time() {
    let server = TestServer::start().await;
    let (id, _) = server.create_worker("gpu-1").await;
    let path = format!("/api/admin/workers/{id}");
    let before = server.get(&Actor::Admin, &path).await.expect_status(200);
    assert_eq!(
        (&before["token_created_at"], &before["token_created_by"]),
        (&before["created_at"], &json!("admin/bootstrap"))
    );
    server.advance(Millis::from_secs(90)).await;
    let ada = server.add_user("ada", "admin").await;
    server.post(&ada, &format!("{path}/token"), json!({})).await.expect_status(200);
    let rotated = server.get(&Actor::Admin, &path).await.expect_status(200);
    assert_eq!(rotated["token_created_by"], "ada");
    assert_ne!(rotated["token_created_at"], before["token_created_at"]);
}

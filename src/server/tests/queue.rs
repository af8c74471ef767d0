//! `/api/queue`

use app::domain::time::Millis;
use serde_json::{Value, json};

use super::harness::{By, Server};

#[tokio::test]
async fn a_submit_pins_the_revision_and_says_where_it_stands() {
    let server = Server::start().await;
    server.config("digits").await;
    let body = json!({"config_name": "digits", "target": "worker"});
    let submitted = server.post(&By::Admin, "/api/queue/submit", body).await.ok(201);
    assert_eq!((&submitted["success"], &submitted["status"]), (&json!(true), &json!("queued")));
    assert_eq!((&submitted["queue_position"], &submitted["allocated_worker_id"]), (&json!(1), &json!(null)));
    let job = server.job(submitted["job_id"].as_str().expect("text")).await;
    assert_eq!(
        (&job["config_revision"], &job["max_attempts"], &job["submitted_by"]),
        (&json!(1), &json!(4), &json!("admin"))
    );
    assert_eq!((&job["attempts"], &job["attempt"]), (&json!([]), &json!(0)));
}

#[tokio::test]
async fn bad_submits_are_named_and_leave_nothing_behind() {
    let server = Server::start().await;
    server.config("digits").await;
    let submit = async |body: Value| server.post(&By::Admin, "/api/queue/submit", body).await;
    submit(json!({"config_name": "nope"})).await.problem(404, "config_not_found");
    submit(json!({})).await.problem(400, "invalid_json");
    submit(json!({"config_name": "digits", "target": "moon"})).await.problem(400, "invalid_json");
    submit(json!({"config_name": "digits", "gpu_count": 0})).await.problem(422, "out_of_range");
    submit(json!({"config_name": "digits", "gpu_count": 65})).await.problem(422, "out_of_range");
    submit(json!({"config_name": "digits", "min_vram_gb": -1})).await.problem(422, "out_of_range");
    submit(json!({"config_name": "digits", "max_retries": 101})).await.problem(422, "out_of_range");
    submit(json!({"config_name": "digits", "accelerator_type": "abacus"})).await.problem(422, "out_of_range");
    submit(json!({"config_name": "digits", "worker_labels": {"": "x"}})).await.problem(422, "invalid_labels");
    assert_eq!(server.get(&By::Admin, "/api/queue").await.ok(200)["total"], 0);
}

#[tokio::test]
async fn several_processes_ask_for_as_many_gpus() {
    let server = Server::start().await;
    let config = json!({"files": {"config.json": "{\"num_processes\": \"4\"}"}});
    server.call(&By::Admin, "PUT", "/api/configs/big", config.to_string()).await.ok(200);
    let job = server.submit("big").await;
    assert_eq!(server.job(&job).await["gpu_count"], 4);
}

#[tokio::test]
async fn the_list_is_filtered_and_paged_newest_first() {
    let server = Server::start().await;
    server.config("digits").await;
    let mut jobs = Vec::new();
    for _ in 0..5 {
        jobs.push(server.submit("digits").await);
        server.clock.advance(Millis(1));
    }
    server.call(&By::Admin, "POST", &format!("/api/queue/{}/cancel", jobs[1]), "").await.ok(200);
    let get = async |query: &str| server.get(&By::Admin, &format!("/api/queue{query}")).await.ok(200);
    let ids = |page: &Value| -> Vec<String> {
        page["jobs"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|job| job["job_id"].as_str().expect("text").to_owned())
            .collect()
    };
    let first = get("?limit=2").await;
    assert_eq!(ids(&first), [jobs[4].clone(), jobs[3].clone()]);
    let rest = get(&format!("?limit=9&cursor={}", first["next_cursor"].as_str().expect("more"))).await;
    assert_eq!(ids(&rest), [jobs[2].clone(), jobs[1].clone(), jobs[0].clone()]);
    assert_eq!((rest.get("next_cursor"), &rest["total"]), (None, &json!(5)));
    assert_eq!(ids(&get("?status=cancelled").await), [jobs[1].clone()]);
    assert_eq!(ids(&get("?phase=ended").await), [jobs[1].clone()]);
    assert_eq!(get("?phase=active").await["total"], 4);
    assert_eq!(get("?phase=ended&status=queued").await["total"], 0);
    let stats = get("/stats").await;
    assert_eq!((&stats["waiting"], &stats["cancelled"]), (&json!(4), &json!(1)));
    server.get(&By::Admin, "/api/queue?cursor=%2e%2e").await.problem(422, "out_of_range");
}

#[tokio::test]
async fn what_happened_to_a_job_can_be_read() {
    let server = Server::start().await;
    server.config("digits").await;
    let job = server.submit("digits").await;
    let (worker, key, mut events) = server.online("gpu-1").await;
    events.offer().await;
    for status in ["starting", "completed"] {
        let body = json!({"status": status, "attempt": 1});
        server.post(&key, &format!("/api/workers/job/{job}/status"), body).await.ok(200);
    }
    let page = server.get(&By::Admin, &format!("/api/queue/{job}/events")).await.ok(200);
    let events = page["events"].as_array().expect("a list");
    let told: Vec<_> = events.iter().map(|event| (event["event"].as_str(), event["actor"].as_str())).collect();
    let by_worker = format!("worker:{worker}");
    let expected = [
        ("job.submitted", "admin/bootstrap"),
        ("job.offered", "system"),
        ("job.starting", &by_worker),
        ("job.completed", &by_worker),
    ];
    assert_eq!(told, expected.map(|(event, actor)| (Some(event), Some(actor))));
    assert_eq!((&events[1]["detail"]["worker_id"], &events[1]["detail"]["attempt"]), (&json!(worker), &json!(1)));
    server.get(&By::Admin, "/api/queue/j_none/events").await.problem(404, "job_not_found");
}

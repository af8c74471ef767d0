//! `/api/queue`

use app::domain::time::Millis;
use serde_json::{Value, json};

use super::harness::{By, Server};
use crate::clock::Clock as _;

#[tokio::test]
async fn jobs_of_one_millisecond_keep_their_order() {
    let server = Server::start().await;
    server.config("digits").await;
    let mut submitted = Vec::new();
    for _ in 0..12 {
        submitted.push(server.submit("digits").await);
    }
    let list = server.get(&By::Admin, "/api/queue?phase=waiting").await.ok(200);
    let waiting: Vec<&str> =
        list["jobs"].as_array().expect("a list").iter().filter_map(|job| job["job_id"].as_str()).collect();
    assert_eq!(waiting, submitted);
}

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
    assert_eq!((&job["retry_on_failure"], &job["secrets"]), (&json!(false), &json!([])));
    let body = json!({"config_name": "digits", "retry_on_failure": true, "secrets": []});
    let submitted = server.post(&By::Admin, "/api/queue/submit", body).await.ok(201);
    let job = server.job(submitted["job_id"].as_str().expect("text")).await;
    assert_eq!((&job["retry_on_failure"], &job["secrets"]), (&json!(true), &json!([])));
}

#[tokio::test]
async fn bad_submits_are_named_and_leave_nothing_behind() {
    let server = Server::start().await;
    server.config("digits").await;
    let submit = async |body: Value| server.post(&By::Admin, "/api/queue/submit", body).await;
    submit(json!({"config_name": "nope"})).await.problem(404, "config_not_found");
    submit(json!({})).await.problem(400, "invalid_json");
    let moon = submit(json!({"config_name": "digits", "target": "moon"})).await.problem(400, "invalid_json");
    assert_eq!(moon["detail"], "`target` cannot be `moon`. It takes one of `auto`, `worker`, `local`.");
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
    assert_eq!((&get("?phase=waiting").await["total"], &get("?phase=running").await["total"]), (&json!(4), &json!(0)));
    assert_eq!(get("?phase=ended&status=queued").await["total"], 0);
    // Counted is what the person and the label leave, whatever the state that is shown.
    let counts = async |query: &str| get(query).await["counts"]["waiting"].clone();
    assert_eq!((counts("?status=failed").await, counts("?user=nobody").await), (json!(4), json!(0)));
    let stats = get("/stats").await;
    assert_eq!((&stats["waiting"], &stats["cancelled"]), (&json!(4), &json!(1)));
    server.get(&By::Admin, "/api/queue?cursor=%2e%2e").await.problem(422, "out_of_range");
}

#[tokio::test]
async fn what_waits_is_listed_in_the_order_of_its_turns() {
    let server = Server::start().await;
    server.config("digits").await;
    let mut jobs = Vec::new();
    for priority in [10, 30, 10, 30] {
        let body = json!({"config_name": "digits", "priority": priority});
        let job = server.post(&By::Admin, "/api/queue/submit", body).await.ok(201)["job_id"].clone();
        jobs.push(job.as_str().expect("text").to_owned());
        server.clock.advance(Millis(1));
    }
    let get = async |query: &str| {
        let page = server.get(&By::Admin, &format!("/api/queue?phase=waiting{query}")).await.ok(200);
        let told = page["jobs"].as_array().expect("a list").iter();
        let told: Vec<_> = told.map(|job| (job["job_id"].clone(), job["queue_position"].clone())).collect();
        (told, page["next_cursor"].as_str().map(str::to_owned))
    };
    let [a, b, c, d] = [0, 1, 2, 3].map(|n: usize| json!(jobs[n]));
    let (first, next) = get("&limit=2").await;
    assert_eq!(first, [(b.clone(), json!(1)), (d.clone(), json!(2))]);
    // What the page ended with leaves the queue, and what comes after it is still what comes.
    server.call(&By::Admin, "POST", &format!("/api/queue/{}/cancel", jobs[3]), "").await.ok(200);
    let rest = get(&format!("&cursor={}", next.expect("more"))).await;
    assert_eq!(rest, (vec![(a.clone(), json!(2)), (c.clone(), json!(3))], None));
    server.post(&By::Admin, &format!("/api/queue/{}/priority", jobs[2]), json!({"priority": 50})).await.ok(200);
    assert_eq!(get("").await.0, [(c, json!(1)), (b, json!(2)), (a, json!(3))]);
    server.get(&By::Admin, &format!("/api/queue?phase=waiting&cursor={}", jobs[0])).await.problem(422, "out_of_range");
}

#[tokio::test]
async fn jobs_are_found_by_worker_and_by_moment() {
    let server = Server::start().await;
    server.config("digits").await;
    let failed = server.submit("digits").await;
    let (worker, key, mut events) = server.online("gpu-1").await;
    events.offer().await;
    server.clock.advance(Millis(60_000));
    server.report(&key, &failed, json!({"status": "failed", "attempt": 1, "reason": "x"})).await.ok(200);
    let ended = server.clock.now();
    server.clock.advance(Millis(60_000));
    let later = server.clock.now();
    let elsewhere = json!({"config_name": "digits", "worker_labels": {"team": "nlp"}});
    let waiting = server.post(&By::Admin, "/api/queue/submit", elsewhere).await.ok(201)["job_id"].clone();
    let get = async |query: String| {
        let page = server.get(&By::Admin, &format!("/api/queue?{query}")).await.ok(200);
        page["jobs"].as_array().expect("a list").iter().map(|job| job["job_id"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(get(format!("worker={worker}")).await, [json!(failed)]);
    assert_eq!(get("worker=w_none".to_owned()).await, [] as [Value; 0]);
    assert_eq!(get(format!("since={later}")).await, [waiting]);
    assert_eq!(get(format!("until={later}")).await, [json!(failed)]);
    assert_eq!(get(format!("ended_since={ended}")).await, [json!(failed)]);
    assert_eq!(get(format!("ended_since={later}")).await, [] as [Value; 0]);
    for bad in ["since=soon", "until=2024-01-15", "ended_since=1"] {
        server.get(&By::Admin, &format!("/api/queue?{bad}")).await.problem(422, "out_of_range");
    }
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

#[tokio::test]
async fn an_attempt_tells_when_its_trainer_ran_and_when_it_was_cancelled() {
    let server = Server::start().await;
    server.config("digits").await;
    let job = server.submit("digits").await;
    let (_, key, mut events) = server.online("gpu-1").await;
    events.offer().await;
    let mut told = Vec::new();
    for status in ["starting", "running"] {
        server.clock.advance(Millis(1_000));
        told.push(server.clock.now().to_string());
        server.report(&key, &job, json!({"status": status, "attempt": 1})).await.ok(200);
    }
    server.clock.advance(Millis(1_000));
    told.push(server.clock.now().to_string());
    server.call(&By::Admin, "POST", &format!("/api/queue/{job}/cancel"), "").await.ok(200);
    let attempt = server.job(&job).await["attempts"][0].clone();
    let moments = [&attempt["started_at"], &attempt["running_at"], &attempt["cancelling_at"]];
    assert_eq!(moments.map(|at| at.as_str().unwrap_or_default().to_owned()), *told);
}

#[tokio::test]
async fn the_configuration_of_a_job_is_the_one_that_it_was_submitted_with() {
    let server = Server::start().await;
    let put = async |text: &str| {
        let body = json!({"files": {"config.json": text}}).to_string();
        server.call(&By::Admin, "PUT", "/api/configs/mine", body).await.ok(200)
    };
    put("{\"seed\": 1}").await;
    let job = server.submit("mine").await;
    put("{\"seed\": 2}").await;
    server.call(&By::Admin, "DELETE", "/api/configs/mine", "").await.ok(200);
    let path = format!("/api/queue/{job}/config");
    let shown = server.get(&By::Admin, &path).await.ok(200);
    assert_eq!((&shown["revision"], &shown["bundle"]["files"]["config.json"]), (&json!(1), &json!("{\"seed\": 1}")));
    let other = server.person("bo", "researcher").await;
    server.get(&other, &path).await.problem(404, "job_not_found");
    server.get(&By::Admin, "/api/queue/j_none/config").await.problem(404, "job_not_found");
}

#[tokio::test]
async fn a_submit_can_choose_from_the_labels_of_the_fleet() {
    let server = Server::start().await;
    for (name, labels) in [("a", json!({"team": "nlp"})), ("b", json!({"team": "vision", "zone": "x"}))] {
        server.post(&By::Admin, "/api/admin/workers", json!({"name": name, "labels": labels})).await.ok(201);
    }
    let eve = server.person("eve", "researcher").await;
    let labels = server.get(&eve, "/api/queue/labels").await.ok(200);
    assert_eq!(labels["labels"], json!({"team": ["nlp", "vision"], "zone": ["x"]}));
    let vic = server.person("vic", "viewer").await;
    server.get(&vic, "/api/queue/labels").await.problem(403, "permission_denied");
}

#[tokio::test]
async fn a_retry_keeps_no_priority_that_its_submitter_may_not_ask_for() {
    let server = Server::start().await;
    server.config("digits").await;
    let lead = server.person("grace", "lead").await;
    let researcher = server.person("rita", "researcher").await;
    let urgent = server.post(&researcher, "/api/queue/submit", json!({"config_name": "digits"})).await.ok(201);
    let job = urgent["job_id"].as_str().expect("text").to_owned();
    server.post(&lead, &format!("/api/queue/{job}/priority"), json!({"priority": 50})).await.ok(200);
    server.call(&researcher, "POST", &format!("/api/queue/{job}/cancel"), "").await.ok(200);
    let retry = async |by: &By| {
        let again = server.call(by, "POST", &format!("/api/queue/{job}/retry"), "").await.ok(201);
        server.job(again["job_id"].as_str().expect("text")).await["priority"].clone()
    };
    assert_eq!(retry(&researcher).await, 10, "the highest that a researcher may ask for");
    assert_eq!(retry(&lead).await, 50, "a lead manages the queue");
    let low = json!({"config_name": "digits", "priority": 3});
    let low = server.post(&researcher, "/api/queue/submit", low).await.ok(201)["job_id"].clone();
    let low = low.as_str().expect("text");
    server.call(&researcher, "POST", &format!("/api/queue/{low}/cancel"), "").await.ok(200);
    let again = server.call(&researcher, "POST", &format!("/api/queue/{low}/retry"), "").await.ok(201);
    assert_eq!(server.job(again["job_id"].as_str().expect("text")).await["priority"], 3);
}

#[tokio::test]
async fn a_person_has_so_many_waiting_jobs_and_nobody_else_has_fewer_for_it() {
    let server = Server::start_with(|policy| policy.bounds.waiting_jobs_per_user = 2).await;
    server.config("digits").await;
    let (ada, bob) = (server.person("ada", "researcher").await, server.person("bob", "researcher").await);
    let submit = async |by: &By| server.post(by, "/api/queue/submit", json!({"config_name": "digits"})).await;
    let first = submit(&ada).await.ok(201)["job_id"].clone();
    submit(&ada).await.ok(201);
    let refused = submit(&ada).await.problem(422, "limit_reached");
    assert!(refused["detail"].as_str().is_some_and(|detail| detail.contains("2 jobs that wait")), "{refused}");
    submit(&bob).await.ok(201);
    let first = first.as_str().expect("text");
    server.call(&ada, "POST", &format!("/api/queue/{first}/cancel"), "").await.ok(200);
    server.call(&ada, "POST", &format!("/api/queue/{first}/retry"), "").await.ok(201);
    server.call(&ada, "POST", &format!("/api/queue/{first}/retry"), "").await.problem(422, "limit_reached");
}

//! `/api/queue`

use app::domain::time::Millis;
use serde_json::{Value, json};

use crate::clock::Clock as _;
use crate::tests::harness::{Actor, TestServer};

#[tokio::test]
async fn jobs_of_the_same_millisecond_keep_their_order() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let mut submitted = Vec::new();
    for _ in 0..12 {
        submitted.push(server.submit("digits").await);
    }
    let list = server.get(&Actor::Admin, "/api/queue?phase=waiting").await.expect_status(200);
    let waiting: Vec<&str> =
        list["jobs"].as_array().expect("a list").iter().filter_map(|job| job["job_id"].as_str()).collect();
    assert_eq!(waiting, submitted);
}

#[tokio::test]
async fn submit_pins_the_revision_and_returns_the_queue_position() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let body = json!({"config_name": "digits", "target": "worker"});
    let submitted = server.post(&Actor::Admin, "/api/queue/submit", body).await.expect_status(201);
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
    let submitted = server.post(&Actor::Admin, "/api/queue/submit", body).await.expect_status(201);
    let job = server.job(submitted["job_id"].as_str().expect("text")).await;
    assert_eq!((&job["retry_on_failure"], &job["secrets"]), (&json!(true), &json!([])));
}

#[tokio::test]
async fn invalid_submits_are_explained_and_change_nothing() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let submit = async |body: Value| server.post(&Actor::Admin, "/api/queue/submit", body).await;
    submit(json!({"config_name": "nope"})).await.expect_problem(404, "config_not_found");
    submit(json!({})).await.expect_problem(400, "invalid_json");
    let problem = submit(json!({"config_name": "digits", "target": "moon"})).await.expect_problem(400, "invalid_json");
    assert_eq!(problem["detail"], "`target` cannot be `moon`. Allowed: `auto`, `worker`, `local`.");
    submit(json!({"config_name": "digits", "gpu_count": 0})).await.expect_problem(422, "out_of_range");
    submit(json!({"config_name": "digits", "gpu_count": 65})).await.expect_problem(422, "out_of_range");
    submit(json!({"config_name": "digits", "min_vram_gb": -1})).await.expect_problem(422, "out_of_range");
    submit(json!({"config_name": "digits", "max_retries": 101})).await.expect_problem(422, "out_of_range");
    submit(json!({"config_name": "digits", "accelerator_type": "abacus"})).await.expect_problem(422, "out_of_range");
    submit(json!({"config_name": "digits", "worker_labels": {"": "x"}})).await.expect_problem(422, "invalid_labels");
    assert_eq!(server.get(&Actor::Admin, "/api/queue").await.expect_status(200)["total"], 0);
}

#[tokio::test]
async fn num_processes_sets_the_gpu_count() {
    let server = TestServer::start().await;
    let config = json!({"files": {"config.json": "{\"num_processes\": \"4\"}"}});
    server.call(&Actor::Admin, "PUT", "/api/configs/big", config.to_string()).await.expect_status(200);
    let job = server.submit("big").await;
    assert_eq!(server.job(&job).await["gpu_count"], 4);
}

#[tokio::test]
async fn the_list_is_filtered_and_paged_newest_first() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let mut jobs = Vec::new();
    for _ in 0..5 {
        jobs.push(server.submit("digits").await);
        server.clock.advance(Millis(1));
    }
    server.call(&Actor::Admin, "POST", &format!("/api/queue/{}/cancel", jobs[1]), "").await.expect_status(200);
    let get = async |query: &str| server.get(&Actor::Admin, &format!("/api/queue{query}")).await.expect_status(200);
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
    // Counts include the filters for user and label, but not the one for status.
    let counts = async |query: &str| get(query).await["counts"]["waiting"].clone();
    assert_eq!((counts("?status=failed").await, counts("?user=nobody").await), (json!(4), json!(0)));
    let stats = get("/stats").await;
    assert_eq!((&stats["waiting"], &stats["cancelled"]), (&json!(4), &json!(1)));
    server.get(&Actor::Admin, "/api/queue?cursor=%2e%2e").await.expect_problem(422, "out_of_range");
}

#[tokio::test]
async fn queue_is_listed_in_dispatch_order() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let mut jobs = Vec::new();
    for priority in [10, 30, 10, 30] {
        let body = json!({"config_name": "digits", "priority": priority});
        let job = server.post(&Actor::Admin, "/api/queue/submit", body).await.expect_status(201)["job_id"].clone();
        jobs.push(job.as_str().expect("text").to_owned());
        server.clock.advance(Millis(1));
    }
    let get = async |query: &str| {
        let page = server.get(&Actor::Admin, &format!("/api/queue?phase=waiting{query}")).await.expect_status(200);
        let rows = page["jobs"].as_array().expect("a list").iter();
        let rows: Vec<_> = rows.map(|job| (job["job_id"].clone(), job["queue_position"].clone())).collect();
        (rows, page["next_cursor"].as_str().map(str::to_owned))
    };
    let [a, b, c, d] = [0, 1, 2, 3].map(|n: usize| json!(jobs[n]));
    let (first, next) = get("&limit=2").await;
    assert_eq!(first, [(b.clone(), json!(1)), (d.clone(), json!(2))]);
    // The last item of the page leaves the queue, and the next page still continues after it.
    server.call(&Actor::Admin, "POST", &format!("/api/queue/{}/cancel", jobs[3]), "").await.expect_status(200);
    let rest = get(&format!("&cursor={}", next.expect("more"))).await;
    assert_eq!(rest, (vec![(a.clone(), json!(2)), (c.clone(), json!(3))], None));
    server
        .post(&Actor::Admin, &format!("/api/queue/{}/priority", jobs[2]), json!({"priority": 50}))
        .await
        .expect_status(200);
    assert_eq!(get("").await.0, [(c, json!(1)), (b, json!(2)), (a, json!(3))]);
    server
        .get(&Actor::Admin, &format!("/api/queue?phase=waiting&cursor={}", jobs[0]))
        .await
        .expect_problem(422, "out_of_range");
}

#[tokio::test]
async fn jobs_are_filtered_by_worker_and_time() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let failed = server.submit("digits").await;
    let (worker, key, mut events) = server.connect_worker("gpu-1").await;
    events.next_offer().await;
    server.clock.advance(Millis(60_000));
    server
        .report_status(&key, &failed, json!({"status": "failed", "attempt": 1, "reason": "x"}))
        .await
        .expect_status(200);
    let ended_at = server.clock.now();
    server.clock.advance(Millis(60_000));
    let submitted_at = server.clock.now();
    let unmatched = json!({"config_name": "digits", "worker_labels": {"team": "nlp"}});
    let waiting = server.post(&Actor::Admin, "/api/queue/submit", unmatched).await.expect_status(201)["job_id"].clone();
    let get = async |query: String| {
        let page = server.get(&Actor::Admin, &format!("/api/queue?{query}")).await.expect_status(200);
        page["jobs"].as_array().expect("a list").iter().map(|job| job["job_id"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(get(format!("worker={worker}")).await, [json!(failed)]);
    assert_eq!(get("worker=w_none".to_owned()).await, [] as [Value; 0]);
    assert_eq!(get(format!("since={submitted_at}")).await, [waiting]);
    assert_eq!(get(format!("until={submitted_at}")).await, [json!(failed)]);
    assert_eq!(get(format!("ended_since={ended_at}")).await, [json!(failed)]);
    assert_eq!(get(format!("ended_since={submitted_at}")).await, [] as [Value; 0]);
    for bad in ["since=soon", "until=2024-01-15", "ended_since=1"] {
        server.get(&Actor::Admin, &format!("/api/queue?{bad}")).await.expect_problem(422, "out_of_range");
    }
}

#[tokio::test]
async fn jobs_are_filtered_by_a_part_of_their_name() {
    let server = TestServer::start().await;
    for name in ["flux-lora", "flux-full", "sdxl"] {
        server.put_config(name).await;
    }
    let (lora, full, sdxl) =
        (server.submit("flux-lora").await, server.submit("flux-full").await, server.submit("sdxl").await);
    let get = async |query: &str| {
        let page = server.get(&Actor::Admin, &format!("/api/queue?{query}")).await.expect_status(200);
        let jobs = page["jobs"].as_array().expect("a list").iter();
        let ids: Vec<_> = jobs.map(|job| job["job_id"].as_str().expect("text").to_owned()).collect();
        assert_eq!(page["total"], ids.len(), "{query}");
        ids
    };
    assert_eq!(get("q=FLUX").await, [full.clone(), lora.clone()]);
    assert_eq!(get("q=lora").await, std::slice::from_ref(&lora));
    assert_eq!(get("q=%20").await.len(), 3, "an empty query");
    assert_eq!(get("config=flux").await, [] as [String; 0], "only the full name matches");
    assert_eq!(get("config=sdxl").await, std::slice::from_ref(&sdxl));
    assert_eq!(get("q=flux&config=flux-full&status=queued").await, [full]);
    assert_eq!(get(&format!("q={sdxl}")).await, [sdxl]);
    let too_long = format!("/api/queue?q={}", "x".repeat(1_001));
    assert_eq!(server.get(&Actor::Admin, &too_long).await.expect_problem(422, "invalid_search")["why"], "long");
    let page = server.get(&server.add_user("vic", "viewer").await, "/jobs?q=lora").await.text();
    assert!(page.contains(&lora) && !page.contains("flux-full") && page.contains("id=\"q\""), "{page}");
}

#[tokio::test]
async fn job_events_are_listed() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let job = server.submit("digits").await;
    let (worker, key, mut events) = server.connect_worker("gpu-1").await;
    events.next_offer().await;
    for status in ["starting", "completed"] {
        let body = json!({"status": status, "attempt": 1});
        server.post(&key, &format!("/api/workers/job/{job}/status"), body).await.expect_status(200);
    }
    let page = server.get(&Actor::Admin, &format!("/api/queue/{job}/events")).await.expect_status(200);
    let events = page["events"].as_array().expect("a list");
    let recorded: Vec<_> = events.iter().map(|event| (event["event"].as_str(), event["actor"].as_str())).collect();
    let worker_actor = format!("worker:{worker}");
    let expected = [
        ("job.submitted", "admin/bootstrap"),
        ("job.offered", "system"),
        ("job.starting", &worker_actor),
        ("job.completed", &worker_actor),
    ];
    assert_eq!(recorded, expected.map(|(event, actor)| (Some(event), Some(actor))));
    assert_eq!((&events[1]["detail"]["worker_id"], &events[1]["detail"]["attempt"]), (&json!(worker), &json!(1)));
    server.get(&Actor::Admin, "/api/queue/j_none/events").await.expect_problem(404, "job_not_found");
}

#[tokio::test]
async fn attempt_shows_training_and_cancel_times() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let job = server.submit("digits").await;
    let (_, key, mut events) = server.connect_worker("gpu-1").await;
    events.next_offer().await;
    let mut expected_times = Vec::new();
    for status in ["starting", "running"] {
        server.clock.advance(Millis(1_000));
        expected_times.push(server.clock.now().to_string());
        server.report_status(&key, &job, json!({"status": status, "attempt": 1})).await.expect_status(200);
    }
    server.clock.advance(Millis(1_000));
    expected_times.push(server.clock.now().to_string());
    server.call(&Actor::Admin, "POST", &format!("/api/queue/{job}/cancel"), "").await.expect_status(200);
    let attempt = server.job(&job).await["attempts"][0].clone();
    let shown_times = [&attempt["started_at"], &attempt["running_at"], &attempt["cancelling_at"]];
    assert_eq!(shown_times.map(|at| at.as_str().unwrap_or_default().to_owned()), *expected_times);
}

#[tokio::test]
async fn cancelled_job_names_the_user() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let running = server.submit("digits").await;
    assert_eq!(server.job(&running).await.get("cancelled_by"), None);
    let (_, key, mut events) = server.connect_worker("gpu-1").await;
    events.next_offer().await;
    server.report_status(&key, &running, json!({"status": "running", "attempt": 1})).await.expect_status(200);
    let pending = server.submit("digits").await;
    for job in [&running, &pending] {
        server.call(&Actor::Admin, "POST", &format!("/api/queue/{job}/cancel"), "").await.expect_status(200);
        assert_eq!(server.job(job).await["cancelled_by"], "admin");
    }
    server.report_status(&key, &running, json!({"status": "cancelled", "attempt": 1})).await.expect_status(200);
    let view = server.job(&running).await;
    assert_eq!((&view["status"], &view["cancelled_by"]), (&json!("cancelled"), &json!("admin")), "not its worker");
}

#[tokio::test]
async fn job_keeps_its_submitted_configuration() {
    let server = TestServer::start().await;
    let put = async |text: &str| {
        let body = json!({"files": {"config.json": text}}).to_string();
        server.call(&Actor::Admin, "PUT", "/api/configs/mine", body).await.expect_status(200)
    };
    put("{\"seed\": 1}").await;
    let job = server.submit("mine").await;
    put("{\"seed\": 2}").await;
    server.call(&Actor::Admin, "DELETE", "/api/configs/mine", "").await.expect_status(200);
    let path = format!("/api/queue/{job}/config");
    let view = server.get(&Actor::Admin, &path).await.expect_status(200);
    assert_eq!((&view["revision"], &view["bundle"]["files"]["config.json"]), (&json!(1), &json!("{\"seed\": 1}")));
    let other = server.restricted_token("bo").await;
    server.get(&other, &path).await.expect_problem(404, "job_not_found");
    server.get(&Actor::Admin, "/api/queue/j_none/config").await.expect_problem(404, "job_not_found");
}

#[tokio::test]
async fn fleet_labels_are_listed_for_submits() {
    let server = TestServer::start().await;
    for (name, labels) in [("a", json!({"team": "nlp"})), ("b", json!({"team": "vision", "zone": "x"}))] {
        server
            .post(&Actor::Admin, "/api/admin/workers", json!({"name": name, "labels": labels}))
            .await
            .expect_status(201);
    }
    let eve = server.add_user("eve", "researcher").await;
    let labels = server.get(&eve, "/api/queue/labels").await.expect_status(200);
    assert_eq!(labels["labels"], json!({"team": ["nlp", "vision"], "zone": ["x"]}));
    let vic = server.add_user("vic", "viewer").await;
    server.get(&vic, "/api/queue/labels").await.expect_problem(403, "permission_denied");
}

#[tokio::test]
async fn retry_drops_a_priority_without_permission() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let lead = server.add_user("grace", "lead").await;
    let researcher = server.add_user("rita", "researcher").await;
    let urgent =
        server.post(&researcher, "/api/queue/submit", json!({"config_name": "digits"})).await.expect_status(201);
    let job = urgent["job_id"].as_str().expect("text").to_owned();
    server.post(&lead, &format!("/api/queue/{job}/priority"), json!({"priority": 50})).await.expect_status(200);
    server.call(&researcher, "POST", &format!("/api/queue/{job}/cancel"), "").await.expect_status(200);
    let retry = async |actor: &Actor| {
        let retried_job = server.call(actor, "POST", &format!("/api/queue/{job}/retry"), "").await.expect_status(201);
        server.job(retried_job["job_id"].as_str().expect("text")).await["priority"].clone()
    };
    assert_eq!(retry(&researcher).await, 10, "the highest priority for a researcher");
    assert_eq!(retry(&lead).await, 50, "a lead manages the queue");
    let low = json!({"config_name": "digits", "priority": 3});
    let low = server.post(&researcher, "/api/queue/submit", low).await.expect_status(201)["job_id"].clone();
    let low = low.as_str().expect("text");
    server.call(&researcher, "POST", &format!("/api/queue/{low}/cancel"), "").await.expect_status(200);
    let retried_job = server.call(&researcher, "POST", &format!("/api/queue/{low}/retry"), "").await.expect_status(201);
    assert_eq!(server.job(retried_job["job_id"].as_str().expect("text")).await["priority"], 3);
}

#[tokio::test]
async fn queued_jobs_are_limited_per_user() {
    let server = TestServer::start_with(|policy| policy.usage_limits.waiting_jobs_per_user = 2).await;
    server.put_config("digits").await;
    let (ada, bob) = (server.add_user("ada", "researcher").await, server.add_user("bob", "researcher").await);
    let submit = async |actor: &Actor| server.post(actor, "/api/queue/submit", json!({"config_name": "digits"})).await;
    let first = submit(&ada).await.expect_status(201)["job_id"].clone();
    submit(&ada).await.expect_status(201);
    let rejected = submit(&ada).await.expect_problem(422, "limit_reached");
    assert!(rejected["detail"].as_str().is_some_and(|detail| detail.contains("2 queued jobs")), "{rejected}");
    submit(&bob).await.expect_status(201);
    let first = first.as_str().expect("text");
    server.call(&ada, "POST", &format!("/api/queue/{first}/cancel"), "").await.expect_status(200);
    server.call(&ada, "POST", &format!("/api/queue/{first}/retry"), "").await.expect_status(201);
    server.call(&ada, "POST", &format!("/api/queue/{first}/retry"), "").await.expect_problem(422, "limit_reached");
}

//! `/api/admin/gpus`: the GPUs of the fleet, by worker.

use axum::body::Body;
use serde_json::{Value, json};

use crate::tests::harness::{Actor, EventStreamReader, TestServer};

async fn get_page(server: &TestServer, query: &str) -> Value {
    server.get(&Actor::Admin, &format!("/api/admin/gpus?{query}")).await.expect_status(200)
}

/// Connects a worker with this many GPUs, the last of which is unavailable for a reason.
async fn connect_gpu_worker(
    server: &TestServer,
    name: &str,
    count: u32,
    unavailable: Option<&str>,
) -> (Actor, EventStreamReader) {
    let (_, key) = server.create_worker(name).await;
    let gpu = |n: u32| {
        let mut gpu = json!({"index": n, "uuid": format!("{name}-{n}"), "name": "A100", "vram_gb": 80.0});
        if let Some(reason) = unavailable.filter(|_| n + 1 == count) {
            gpu["unavailable"] = json!({"reason": reason, "detail": "process 4711"});
        }
        gpu
    };
    let gpus: Vec<_> = (0..count).map(gpu).collect();
    let body = json!({"protocol": 1, "persistent": true, "accelerator_type": "cuda", "gpus": gpus, "max_jobs": 4});
    server.post(&key, "/api/workers/register", body).await.expect_status(200);
    let mut events = server.open_stream(&key).await;
    events.next_of_type("drain").await;
    (key, events)
}

/// Returns the UUIDs of the listed GPUs.
fn gpu_uuids(page: &Value) -> Vec<&str> {
    let workers = page["workers"].as_array().expect("a list").iter();
    let gpus = workers.flat_map(|worker| worker["gpus"].as_array().expect("a list"));
    gpus.map(|gpu| gpu["uuid"].as_str().expect("text")).collect()
}

#[tokio::test]
async fn gpus_are_listed_by_worker_and_counted_by_state() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    server.create_worker("a-never-seen").await;
    let (_, mut events) = connect_gpu_worker(&server, "rack-2", 2, Some("in_use")).await;
    let (disconnected, _events) = connect_gpu_worker(&server, "rack-1", 1, None).await;
    let _broken = connect_gpu_worker(&server, "rack-3", 3, Some("quarantined")).await;
    server.post(&disconnected, "/api/workers/disconnect", json!({})).await.expect_status(200);
    let label = json!({"config_name": "digits", "gpu_count": 1, "worker_labels": {}});
    let job = server.post(&Actor::Admin, "/api/queue/submit", label).await.expect_status(201)["job_id"].clone();
    let offered = events.next_offer().await;
    assert_eq!((json!(offered.job_id), offered.gpus), (job, vec!["rack-2-0".to_owned()]), "the tightest fit");

    let all = get_page(&server, "").await;
    assert_eq!(gpu_uuids(&all), ["rack-1-0", "rack-2-0", "rack-2-1", "rack-3-0", "rack-3-1", "rack-3-2"]);
    let counts = json!({"busy": 1, "free": 2, "in_use": 1, "quarantined": 1, "not_connected": 1});
    assert_eq!((&all["counts"], &all["total"], &all["before"]), (&counts, &json!(3), &json!(0)));
    for (state, expected) in [
        ("busy", vec!["rack-2-0"]),
        ("free", vec!["rack-3-0", "rack-3-1"]),
        ("in_use", vec!["rack-2-1"]),
        ("quarantined", vec!["rack-3-2"]),
        ("not_connected", vec!["rack-1-0"]),
    ] {
        let page = get_page(&server, &format!("state={state}")).await;
        assert_eq!((gpu_uuids(&page), &page["counts"]), (expected, &counts), "{state}");
        assert!(page["workers"][0]["gpus"].as_array().expect("a list").iter().all(|gpu| gpu["state"] == state));
    }
    let narrowed = get_page(&server, "q=name:rack-3").await;
    assert_eq!(
        (gpu_uuids(&narrowed).len(), &narrowed["counts"]["free"], &narrowed["counts"]["busy"]),
        (3, &json!(2), &json!(0))
    );
}

#[tokio::test]
async fn gpu_list_is_paged_by_worker() {
    let server = TestServer::start().await;
    let mut connected = Vec::new();
    for n in 1..=5 {
        connected.push(connect_gpu_worker(&server, &format!("rack-{n}"), 1, None).await);
    }
    let page = |cursor: &Value| format!("limit=2&cursor={}", cursor.as_str().unwrap_or_default());
    let first = get_page(&server, "limit=2").await;
    assert_eq!((gpu_uuids(&first), &first["total"]), (vec!["rack-1-0", "rack-2-0"], &json!(5)));
    assert!(first.get("previous_cursor").is_none(), "{first}");
    let second = get_page(&server, &page(&first["next_cursor"])).await;
    assert_eq!((gpu_uuids(&second), &second["before"]), (vec!["rack-3-0", "rack-4-0"], &json!(2)));
    let last = get_page(&server, &page(&second["next_cursor"])).await;
    assert_eq!((gpu_uuids(&last), last.get("next_cursor")), (vec!["rack-5-0"], None));
    assert_eq!(gpu_uuids(&get_page(&server, &page(&last["previous_cursor"])).await), gpu_uuids(&second));
    let response = server.get(&Actor::Admin, "/api/admin/gpus?limit=2").await;
    assert!(response.headers["link"].to_str().is_ok_and(|link| link.contains("cursor=rack-2>; rel=\"next\"")));
}

#[tokio::test]
async fn gpu_list_requires_fleet_view_and_a_valid_query() {
    let server = TestServer::start().await;
    let rita = server.restricted_token("rita").await;
    server.call(&rita, "GET", "/api/admin/gpus", Body::empty()).await.expect_problem(403, "permission_denied");
    server
        .call(&Actor::Admin, "GET", "/api/admin/gpus?q=colour:red", Body::empty())
        .await
        .expect_problem(422, "invalid_search");
    server
        .call(&Actor::Admin, "GET", "/api/admin/gpus?state=red", Body::empty())
        .await
        .expect_problem(400, "invalid_query");
}

#[tokio::test]
async fn gpu_list_groups_by_label() {
    let server = TestServer::start().await;
    let mut streams = Vec::new();
    for (name, team) in [("e", "nlp"), ("d", ""), ("c", "art"), ("b", "nlp"), ("a", ""), ("f", "nlp")] {
        let labels = if team.is_empty() { json!({}) } else { json!({"team": team}) };
        let new_worker = json!({"name": name, "labels": labels});
        let created = server.post(&Actor::Admin, "/api/admin/workers", new_worker).await.expect_status(201);
        let key = Actor::worker(created["token"].as_str().expect("text"));
        let gpu = json!({"index": 0, "uuid": name, "name": "A100", "vram_gb": 80.0});
        let body = json!({"protocol": 1, "persistent": true, "accelerator_type": "cuda", "gpus": [gpu], "max_jobs": 4});
        server.post(&key, "/api/workers/register", body).await.expect_status(200);
        let mut events = server.open_stream(&key).await;
        events.next_of_type("drain").await;
        streams.push(events);
    }
    let (mut uuids, mut groups, mut cursor) = (Vec::new(), Vec::new(), String::new());
    loop {
        let page = get_page(
            &server,
            &format!("group=label.team&limit=2&cursor={}", cursor.replace('+', "%2B").replace('\u{1f}', "%1F")),
        )
        .await;
        assert_eq!((&page["total"], &page["label_keys"]), (&json!(6), &json!(["team"])));
        uuids.extend(gpu_uuids(&page).into_iter().map(str::to_owned));
        let page_groups = page["groups"].as_array().expect("a list").iter();
        groups.extend(page_groups.map(|group| {
            (group["value"].clone(), group["shown"].clone(), group["total"].clone(), group["counts"]["free"].clone())
        }));
        let Some(next) = page["next_cursor"].as_str() else { break };
        next.clone_into(&mut cursor);
    }
    assert_eq!(uuids, ["c", "b", "e", "f", "a", "d"], "by value, then name; workers without the label come last");
    let rows: Vec<_> = groups.iter().map(|group| json!([group.0, group.1, group.2, group.3])).collect();
    assert_eq!(
        json!(rows),
        json!([["art", 1, 1, 1], ["nlp", 1, 3, 3], ["nlp", 2, 3, 3], [null, 2, 2, 2]]),
        "the number on the page, and in total"
    );
    server.get(&Actor::Admin, "/api/admin/gpus?group=team").await.expect_problem(422, "out_of_range");
}

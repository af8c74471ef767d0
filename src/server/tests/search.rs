//! Search: users find what they may see, best match first.

use serde_json::{Value, json};

use super::harness::{Actor, TestServer};

/// Returns kind and name of the results.
async fn search(server: &TestServer, actor: &Actor, query: &str) -> Vec<(String, String)> {
    let response = server.get(actor, &format!("/api/search?{query}")).await.expect_status(200);
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let found = response["found"].as_array().expect("a list");
    found.iter().map(|item| (text(&item["kind"]), text(&item["name"]))).collect()
}

fn as_strs(found: &[(String, String)]) -> Vec<(&str, &str)> {
    found.iter().map(|(kind, name)| (kind.as_str(), name.as_str())).collect()
}

#[tokio::test]
async fn search_finds_visible_items_only() {
    let server = TestServer::start().await;
    let (worker, _) = server.create_worker("digits-box").await;
    let labels = json!({"labels": {"team": "nlp"}});
    server
        .call(&Actor::Admin, "PATCH", &format!("/api/admin/workers/{worker}"), labels.to_string())
        .await
        .expect_status(200);
    server.put_config("digits").await;
    let ada = server.restricted_token("ada").await;
    let own_job = server.post(&ada, "/api/queue/submit", json!({"config_name": "digits"})).await.expect_status(201);
    let other_job = server.submit("digits").await;

    let all = search(&server, &Actor::Admin, "q=digits").await;
    assert_eq!(as_strs(&all), [("job", "digits"), ("job", "digits"), ("config", "digits"), ("worker", "digits-box")]);
    assert_eq!(as_strs(&search(&server, &Actor::Admin, "q=NLP").await), [("worker", "digits-box")]);
    assert_eq!(as_strs(&search(&server, &Actor::Admin, "q=db").await), [("worker", "digits-box")], "by first letters");
    assert_eq!(search(&server, &Actor::Admin, &format!("q={worker}")).await.len(), 1, "by its id");
    assert_eq!(search(&server, &Actor::Admin, "q=digits&limit=1").await.len(), 1);

    assert_eq!(as_strs(&search(&server, &ada, "q=digits").await), [("job", "digits"), ("config", "digits")]);
    assert_eq!(search(&server, &ada, &format!("q={other_job}")).await, [], "jobs of other users are not found");
    let id = own_job["job_id"].as_str().expect("an id");
    assert_eq!(search(&server, &ada, &format!("q={id}")).await.len(), 1);

    assert_eq!(search(&server, &Actor::Admin, "q=%20").await, [], "an empty query");
    assert_eq!(search(&server, &Actor::Admin, "q=nothing-like-it").await, []);
    server.get(&Actor::Admin, &format!("/api/search?q={}", "x".repeat(101))).await.expect_problem(422, "out_of_range");
    server.get(&Actor::Unauthenticated, "/api/search?q=digits").await.expect_problem(401, "not_authenticated");
}

#[tokio::test]
async fn search_finds_old_jobs_and_configurations() {
    let server = TestServer::start_with(|policy| policy.usage_limits.waiting_jobs_per_user = 2_000).await;
    server.put_config("needle-in-haystack").await;
    server.put_config("hay").await;
    server.put_config("hay-2").await;
    let old = server.submit("needle-in-haystack").await;
    for _ in 0..1_000 {
        server.submit("hay").await;
    }
    let all = search(&server, &Actor::Admin, "q=needle").await;
    assert_eq!(as_strs(&all), [("job", "needle-in-haystack"), ("config", "needle-in-haystack")]);
    assert_eq!(
        search(&server, &Actor::Admin, &format!("q={}", &old[..8])).await.len(),
        12,
        "many ids have this prefix"
    );
    assert_eq!(search(&server, &Actor::Admin, &format!("q={old}")).await.len(), 1);
    let rename = json!({"name": "Größe 16"}).to_string();
    server.call(&Actor::Admin, "PATCH", &format!("/api/queue/{old}"), rename).await.expect_status(200);
    assert_eq!(as_strs(&search(&server, &Actor::Admin, "q=GR%C3%96SSE").await), [] as [(&str, &str); 0]);
    assert_eq!(as_strs(&search(&server, &Actor::Admin, "q=gr%C3%B6%C3%9Fe").await), [("job", "Größe 16")]);
    let hay = search(&server, &Actor::Admin, "q=hay").await;
    let configs: Vec<_> = hay.iter().filter(|(kind, _)| kind == "config").map(|(_, name)| name.as_str()).collect();
    assert_eq!((hay.len(), configs), (12, vec!["hay", "hay-2", "needle-in-haystack"]));
}

#[tokio::test]
async fn search_results_show_the_status() {
    let server = TestServer::start().await;
    let (_, _, _events) = server.connect_worker("gpu-1").await;
    let response = server.get(&Actor::Admin, "/api/search?q=gpu").await.expect_status(200);
    assert_eq!(response["found"][0]["worker_status"], "idle");
    server.put_config("digits").await;
    let job = server.submit("digits").await;
    let response = server.get(&Actor::Admin, &format!("/api/search?q={job}")).await.expect_status(200);
    assert_eq!((&response["found"][0]["id"], &response["found"][0]["job_status"]), (&json!(job), &json!("offered")));
}

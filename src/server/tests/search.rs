//! The search for anything: each finds what they may see, the nearest first.

use serde_json::{Value, json};

use super::harness::{By, Server};

/// Kind and name of what somebody finds.
async fn found(server: &Server, by: &By, query: &str) -> Vec<(String, String)> {
    let answer = server.get(by, &format!("/api/search?{query}")).await.ok(200);
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let found = answer["found"].as_array().expect("a list");
    found.iter().map(|one| (text(&one["kind"]), text(&one["name"]))).collect()
}

fn pairs(found: &[(String, String)]) -> Vec<(&str, &str)> {
    found.iter().map(|(kind, name)| (kind.as_str(), name.as_str())).collect()
}

#[tokio::test]
async fn everybody_finds_what_they_may_see() {
    let server = Server::start().await;
    let (worker, _) = server.worker("digits-box").await;
    let labels = json!({"labels": {"team": "nlp"}});
    server.call(&By::Admin, "PATCH", &format!("/api/admin/workers/{worker}"), labels.to_string()).await.ok(200);
    server.config("digits").await;
    let ada = server.person("ada", "researcher").await;
    let own = server.post(&ada, "/api/queue/submit", json!({"config_name": "digits"})).await.ok(201);
    let others = server.submit("digits").await;

    let all = found(&server, &By::Admin, "q=digits").await;
    assert_eq!(pairs(&all), [("job", "digits"), ("job", "digits"), ("config", "digits"), ("worker", "digits-box")]);
    assert_eq!(pairs(&found(&server, &By::Admin, "q=NLP").await), [("worker", "digits-box")]);
    assert_eq!(pairs(&found(&server, &By::Admin, "q=db").await), [("worker", "digits-box")], "by first letters");
    assert_eq!(found(&server, &By::Admin, &format!("q={worker}")).await.len(), 1, "by its id");
    assert_eq!(found(&server, &By::Admin, "q=digits&limit=1").await.len(), 1);

    assert_eq!(pairs(&found(&server, &ada, "q=digits").await), [("job", "digits"), ("config", "digits")]);
    assert_eq!(found(&server, &ada, &format!("q={others}")).await, [], "somebody else's is not there");
    let id = own["job_id"].as_str().expect("an id");
    assert_eq!(found(&server, &ada, &format!("q={id}")).await.len(), 1);

    assert_eq!(found(&server, &By::Admin, "q=%20").await, [], "nothing was asked");
    assert_eq!(found(&server, &By::Admin, "q=nothing-like-it").await, []);
    server.get(&By::Admin, &format!("/api/search?q={}", "x".repeat(101))).await.problem(422, "out_of_range");
    server.get(&By::Nobody, "/api/search?q=digits").await.problem(401, "not_authenticated");
}

#[tokio::test]
async fn what_is_found_says_how_it_stands() {
    let server = Server::start().await;
    let (_, _, _events) = server.online("gpu-1").await;
    let answer = server.get(&By::Admin, "/api/search?q=gpu").await.ok(200);
    assert_eq!(answer["found"][0]["worker_status"], "idle");
    server.config("digits").await;
    let job = server.submit("digits").await;
    let answer = server.get(&By::Admin, &format!("/api/search?q={job}")).await.ok(200);
    assert_eq!((&answer["found"][0]["id"], &answer["found"][0]["job_status"]), (&json!(job), &json!("offered")));
}

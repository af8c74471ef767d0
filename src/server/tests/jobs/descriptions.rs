//! Numbers, names, tags and notes of jobs.

use serde_json::{Value, json};

use crate::tests::harness::{Actor, TestResponse, TestServer};

async fn describe(server: &TestServer, actor: &Actor, job: &str, change: Value) -> TestResponse {
    server.call(actor, "PATCH", &format!("/api/queue/{job}"), change.to_string()).await
}

#[tokio::test]
async fn job_is_described_at_its_submit_and_later() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let body = json!({"config_name": "digits", "name": " rank 16 ", "tags": ["b", "a"], "notes": "first\nsecond"});
    let submitted = server.post(&Actor::Admin, "/api/queue/submit", body).await.expect_status(201);
    let job = submitted["job_id"].as_str().expect("text");
    let view = server.job(job).await;
    assert_eq!((&view["name"], &view["number"]), (&json!("rank 16"), &json!(1)));
    assert_eq!((&view["tags"], &view["notes"]), (&json!(["a", "b"]), &json!("first\nsecond")));
    let list = server.get(&Actor::Admin, "/api/queue?tag=b").await.expect_status(200);
    assert_eq!((&list["total"], &list["jobs"][0]["name"]), (&json!(1), &json!("rank 16")));
    assert_eq!(list["jobs"][0]["notes"], Value::Null, "a list has no notes");
    assert_eq!(server.get(&Actor::Admin, "/api/queue?q=RANK").await.expect_status(200)["total"], 1);
    assert_eq!(server.get(&Actor::Admin, "/api/queue?q=rank2").await.expect_status(200)["total"], 0);
    let change = json!({"name": "", "add_tags": ["c"], "remove_tags": ["b", "x"]});
    let changed = describe(&server, &Actor::Admin, job, change).await.expect_status(200);
    assert_eq!((&changed["name"], &changed["tags"]), (&Value::Null, &json!(["a", "c"])));
    assert_eq!(changed["notes"], "first\nsecond");
    assert_eq!(server.get(&Actor::Admin, "/api/queue?tag=b").await.expect_status(200)["total"], 0);
    let before = server.get(&Actor::Admin, "/api/audit?action=job.described").await.expect_status(200);
    describe(&server, &Actor::Admin, job, json!({"tags": ["c", "a"]})).await.expect_status(200);
    let after = server.get(&Actor::Admin, "/api/audit?action=job.described").await.expect_status(200);
    assert_eq!(before["entries"], after["entries"], "nothing was changed");
    assert_eq!(before["entries"][0]["detail"], json!({"name": null, "tags": ["a", "c"], "notes_chars": 12}));
    describe(&server, &Actor::Admin, job, json!({"name": "a\nb"})).await.expect_problem(422, "out_of_range");
    describe(&server, &Actor::Admin, job, json!({"add_tags": ["a,b"]})).await.expect_problem(422, "out_of_range");
    let tags: Vec<String> = (0..10_000).map(|n| n.to_string()).collect();
    describe(&server, &Actor::Admin, job, json!({"tags": tags})).await.expect_problem(422, "out_of_range");
    describe(&server, &Actor::Admin, job, json!({"notes": "x".repeat(10_001)}))
        .await
        .expect_problem(422, "out_of_range");
}

#[tokio::test]
async fn jobs_of_a_configuration_are_numbered() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    server.put_config("faces").await;
    let mut numbers = Vec::new();
    for config in ["digits", "faces", "digits"] {
        let job = server.submit(config).await;
        numbers.push(server.job(&job).await["number"].clone());
    }
    assert_eq!(numbers, [json!(1), json!(1), json!(2)]);
}

#[tokio::test]
async fn retry_keeps_name_and_tags_and_gets_a_number() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let body = json!({"config_name": "digits", "name": "rank 16", "tags": ["a"], "notes": "diverged"});
    let job = server.post(&Actor::Admin, "/api/queue/submit", body).await.expect_status(201)["job_id"].clone();
    let path = format!("/api/queue/{}", job.as_str().expect("text"));
    server.call(&Actor::Admin, "POST", &format!("{path}/cancel"), "").await.expect_status(200);
    describe(&server, &Actor::Admin, job.as_str().expect("text"), json!({"add_tags": ["b"]})).await.expect_status(200);
    let retried = server.call(&Actor::Admin, "POST", &format!("{path}/retry"), "").await.expect_status(201);
    let view = server.job(retried["job_id"].as_str().expect("text")).await;
    assert_eq!((&view["name"], &view["tags"], &view["number"]), (&json!("rank 16"), &json!(["a", "b"]), &json!(2)));
    assert_eq!(view["notes"], Value::Null, "they are about the result of the first one");
}

#[tokio::test]
async fn owners_and_leads_describe_jobs() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (ada, eve) = (server.add_user("ada", "researcher").await, server.add_user("eve", "researcher").await);
    let (lead, viewer) = (server.add_user("grace", "lead").await, server.add_user("vic", "viewer").await);
    let submitted = server.post(&ada, "/api/queue/submit", json!({"config_name": "digits"})).await.expect_status(201);
    let job = submitted["job_id"].as_str().expect("text");
    describe(&server, &ada, job, json!({"name": "mine"})).await.expect_status(200);
    describe(&server, &lead, job, json!({"add_tags": ["seen"]})).await.expect_status(200);
    describe(&server, &eve, job, json!({"name": "theirs"})).await.expect_problem(403, "permission_denied");
    describe(&server, &viewer, job, json!({"name": "theirs"})).await.expect_problem(403, "permission_denied");
    assert_eq!(server.job(job).await["name"], "mine");
}

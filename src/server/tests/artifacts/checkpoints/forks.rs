//! Forks: new jobs that start from a checkpoint of a job, which may still run.

use serde_json::{Value, json};

use super::CheckpointScenario;
use crate::tests::harness::{Actor, PASSWORD, TestResponse, TestServer};
use crate::tests::ui::pages::{log_in, page, post};

async fn retry(server: &TestServer, actor: &Actor, job: &str, body: Value) -> TestResponse {
    server.post(actor, &format!("/api/queue/{job}/retry"), body).await
}

fn titles(family: &Value) -> Vec<(u64, String, Value)> {
    let row = |member: &Value| {
        let title = member["title"].as_str().expect("text").to_owned();
        (member["depth"].as_u64().expect("a number"), title, member["resume_from"].clone())
    };
    family["jobs"].as_array().expect("a list").iter().map(row).collect()
}

#[tokio::test]
async fn running_job_is_forked_from_a_checkpoint_that_then_stays() {
    let scenario = CheckpointScenario::start().await;
    scenario.save_checkpoint(100, "one").await;
    let (server, origin) = (&scenario.server, scenario.job.clone());
    assert_eq!(server.job(&origin).await["resumable"][0]["name"], "checkpoint-100");
    // It has not ended: only a checkpoint by name is a fork.
    for start in [json!({}), json!({"resume_from": "newest"}), json!({"resume_from": "scratch"})] {
        retry(server, &Actor::Admin, &origin, start).await.expect_problem(409, "job_not_ended");
    }
    let body = json!({"resume_from": "checkpoint-100", "name": "lower rate", "overrides": {"learning_rate": 1e-6}});
    let fork = retry(server, &Actor::Admin, &origin, body).await.expect_status(201);
    let fork = fork["job_id"].as_str().expect("text").to_owned();
    let forked = server.job(&fork).await;
    assert_eq!((&forked["name"], &forked["retry_of"]), (&json!("lower rate"), &json!(origin)));
    assert_eq!(forked["overrides"]["learning_rate"]["to"], 1e-6);

    // The policy `last` replaces the checkpoint, but the fork has not started yet.
    scenario.save_checkpoint(200, "two").await;
    let names = server.job(&origin).await["resumable"].clone();
    assert_eq!((&names[0]["name"], &names[1]["name"]), (&json!("checkpoint-200"), &json!("checkpoint-100")));
    scenario.report("completed").await;
    let scenario = scenario.start_next_attempt().await;
    assert_eq!(scenario.job, fork);
    assert_eq!(scenario.resume_checkpoint().await["name"], "checkpoint-100");
    assert_eq!(scenario.resume_file("checkpoint-100/model.bin", "").await.text(), "one");
}

#[tokio::test]
async fn family_is_a_tree_of_the_jobs_that_the_user_may_see() {
    let scenario = CheckpointScenario::start().await;
    scenario.save_checkpoint(100, "one").await;
    let (server, origin) = (&scenario.server, scenario.job.clone());
    assert_eq!(server.job(&origin).await["family"], Value::Null);
    let fork = async |name: &str| {
        let body = json!({"resume_from": "checkpoint-100", "name": name});
        retry(server, &Actor::Admin, &origin, body).await.expect_status(201)["job_id"]
            .as_str()
            .expect("text")
            .to_owned()
    };
    let (first, second) = (fork("first").await, fork("").await);
    server.post(&Actor::Admin, &format!("/api/queue/{first}/cancel"), json!({})).await.expect_status(200);
    let third = retry(server, &Actor::Admin, &first, json!({"resume_from": "scratch"})).await.expect_status(201);
    let checkpoint = json!("checkpoint-100");
    let expected = [
        (0, "digits #1".to_owned(), Value::Null),
        (1, "first".to_owned(), checkpoint.clone()),
        (2, "first".to_owned(), json!("scratch")),
        (1, "digits #3".to_owned(), checkpoint),
    ];
    for job in [&origin, &first, &second, third["job_id"].as_str().expect("text")] {
        assert_eq!(titles(&server.job(job).await["family"]), expected, "{job}");
    }
    let page =
        server.get(&Actor::Admin, &format!("/jobs/{third}", third = third["job_id"].as_str().expect("text"))).await;
    assert!(
        page.text().contains("Related jobs") && page.text().contains("retry of first (from scratch)"),
        "{}",
        page.text()
    );

    // A user who sees only their own jobs sees none of another user's family.
    let narrow = server.restricted_token("ada").await;
    let ada = server.log_in("ada", PASSWORD).await.expect("a valid password");
    let body = json!({"resume_from": "scratch"});
    let adas = retry(server, &ada, &first, body).await.expect_status(201)["job_id"].as_str().expect("text").to_owned();
    assert_eq!(server.job(&adas).await["family"]["jobs"].as_array().map(Vec::len), Some(5));
    assert_eq!(server.get(&narrow, &format!("/api/queue/{adas}")).await.expect_status(200)["family"], Value::Null);
}

#[tokio::test]
async fn form_forks_with_changed_values_and_keeps_what_was_typed() {
    let scenario = CheckpointScenario::start().await;
    scenario.save_checkpoint(200, "two").await;
    let (server, origin) = (&scenario.server, scenario.job.clone());
    let session = log_in(server).await;
    let text = page(server, &session, &format!("/jobs/{origin}/fork")).await;
    assert!(text.contains("Resume from checkpoint-200"), "{text}");
    assert!(!text.contains("value=\"scratch\""), "it has not ended: {text}");
    let form = format!("/ui/jobs/{origin}/fork");
    let bad = "resume_from=checkpoint-9&name=x%3Cb%3E&overrides=lr%3D1&overrides=";
    let (location, cookies) = post(server, &session, &form, bad).await;
    assert_eq!(location, format!("/jobs/{origin}/fork"));
    let text = page(server, &cookies, &location).await;
    assert!(text.contains("value=\"x&lt;b&gt;\"") && text.contains("value=\"lr=1\""), "{text}");
    assert!(text.contains("id=\"resume_from-error\""), "{text}");
    let good = "resume_from=checkpoint-200&name=warm&overrides=learning_rate%3D0.001&overrides=";
    let (location, _) = post(server, &session, &form, good).await;
    let forked = server.job(location.strip_prefix("/jobs/").expect("a job")).await;
    assert_eq!((&forked["name"], &forked["resume_from"]), (&json!("warm"), &json!("checkpoint-200")));
    assert_eq!(forked["overrides"]["learning_rate"]["to"], 0.001);
}

#[tokio::test]
async fn failed_job_names_the_last_completed_one() {
    let scenario = CheckpointScenario::start().await;
    scenario.report("completed").await;
    let (server, completed) = (scenario.server, scenario.job);
    let failed = server.submit("digits").await;
    let mut events = scenario.events;
    let offer = events.next_offer().await;
    let token = Actor::Job(offer.upload_token);
    assert_eq!(server.job(&failed).await["last_completed"], Value::Null, "it has not failed");
    server.report_status(&token, &failed, json!({"status": "failed", "attempt": 1})).await.expect_status(200);
    assert_eq!(server.job(&failed).await["last_completed"], completed.as_str());
    let page = server.get(&Actor::Admin, &format!("/jobs/{failed}")).await.text();
    assert!(page.contains(&format!("/jobs/compare?ids={failed},{completed}")), "{page}");
}

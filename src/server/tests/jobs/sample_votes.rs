//! Blind votes on samples of two jobs.

use serde_json::{Value, json};

use crate::tests::harness::{Actor, TestServer};
use crate::tests::ui::pages::{log_in, page, post};
use crate::text::percent_escaped;

async fn vote(
    server: &TestServer,
    actor: &Actor,
    jobs: [&str; 2],
    better: Option<&str>,
) -> crate::tests::harness::TestResponse {
    let body = json!({"jobs": jobs, "step": 400, "sample": "a cat", "better": better});
    server.post(actor, "/api/queue/votes", body).await
}

/// Runs jobs that upload these files as samples.
async fn jobs_with_samples<const N: usize>(server: &TestServer, samples: [&[&str]; N]) -> [String; N] {
    server.put_config("digits").await;
    let (_, key, mut events) = server.connect_worker("gpu-1").await;
    let mut jobs = samples.map(|_| String::new());
    for (job, paths) in jobs.iter_mut().zip(samples) {
        *job = server.submit("digits").await;
        let token = Actor::Job(events.next_offer().await.upload_token);
        for path in paths {
            let upload = format!("/api/workers/job/{job}/artifacts/{}?kind=sample", percent_escaped(path));
            server.call(&token, "PUT", &upload, "image").await.expect_status(200);
        }
        server.report_status(&key, job, json!({"status": "completed", "attempt": 1})).await.expect_status(200);
    }
    jobs
}

async fn shares(server: &TestServer) -> Vec<Value> {
    let page = server.get(&Actor::Admin, "/api/queue?columns=metric.vote&sort=submitted").await.expect_status(200);
    page["jobs"].as_array().expect("a list").iter().map(|job| job["values"]["metric.vote"].clone()).collect()
}

#[tokio::test]
async fn votes_are_a_metric_of_both_jobs() {
    let server = TestServer::start().await;
    let samples: &[&str] = &["samples/step_400_a cat.png"];
    let [first, second, other] = jobs_with_samples(&server, [samples, samples, &[]]).await;
    let (ada, eve) = (server.add_user("ada", "viewer").await, server.add_user("eve", "viewer").await);
    vote(&server, &ada, [&first, &second], Some(&second)).await.expect_status(200);
    vote(&server, &eve, [&second, &first], Some(&second)).await.expect_status(200);
    assert_eq!(shares(&server).await, [json!(0.0), json!(1.0), Value::Null]);
    // A second vote on the same samples replaces the first, in whichever order the jobs are named.
    vote(&server, &eve, [&first, &second], None).await.expect_status(200);
    assert_eq!(shares(&server).await, [json!(0.25), json!(0.75), Value::Null]);

    let ids = format!("{first},{second},{other}");
    let votes = server.get(&ada, &format!("/api/queue/votes?ids={ids}")).await.expect_status(200);
    let own = json!([{"jobs": [first, second], "step": 400, "sample": "a cat", "better": second}]);
    assert_eq!(votes["own"], own);
    assert_eq!(votes["tallies"][&second], json!({"won": 1, "lost": 0, "tied": 1}));
    let found = server.get(&Actor::Admin, "/api/queue?q=vote%3E0.5").await.expect_status(200);
    assert_eq!((&found["total"], &found["jobs"][0]["job_id"]), (&json!(1), &json!(second)));
    let compared = server.get(&Actor::Admin, &format!("/api/queue/compare?ids={ids}")).await.expect_status(200);
    assert_eq!(compared["jobs"][1]["final_metrics"], json!({"vote": 0.75}));
    assert_eq!(compared["jobs"][2]["final_metrics"], json!({}));
}

#[tokio::test]
async fn invalid_votes_are_rejected() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (first, second) = (server.submit("digits").await, server.submit("digits").await);
    let narrow = server.restricted_token("ada").await;
    vote(&server, &narrow, [&first, &second], None).await.expect_problem(404, "job_not_found");
    vote(&server, &Actor::Admin, [&first, "j_01hzzzzzzzzzzzzzzzzzzzzzzz"], None)
        .await
        .expect_problem(404, "job_not_found");
    for (body, field) in [
        (json!({"jobs": [first, first], "step": 1, "sample": "a", "better": null}), "jobs"),
        (json!({"jobs": [first, second], "step": 1, "sample": "", "better": null}), "sample"),
        (json!({"jobs": [first, second], "step": 1, "sample": "x\u{202e}y", "better": null}), "sample"),
        (json!({"jobs": [first, second], "step": u64::MAX, "sample": "a".repeat(600), "better": null}), "sample"),
    ] {
        let problem = server.post(&Actor::Admin, "/api/queue/votes", body).await.expect_problem(422, "out_of_range");
        assert_eq!(problem["field"], field);
    }
    let third = server.submit("digits").await;
    let problem = vote(&server, &Actor::Admin, [&first, &second], Some(&third)).await;
    assert_eq!(problem.expect_problem(422, "out_of_range")["field"], "better");
    server.get(&Actor::Admin, &format!("/api/queue/votes?ids={first}")).await.expect_problem(422, "out_of_range");
    assert_eq!(shares(&server).await, [Value::Null, Value::Null, Value::Null]);
}

#[tokio::test]
async fn both_jobs_must_have_an_image_of_the_sample() {
    let server = TestServer::start().await;
    let [first, second] = jobs_with_samples(
        &server,
        [
            &["samples/step_400_a cat.png", "samples/step_300_dog.png", "samples/step_400_bird.mp4"],
            &["samples/step_400_a cat.png", "samples/step_400_dog.png", "samples/step_400_bird.mp4"],
        ],
    )
    .await;
    for (step, sample) in [(400, "dog"), (300, "dog"), (300, "a cat"), (400, "bird"), (400, "a"), (400, "A cat")] {
        let body = json!({"jobs": [first, second], "step": step, "sample": sample, "better": first});
        let problem = server.post(&Actor::Admin, "/api/queue/votes", body).await.expect_problem(422, "out_of_range");
        assert_eq!(problem["field"], "sample", "{sample} {step}");
        let detail = problem["detail"].as_str().expect("a sentence");
        assert!(detail.contains(&format!("both jobs have an image at step {step}")), "{detail}");
    }
    assert_eq!(shares(&server).await, [Value::Null, Value::Null]);
    let votes = server.get(&Actor::Admin, &format!("/api/queue/votes?ids={first},{second}")).await.expect_status(200);
    assert_eq!(votes, json!({"own": [], "tallies": {}}));
    vote(&server, &Actor::Admin, [&first, &second], None).await.expect_status(200);
    assert_eq!(shares(&server).await, [json!(0.5), json!(0.5)]);
}

#[tokio::test]
async fn form_rejects_what_it_cannot_read() {
    let server = TestServer::start().await;
    let samples: &[&str] = &["step_0_a.png", "step_400_a.png"];
    let [first, second] = jobs_with_samples(&server, [samples, samples]).await;
    let session = log_in(&server).await;
    let url = format!("/jobs/compare/vote?id={first}&id={second}");
    let jobs = format!("one={first}&other={second}");
    for (jobs, fields, message) in [
        (jobs.as_str(), "step=4oo&sample=a&better=one", "step must be 0 to"),
        (&jobs, "step=-1&sample=a&better=one", "step must be 0 to"),
        (&jobs, "sample=a&better=one", "step must be 0 to"),
        (&jobs, "step=400&sample=a&better=best", "better must be one, other or none"),
        (&jobs, "step=400&sample=a", "better must be one, other or none"),
        (&jobs, "step=400&sample=b&better=one", "both jobs have an image at step 400"),
        ("one=first&other=second", "step=400&sample=a&better=one", "Job first not found"),
        ("other=second", "step=400&sample=a&better=one", "Invalid job ID"),
    ] {
        let form = format!("id={first}&id={second}&{jobs}&{fields}");
        let (location, cookies) = post(&server, &session, "/ui/jobs/compare/vote", &form).await;
        assert_eq!(location, url, "{fields}");
        let text = page(&server, &cookies, &url).await;
        assert!(text.contains(message) && text.contains("1 of 2"), "{fields}: {text}");
    }
    assert_eq!(shares(&server).await, [Value::Null, Value::Null]);
}

#[tokio::test]
async fn page_asks_for_a_vote_until_all_pairs_are_voted_on() {
    let server = TestServer::start().await;
    let samples: &[&str] = &["samples/step_400_a.png", "samples/step_400_b.png"];
    let jobs = jobs_with_samples(&server, [samples, samples]).await;
    let session = log_in(&server).await;
    let url = format!("/jobs/compare/vote?id={}&id={}", jobs[0], jobs[1]);
    for number in ["1 of 2", "2 of 2"] {
        let text = page(&server, &session, &url).await;
        assert!(text.contains(number) && text.contains("A is better"), "{text}");
        assert!(!text.contains("digits"), "the jobs have no names: {text}");
        let field = |name: &str| {
            let start = format!("name=\"{name}\" value=\"");
            text.split(&start).nth(1).and_then(|rest| rest.split('"').next()).expect("a field").to_owned()
        };
        let winner = if field("one") == jobs[0] { "one" } else { "other" };
        let form = format!(
            "id={}&id={}&one={}&other={}&step=400&sample={}&better={winner}",
            jobs[0],
            jobs[1],
            field("one"),
            field("other"),
            field("sample")
        );
        let (location, _) = post(&server, &session, "/ui/jobs/compare/vote", &form).await;
        assert_eq!(location, url);
    }
    let text = page(&server, &session, &url).await;
    assert!(text.contains("You have voted on all pairs") && text.contains("100%"), "{text}");
    assert_eq!(shares(&server).await, [json!(1.0), json!(0.0)]);
    let none = page(&server, &session, &format!("/jobs/compare/vote?id={}", jobs[0])).await;
    assert!(none.contains("Select 2 to 20 jobs"), "{none}");
}

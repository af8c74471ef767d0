//! Each field of a job: submitted, shown, filtered by, and submitted again by the form.

use app::protocol::jobs::{JobsQuery, SubmitJob};
use serde_json::{Value, json};

use crate::tests::harness::{Actor, TestServer};
use crate::tests::openapi::assert_reviewed;
use crate::tests::ui::pages::{log_in, page, post};

/// Submits the example; returns the request, and the job as the API shows it.
async fn submit_example(server: &TestServer) -> (Value, Value) {
    server.put_config("digits").await;
    for name in SubmitJob::example().secrets.expect("secrets") {
        let secret = json!({"value": "hf_0123456789"}).to_string();
        server.call(&Actor::Admin, "PUT", &format!("/api/secrets/{name}"), secret).await.expect_status(200);
    }
    let team = SubmitJob::example().team.expect("a team");
    server.post(&Actor::Admin, "/api/teams", json!({"name": team})).await.expect_status(201);
    let member = format!("/api/teams/{team}/members/admin");
    server.call(&Actor::Admin, "PUT", &member, "{}").await.expect_status(200);
    let submit = json!(SubmitJob { config_revision: Some(1), dry_run: false, ..SubmitJob::example() });
    let submitted = server.post(&Actor::Admin, "/api/queue/submit", submit.clone()).await.expect_status(201);
    (submit, server.job(submitted["job_id"].as_str().expect("an ID")).await)
}

/// Page tests submit it, so that they follow each field through the form in a browser.
#[test]
fn page_tests_have_the_example() {
    let example = serde_json::to_string_pretty(&json!(SubmitJob::example())).expect("JSON") + "\n";
    assert_reviewed("end2end/submit-example.json", &example);
}

#[tokio::test]
async fn a_job_shows_the_fields_of_its_submit() {
    let server = TestServer::start().await;
    let (submit, job) = submit_example(&server).await;
    for (field, value) in submit.as_object().expect("an object") {
        match field.as_str() {
            "dry_run" => {}
            "max_retries" => assert_eq!(job["max_attempts"], json!(value.as_u64().expect("a number") + 1)),
            "overrides" => {
                let changes = value.as_object().expect("an object").iter();
                let shown = |(key, value): (&String, &Value)| job["overrides"][key]["to"] == *value;
                assert!(changes.clone().count() > 0 && changes.into_iter().all(shown), "{}", job["overrides"]);
            }
            _ => assert_eq!(job[field], *value, "{field}"),
        }
    }
}

#[tokio::test]
async fn each_filter_finds_the_job_that_matches_it() {
    let server = TestServer::start().await;
    let (_, job) = submit_example(&server).await;
    server.put_config("other").await;
    let ada = server.add_user("ada", "researcher").await;
    server.post(&ada, "/api/queue/submit", json!({"config_name": "other"})).await.expect_status(201);
    // What depends on the history of the job has other tests, and some are no filters.
    let history = ["status", "phase", "worker", "since", "until", "ended_since"];
    let others = ["zone", "sort", "columns", "widths", "group", "limit", "cursor"];
    let excluded = [history.as_slice(), &others].concat();
    let filters = json!(JobsQuery { user: Some("admin".to_owned()), ..JobsQuery::example() });
    let filters = filters.as_object().expect("an object").iter();
    for (filter, value) in filters.filter(|(filter, _)| !excluded.contains(&filter.as_str())) {
        let query = serde_urlencoded::to_string([(filter, value.as_str().expect("text"))]).expect("a query");
        let page = server.get(&Actor::Admin, &format!("/api/queue?{query}")).await.expect_status(200);
        let found: Vec<_> = page["jobs"].as_array().expect("a list").iter().map(|job| &job["job_id"]).collect();
        assert_eq!(found, [&job["job_id"]], "{query}");
    }
}

#[tokio::test]
async fn the_link_of_a_job_fills_in_the_form_with_all_its_fields() {
    let server = TestServer::start().await;
    let (submit, job) = submit_example(&server).await;
    let session = log_in(&server).await;
    let page = page(&server, &session, &format!("/jobs/{}", job["job_id"].as_str().expect("an ID"))).await;
    let link = page.split("href=\"/train?").nth(1).and_then(|rest| rest.split('"').next()).expect("a link");
    let (location, _) = post(&server, &session, "/ui/jobs", &link.replace("&amp;", "&")).await;
    let again = server.job(location.strip_prefix("/jobs/").expect("a job")).await;
    let fields = submit.as_object().expect("an object").keys().map(String::as_str).chain(["max_attempts"]);
    // Notes are about the result of one job.
    for field in fields.filter(|field| *field != "notes") {
        assert_eq!(again[field], job[field], "{field}");
    }
}

//! A rejected form shows all errors, each at its field. The API returns the same errors as a list.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::pages::{log_in, page, post};
use crate::http::state::AuthMode;
use crate::tests::harness::{Actor, PASSWORD, TestServer};
use crate::text::percent_escaped;

/// Returns the attributes of the tags of a page.
fn tags(page: &str) -> impl Iterator<Item = &str> {
    page.split('<').skip(1).filter_map(|tag| tag.split('>').next())
}

fn attribute<'t>(tag: &'t str, name: &str) -> Option<&'t str> {
    tag.split_once(&format!(" {name}=\""))?.1.split('"').next()
}

/// Returns the errors at fields by the ids of their controls.
fn field_errors(page: &str) -> BTreeMap<String, String> {
    let paragraphs = page.split("<p ").skip(1).filter_map(|rest| rest.split_once('>'));
    let errors = paragraphs.filter(|(attributes, _)| attributes.contains("class=\"field-error\""));
    let error = |(attributes, rest): (&str, &str)| {
        let id = attribute(&format!(" {attributes}"), "id")?.strip_suffix("-error")?.to_owned();
        Some((id, rest.split("</p>").next()?.replace("<!>", "")))
    };
    errors.filter_map(error).collect()
}

/// Returns the names of the controls that are marked as invalid, with the ids of their messages, and the names of those
/// with the focus.
fn invalid_controls(page: &str) -> (Vec<(String, String)>, Vec<String>) {
    let name = |tag: &str| attribute(tag, "name").unwrap_or_default().to_owned();
    let invalid_tags = tags(page).filter(|tag| attribute(tag, "aria-invalid") == Some("true"));
    let invalid_tags =
        invalid_tags.map(|tag| (name(tag), attribute(tag, "aria-describedby").unwrap_or_default().to_owned()));
    let focused = tags(page).filter(|tag| tag.contains(" autofocus")).map(name);
    (invalid_tags.collect(), focused.collect())
}

fn owned_pairs(all: &[(&str, &str)]) -> Vec<(String, String)> {
    all.iter().map(|(name, message)| ((*name).to_owned(), (*message).to_owned())).collect()
}

#[tokio::test]
async fn rejected_job_form() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let session = log_in(&server).await;
    let form = "config=digits&gpus=0&min_vram=much&labels=team%3Dnlp&labels=nonsense&overrides=no&max_runtime=soon&max_retries=3";
    let (location, cookies) = post(&server, &session, "/ui/jobs", form).await;
    assert_eq!(location, "/train");
    let html = page(&server, &cookies, &location).await;
    let errors = field_errors(&html);
    assert_eq!(errors.keys().collect::<Vec<_>>(), ["gpus", "labels", "max_runtime", "min_vram", "overrides"]);
    assert_eq!(errors["gpus"], "GPUs must be 1 to 64, or empty.");
    assert!(errors["labels"].contains("nonsense") && !errors["labels"].contains("team"), "{}", errors["labels"]);
    let (controls, focused) = invalid_controls(&html);
    let expected = [
        ("gpus", "gpus-hint gpus-error"),
        ("min_vram", "min_vram-hint min_vram-error"),
        ("labels", "labels-hint labels-error"),
        ("overrides", "settings-hint overrides-error"),
        ("max_runtime", "max_runtime-hint max_runtime-error"),
    ];
    assert_eq!((controls, focused), (owned_pairs(&expected), vec!["gpus".to_owned()]));
    assert!(html.contains("value=\"nonsense\"") && html.contains("value=\"soon\""), "the form keeps its input");
    // A check without submit shows the same errors.
    let checked = page(&server, &session, "/train?config=digits&gpus=0&max_retries=999").await;
    assert_eq!(field_errors(&checked).keys().collect::<Vec<_>>(), ["gpus", "max_retries"]);
    assert_eq!(server.get(&Actor::Admin, "/api/queue").await.expect_status(200)["total"], 0);
}

#[tokio::test]
async fn rejected_worker_form() {
    let server = TestServer::start().await;
    let session = log_in(&server).await;
    let form = "name=&labels=nonsense&expires_in_days=0&networks=10.0.0.0%2F33+here";
    let (location, cookies) = post(&server, &session, "/ui/workers", form).await;
    assert_eq!(location, "/admin/workers/new");
    let html = page(&server, &cookies, &location).await;
    let errors = field_errors(&html);
    assert_eq!(errors.keys().collect::<Vec<_>>(), ["expires_in_days", "labels", "name", "networks"]);
    assert!(errors["labels"].contains("nonsense"), "{errors:?}");
    assert!(errors["networks"].contains("10.0.0.0/33") && errors["networks"].contains("here"), "{errors:?}");
    let (controls, focused) = invalid_controls(&html);
    let names: Vec<&str> = controls.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!((names, focused), (vec!["name", "labels", "expires_in_days", "networks"], vec!["name".to_owned()]));
    // A label without a value.
    let (location, cookies) = post(&server, &session, "/ui/workers", "name=gpu-1&labels=nonsense").await;
    let html = page(&server, &cookies, &location).await;
    assert_eq!(field_errors(&html).keys().collect::<Vec<_>>(), ["labels"]);
    assert_eq!(invalid_controls(&html).1, ["labels"]);
    // A conflict is shown at its field, too.
    let (id, _) = server.create_worker("gpu-1").await;
    server.create_worker("gpu-2").await;
    let (location, cookies) = post(&server, &session, "/ui/workers", "name=gpu-1").await;
    assert_eq!(field_errors(&page(&server, &cookies, &location).await).keys().collect::<Vec<_>>(), ["name"]);
    let edit = format!("/admin/workers/{id}/edit");
    let (location, cookies) =
        post(&server, &session, &format!("/ui/workers/{id}/edit"), "name=&labels=x&networks=y").await;
    assert_eq!(location, edit);
    let html = page(&server, &cookies, &location).await;
    assert_eq!(field_errors(&html).keys().collect::<Vec<_>>(), ["labels", "name", "networks"]);
}

#[tokio::test]
async fn rejected_configuration_form() {
    let server = TestServer::start().await;
    let session = log_in(&server).await;
    let files = [("config.json", "[]"), ("../up.json", "{}"), ("train.py", "1"), ("fine.json", "{}")];
    let files = files.iter().enumerate().map(|(index, (name, text))| {
        format!("&file.{index}={}&text.{index}={}", percent_escaped(name), percent_escaped(text))
    });
    let form = format!("name=a%2Fb{}", files.collect::<String>());
    let (location, cookies) = post(&server, &session, "/ui/configs", &form).await;
    assert_eq!(location, "/configs/new");
    let html = page(&server, &cookies, &location).await;
    let errors = field_errors(&html);
    assert_eq!(errors.keys().collect::<Vec<_>>(), ["file.1", "file.2", "name", "text.0"]);
    assert!(errors["file.1"].contains("../up.json") && errors["text.0"].contains("not a JSON object"), "{errors:?}");
    let (controls, focused) = invalid_controls(&html);
    let expected = [
        ("name", "name-error"),
        ("text.0", "findings.0 text.0-error"),
        ("file.1", "file.1-error"),
        ("file.2", "file.2-error"),
    ];
    assert_eq!((controls, focused), (owned_pairs(&expected), vec!["name".to_owned()]));
    assert_eq!(server.get(&Actor::Admin, "/api/configs").await.expect_status(200)["configs"], json!([]));
}

#[tokio::test]
async fn rejected_token_form() {
    let server = TestServer::start().await;
    let ada = server.add_user("ada", "researcher").await;
    let Actor::Cookie(session) = &ada else { unreachable!("a browser") };
    for days in ["0", "soon"] {
        let (location, cookies) =
            post(&server, session, "/ui/account/tokens", &format!("name=My+Token&days={days}")).await;
        let html = page(&server, &cookies, &location).await;
        assert_eq!(field_errors(&html).keys().collect::<Vec<_>>(), ["days", "name"], "{days}");
        assert!(html.contains(&format!("value=\"{days}\"")), "the form keeps its input");
        assert_eq!(invalid_controls(&html).1, ["name"]);
    }
    let tokens = server.get(&ada, "/api/account/tokens").await.expect_status(200);
    assert_eq!(tokens["tokens"], json!([]));
}

#[tokio::test]
async fn rejected_user_form() {
    let server = TestServer::start().await;
    let session = log_in(&server).await;
    let (location, cookies) = post(&server, &session, "/ui/users", "name=Ada+L&role=lead&password=short").await;
    let html = page(&server, &cookies, &location).await;
    assert_eq!(field_errors(&html).keys().collect::<Vec<_>>(), ["name", "password"]);
    assert_eq!(invalid_controls(&html).1, ["name"]);
}

#[tokio::test]
async fn rejected_setup_form() {
    let server = TestServer::start_as(AuthMode::SingleUser).await;
    let code = server.app.services.access.issue_setup_code().await.expect("a database").expect("no users yet");
    let (location, cookies) = post(&server, "", "/ui/setup", &format!("code={code}&name=Ada+L&password=short")).await;
    assert_eq!(location, "/login");
    let html = page(&server, &cookies, &location).await;
    assert_eq!(field_errors(&html).keys().collect::<Vec<_>>(), ["name", "password"]);
    let expected = [("name", "name-hint name-error"), ("password", "password-hint password-error")];
    assert_eq!(invalid_controls(&html), (owned_pairs(&expected), vec!["name".to_owned()]));
    let (location, cookies) = post(&server, "", "/ui/setup", &format!("code=x&name=ada&password={PASSWORD}")).await;
    assert_eq!(invalid_controls(&page(&server, &cookies, &location).await).1, ["code"]);
}

#[tokio::test]
async fn the_api_lists_each_field() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let fields = |problem: &Value| {
        let errors = problem["errors"].as_array().expect("a list").iter();
        errors.map(|error| (error["field"].clone(), error["code"].clone())).collect::<Vec<_>>()
    };
    let submit = json!({"config_name": "digits", "gpu_count": 0, "worker_labels": {"": "x"}, "max_retries": 999});
    let rejected = server.post(&Actor::Admin, "/api/queue/submit", submit).await.expect_problem(422, "invalid_labels");
    let expected =
        [("worker_labels", "invalid_labels"), ("gpu_count", "out_of_range"), ("max_retries", "out_of_range")];
    assert_eq!(fields(&rejected), expected.map(|(field, code)| (json!(field), json!(code))));
    assert_eq!(rejected["detail"], rejected["errors"][0]["detail"], "the first is the problem itself");
    let body = json!({"config_name": "digits", "gpu_count": 0});
    let rejected = server.post(&Actor::Admin, "/api/queue/submit", body).await.expect_problem(422, "out_of_range");
    assert_eq!((fields(&rejected).len(), &rejected["field"]), (1, &json!("gpu_count")));
    let user = json!({"name": "Ada L", "role": "viewer", "password": "short"});
    let rejected = server.post(&Actor::Admin, "/api/admin/users", user).await.expect_problem(422, "out_of_range");
    let reason = |at: usize| rejected["errors"][at]["why"].clone();
    assert_eq!((fields(&rejected).len(), reason(0), reason(1)), (2, Value::Null, json!("short")));
    let problem = server.get(&Actor::Admin, "/api/queue/j_none").await.expect_problem(404, "job_not_found");
    assert_eq!(problem.get("errors"), None);
}

#[tokio::test]
async fn field_errors_are_localized() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let session = log_in(&server).await;
    let japanese = format!("{session}; language=ja");
    let body = json!({"config_name": "digits", "gpu_count": 0, "max_retries": 999});
    let rejected =
        server.post(&Actor::Cookie(japanese), "/api/queue/submit", body).await.expect_problem(422, "out_of_range");
    for error in rejected["errors"].as_array().expect("a list") {
        assert!(!error["detail"].as_str().expect("text").is_ascii(), "{error}");
    }
}

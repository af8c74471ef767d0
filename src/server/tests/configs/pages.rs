//! The pages and forms of configurations: what they show of any text, and deleting.

use serde_json::{Value, json};

use crate::tests::harness::{Actor, TestServer};
use crate::tests::ui::pages::{log_in, page, post};
use crate::text::percent_escaped;

async fn put(server: &TestServer, actor: &Actor, name: &str, text: &str) {
    let body = json!({"files": {"config.json": text}}).to_string();
    server.call(actor, "PUT", &format!("/api/configs/{}", percent_escaped(name)), body).await.expect_status(200);
}

/// The text of the first text area, as a browser reads it.
fn text_area(html: &str) -> String {
    let area = html.split_once("<textarea").and_then(|(_, rest)| rest.split_once('>')).expect("a text area").1;
    let text = area.split("</textarea>").next().unwrap_or_default();
    let text = text.strip_prefix('\n').unwrap_or(text);
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

#[tokio::test]
async fn editor_keeps_any_text_and_says_what_is_wrong() {
    let server = TestServer::start().await;
    let session = log_in(&server).await;
    let deep = "[".repeat(5_000);
    let rows: [(&str, &str); 8] = [
        ("{\"a\": 1,\n}", "Remove this comma"),
        ("{\"</textarea><script>alert(1)</script>\": 1,}", "Line 1, column 43"),
        ("{\"a\": 1e400}", "This number is too large."),
        (&deep, "Too many brackets inside each other."),
        ("\u{feff}{}", "byte order mark"),
        ("{\"\u{202e}a\": 1, \"\u{202e}a\": 2, \"😀\": }", "Line 1, column 25"),
        ("{\"a\": {\"b\": 1}, {\"c\": 1}: 2}", "This character is not allowed here."),
        ("[1]", "must be one object"),
    ];
    for (text, finding) in rows {
        let form = format!("name=c&file.0=config.json&text.0={}", percent_escaped(text));
        let (location, cookies) = post(&server, &session, "/ui/configs", &form).await;
        assert_eq!(location, "/configs/new", "{text}");
        let html = page(&server, &cookies, &location).await;
        assert_eq!(text_area(&html), text);
        assert!(html.contains(finding) && !html.contains("<script>alert(1)"), "{finding}: {text}");
    }
    // Browsers send line ends as CRLF; a warning does not prevent saving.
    let text = "{\r\n  \"sed\": 1,\r\n  \"learning_rate\": \"fast\"\r\n}\r\n";
    let form = format!("name=c&file.0=config.json&text.0={}", percent_escaped(text));
    assert_eq!(post(&server, &session, "/ui/configs", &form).await.0, "/configs/c");
    let html = page(&server, &session, "/configs/c/edit").await;
    assert_eq!(text_area(&html), text.replace('\r', ""));
    assert!(html.contains("Did you mean seed?") && html.contains("learning_rate should be a number"), "{html}");
}

#[tokio::test]
async fn large_configuration_is_not_edited_in_the_browser() {
    let server = TestServer::start().await;
    let session = log_in(&server).await;
    put(&server, &Actor::Admin, "large", &format!("{{\"a\": \"{}\"}}", "x".repeat(2 << 20))).await;
    for address in ["/configs/large/edit", "/configs/new?from=large"] {
        let html = page(&server, &session, address).await;
        assert!(html.contains("too large to edit here") && !html.contains("<textarea"), "{address}");
    }
    // A browser that ignores the limit of the form is answered, too.
    let form = format!("name=c&file.0=config.json&text.0={}", "x".repeat(2 << 20));
    let status = server.call(&Actor::Cookie(session), "POST", "/ui/configs", form).await.status;
    assert!(status.is_client_error() || status.is_redirection(), "{status}");
}

/// Submits this configuration, and returns the addresses of all pages that read it.
async fn submit_and_list_pages(server: &TestServer, name: &str) -> Vec<String> {
    let job = server.submit(name).await;
    [
        format!("/configs/{name}"),
        format!("/configs/{name}/edit"),
        format!("/configs/new?from={name}"),
        format!("/train?config={name}"),
        format!("/jobs/{job}/configuration"),
    ]
    .into()
}

#[tokio::test]
async fn pages_of_a_large_configuration_have_a_limited_size() {
    let server = TestServer::start().await;
    let session = log_in(&server).await;
    let line = |number: u32| format!("  \"key_{number}\": \"{}\",", "x".repeat(36));
    let lines = (0..40_000).map(line).collect::<Vec<_>>().join("\n");
    for (name, text) in [
        ("line", format!("{{\"a\": \"{}\"}}", "x".repeat(2 << 20))),
        ("lines", format!("{{\n{lines}\n  \"seed\": 1\n}}\n")),
        ("tokens", format!("{{\n\"a\": [{}1]}}\n", "1,".repeat(100_000))),
    ] {
        put(&server, &Actor::Admin, name, &text).await;
        for address in submit_and_list_pages(&server, name).await {
            let html = page(&server, &session, &address).await;
            assert!(html.len() < 1 << 20, "{address}: {} bytes", html.len());
        }
    }
    let text = page(&server, &session, "/configs/lines").await;
    assert!(text.contains("Only the first 2,000 lines are shown."), "{text}");
    let text = page(&server, &session, "/configs/line").await;
    assert!(text.contains("Only the first 256 KiB are shown."), "{text}");
}

#[tokio::test]
async fn documents_contain_what_pages_show_and_no_more() {
    let server = TestServer::start().await;
    let session = log_in(&server).await;
    put(&server, &Actor::Admin, "c", "{\"hub_token\": \"hf_masked\", \"seed\": 41507}").await;
    for address in submit_and_list_pages(&server, "c").await {
        let html = page(&server, &session, &address).await;
        let is_editor = address.ends_with("/edit") || address.starts_with("/configs/new");
        assert_eq!(html.contains("hf_masked"), is_editor, "{address}: {html}");
        assert!(is_editor || html.matches("41507").count() == 1, "{address}: {html}");
    }
}

#[tokio::test]
async fn copy_of_a_configuration_has_a_name_that_fits() {
    let server = TestServer::start().await;
    let session = log_in(&server).await;
    let long = "n".repeat(64);
    put(&server, &Actor::Admin, &long, "{\"seed\": 1}").await;
    let html = page(&server, &session, &format!("/configs/new?from={long}")).await;
    assert!(html.contains(&format!("value=\"Copy of {}\"", "n".repeat(56))), "{html}");
    assert_eq!(text_area(&html), "{\"seed\": 1}");
    let missing = server.get(&Actor::Cookie(session), "/configs/new?from=nowhere").await;
    assert_eq!(missing.status, 404);
}

#[tokio::test]
async fn deleting_needs_the_revision_that_was_shown_and_is_recorded_once() {
    let server = TestServer::start().await;
    put(&server, &Actor::Admin, "a b", "{}").await;
    let session = log_in(&server).await;
    assert!(page(&server, &session, "/configs/a%20b/delete").await.contains("action=\"/ui/configs/a%20b/delete\""));
    put(&server, &Actor::Admin, "a b", "{\"seed\": 1}").await;
    let exists = async || server.get(&Actor::Admin, "/api/configs/a%20b").await.status == 200;
    for form in ["revision=1", ""] {
        post(&server, &session, "/ui/configs/a%20b/delete", form).await;
        assert!(exists().await, "{form}");
    }
    let (location, _) = post(&server, &session, "/ui/configs/a%20b/delete", "revision=2").await;
    assert_eq!((location.as_str(), exists().await), ("/configs/a%20b", false));
    let log = server.get(&Actor::Admin, "/api/audit?action=config.deleted").await.expect_status(200);
    let targets: Vec<&Value> =
        log["entries"].as_array().expect("a list").iter().map(|entry| &entry["target"]).collect();
    assert_eq!(targets, [&json!("a b")]);
}

#[tokio::test]
async fn configuration_of_another_user_is_not_deleted() {
    let server = TestServer::start().await;
    put(&server, &Actor::Admin, "c", "{}").await;
    for role in ["researcher", "viewer"] {
        let user = server.add_user(role, role).await;
        server.call(&user, "POST", "/ui/configs/c/delete", "revision=1").await;
        server.get(&Actor::Admin, "/api/configs/c").await.expect_status(200);
    }
}

#[tokio::test]
async fn page_links_each_revision_to_its_jobs_with_their_statuses() {
    let server = TestServer::start().await;
    put(&server, &Actor::Admin, "c&d", "{}").await;
    put(&server, &Actor::Admin, "c&d", "{\"seed\": 1}").await;
    let submit = json!({"config_name": "c&d", "target": "worker"});
    let job = server.post(&Actor::Admin, "/api/queue/submit", submit.clone()).await.expect_status(201);
    server.post(&Actor::Admin, "/api/queue/submit", submit).await.expect_status(201);
    let cancel = format!("/api/queue/{}/cancel", job["job_id"].as_str().expect("an id"));
    server.post(&Actor::Admin, &cancel, json!({})).await.expect_status(200);
    let revisions = server.get(&Actor::Admin, "/api/configs/c%26d/revisions").await.expect_status(200);
    let counts = json!({"waiting": 1, "running": 0, "completed": 0, "failed": 0, "cancelled": 1});
    assert_eq!((&revisions["revisions"][0]["job_counts"], &revisions["revisions"][0]["jobs"]), (&counts, &json!(2)));
    let session = log_in(&server).await;
    let html = page(&server, &session, "/configs/c%26d").await;
    let link = "/jobs?q=revision%3A2&amp;config=c%26d";
    assert!(html.contains(link), "{html}");
    assert!(!html.contains("revision%3A1"), "a revision without jobs has no link");
    let query = link.replace("&amp;", "&").replace("/jobs", "/api/queue");
    let jobs = server.get(&Actor::Admin, &query).await.expect_status(200);
    assert_eq!(jobs["jobs"].as_array().map(Vec::len), Some(2));
}

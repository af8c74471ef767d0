//! Worker forms on pages.

use axum::body::Body;
use axum::http::{Request, header};
use serde_json::json;

use crate::tests::harness::{Actor, TestServer, read_response};
use crate::tests::ui::pages::{log_in, page, post};
use crate::text::percent_escaped;

#[tokio::test]
async fn form_creates_a_worker_and_shows_its_token_once() {
    let server = TestServer::start().await;
    let session = log_in(&server).await;
    let form = "name=gpu-1&worker_type=persistent&labels=team%3Dnlp%0D%0Agpu%3Da100";
    let (location, cookies) = post(&server, &session, "/ui/workers", form).await;
    assert!(
        location.starts_with("/admin/workers/w_") && !location.contains("wt_"),
        "no secret in an address: {location}"
    );
    let html = page(&server, &cookies, &location).await;
    let (_, after) = html.split_once("SIMPLETUNER_WORKER_TOKEN=").expect("the command to copy");
    let token: String = after.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
    assert!(token.starts_with("wt_") && token.len() > 40, "{token}");
    assert!(!page(&server, &cookies, &location).await.contains(&token), "it is shown once");
    let list = server.get(&Actor::Admin, "/api/admin/workers").await.expect_status(200);
    assert_eq!(list["workers"][0]["labels"]["gpu"], "a100");
    let (location, cookies) = post(&server, &session, "/ui/workers", "name=gpu-1").await;
    assert_eq!(location, "/admin/workers/new");
    assert!(page(&server, &cookies, &location).await.contains("gpu-1"), "the form keeps its input");
}

#[tokio::test]
async fn drain_is_undone_by_a_form() {
    let server = TestServer::start().await;
    let session = log_in(&server).await;
    let (id, _) = server.create_worker("gpu-1").await;
    let (location, cookies) = post(&server, &session, &format!("/ui/workers/{id}/drain"), "").await;
    let html = page(&server, &cookies, &location).await;
    let undo = format!("/ui/workers/{id}/resume");
    let (banner, _) = html.split_once("Undo").expect("an undo button");
    assert!(banner.rsplit_once("<form").expect("a form").1.contains(&undo), "{banner}");
    let (location, cookies) = post(&server, &session, &undo, "").await;
    assert!(page(&server, &cookies, &location).await.contains("Worker resumed."));
    let worker = server.get(&Actor::Admin, &format!("/api/admin/workers/{id}")).await.expect_status(200);
    assert_eq!(worker["draining"], false);
}

#[tokio::test]
async fn script_that_posts_a_form_gets_the_message_of_the_next_page() {
    let server = TestServer::start().await;
    let session = log_in(&server).await;
    let (id, _) = server.create_worker("gpu-1").await;
    let post = async |path: String, form: &str| {
        let request = Request::post(path).header(header::HOST, "localhost:8001").header(header::COOKIE, &session);
        let request = request.header(header::ACCEPT, "application/json").header(header::ACCEPT_LANGUAGE, "es");
        let request = request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        read_response(server.send(request.body(Body::from(form.to_owned())).expect("a request")).await).await
    };
    let drained = post(format!("/ui/workers/{id}/drain"), "reason=repair&deadline_minutes=5").await.expect_status(200);
    let undo = json!({"form": format!("/ui/workers/{id}/resume"), "fields": []});
    let text = "Worker drenando. Los trabajos en ejecución terminan; no se inician otros.";
    assert_eq!(drained, json!({"text": text, "undo": undo}));
    let worker = server.get(&Actor::Admin, &format!("/api/admin/workers/{id}")).await.expect_status(200);
    assert_eq!((&worker["draining"], &worker["drain_reason"]), (&json!(true), &json!("repair")));

    let rejected = post(format!("/ui/workers/{id}/drain"), "deadline_minutes=soon").await;
    let problem = rejected.expect_problem(422, "out_of_range");
    assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains("fuera")), "{problem}");
    // The message was not kept for the next page.
    assert!(!page(&server, &session, "/admin/workers").await.contains(text));
}

/// Returns the hidden fields of a form, as a browser sends them.
fn hidden_fields(page: &str, form: &str) -> String {
    let (_, form) = page.split_once(&format!("action=\"{form}\"")).expect("the form");
    let form = form.split_once("</form>").expect("a closing tag").0;
    let value = |tag: &str, name: &str| {
        let (_, value) = tag.split_once(&format!(" {name}=\"")).unwrap_or_default();
        percent_escaped(value.split('"').next().unwrap_or_default())
    };
    let tags = form.split("<input type=\"hidden\"").skip(1);
    tags.map(|tag| format!("{}={}", value(tag, "name"), value(tag, "value"))).collect::<Vec<_>>().join("&")
}

#[tokio::test]
async fn form_edits_a_worker_without_lost_updates() {
    let server = TestServer::start().await;
    let session = log_in(&server).await;
    let new_worker = json!({
        "name": "gpu-1", "worker_type": "persistent", "labels": {"note": "a, b"}, "allowed_networks": ["10.0.0.0/8", "::1"],
    });
    let created = server.post(&Actor::Admin, "/api/admin/workers", new_worker).await.expect_status(201);
    let id = created["worker_id"].as_str().expect("text");
    let view = async || server.get(&Actor::Admin, &format!("/api/admin/workers/{id}")).await.expect_status(200);
    let (worker_page, edit, form) =
        (format!("/admin/workers/{id}"), format!("/admin/workers/{id}/edit"), format!("/ui/workers/{id}/edit"));
    let html = page(&server, &session, &edit).await;
    assert!(html.contains("value=\"note=a, b\"") && html.contains("value=\"10.0.0.0/8, ::1/128\""), "{html}");
    let revision_field = hidden_fields(&html, &form);
    assert_eq!(revision_field, format!("revision={}", view().await["revision"].as_str().expect("text")));

    let form_body = |name: &str, revision_field: &str| {
        format!(
            "name={name}&worker_type=ephemeral&labels=team%3Dnlp&labels=&networks=&ignore_reported_labels=true&reject_older_agents=true&{revision_field}"
        )
    };
    let (location, cookies) = post(&server, &session, &form, &form_body("gpu-2", &revision_field)).await;
    assert_eq!(location, worker_page);
    let changed = view().await;
    assert_eq!(
        changed["settings"],
        json!({"labels": {"team": "nlp"}, "ignore_reported_labels": true, "reject_older_agents": true})
    );
    assert_eq!((&changed["name"], &changed["worker_type"]), (&json!("gpu-2"), &json!("ephemeral")));
    assert_eq!(changed["allowed_networks"], json!([]));
    let undo = hidden_fields(&page(&server, &cookies, &location).await, &form);

    // Another user sends an outdated form.
    let (location, cookies) = post(&server, &session, &form, &form_body("gpu-3", &revision_field)).await;
    assert_eq!(location, edit);
    let text = page(&server, &cookies, &location).await;
    assert!(text.contains("This worker was changed while you were editing."), "{text}");
    assert!(text.contains("value=\"gpu-3\"") && text.contains("<dd>gpu-2<"), "the input, and the stored value");
    assert_eq!(view().await["name"], "gpu-2");
    let (location, cookies) = post(&server, &session, &form, &form_body("", &hidden_fields(&text, &form))).await;
    let text = page(&server, &cookies, &location).await;
    assert!(text.contains("id=\"name-error\"") && !text.contains("while you were editing"), "{text}");

    let (location, _) = post(&server, &session, &form, &undo).await;
    assert_eq!(location, worker_page);
    let restored = view().await;
    assert_eq!(
        restored["settings"],
        json!({"labels": {"note": "a, b"}, "ignore_reported_labels": false, "reject_older_agents": false})
    );
    assert_eq!((&restored["name"], &restored["worker_type"]), (&json!("gpu-1"), &json!("persistent")));
    assert_eq!(restored["allowed_networks"], json!(["10.0.0.0/8", "::1/128"]));
    assert_eq!(post(&server, &session, &form, &undo).await.0, edit, "an undo works only once");
}

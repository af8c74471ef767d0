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
    let (to, cookies) = post(&server, &session, "/ui/workers", form).await;
    assert!(to.starts_with("/admin/workers/w_") && !to.contains("wt_"), "no secret in an address: {to}");
    let shown = page(&server, &cookies, &to).await;
    let (_, after) = shown.split_once("SIMPLETUNER_WORKER_TOKEN=").expect("the command to copy");
    let token: String = after.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
    assert!(token.starts_with("wt_") && token.len() > 40, "{token}");
    assert!(!page(&server, &cookies, &to).await.contains(&token), "it is shown once");
    let listed = server.get(&Actor::Admin, "/api/admin/workers").await.expect_status(200);
    assert_eq!(listed["workers"][0]["labels"]["gpu"], "a100");
    let (back, cookies) = post(&server, &session, "/ui/workers", "name=gpu-1").await;
    assert_eq!(back, "/admin/workers/new");
    assert!(page(&server, &cookies, &back).await.contains("gpu-1"), "what was typed is kept");
}

#[tokio::test]
async fn drain_is_undone_by_a_form() {
    let server = TestServer::start().await;
    let session = log_in(&server).await;
    let (id, _) = server.create_worker("gpu-1").await;
    let (to, cookies) = post(&server, &session, &format!("/ui/workers/{id}/drain"), "").await;
    let shown = page(&server, &cookies, &to).await;
    let undo = format!("/ui/workers/{id}/resume");
    let (banner, _) = shown.split_once("Undo").expect("a way back");
    assert!(banner.rsplit_once("<form").expect("a form").1.contains(&undo), "{banner}");
    let (to, cookies) = post(&server, &session, &undo, "").await;
    assert!(page(&server, &cookies, &to).await.contains("Worker resumed."));
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
    let form = form.split_once("</form>").expect("whole").0;
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
    let wanted = json!({
        "name": "gpu-1", "worker_type": "persistent", "labels": {"note": "a, b"}, "allowed_networks": ["10.0.0.0/8", "::1"],
    });
    let created = server.post(&Actor::Admin, "/api/admin/workers", wanted).await.expect_status(201);
    let id = created["worker_id"].as_str().expect("text");
    let view = async || server.get(&Actor::Admin, &format!("/api/admin/workers/{id}")).await.expect_status(200);
    let (worker_page, edit, form) =
        (format!("/admin/workers/{id}"), format!("/admin/workers/{id}/edit"), format!("/ui/workers/{id}/edit"));
    let shown = page(&server, &session, &edit).await;
    assert!(shown.contains("value=\"note=a, b\"") && shown.contains("value=\"10.0.0.0/8, ::1/128\""), "{shown}");
    let seen = hidden_fields(&shown, &form);
    assert_eq!(seen, format!("revision={}", view().await["revision"].as_str().expect("text")));

    let typed = |name: &str, seen: &str| {
        format!(
            "name={name}&worker_type=ephemeral&labels=team%3Dnlp&labels=&networks=&ignore_reported_labels=true&reject_older_agents=true&{seen}"
        )
    };
    let (to, cookies) = post(&server, &session, &form, &typed("gpu-2", &seen)).await;
    assert_eq!(to, worker_page);
    let changed = view().await;
    assert_eq!(
        changed["settings"],
        json!({"labels": {"team": "nlp"}, "ignore_reported_labels": true, "reject_older_agents": true})
    );
    assert_eq!((&changed["name"], &changed["worker_type"]), (&json!("gpu-2"), &json!("ephemeral")));
    assert_eq!(changed["allowed_networks"], json!([]));
    let undo = hidden_fields(&page(&server, &cookies, &to).await, &form);

    // Another user sends an outdated form.
    let (to, cookies) = post(&server, &session, &form, &typed("gpu-3", &seen)).await;
    assert_eq!(to, edit);
    let text = page(&server, &cookies, &to).await;
    assert!(text.contains("This worker was changed while you were editing."), "{text}");
    assert!(text.contains("value=\"gpu-3\"") && text.contains("<dd>gpu-2<"), "what was typed, and what is stored");
    assert_eq!(view().await["name"], "gpu-2");
    let (to, cookies) = post(&server, &session, &form, &typed("", &hidden_fields(&text, &form))).await;
    let text = page(&server, &cookies, &to).await;
    assert!(text.contains("id=\"name-error\"") && !text.contains("while you were editing"), "{text}");

    let (to, _) = post(&server, &session, &form, &undo).await;
    assert_eq!(to, worker_page);
    let back = view().await;
    assert_eq!(
        back["settings"],
        json!({"labels": {"note": "a, b"}, "ignore_reported_labels": false, "reject_older_agents": false})
    );
    assert_eq!((&back["name"], &back["worker_type"]), (&json!("gpu-1"), &json!("persistent")));
    assert_eq!(back["allowed_networks"], json!(["10.0.0.0/8", "::1/128"]));
    assert_eq!(post(&server, &session, &form, &undo).await.0, edit, "it is taken back once");
}

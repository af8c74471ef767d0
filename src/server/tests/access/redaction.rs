//! What users see of jobs and workers that they may not change.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::tests::harness::{Actor, TestServer};

/// The fields of a worker that only its admins see.
const ADMIN_FIELDS: [&str; 9] = [
    "allowed_networks",
    "last_used_from",
    "settings",
    "tls_verify",
    "token_conflict",
    "token_expires_at",
    "token_created_at",
    "token_created_by",
    "token_unused_ends_at",
];

async fn submit_job(server: &TestServer, actor: &Actor) -> String {
    let body = json!({"config_name": "digits", "target": "worker"});
    server.post(actor, "/api/queue/submit", body).await.expect_status(201)["job_id"].as_str().expect("text").to_owned()
}

/// A worker with a GPU, whose agent does not verify this server.
async fn create_gpu_worker(server: &TestServer) -> String {
    let body = json!({"name": "gpu-1", "expires_in_days": 7});
    let created = server.post(&Actor::Admin, "/api/admin/workers", body).await.expect_status(201);
    let registration = json!({"name": "x", "protocol": 1, "persistent": true, "tls_verify": false,
        "accelerator_type": "cuda", "gpus": [{"index": 0, "uuid": "GPU-1", "name": "A100", "vram_gb": 80.0}],
        "sandbox": {"least": "none", "most": "none", "why_not_more": "/srv/agent is open"}, "attempts": []});
    let key = Actor::worker(created["token"].as_str().expect("text"));
    server.post(&key, "/api/workers/register", registration).await.expect_status(200);
    created["worker_id"].as_str().expect("text").to_owned()
}

#[tokio::test]
async fn users_see_all_jobs_and_change_their_own() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (ada, eve) = (server.add_user("ada", "researcher").await, server.add_user("eve", "researcher").await);
    let job = submit_job(&server, &ada).await;
    for actor in [&eve, &server.add_user("vic", "viewer").await] {
        for path in ["", "/explain", "/config", "/logs", "/events", "/artifacts"] {
            server.get(actor, &format!("/api/queue/{job}{path}")).await.expect_status(200);
        }
        assert_eq!(server.get(actor, "/api/queue").await.expect_status(200)["total"], 1);
        let page = server.get(actor, &format!("/jobs/{job}")).await;
        assert_eq!(page.status, StatusCode::OK);
        assert!(!page.text().contains(&format!("/ui/jobs/{job}/cancel")), "no cancel button without the permission");
        assert!(!server.get(actor, "/jobs").await.text().contains(&format!("/jobs/{job}/cancel")));
    }
    let rejected = server
        .post(&eve, &format!("/api/queue/{job}/cancel"), json!({}))
        .await
        .expect_problem(403, "permission_denied");
    assert!(rejected["detail"].as_str().is_some_and(|detail| detail.contains("job.cancel.all")), "{rejected}");
    let priority = json!({"priority": 1});
    server.post(&eve, &format!("/api/queue/{job}/priority"), priority).await.expect_problem(403, "permission_denied");
    assert!(server.get(&ada, &format!("/jobs/{job}")).await.text().contains(&format!("/ui/jobs/{job}/cancel")));
    server.post(&ada, &format!("/api/queue/{job}/cancel"), json!({})).await.expect_status(200);
    let again = server.post(&eve, &format!("/api/queue/{job}/retry"), json!({})).await.expect_status(201);
    let again = server.job(again["job_id"].as_str().expect("text")).await;
    assert_eq!(again["submitted_by"], "eve", "a retry belongs to the caller");
}

#[tokio::test]
async fn users_see_workers_without_admin_fields() {
    let server = TestServer::start().await;
    let id = create_gpu_worker(&server).await;
    let networks = json!({"allowed_networks": ["127.0.0.0/8"]}).to_string();
    server.call(&Actor::Admin, "PATCH", &format!("/api/admin/workers/{id}"), networks).await.expect_status(200);
    let vic = server.add_user("vic", "viewer").await;
    let worker_path = format!("/api/admin/workers/{id}");
    let first_worker = |page: &Value| page["workers"][0].clone();
    for path in [worker_path.as_str(), "/api/admin/workers?facets=true", "/api/admin/gpus"] {
        let (admin_page, viewer_page) =
            (server.get(&Actor::Admin, path).await.expect_status(200), server.get(&vic, path).await.expect_status(200));
        let is_list = admin_page["workers"].is_array();
        let (full, shown) = if is_list {
            (first_worker(&admin_page), first_worker(&viewer_page))
        } else {
            (admin_page, viewer_page.clone())
        };
        let changed = full.as_object().expect("an object").iter().filter(|(field, value)| shown[*field] != **value);
        let changed: Vec<&str> = changed.map(|(field, _)| field.as_str()).filter(|field| *field != "sandbox").collect();
        assert!(changed.iter().all(|field| ADMIN_FIELDS.contains(field)), "{path}: {changed:?}");
        assert_eq!((&full["tls_verify"], &shown["tls_verify"]), (&json!(false), &Value::Null), "{path}");
        assert_eq!((&shown["name"], &shown["gpu_count"]), (&json!("gpu-1"), &json!(1)));
        let text = viewer_page.to_string();
        for secret in ["127.0.0", "/srv/agent", "tls:off"] {
            assert!(!text.contains(secret), "{path}: {secret} in {text}");
        }
    }
    let csv = server.get(&vic, "/api/admin/workers/export").await.text();
    assert!(csv.contains("gpu-1") && !csv.contains("false"), "{csv}");
    for path in ["/api/admin/workers?q=tls:off", "/api/admin/gpus?q=-tls:on", "/api/admin/workers/export?q=tls:off"] {
        server.get(&vic, path).await.expect_problem(403, "permission_denied");
        assert_eq!(server.get(&Actor::Admin, path).await.status, StatusCode::OK);
    }
    let history = format!("{worker_path}/gpus/history");
    for path in [history.as_str(), "/api/admin/gpus/history", "/api/usage"] {
        server.get(&vic, path).await.expect_status(200);
    }
    for path in [format!("{worker_path}/events"), format!("{worker_path}/attempts"), "/api/overview".to_owned()] {
        server.get(&vic, &path).await.expect_problem(403, "permission_denied");
    }
    let found = server.get(&vic, "/api/search?q=gpu-1").await.expect_status(200);
    assert_eq!(found["found"][0]["kind"], "worker");
}

#[tokio::test]
async fn worker_pages_show_no_actions_to_viewers() {
    let server = TestServer::start().await;
    let id = create_gpu_worker(&server).await;
    let vic = server.add_user("vic", "viewer").await;
    for path in
        ["/admin/workers".to_owned(), format!("/admin/workers/{id}"), "/fleet".to_owned(), "/fleet/gpus".to_owned()]
    {
        let page = server.get(&vic, &path).await;
        let text = page.text();
        assert!(page.status == StatusCode::OK && text.contains("gpu-1"), "{path}");
        for admin_text in
            ["/admin/workers/new", "/ui/workers", "/edit", "/delete", "/events", "class=\"pick\"", "127.0.0.1"]
        {
            assert!(!text.contains(admin_text), "{path}: {admin_text}");
        }
        assert!(text.contains("href=\"/fleet\""), "{path}: the navigation");
        assert!(!text.contains("nav-admin"), "{path}: viewers get no admin navigation");
    }
    let page = |section: &str| format!("/admin/workers/{id}/{section}");
    let forbidden = ["/admin/workers/new".to_owned(), page("edit"), page("delete"), page("jobs"), page("events")];
    for path in forbidden {
        let page = server.get(&vic, &path).await;
        assert_eq!(page.status, StatusCode::FORBIDDEN, "{path}");
        let text = page.text();
        assert!(text.contains("admin.workers") && text.contains("Ask an admin for a role that has it"), "{path}");
        assert!(!text.contains("action=\"/ui/workers"), "{path}: no form");
    }
    let page = server.get(&server.add_user("ada", "admin").await, &format!("/admin/workers/{id}")).await.text();
    assert!(page.contains("/ui/workers") && page.contains("nav-admin"));
}

#[tokio::test]
async fn token_for_own_jobs_sees_own_jobs_only() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let job = server.submit("digits").await;
    let key = server.restricted_token("ada").await;
    assert_eq!(server.get(&key, "/api/queue").await.expect_status(200)["total"], 0);
    server.get(&key, &format!("/api/queue/{job}")).await.expect_problem(404, "job_not_found");
    for path in ["/api/admin/workers", "/api/admin/gpus", "/api/admin/gpus/history", "/api/admin/workers/export"] {
        server.get(&key, path).await.expect_problem(403, "permission_denied");
    }
}

/// A token that submits jobs and sees its own, and cannot read configurations.
async fn token_without_configs(server: &TestServer, actor: &Actor) -> Actor {
    let scopes = ["job.submit", "job.view.own", "job.view.all"];
    let created =
        server.post(actor, "/api/account/tokens", json!({"name": "blind", "scopes": scopes})).await.expect_status(201);
    Actor::Token(created["secret"].as_str().expect("text").to_owned())
}

#[tokio::test]
async fn callers_without_config_view_learn_no_configuration_names() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let ada = server.add_user("ada", "researcher").await;
    let token_without_config_view = token_without_configs(&server, &ada).await;
    for (actor, suggests) in [(&ada, true), (&token_without_config_view, false)] {
        for dry_run in [true, false] {
            let body = json!({"config_name": "digtis", "dry_run": dry_run});
            let rejected = server.post(actor, "/api/queue/submit", body).await.expect_problem(404, "config_not_found");
            assert_eq!(
                rejected["detail"].as_str().expect("text").contains("digits"),
                suggests,
                "{dry_run}: {rejected}"
            );
        }
    }
    server.get(&token_without_config_view, "/api/configs/digtis").await.expect_problem(403, "permission_denied");
    server
        .post(&token_without_config_view, "/api/queue/submit", json!({"config_name": "digits"}))
        .await
        .expect_status(201);
}

#[tokio::test]
async fn overrides_are_visible_with_config_view_only() {
    let server = TestServer::start().await;
    let body =
        json!({"files": {"config.json": json!({"learning_rate": 0.125, "hub_model_id": "ours/secret"}).to_string()}});
    server.call(&Actor::Admin, "PUT", "/api/configs/digits", body.to_string()).await.expect_status(200);
    let ada = server.add_user("ada", "researcher").await;
    let token_without_config_view = token_without_configs(&server, &ada).await;
    let overrides = json!({"learning_rate": 0.5, "hub_model_id": null});
    let submit = json!({"config_name": "digits", "overrides": overrides});
    let job = server.post(&ada, "/api/queue/submit", submit).await.expect_status(201)["job_id"]
        .as_str()
        .expect("text")
        .to_owned();
    let api = [format!("/api/queue/{job}"), format!("/api/queue/{job}/events"), "/api/queue".to_owned()];
    for path in api.iter().chain([&format!("/jobs/{job}"), &format!("/jobs/{job}/events")]) {
        let (full, redacted) = (server.get(&ada, path).await, server.get(&token_without_config_view, path).await);
        assert_eq!((full.status, redacted.status), (StatusCode::OK, StatusCode::OK), "{path}");
        let has_config_values =
            |text: String| text.contains("0.125") || text.contains("hub_model_id") || text.contains("ours/secret");
        let shows_overrides = path != "/api/queue" && !(path.starts_with("/jobs/") && path.ends_with("/events"));
        assert!(!shows_overrides || has_config_values(full.text()), "{path}: {}", full.text());
        assert!(!has_config_values(redacted.text()), "{path}: {}", redacted.text());
    }
    server
        .get(&token_without_config_view, &format!("/api/queue/{job}/config"))
        .await
        .expect_problem(403, "permission_denied");
}

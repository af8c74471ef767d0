//! Bulk actions: `/api/admin/workers/bulk/…`, `/api/queue/bulk/…`, and the pages that use them.

use axum::http::{StatusCode, header};
use serde_json::{Value, json};

use super::harness::{Actor, PASSWORD, TestServer};
use crate::service::access::REAUTH_LIFETIME;

/// Returns the results as `id outcome [code]`.
fn outcomes(response: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let result = |item: &Value| {
        let outcome = format!("{} {}", text(&item["outcome"]), text(&item["problem"]["code"]));
        (text(&item["id"]), outcome.trim_end().to_owned())
    };
    response["results"].as_array().expect("a list").iter().map(result).collect()
}

fn owned_pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(id, outcome)| ((*id).to_owned(), (*outcome).to_owned())).collect()
}

async fn count_entries(server: &TestServer, action: &str) -> usize {
    let page = server.get(&Actor::Admin, &format!("/api/audit?action={action}")).await.expect_status(200);
    page["entries"].as_array().map_or(0, Vec::len)
}

#[tokio::test]
async fn several_workers_are_drained_and_resumed_with_audit_entries() {
    let server = TestServer::start().await;
    let (a, ..) = server.connect_worker("a").await;
    let (b, _) = server.create_worker("b").await;
    let (c, _) = server.create_worker("c").await;
    let reason = json!({"reason": "riser cable", "deadline_seconds": 60});
    server.post(&Actor::Admin, &format!("/api/admin/workers/{c}/drain"), reason).await.expect_status(200);
    let bulk = async |verb: &str, ids: Value| {
        server.post(&Actor::Admin, &format!("/api/admin/workers/bulk/{verb}"), json!({"ids": ids})).await
    };
    let unknown = "w_01jd0000000000000000000000";
    let drained = bulk("drain", json!([b, "no sense", a, c, unknown, b])).await.expect_status(200);
    let expected = [
        (b.as_str(), "done"),
        ("no sense", "rejected not_found"),
        (&a, "done"),
        (&c, "unchanged"),
        (unknown, "rejected worker_not_found"),
    ];
    assert_eq!(outcomes(&drained), owned_pairs(&expected), "in the order of the request, each worker once");
    assert_eq!(count_entries(&server, "worker.drained").await, 3, "one drain is older than the bulk request");
    let worker = server.get(&Actor::Admin, &format!("/api/admin/workers/{c}")).await.expect_status(200);
    assert_eq!(worker["drain_reason"], "riser cable", "an existing reason stays");
    assert!(worker["drain_deadline"].is_string());
    let again = bulk("drain", json!([a, b])).await.expect_status(200);
    assert_eq!(outcomes(&again), owned_pairs(&[(&a, "unchanged"), (&b, "unchanged")]), "a repetition changes nothing");
    let resumed = bulk("resume", json!([a, b])).await.expect_status(200);
    assert_eq!(outcomes(&resumed), owned_pairs(&[(&a, "done"), (&b, "done")]));
    assert_eq!(outcomes(&bulk("resume", json!([a])).await.expect_status(200)), owned_pairs(&[(&a, "unchanged")]));
    assert_eq!(count_entries(&server, "worker.resumed").await, 2);
    assert_eq!(bulk("drain", json!([])).await.expect_status(200), json!({"results": []}));
    let many: Vec<String> = (0..501).map(|n| format!("w_{n}")).collect();
    bulk("drain", json!(many)).await.expect_problem(422, "too_large");
    bulk("explode", json!([a])).await.expect_problem(404, "no_such_route");
}

#[tokio::test]
async fn several_workers_drain_with_one_reason_and_deadline() {
    let server = TestServer::start().await;
    let (a, _) = server.create_worker("a").await;
    let (b, _) = server.create_worker("b").await;
    let drain = "/api/admin/workers/bulk/drain";
    let (ids, long) = (json!([a, b]), "x".repeat(501));
    let too_long = json!({"ids": ids, "reason": long});
    server.post(&Actor::Admin, drain, too_long).await.expect_problem(422, "too_large");
    let too_late = json!({"ids": ids, "deadline_seconds": 2_592_001});
    server.post(&Actor::Admin, drain, too_late).await.expect_problem(422, "out_of_range");
    let body = json!({"ids": ids, "reason": " new switch ", "deadline_seconds": 600});
    let drained = server.post(&Actor::Admin, drain, body).await.expect_status(200);
    assert_eq!(outcomes(&drained), owned_pairs(&[(&a, "done"), (&b, "done")]), "a rejected request drains no worker");
    let view = async |id: &str| server.get(&Actor::Admin, &format!("/api/admin/workers/{id}")).await.expect_status(200);
    let (first, second) = (view(&a).await, view(&b).await);
    assert_eq!((&first["drain_reason"], &second["drain_reason"]), (&json!("new switch"), &json!("new switch")));
    assert_eq!(first["drain_deadline"], second["drain_deadline"]);

    let session = server.add_user("ada", "admin").await;
    server.post(&Actor::Admin, "/api/admin/workers/bulk/resume", json!({"ids": ids})).await.expect_status(200);
    let form = format!("id={a}&id={b}&reason=riser&deadline_minutes=10");
    let (_, text) = post(&server, &session, "/ui/workers/bulk/drain", &form).await;
    assert!(text.contains("2 workers are draining.") && text.contains("title=\"riser\""), "{text}");
    assert_eq!(
        (&view(&a).await["drain_reason"], &view(&a).await["drain_deadline"]),
        (&json!("riser"), &first["drain_deadline"])
    );
    let (_, text) = post(&server, &session, &format!("/ui/workers/{a}/drain"), "deadline_minutes=soon").await;
    assert!(text.contains("deadline_seconds"), "{text}");
    let (_, page) =
        post(&server, &session, &format!("/ui/workers/{a}/drain"), "reason=a+%3Cb%3E&deadline_minutes=0").await;
    assert!(page.contains("Draining: a &lt;b&gt; · Remaining jobs are stopped and requeued on "), "{page}");
}

#[tokio::test]
async fn bulk_delete_removes_offline_workers_only() {
    let server = TestServer::start().await;
    let (connected, _, _events) = server.connect_worker("here").await;
    let (offline, _) = server.create_worker("gone").await;
    let body = json!({"ids": [connected, offline]});
    let deleted = server.post(&Actor::Admin, "/api/admin/workers/bulk/delete", body.clone()).await.expect_status(200);
    assert_eq!(outcomes(&deleted), owned_pairs(&[(&connected, "rejected worker_connected"), (&offline, "done")]));
    let again = server.post(&Actor::Admin, "/api/admin/workers/bulk/delete", body).await.expect_status(200);
    assert_eq!(outcomes(&again)[1].1, "rejected worker_not_found");
    assert_eq!(server.get(&Actor::Admin, "/api/admin/workers").await.expect_status(200)["total"], 1);
}

#[tokio::test]
async fn bulk_delete_requires_the_password() {
    let server = TestServer::start().await;
    let (id, _) = server.create_worker("a").await;
    let browser = server.add_user("ada", "admin").await;
    server.clock.advance(REAUTH_LIFETIME);
    let body = json!({"ids": [id]});
    let delete = "/api/admin/workers/bulk/delete";
    server.post(&browser, delete, body.clone()).await.expect_problem(403, "password_needed");
    server.post(&browser, "/api/admin/workers/bulk/drain", body.clone()).await.expect_status(200);
    server.call(&browser, "POST", "/ui/confirm", format!("password={PASSWORD}&next=/")).await;
    assert_eq!(outcomes(&server.post(&browser, delete, body).await.expect_status(200))[0].1, "done");
}

#[tokio::test]
async fn owners_cancel_and_retry_several_jobs() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let ada = server.restricted_token("ada").await;
    let (own_job, queued_job, other_job) =
        (submit_as(&server, &ada).await, submit_as(&server, &ada).await, server.submit("digits").await);
    let bulk = async |verb: &str, ids: Value| {
        server.post(&ada, &format!("/api/queue/bulk/{verb}"), json!({"ids": ids})).await.expect_status(200)
    };
    let cancelled = bulk("cancel", json!([own_job, other_job, "a job"])).await;
    let expected =
        [(own_job.as_str(), "done"), (&other_job, "rejected job_not_found"), ("a job", "rejected not_found")];
    assert_eq!(outcomes(&cancelled), owned_pairs(&expected), "a job that the user cannot see is not found");
    assert_eq!(
        (server.job_status(&own_job).await, server.job_status(&other_job).await),
        ("cancelled".into(), "queued".into())
    );
    assert_eq!(outcomes(&bulk("cancel", json!([own_job])).await), owned_pairs(&[(&own_job, "rejected job_ended")]));
    let retried_jobs = bulk("retry", json!([own_job, queued_job, other_job])).await;
    let expected =
        [(own_job.as_str(), "done"), (&queued_job, "rejected job_not_ended"), (&other_job, "rejected job_not_found")];
    assert_eq!(outcomes(&retried_jobs), owned_pairs(&expected));
    let new = retried_jobs["results"][0]["new_job_id"].as_str().expect("a new job");
    assert_eq!(server.job(new).await["retry_of"], own_job);
    let viewer = server.add_user("bob", "viewer").await;
    let body = json!({"ids": [own_job]});
    server.post(&viewer, "/api/queue/bulk/cancel", body.clone()).await.expect_problem(403, "permission_denied");
    server.post(&ada, "/api/admin/workers/bulk/drain", body).await.expect_problem(403, "permission_denied");
}

async fn submit_as(server: &TestServer, actor: &Actor) -> String {
    let body = json!({"config_name": "digits", "target": "worker"});
    let created = server.post(actor, "/api/queue/submit", body).await.expect_status(201);
    created["job_id"].as_str().expect("text").to_owned()
}

#[tokio::test]
async fn idempotency_key_makes_bulk_retry_repeatable() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let job = server.submit("digits").await;
    server.post(&Actor::Admin, &format!("/api/queue/{job}/cancel"), json!({})).await.expect_status(200);
    let retry = async || {
        let request = axum::http::Request::builder().method("POST").uri("/api/queue/bulk/retry");
        let request = request.header(header::HOST, "localhost:8001").header("x-api-key", super::harness::ADMIN);
        let request = request.header("idempotency-key", "k1").body(json!({"ids": [job]}).to_string().into());
        super::harness::read_response(server.send(request.expect("a request")).await).await.expect_status(200)
    };
    assert_eq!(retry().await, retry().await);
    assert_eq!(server.get(&Actor::Admin, "/api/queue").await.expect_status(200)["total"], 2);
}

/// Posts a form; returns the location and the text of that page.
async fn post(server: &TestServer, session: &Actor, path: &str, form: &str) -> (String, String) {
    let response = server.call(session, "POST", path, form.to_owned()).await;
    assert_eq!(response.status, StatusCode::SEE_OTHER, "{}", response.text());
    let location = response.headers[header::LOCATION].to_str().expect("ascii").to_owned();
    let Actor::Cookie(cookie) = session else { panic!("a browser") };
    let flash =
        response.headers[header::SET_COOKIE].to_str().expect("ascii").split(';').next().expect("a cookie").to_owned();
    let page = server.get(&Actor::Cookie(format!("{cookie}; {flash}")), &location).await.text();
    (location, page)
}

#[tokio::test]
async fn page_names_the_workers_and_shows_the_outcome() {
    let server = TestServer::start().await;
    let session = server.add_user("ada", "admin").await;
    let (connected, _, _events) = server.connect_worker("here & <there>").await;
    let (offline, _) = server.create_worker("gone").await;
    let get_page = async |action: &str| {
        let path = format!(
            "/admin/workers/bulk?action={action}&id={connected}&id={offline}&id=nonsense&back=/admin/workers?q=h"
        );
        server.get(&session, &path).await
    };
    let confirmation = get_page("delete").await.text();
    assert!(
        confirmation.contains("here &amp; &lt;there&gt;") && confirmation.contains("Skipped: not offline"),
        "{confirmation}"
    );
    assert!(confirmation.contains("Delete 1 worker") && confirmation.contains("1 selected item no longer exists."));
    assert!(
        !confirmation.contains(&format!("value=\"{connected}\""))
            && confirmation.contains(&format!("value=\"{offline}\"")),
        "{confirmation}"
    );
    let drain = get_page("drain").await.text();
    assert!(drain.contains("Accepts no new jobs") && drain.contains("Offline; drains when reconnected"), "{drain}");
    assert_eq!(get_page("cancel").await.status, StatusCode::NOT_FOUND, "workers cannot be cancelled");
    let form = format!("id={connected}&id={offline}&id=nonsense&back=/admin/workers?q=e");
    let (location, text) = post(&server, &session, "/ui/workers/bulk/drain", &form).await;
    assert_eq!(location, "/admin/workers?q=e");
    assert!(text.contains("2 workers are draining.") && text.contains("nonsense: Worker "), "{text}");
    let undo = "<form method=\"post\" action=\"/ui/workers/bulk/resume\">";
    let (_, undo) = text.split_once(undo).expect("an undo button");
    let undo = undo.split_once("</form>").expect("a closing tag").0;
    assert!(undo.contains(&connected) && undo.contains(&offline) && !undo.contains("nonsense"), "{undo}");
    let (_, text) = post(&server, &session, "/ui/workers/bulk/resume", &form).await;
    assert!(text.contains("2 workers resumed."));
    let (_, text) = post(&server, &session, "/ui/workers/bulk/delete", &form).await;
    assert!(
        text.contains("1 worker deleted.") && text.contains("here &amp; &lt;there&gt;: The worker is connected"),
        "{text}"
    );
    let (location, text) = post(&server, &session, "/ui/workers/bulk/resume", "back=//evil.example").await;
    assert!(location == "/" && text.contains("Nothing was changed."), "{location}");
}

#[tokio::test]
async fn page_names_visible_jobs_only() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let Actor::Token(secret) = server.restricted_token("ada").await else { panic!("a token") };
    let ada = server.log_in("", &secret).await.expect("a session");
    let (own_job, other_job) = (submit_as(&server, &ada).await, server.submit("digits").await);
    let confirmation = server.get(&ada, &format!("/jobs/bulk?action=cancel&id={own_job}&id={other_job}")).await.text();
    assert!(
        confirmation.contains("Removed from the queue") && confirmation.contains("1 selected item no longer exists."),
        "{confirmation}"
    );
    let (location, text) = post(&server, &ada, "/ui/jobs/bulk/cancel", &format!("id={own_job}&id={other_job}")).await;
    assert!(location == "/jobs" && text.contains("1 job is being cancelled."), "{location} {text}");
    assert!(text.contains(&format!("{other_job}: Job ")) && !text.contains("): Job "), "{text}");
    let (_, text) = post(&server, &ada, "/ui/jobs/bulk/retry", &format!("id={own_job}")).await;
    assert!(text.contains("1 job resubmitted."), "{text}");
}

#[tokio::test]
async fn priority_change_is_undone_by_a_form() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let session = server.add_user("ada", "admin").await;
    let job = server.submit("digits").await;
    let path = format!("/ui/jobs/{job}/priority");
    let (location, text) = post(&server, &session, &path, "priority=33&back=/jobs?phase=waiting").await;
    assert_eq!((location.as_str(), server.job(&job).await["priority"].as_u64()), ("/jobs?phase=waiting", Some(33)));
    let (banner, undo) = text
        .split_once(&format!(
            "<form method=\"post\" action=\"{path}\"><input type=\"hidden\" name=\"priority\" value=\"10\""
        ))
        .expect("an undo button with the previous priority");
    assert!(banner.contains("Priority updated.") && undo.contains("/jobs?phase=waiting"));
    let (_, text) = post(&server, &session, &path, "priority=33").await;
    assert!(!text.contains("data-key=\"u\""), "nothing was changed");
}

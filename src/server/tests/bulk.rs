//! The same done to several at once: `/api/admin/workers/bulk/…`, `/api/queue/bulk/…`, and the pages that ask.

use axum::http::{StatusCode, header};
use serde_json::{Value, json};

use super::harness::{By, PASSWORD, Server};
use crate::service::access::PROOF;

/// What became of each, as `id outcome [code]`.
fn told(answer: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let result = |one: &Value| {
        let outcome = format!("{} {}", text(&one["outcome"]), text(&one["problem"]["code"]));
        (text(&one["id"]), outcome.trim_end().to_owned())
    };
    answer["results"].as_array().expect("a list").iter().map(result).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(id, became)| ((*id).to_owned(), (*became).to_owned())).collect()
}

async fn entries(server: &Server, action: &str) -> usize {
    let page = server.get(&By::Admin, &format!("/api/audit?action={action}")).await.ok(200);
    page["entries"].as_array().map_or(0, Vec::len)
}

#[tokio::test]
async fn several_workers_drain_and_take_jobs_again_each_on_record() {
    let server = Server::start().await;
    let (a, ..) = server.online("a").await;
    let (b, _) = server.worker("b").await;
    let (c, _) = server.worker("c").await;
    let reason = json!({"reason": "riser cable", "deadline_seconds": 60});
    server.post(&By::Admin, &format!("/api/admin/workers/{c}/drain"), reason).await.ok(200);
    let bulk = async |verb: &str, ids: Value| {
        server.post(&By::Admin, &format!("/api/admin/workers/bulk/{verb}"), json!({"ids": ids})).await
    };
    let gone = "w_01jd0000000000000000000000";
    let drained = bulk("drain", json!([b, "no sense", a, c, gone, b])).await.ok(200);
    let expected = [
        (b.as_str(), "done"),
        ("no sense", "refused not_found"),
        (&a, "done"),
        (&c, "unchanged"),
        (gone, "refused worker_not_found"),
    ];
    assert_eq!(told(&drained), pairs(&expected), "in their order, and each once");
    assert_eq!(entries(&server, "worker.drained").await, 3, "one of them was there before");
    let worker = server.get(&By::Admin, &format!("/api/admin/workers/{c}")).await.ok(200);
    assert_eq!(worker["drain_reason"], "riser cable", "what somebody said stays");
    assert!(worker["drain_deadline"].is_string());
    let again = bulk("drain", json!([a, b])).await.ok(200);
    assert_eq!(told(&again), pairs(&[(&a, "unchanged"), (&b, "unchanged")]), "a repetition changes nothing");
    let resumed = bulk("resume", json!([a, b])).await.ok(200);
    assert_eq!(told(&resumed), pairs(&[(&a, "done"), (&b, "done")]));
    assert_eq!(told(&bulk("resume", json!([a])).await.ok(200)), pairs(&[(&a, "unchanged")]));
    assert_eq!(entries(&server, "worker.resumed").await, 2);
    assert_eq!(bulk("drain", json!([])).await.ok(200), json!({"results": []}));
    let many: Vec<String> = (0..501).map(|n| format!("w_{n}")).collect();
    bulk("drain", json!(many)).await.problem(422, "too_much");
    bulk("explode", json!([a])).await.problem(404, "no_such_route");
}

#[tokio::test]
async fn several_workers_drain_for_the_same_reason_until_the_same_moment() {
    let server = Server::start().await;
    let (a, _) = server.worker("a").await;
    let (b, _) = server.worker("b").await;
    let drain = "/api/admin/workers/bulk/drain";
    let (ids, long) = (json!([a, b]), "x".repeat(501));
    let too_long = json!({"ids": ids, "reason": long});
    server.post(&By::Admin, drain, too_long).await.problem(422, "too_much");
    let too_late = json!({"ids": ids, "deadline_seconds": 2_592_001});
    server.post(&By::Admin, drain, too_late).await.problem(422, "out_of_range");
    let body = json!({"ids": ids, "reason": " new switch ", "deadline_seconds": 600});
    let drained = server.post(&By::Admin, drain, body).await.ok(200);
    assert_eq!(told(&drained), pairs(&[(&a, "done"), (&b, "done")]), "nobody was drained by what was refused");
    let view = async |id: &str| server.get(&By::Admin, &format!("/api/admin/workers/{id}")).await.ok(200);
    let (one, other) = (view(&a).await, view(&b).await);
    assert_eq!((&one["drain_reason"], &other["drain_reason"]), (&json!("new switch"), &json!("new switch")));
    assert_eq!(one["drain_deadline"], other["drain_deadline"]);

    let session = server.person("ada", "admin").await;
    server.post(&By::Admin, "/api/admin/workers/bulk/resume", json!({"ids": ids})).await.ok(200);
    let form = format!("id={a}&id={b}&reason=riser&deadline_minutes=10");
    let (_, said) = post(&server, &session, "/ui/workers/bulk/drain", &form).await;
    assert!(said.contains("2 workers take no new jobs.") && said.contains("title=\"riser\""), "{said}");
    assert_eq!(
        (&view(&a).await["drain_reason"], &view(&a).await["drain_deadline"]),
        (&json!("riser"), &one["drain_deadline"])
    );
    let (_, said) = post(&server, &session, &format!("/ui/workers/{a}/drain"), "deadline_minutes=soon").await;
    assert!(said.contains("deadline_seconds"), "{said}");
    let (_, page) =
        post(&server, &session, &format!("/ui/workers/{a}/drain"), "reason=a+%3Cb%3E&deadline_minutes=0").await;
    assert!(page.contains("It drains: a &lt;b&gt; · What still runs on "), "{page}");
}

#[tokio::test]
async fn of_several_workers_those_that_are_offline_are_deleted() {
    let server = Server::start().await;
    let (here, _, _events) = server.online("here").await;
    let (gone, _) = server.worker("gone").await;
    let body = json!({"ids": [here, gone]});
    let deleted = server.post(&By::Admin, "/api/admin/workers/bulk/delete", body.clone()).await.ok(200);
    assert_eq!(told(&deleted), pairs(&[(&here, "refused worker_connected"), (&gone, "done")]));
    let again = server.post(&By::Admin, "/api/admin/workers/bulk/delete", body).await.ok(200);
    assert_eq!(told(&again)[1].1, "refused worker_not_found");
    assert_eq!(server.get(&By::Admin, "/api/admin/workers").await.ok(200)["total"], 1);
}

#[tokio::test]
async fn to_delete_several_takes_the_password_as_one_does() {
    let server = Server::start().await;
    let (id, _) = server.worker("a").await;
    let browser = server.person("ada", "admin").await;
    server.clock.advance(PROOF);
    let body = json!({"ids": [id]});
    let delete = "/api/admin/workers/bulk/delete";
    server.post(&browser, delete, body.clone()).await.problem(403, "password_needed");
    server.post(&browser, "/api/admin/workers/bulk/drain", body.clone()).await.ok(200);
    server.call(&browser, "POST", "/ui/confirm", format!("password={PASSWORD}&next=/")).await;
    assert_eq!(told(&server.post(&browser, delete, body).await.ok(200))[0].1, "done");
}

#[tokio::test]
async fn several_jobs_are_cancelled_and_run_again_by_whom_they_belong_to() {
    let server = Server::start().await;
    server.config("digits").await;
    let ada = server.person("ada", "researcher").await;
    let (mine, also_mine, others) =
        (submitted_by(&server, &ada).await, submitted_by(&server, &ada).await, server.submit("digits").await);
    let bulk = async |verb: &str, ids: Value| {
        server.post(&ada, &format!("/api/queue/bulk/{verb}"), json!({"ids": ids})).await.ok(200)
    };
    let cancelled = bulk("cancel", json!([mine, others, "a job"])).await;
    let expected = [(mine.as_str(), "done"), (&others, "refused job_not_found"), ("a job", "refused not_found")];
    assert_eq!(told(&cancelled), pairs(&expected), "a job that they may not see is not there for them");
    assert_eq!((server.status_of(&mine).await, server.status_of(&others).await), ("cancelled".into(), "queued".into()));
    assert_eq!(told(&bulk("cancel", json!([mine])).await), pairs(&[(&mine, "refused job_ended")]));
    let again = bulk("retry", json!([mine, also_mine, others])).await;
    let expected = [(mine.as_str(), "done"), (&also_mine, "refused job_not_ended"), (&others, "refused job_not_found")];
    assert_eq!(told(&again), pairs(&expected));
    let new = again["results"][0]["new_job_id"].as_str().expect("a new job");
    assert_eq!(server.job(new).await["retry_of"], mine);
    let viewer = server.person("bob", "viewer").await;
    let body = json!({"ids": [mine]});
    server.post(&viewer, "/api/queue/bulk/cancel", body.clone()).await.problem(403, "permission_denied");
    server.post(&ada, "/api/admin/workers/bulk/drain", body).await.problem(403, "permission_denied");
}

async fn submitted_by(server: &Server, by: &By) -> String {
    let body = json!({"config_name": "digits", "target": "worker"});
    let made = server.post(by, "/api/queue/submit", body).await.ok(201);
    made["job_id"].as_str().expect("text").to_owned()
}

#[tokio::test]
async fn a_key_makes_running_several_again_safe_to_repeat() {
    let server = Server::start().await;
    server.config("digits").await;
    let job = server.submit("digits").await;
    server.post(&By::Admin, &format!("/api/queue/{job}/cancel"), json!({})).await.ok(200);
    let retry = async || {
        let request = axum::http::Request::builder().method("POST").uri("/api/queue/bulk/retry");
        let request = request.header(header::HOST, "localhost:8001").header("x-api-key", super::harness::ADMIN);
        let request = request.header("idempotency-key", "k1").body(json!({"ids": [job]}).to_string().into());
        super::harness::read(server.send(request.expect("a request")).await).await.ok(200)
    };
    assert_eq!(retry().await, retry().await);
    assert_eq!(server.get(&By::Admin, "/api/queue").await.ok(200)["total"], 2);
}

/// Posts a form; returns where it leads and what that page says.
async fn post(server: &Server, session: &By, path: &str, form: &str) -> (String, String) {
    let answer = server.call(session, "POST", path, form.to_owned()).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", answer.text());
    let to = answer.headers[header::LOCATION].to_str().expect("ascii").to_owned();
    let By::Cookie(cookie) = session else { panic!("a browser") };
    let flash =
        answer.headers[header::SET_COOKIE].to_str().expect("ascii").split(';').next().expect("a pair").to_owned();
    let page = server.get(&By::Cookie(format!("{cookie}; {flash}")), &to).await.text();
    (to, page)
}

#[tokio::test]
async fn the_page_names_workers_and_the_form_says_what_became_of_them() {
    let server = Server::start().await;
    let session = server.person("ada", "admin").await;
    let (here, _, _events) = server.online("here & <there>").await;
    let (gone, _) = server.worker("gone").await;
    let ask = async |action: &str| {
        let path =
            format!("/admin/workers/bulk?action={action}&id={here}&id={gone}&id=nonsense&back=/admin/workers?q=h");
        server.get(&session, &path).await
    };
    let asked = ask("delete").await.text();
    assert!(asked.contains("here &amp; &lt;there&gt;") && asked.contains("Is not offline: stays."), "{asked}");
    assert!(asked.contains("Delete 1 worker") && asked.contains("1 of them is not there any more."));
    assert!(!asked.contains(&format!("value=\"{here}\"")) && asked.contains(&format!("value=\"{gone}\"")), "{asked}");
    let drain = ask("drain").await.text();
    assert!(drain.contains("Takes nothing new.") && drain.contains("Is offline; takes nothing new"), "{drain}");
    assert_eq!(ask("cancel").await.status, StatusCode::NOT_FOUND, "that is for jobs");
    let form = format!("id={here}&id={gone}&id=nonsense&back=/admin/workers?q=e");
    let (to, said) = post(&server, &session, "/ui/workers/bulk/drain", &form).await;
    assert_eq!(to, "/admin/workers?q=e");
    assert!(
        said.contains("2 workers take no new jobs.") && said.contains("Not nonsense: There is no worker"),
        "{said}"
    );
    let undo = "<form method=\"post\" action=\"/ui/workers/bulk/resume\">";
    let (_, undo) = said.split_once(undo).expect("a way back");
    let undo = undo.split_once("</form>").expect("whole").0;
    assert!(undo.contains(&here) && undo.contains(&gone) && !undo.contains("nonsense"), "{undo}");
    let (_, said) = post(&server, &session, "/ui/workers/bulk/resume", &form).await;
    assert!(said.contains("2 workers take jobs again."));
    let (_, said) = post(&server, &session, "/ui/workers/bulk/delete", &form).await;
    assert!(
        said.contains("1 worker is deleted.") && said.contains("Not here &amp; &lt;there&gt;: The worker is connected"),
        "{said}"
    );
    let (to, said) = post(&server, &session, "/ui/workers/bulk/resume", "back=//evil.example").await;
    assert!(to == "/" && said.contains("Nothing was changed."), "{to}");
}

#[tokio::test]
async fn the_page_names_the_jobs_that_the_reader_may_see() {
    let server = Server::start().await;
    server.config("digits").await;
    let ada = server.person("ada", "researcher").await;
    let (mine, others) = (submitted_by(&server, &ada).await, server.submit("digits").await);
    let asked = server.get(&ada, &format!("/jobs/bulk?action=cancel&id={mine}&id={others}")).await.text();
    assert!(asked.contains("Leaves the queue.") && asked.contains("1 of them is not there any more."), "{asked}");
    let (to, said) = post(&server, &ada, "/ui/jobs/bulk/cancel", &format!("id={mine}&id={others}")).await;
    assert!(to == "/jobs" && said.contains("1 job is being cancelled."), "{to} {said}");
    assert!(said.contains(&format!("Not {others}: There is no job")) && !said.contains("Not digits"), "{said}");
    let (_, said) = post(&server, &ada, "/ui/jobs/bulk/retry", &format!("id={mine}")).await;
    assert!(said.contains("1 job is submitted again."), "{said}");
}

#[tokio::test]
async fn a_change_of_priority_is_taken_back_by_a_form() {
    let server = Server::start().await;
    server.config("digits").await;
    let session = server.person("ada", "admin").await;
    let job = server.submit("digits").await;
    let path = format!("/ui/jobs/{job}/priority");
    let (to, said) = post(&server, &session, &path, "priority=33&back=/jobs?phase=waiting").await;
    assert_eq!((to.as_str(), server.job(&job).await["priority"].as_u64()), ("/jobs?phase=waiting", Some(33)));
    let (banner, undo) = said
        .split_once(&format!(
            "<form method=\"post\" action=\"{path}\"><input type=\"hidden\" name=\"priority\" value=\"10\""
        ))
        .expect("what was before");
    assert!(banner.contains("priority is changed") && undo.contains("/jobs?phase=waiting"));
    let (_, said) = post(&server, &session, &path, "priority=33").await;
    assert!(!said.contains("data-key=\"u\""), "nothing was changed");
}

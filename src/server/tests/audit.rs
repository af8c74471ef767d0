//! The audit trail: what is on record, how it is read, and what is kept of it.

mod provoke;
mod thinned;

use app::domain::audit::Action;
use app::domain::time::Millis;
use app::protocol::audit::{AuditFilters, AuditQuery};
use axum::body::Body;
use axum::http::{Request, header};
use serde_json::{Value, json};
use sqlx::Connection;

use self::provoke::{log_in, provoke};
use super::harness::{By, Server, read};
use crate::files::checkpoints::{Checkpoints, SignedLines};
use crate::http::access::Mode;
use crate::http::request::Peer;
use crate::service::audit::verify::verify;

const DAY: Millis = Millis::seconds(86_400);

async fn entries(server: &Server, query: &str) -> Vec<Value> {
    let page = server.get(&By::Admin, &format!("/api/audit{query}")).await.ok(200);
    page["entries"].as_array().expect("a list").clone()
}

#[tokio::test]
async fn each_action_is_recorded_once() {
    for action in Action::ALL {
        let server = match action {
            Action::SetupCompleted => Server::start_as(Mode::SingleUser).await,
            _ => {
                Server::start_with(|policy| {
                    policy.audit_retention = Some(DAY);
                    policy.kept.jobs = Some(DAY);
                })
                .await
            }
        };
        provoke(&server, *action).await;
        let filters = AuditFilters { action: Some(action.as_str().to_owned()), ..AuditFilters::default() };
        let query = AuditQuery { filters, ..AuditQuery::default() };
        let page = server.app.core.audit_page(&query).await.expect("a database");
        assert_eq!(page.entries.len(), 1, "{}: {page:?}", action.as_str());
    }
}

#[test]
fn the_page_has_a_sentence_for_every_action() {
    let words: Vec<&str> = Action::ALL.iter().map(|action| action.as_str()).collect();
    assert_eq!(words, app::ui::trail::ACTIONS);
}

#[test]
fn the_guide_lists_every_action() {
    let guide = include_str!("../../../docs/AUDIT.md");
    let rows: Vec<&str> = guide.lines().filter(|line| line.starts_with("| `") && line.contains('.')).collect();
    for action in Action::ALL {
        let row = format!("| `{}` | {} |", action.as_str(), action.about());
        assert!(rows.contains(&row.as_str()), "docs/AUDIT.md needs this row:\n{row}");
    }
}

#[tokio::test]
async fn workers_of_whom_a_page_tells_are_named_until_they_are_deleted() {
    let server = Server::start().await;
    let (kept, _) = server.worker("gpu-1").await;
    let (gone, _) = server.worker("gpu-2").await;
    let named = async || server.get(&By::Admin, "/api/audit").await.ok(200)["worker_names"].clone();
    assert_eq!(named().await, json!({&kept: "gpu-1", &gone: "gpu-2"}));
    server.call(&By::Admin, "DELETE", &format!("/api/admin/workers/{gone}"), "").await.ok(200);
    assert_eq!(named().await, json!({&kept: "gpu-1"}));
    let page = server.get(&By::Admin, "/api/audit?target=admin").await.ok(200);
    assert_eq!(page["worker_names"], json!({}));
}

#[tokio::test]
async fn the_trail_is_filtered_and_paged_newest_first() {
    let server = Server::start().await;
    let mut ids = Vec::new();
    for n in 0..3 {
        server.clock.advance(Millis::seconds(1));
        ids.push(server.worker(&format!("gpu-{n}")).await.0);
    }
    let first = server.get(&By::Admin, "/api/audit?limit=2").await.ok(200);
    let targets = |page: &Value| -> Vec<String> {
        let entries = page["entries"].as_array().expect("a list");
        entries.iter().map(|entry| entry["target"].as_str().expect("text").to_owned()).collect()
    };
    assert_eq!(targets(&first), [ids[2].clone(), ids[1].clone()]);
    let path = format!("/api/audit?limit=3&cursor={}", first["next_cursor"].as_str().expect("more"));
    let rest = server.get(&By::Admin, &path).await.ok(200);
    assert_eq!(targets(&rest), [ids[0].clone(), "admin".to_owned(), "admin".to_owned()]);
    assert_eq!(rest.get("next_cursor"), None);
    let entry = &first["entries"][0];
    assert_eq!(
        (&entry["action"], &entry["actor"], &entry["seq"]),
        (&json!("worker.created"), &json!("admin/bootstrap"), &json!(5))
    );
    assert_eq!((&entry["detail"]["name"], &entry["previous"]), (&json!("gpu-2"), &first["entries"][1]["hash"]));

    let at = |n: usize| entry_time(&server, &ids[n]);
    let (second, third) = (at(1).await, at(2).await);
    let request = entry["request_id"].as_str().expect("text");
    let cases = [
        (format!("?target={}", ids[1]), vec![1]),
        ("?action=worker.created".to_owned(), vec![2, 1, 0]),
        ("?action=worker.".to_owned(), vec![2, 1, 0]),
        ("?action=worker".to_owned(), vec![]),
        ("?action=job.".to_owned(), vec![]),
        ("?actor=admin".to_owned(), vec![2, 1, 0]),
        ("?actor=admin/bootstrap".to_owned(), vec![2, 1, 0]),
        ("?actor=adm".to_owned(), vec![]),
        ("?actor=nobody".to_owned(), vec![]),
        (format!("?since={second}"), vec![2, 1]),
        (format!("?since={second}&until={third}"), vec![1]),
        (format!("?request_id={request}"), vec![2]),
    ];
    for (query, expected) in cases {
        let found = entries(&server, &query).await;
        let found: Vec<&str> = found.iter().map(|entry| entry["target"].as_str().expect("text")).collect();
        assert_eq!(found, expected.iter().map(|n| &ids[*n]).collect::<Vec<_>>(), "{query}");
    }
    for bad in ["?since=yesterday", "?until=2024-01-15", "?cursor=x"] {
        server.get(&By::Admin, &format!("/api/audit{bad}")).await.problem(422, "out_of_range");
    }
}

async fn entry_time(server: &Server, target: &str) -> String {
    entries(server, &format!("?target={target}")).await[0]["at"].as_str().expect("text").to_owned()
}

#[tokio::test]
async fn an_export_is_lines_of_json_oldest_first() {
    let server = Server::start().await;
    for n in 0..3 {
        server.worker(&format!("gpu-{n}")).await;
    }
    let answer = server.get(&By::Admin, "/api/audit/export?action=worker.").await;
    assert_eq!(answer.headers[header::CONTENT_TYPE], "application/x-ndjson");
    let lines: Vec<Value> = answer.text().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let names: Vec<&Value> = lines.iter().map(|line| &line["detail"]["name"]).collect();
    assert_eq!(names, ["gpu-0", "gpu-1", "gpu-2"]);
    server.get(&By::Admin, "/api/audit/export?since=x").await.problem(422, "out_of_range");
}

#[tokio::test]
async fn refused_registrations_say_who_claimed_to_be_what_from_where_and_why() {
    let server = Server::start().await;
    let register = async |token: &str, body: &str| {
        let request = Request::builder().method("POST").uri("/api/workers/register").header("x-worker-token", token);
        let request = request.extension(Peer([192, 0, 2, 7].into())).body(Body::from(body.to_owned()));
        read(server.send(request.expect("a request")).await).await
    };
    register("wt_made-up", r#"{"name": "gpu-9"}"#).await.problem(401, "worker_token_refused");
    register("wt_made-up", r#"{"name": "<b>"}"#).await.problem(401, "worker_token_refused");
    let (id, By::Worker(agent)) = server.worker("gpu-1").await else { panic!("a worker's key") };
    let token = agent.token();
    register(token, "{").await.problem(400, "invalid_json");
    server.clock.advance(Millis::seconds(61));
    register(token, r#"{"gpu_count": 65}"#).await.problem(422, "too_much");
    let told = entries(&server, "?action=worker.registration_refused").await;
    let told: Vec<_> = told
        .iter()
        .map(|entry| (entry["actor"].clone(), entry["target"].clone(), entry["detail"]["reason"].clone()))
        .collect();
    let by = json!(format!("worker:{id}"));
    let expected = [
        (by.clone(), json!(id), json!("too_much")),
        (by, json!(id), json!("invalid_json")),
        (json!("unknown"), json!(""), json!("worker_token_refused")),
        (json!("unknown"), json!("gpu-9"), json!("worker_token_refused")),
    ];
    assert_eq!(told, expected);
    assert_eq!(entries(&server, "?target=gpu-9").await[0]["detail"]["peer"], "192.0.2.7");
}

#[tokio::test]
async fn a_flood_of_refusals_leaves_few_entries_that_tell_their_number() {
    let server = Server::start().await;
    for _ in 0..50 {
        log_in(&server, "st_made-up").await;
    }
    assert_eq!(entries(&server, "?action=access.login_refused").await.len(), 3);
    server.clock.advance(Millis::seconds(60));
    server.app.core.settle_refused().await;
    let told = entries(&server, "?action=access.login_refused").await;
    assert_eq!((told.len(), &told[0]["detail"]), (4, &json!({"left_out": 47, "peers": 1})));
    for _ in 0..5 {
        log_in(&server, "st_made-up").await;
    }
    server.clock.advance(Millis::seconds(60));
    log_in(&server, "st_made-up").await;
    assert_eq!(entries(&server, "?action=access.login_refused").await[0]["detail"]["left_out_before"], 2);
}

#[tokio::test]
async fn what_was_kept_for_long_enough_goes_and_the_rest_can_be_verified() {
    let server = Server::start_with(|policy| policy.audit_retention = Some(DAY)).await;
    let core = &server.app.core;
    for n in 0..3 {
        server.worker(&format!("gpu-{n}")).await;
        server.clock.advance(Millis(DAY.0 / 2));
    }
    assert_eq!(core.expire_audit().await, Ok(3), "the admin, the token and the first worker: older than a day");
    let told = entries(&server, "?action=audit.expired").await;
    let detail = &told[0]["detail"];
    assert_eq!((&told[0]["target"], &detail["from"], &detail["to"]), (&json!("c_test"), &json!(1), &json!(3)));
    assert_eq!(entries(&server, "").await.len(), 4, "what was removed is signed");
    let unsigned = SignedLines::default();
    let mut tx = core.read().await.expect("a database");
    let verdict = verify(&mut *tx, None, &unsigned, false, core.now()).await.expect("readable");
    assert_eq!((verdict.report.entries, verdict.report.faults), (4, vec![]));
    drop(tx);
    assert_eq!(core.expire_audit().await, Ok(0));
    server.clock.advance(Millis(10 * DAY.0));
    assert_eq!(core.expire_audit().await, Ok(4), "its own entries are like the others");
    let mut tx = core.read().await.expect("a database");
    let verdict = verify(&mut *tx, None, &unsigned, false, core.now()).await.expect("readable");
    assert_eq!((verdict.report.entries, verdict.report.faults), (2, vec![]));
}

#[tokio::test]
async fn checkpoints_are_signed_when_there_is_something_new() {
    let server = Server::start().await;
    let core = &server.app.core;
    for _ in 0..3 {
        core.sign_audit().await.expect("a database");
    }
    assert_eq!(entries(&server, "?action=audit.checkpoint").await.len(), 1);
    server.worker("gpu-1").await;
    core.sign_audit().await.expect("a database");
    let files = Checkpoints::find(server.directory.path(), "sqlite").expect("readable").expect("a key");
    let lines = files.signed().expect("readable");
    let numbers: Vec<i64> = lines.signed["c_test"].keys().copied().collect();
    assert_eq!((numbers, lines.is_complete, &lines.broken), (vec![2, 4], true, &vec![]));
    let mut tx = core.read().await.expect("a database");
    let verdict = verify(&mut *tx, Some(&files), &lines, false, core.now()).await.expect("readable");
    assert_eq!((verdict.signed, verdict.foreign, verdict.report.faults), (2, 0, vec![]));
    let other = tempfile::tempdir().expect("a temporary directory");
    let other = Checkpoints::open(other.path(), "sqlite", [1; 32]).expect("writable");
    let verdict = verify(&mut *tx, Some(&other), &SignedLines::default(), false, core.now()).await.expect("readable");
    assert_eq!((verdict.signed, verdict.foreign, verdict.report.is_clean()), (0, 2, true));
}

#[tokio::test]
async fn the_trail_is_verified_by_whoever_may_read_it() {
    let server = Server::start().await;
    let (id, _) = server.worker("gpu-1").await;
    server.app.core.sign_audit().await.expect("a database");
    let verdict = server.get(&By::Admin, "/api/audit/verify").await.ok(200);
    assert_eq!((&verdict["intact"], &verdict["chains"], &verdict["faults"]), (&json!(true), &json!(1), &json!([])));
    assert_eq!((&verdict["checkpoints_signed"], &verdict["key_found"]), (&json!(1), &json!(true)));
    let file = format!("sqlite:{}", server.directory.path().join("orchestrator.db").display());
    let mut connection = sqlx::SqliteConnection::connect(&file).await.expect("a database");
    let forge = "UPDATE audit SET actor = 'nobody' WHERE target = $1";
    sqlx::query(forge).bind(&id).execute(&mut connection).await.expect("a statement");
    let verdict = server.get(&By::Admin, "/api/audit/verify").await.ok(200);
    assert_eq!((&verdict["intact"], &verdict["faults"][0]["fault"]), (&json!(false), &json!("edited")));
    let lead = server.person("lea", "lead").await;
    server.get(&lead, "/api/audit/verify").await.problem(403, "permission_denied");
}

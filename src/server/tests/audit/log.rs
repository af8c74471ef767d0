//! The audit log: its entries, export and retention.

mod provoke;
mod thinned;

use std::io::{Seek, Write};
use std::process::Command;

use app::domain::audit::AuditAction;
use app::domain::time::Millis;
use app::protocol::audit::{AuditFilters, AuditQuery};
use axum::body::Body;
use axum::http::{Request, header};
use serde_json::{Value, json};
use sqlx::Connection;

use self::provoke::{log_in, provoke};
use crate::files::audit_checkpoints::{AuditCheckpointFile, SignedLines};
use crate::http::edge::request::Peer;
use crate::http::state::AuthMode;
use crate::service::audit::verify::verify_audit_log;
use crate::tests::harness::{Actor, PASSWORD, TestServer, read_response};
use crate::tests::openapi::assert_reviewed;

const DAY: Millis = Millis::from_secs(86_400);
const GUIDE: &str = include_str!("../../../../docs/AUDIT.md");
const ACTIONS_HEADER: &str = "| action | when |\n|---|---|\n";

async fn entries(server: &TestServer, query: &str) -> Vec<Value> {
    let page = server.get(&Actor::Admin, &format!("/api/audit{query}")).await.expect_status(200);
    page["entries"].as_array().expect("a list").clone()
}

#[tokio::test]
async fn deletion_of_a_worker_is_found_by_its_name() {
    let server = TestServer::start().await;
    let (id, _) = server.create_worker("delos").await;
    let (other, _) = server.create_worker("delos-2").await;
    let renamed = json!({"name": "eos", "labels": {"name": "delos-2"}}).to_string();
    server.call(&Actor::Admin, "PATCH", &format!("/api/admin/workers/{id}"), renamed).await.expect_status(200);
    server.post(&Actor::Admin, &format!("/api/admin/workers/{id}/drain"), json!({})).await.expect_status(200);
    server.call(&Actor::Admin, "DELETE", &format!("/api/admin/workers/{id}"), "").await.expect_status(200);
    let find_entries = async |query: &str| {
        let page = server.get(&Actor::Admin, &format!("/api/audit?{query}")).await.expect_status(200);
        let entries = page["entries"].as_array().expect("a list").iter();
        let rows = entries.map(|entry| {
            let target = entry["target"].as_str().expect("text");
            (entry["action"].as_str().expect("text").to_owned(), page["worker_names"][target].clone())
        });
        rows.collect::<Vec<_>>()
    };
    let expected = ["worker.deleted", "worker.drained", "worker.updated", "worker.created"];
    for name in ["delos", "eos"] {
        let found = find_entries(&format!("target={name}")).await;
        assert_eq!(found.iter().map(|(action, _)| action.as_str()).collect::<Vec<_>>(), expected, "{name}");
        assert!(found.iter().all(|(_, name)| name == "eos" || name == "delos"), "{found:?}");
    }
    assert_eq!(find_entries("target=delos&action=worker.deleted").await.len(), 1);
    assert_eq!(find_entries("target=delos-2").await.len(), 1, "a label is no name");
    assert_eq!(find_entries(&format!("target={other}")).await, [("worker.created".to_owned(), json!("delos-2"))]);
    assert_eq!(find_entries("target=delos-3").await, []);
    let like_an_id = "w_frankfurt-rack-12-node-003";
    server.create_worker(like_an_id).await;
    assert_eq!(find_entries(&format!("target={like_an_id}")).await.len(), 1, "a name as long as an id");
    let exported = server.get(&Actor::Admin, "/api/audit/export?target=delos").await.text();
    assert_eq!(exported.lines().count(), 4, "{exported}");
    let page =
        server.get(&server.add_user("ada", "admin").await, "/admin/audit?target=delos&action=worker.deleted").await;
    assert!(page.text().contains("eos"), "the page shows its last name");
}

#[tokio::test]
async fn each_action_is_recorded_once() {
    for action in AuditAction::ALL {
        let server = match action {
            AuditAction::SetupCompleted => TestServer::start_as(AuthMode::SingleUser).await,
            _ => {
                TestServer::start_with(|policy| {
                    policy.audit_retention = Some(DAY);
                    policy.retention.jobs = Some(DAY);
                })
                .await
            }
        };
        provoke(&server, action).await;
        let filters = AuditFilters { action: Some(action.as_str().to_owned()), ..AuditFilters::default() };
        let query = AuditQuery { filters, ..AuditQuery::default() };
        let page = server.app.services.audit.audit_page(&query).await.expect("a database");
        assert_eq!(page.entries.len(), 1, "{}: {page:?}", action.as_str());
    }
}

/// The table in the guide is generated from the actions and their descriptions.
#[test]
fn the_guide_lists_every_action() {
    let (before, rest) = GUIDE.split_once(ACTIONS_HEADER).expect("a table of actions");
    let (_, after) = rest.split_once("\n\n").expect("text after the table");
    let row = |action: AuditAction| format!("| `{}` | {} |", action.as_str(), action.description());
    let rows = AuditAction::ALL.map(row).join("\n");
    assert_reviewed("docs/AUDIT.md", &format!("{before}{ACTIONS_HEADER}{rows}\n\n{after}"));
}

#[tokio::test]
async fn deleted_workers_keep_their_names_on_the_page() {
    let server = TestServer::start().await;
    let (remaining, _) = server.create_worker("gpu-1").await;
    let (deleted, _) = server.create_worker("gpu-2").await;
    let worker_names =
        async || server.get(&Actor::Admin, "/api/audit").await.expect_status(200)["worker_names"].clone();
    assert_eq!(worker_names().await, json!({&remaining: "gpu-1", &deleted: "gpu-2"}));
    server.call(&Actor::Admin, "DELETE", &format!("/api/admin/workers/{deleted}"), "").await.expect_status(200);
    assert_eq!(worker_names().await, json!({&remaining: "gpu-1", &deleted: "gpu-2"}));
    let page = server.get(&Actor::Admin, "/api/audit?target=admin").await.expect_status(200);
    assert_eq!(page["worker_names"], json!({}));
}

#[tokio::test]
async fn signing_in_user_is_the_actor() {
    let server = TestServer::start().await;
    server.add_user("ada", "admin").await;
    server.add_user("adam", "viewer").await;
    assert!(server.log_in("ada", "not-her-password").await.is_none());
    server.log_in("ada", PASSWORD).await.expect("a valid password");
    let sign_ins = entries(&server, "?actor=ada&action=access.logged_in").await;
    let sign_ins: Vec<_> = sign_ins.iter().map(|entry| (&entry["actor"], &entry["target"])).collect();
    assert_eq!(sign_ins, [(&json!("ada"), &json!("ada")); 2], "one sign-in by `add_user`, and one by the test");
    let rejected = entries(&server, "?target=ada&action=access.login_failed").await;
    assert_eq!(rejected.len(), 1);
    assert_ne!(rejected[0]["actor"], "ada", "the actor of a failed sign-in is unknown");
    let browser = server.add_user("eve", "admin").await;
    let page = server.get(&browser, "/admin/audit?actor=ada&action=access.logged_in").await.text();
    assert!(!page.contains("No matching entries") && page.contains("ada"), "{page}");
}

#[tokio::test]
async fn worker_actions_are_found_as_documented() {
    let server = TestServer::start().await;
    server.put_config("digits").await;
    let (id, key, mut events) = server.connect_worker("gpu-1").await;
    let job = server.submit("digits").await;
    events.next_offer().await;
    for status in ["starting", "running", "completed"] {
        server.report_status(&key, &job, json!({"status": status, "attempt": 1})).await.expect_status(200);
    }
    server.create_worker("gpu-2").await;
    let export = server.get(&Actor::Admin, "/api/audit/export").await.text();
    let filters: Vec<String> = GUIDE
        .lines()
        .filter_map(|line| Some(line.split_once(" | jq ")?.1.replace("w_abc123", &id)))
        .map(|arguments| jq(&arguments, &export))
        .collect();
    let [columns, details, history] = filters.try_into().expect("three lines of the guide filter an export");

    let entries: Vec<Value> = export.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let text = |entry: &Value, key: &str| entry[key].as_str().expect("text").to_owned();
    let row = |entry: &Value| ["at", "actor", "action"].map(|key| text(entry, key)).join("\t");
    assert_eq!(columns.lines().collect::<Vec<_>>(), entries.iter().map(row).collect::<Vec<_>>());
    let details = serde_json::Deserializer::from_str(&details).into_iter::<Value>();
    let details: Vec<Value> = details.collect::<Result<_, _>>().expect("JSON");
    assert_eq!(details, entries.iter().map(|entry| entry["detail"].clone()).collect::<Vec<_>>());
    let history = history.lines().map(|line| serde_json::from_str::<Value>(line).expect("a line for each entry"));
    let actions: Vec<String> = history.map(|entry| text(&entry, "action")).collect();
    let worker_actions = ["created", "registered", "online"].map(|name| format!("worker.{name}"));
    let job_actions = ["offered", "starting", "running", "completed"].map(|name| format!("job.{name}"));
    assert_eq!(actions, [&worker_actions[..], &job_actions].concat());
}

/// Returns the output of `jq` for an export, called as in the guide.
fn jq(arguments: &str, export: &str) -> String {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(export.as_bytes()).and_then(|()| file.rewind()).expect("a file");
    let mut shell = Command::new("sh");
    let output = shell.args(["-c", &format!("jq {arguments}")]).stdin(file).output().expect("a shell");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "jq {arguments}: {stderr} (`scripts/setup browser` installs jq)");
    String::from_utf8(output.stdout).expect("text")
}

#[tokio::test]
async fn audit_log_is_filtered_and_paged_newest_first() {
    let server = TestServer::start().await;
    let mut ids = Vec::new();
    for n in 0..3 {
        server.clock.advance(Millis::from_secs(1));
        ids.push(server.create_worker(&format!("gpu-{n}")).await.0);
    }
    let first = server.get(&Actor::Admin, "/api/audit?limit=2").await.expect_status(200);
    let targets = |page: &Value| -> Vec<String> {
        let entries = page["entries"].as_array().expect("a list");
        entries.iter().map(|entry| entry["target"].as_str().expect("text").to_owned()).collect()
    };
    assert_eq!(targets(&first), [ids[2].clone(), ids[1].clone()]);
    let path = format!("/api/audit?limit=3&cursor={}", first["next_cursor"].as_str().expect("more"));
    let rest = server.get(&Actor::Admin, &path).await.expect_status(200);
    assert_eq!(targets(&rest), [ids[0].clone(), "admin".to_owned(), "admin".to_owned()]);
    assert_eq!(rest.get("next_cursor"), None);
    let entry = &first["entries"][0];
    assert_eq!(
        (&entry["action"], &entry["actor"], &entry["seq"]),
        (&json!("worker.created"), &json!("admin/bootstrap"), &json!(5))
    );
    assert_eq!((&entry["detail"]["name"], &entry["previous"]), (&json!("gpu-2"), &first["entries"][1]["hash"]));

    let time_of = |n: usize| entry_time(&server, &ids[n]);
    let (second, third) = (time_of(1).await, time_of(2).await);
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
        server.get(&Actor::Admin, &format!("/api/audit{bad}")).await.expect_problem(422, "out_of_range");
    }
}

async fn entry_time(server: &TestServer, target: &str) -> String {
    entries(server, &format!("?target={target}")).await[0]["at"].as_str().expect("text").to_owned()
}

#[tokio::test]
async fn export_is_json_lines_oldest_first() {
    let server = TestServer::start().await;
    for n in 0..3 {
        server.create_worker(&format!("gpu-{n}")).await;
    }
    let response = server.get(&Actor::Admin, "/api/audit/export?action=worker.").await;
    assert_eq!(response.headers[header::CONTENT_TYPE], "application/x-ndjson");
    let lines: Vec<Value> = response.text().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let names: Vec<&Value> = lines.iter().map(|line| &line["detail"]["name"]).collect();
    assert_eq!(names, ["gpu-0", "gpu-1", "gpu-2"]);
    server.get(&Actor::Admin, "/api/audit/export?since=x").await.expect_problem(422, "out_of_range");
}

#[tokio::test]
async fn rejected_registrations_are_recorded_with_claim_address_and_reason() {
    let server = TestServer::start().await;
    let register = async |token: &str, body: &str| {
        let request = Request::builder().method("POST").uri("/api/workers/register").header("x-worker-token", token);
        let request = request.extension(Peer([192, 0, 2, 7].into())).body(Body::from(body.to_owned()));
        read_response(server.send(request.expect("a request")).await).await
    };
    register("wt_made-up", r#"{"name": "gpu-9"}"#).await.expect_problem(401, "worker_token_invalid");
    register("wt_made-up", r#"{"name": "<b>"}"#).await.expect_problem(401, "worker_token_invalid");
    let (id, Actor::Worker(agent)) = server.create_worker("gpu-1").await else { panic!("a worker's key") };
    let token = agent.token();
    register(token, "{").await.expect_problem(400, "invalid_json");
    server.clock.advance(Millis::from_secs(61));
    register(token, r#"{"gpu_count": 65}"#).await.expect_problem(422, "too_large");
    let rejections = entries(&server, "?action=worker.registration_rejected").await;
    let rejections: Vec<_> = rejections
        .iter()
        .map(|entry| (entry["actor"].clone(), entry["target"].clone(), entry["detail"]["reason"].clone()))
        .collect();
    let actor = json!(format!("worker:{id}"));
    let expected = [
        (actor.clone(), json!(id), json!("too_large")),
        (actor, json!(id), json!("invalid_json")),
        (json!("unknown"), json!(""), json!("worker_token_invalid")),
        (json!("unknown"), json!("gpu-9"), json!("worker_token_invalid")),
    ];
    assert_eq!(rejections, expected);
    assert_eq!(entries(&server, "?target=gpu-9").await[0]["detail"]["peer"], "192.0.2.7");
}

#[tokio::test]
async fn flood_of_rejections_leaves_few_entries_with_counts() {
    let server = TestServer::start().await;
    for _ in 0..50 {
        log_in(&server, "st_made-up").await;
    }
    assert_eq!(entries(&server, "?action=access.login_failed").await.len(), 3);
    server.clock.advance(Millis::from_secs(60));
    server.app.services.audit.flush_suppressed().await;
    let rejections = entries(&server, "?action=access.login_failed").await;
    assert_eq!((rejections.len(), &rejections[0]["detail"]), (4, &json!({"left_out": 47, "peers": 1})));
    for _ in 0..5 {
        log_in(&server, "st_made-up").await;
    }
    server.clock.advance(Millis::from_secs(60));
    log_in(&server, "st_made-up").await;
    assert_eq!(entries(&server, "?action=access.login_failed").await[0]["detail"]["left_out_before"], 2);
}

#[tokio::test]
async fn expired_entries_are_deleted_and_the_rest_can_be_verified() {
    let server = TestServer::start_with(|policy| policy.audit_retention = Some(DAY)).await;
    let services = &server.app.services;
    for n in 0..3 {
        server.create_worker(&format!("gpu-{n}")).await;
        server.clock.advance(Millis(DAY.0 / 2));
    }
    assert_eq!(
        services.audit.prune_audit().await,
        Ok(3),
        "the admin, the token and the first worker: older than a day"
    );
    let expired = entries(&server, "?action=audit.expired").await;
    let detail = &expired[0]["detail"];
    assert_eq!((&expired[0]["target"], &detail["from"], &detail["to"]), (&json!("c_test"), &json!(1), &json!(3)));
    assert_eq!(entries(&server, "").await.len(), 4, "the removal has an entry and a checkpoint");
    let unsigned = SignedLines::default();
    let mut tx = services.context.read().await.expect("a database");
    let verdict = verify_audit_log(&mut *tx, None, &unsigned, false, services.context.now()).await.expect("readable");
    assert_eq!((verdict.report.entries, verdict.report.faults), (4, vec![]));
    drop(tx);
    assert_eq!(services.audit.prune_audit().await, Ok(0));
    server.clock.advance(Millis(10 * DAY.0));
    assert_eq!(services.audit.prune_audit().await, Ok(4), "entries about the removal expire, too");
    let mut tx = services.context.read().await.expect("a database");
    let verdict = verify_audit_log(&mut *tx, None, &unsigned, false, services.context.now()).await.expect("readable");
    assert_eq!((verdict.report.entries, verdict.report.faults), (2, vec![]));
}

#[tokio::test]
async fn checkpoints_are_signed_after_new_entries() {
    let server = TestServer::start().await;
    let services = &server.app.services;
    for _ in 0..3 {
        services.audit.sign_audit().await.expect("a database");
    }
    assert_eq!(entries(&server, "?action=audit.checkpoint").await.len(), 1);
    server.create_worker("gpu-1").await;
    services.audit.sign_audit().await.expect("a database");
    let checkpoint_file =
        AuditCheckpointFile::find(server.directory.path(), "sqlite").expect("readable").expect("a key");
    let lines = checkpoint_file.read_signed().expect("readable");
    let numbers: Vec<i64> = lines.signed["c_test"].keys().copied().collect();
    assert_eq!((numbers, lines.is_complete, &lines.invalid_lines), (vec![2, 4], true, &vec![]));
    let mut tx = services.context.read().await.expect("a database");
    let verdict = verify_audit_log(&mut *tx, Some(&checkpoint_file), &lines, false, services.context.now())
        .await
        .expect("readable");
    assert_eq!((verdict.signed, verdict.other_keys, verdict.report.faults), (2, 0, vec![]));
    let other_file = tempfile::tempdir().expect("a temporary directory");
    let other_file = AuditCheckpointFile::open(other_file.path(), "sqlite", [1; 32]).expect("writable");
    let verdict = verify_audit_log(&mut *tx, Some(&other_file), &SignedLines::default(), false, services.context.now())
        .await
        .expect("readable");
    assert_eq!((verdict.signed, verdict.other_keys, verdict.report.is_clean()), (0, 2, true));
}

#[tokio::test]
async fn readers_can_verify_the_audit_log() {
    let server = TestServer::start().await;
    let (id, _) = server.create_worker("gpu-1").await;
    server.app.services.audit.sign_audit().await.expect("a database");
    let verdict = server.get(&Actor::Admin, "/api/audit/verify").await.expect_status(200);
    assert_eq!((&verdict["intact"], &verdict["chains"], &verdict["faults"]), (&json!(true), &json!(1), &json!([])));
    assert_eq!((&verdict["checkpoints_signed"], &verdict["key_found"]), (&json!(1), &json!(true)));
    let file = format!("sqlite:{}", server.directory.path().join("orchestrator.db").display());
    let mut connection = sqlx::SqliteConnection::connect(&file).await.expect("a database");
    let forge = "UPDATE audit SET actor = 'nobody' WHERE target = $1";
    sqlx::query(forge).bind(&id).execute(&mut connection).await.expect("a statement");
    let verdict = server.get(&Actor::Admin, "/api/audit/verify").await.expect_status(200);
    assert_eq!((&verdict["intact"], &verdict["faults"][0]["fault"]), (&json!(false), &json!("edited")));
    let lead = server.add_user("lea", "lead").await;
    server.get(&lead, "/api/audit/verify").await.expect_problem(403, "permission_denied");
}

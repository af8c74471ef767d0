//! This version on what the version before has left: database, files, and agents with attempts.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::harness::database::{CONTRACTION, NEXT_MIGRATION};
use crate::harness::{Fixture, TestFleet, WorkerHost};
use crate::operator::can_sign_in;

/// Prints a job's secret into a file of its test; the log masks it.
const TRAINER: &str = r#"
import os, pathlib
pathlib.Path(os.environ["MEET"], "secret").write_text(os.environ.get("HF_TOKEN", ""))
print("trained", flush=True)
"#;

/// Asserts that everything in `before` is still so; there may be more.
fn assert_contains(now: &Value, before: &Value, path: &str) {
    match (now, before) {
        (Value::Object(now_fields), Value::Object(fields)) => {
            for (name, field) in fields.iter().filter(|(_, field)| !field.is_null()) {
                let path = format!("{path}.{name}");
                assert_contains(now_fields.get(name).unwrap_or_else(|| panic!("no {path}")), field, &path);
            }
        }
        (Value::Array(now_items), Value::Array(items)) => {
            assert_eq!(now_items.len(), items.len(), "{path}");
            for (index, (now, item)) in now_items.iter().zip(items).enumerate() {
                assert_contains(now, item, &format!("{path}[{index}]"));
            }
        }
        _ => assert_eq!(now, before, "{path}"),
    }
}

async fn assert_results_are_there(fleet: &TestFleet, fixture: &Fixture) {
    for state in ["completed", "failed", "cancelled"] {
        let job = fleet.api.job(fixture.job(state)).await;
        assert_eq!(job["status"], state);
        assert_contains(&job, fixture.fact(&format!("/views/{state}")), state);
    }
    let completed = fixture.job("completed");
    assert_eq!(fleet.api.log(completed).await, fixture.text("/log"));
    let page = fleet.api.get(&format!("/api/queue/{completed}/artifacts")).await;
    assert_contains(&page["artifacts"], fixture.fact("/artifacts"), "artifacts");
    let artifacts = fixture.fact("/artifacts").as_array().expect("artifacts");
    assert!(artifacts.iter().any(|artifact| artifact["kind"] == "checkpoint"), "{artifacts:?}");
    for artifact in artifacts {
        let path = artifact["path"].as_str().expect("a path");
        let bytes = fleet.api.get_bytes(&format!("/api/queue/{completed}/artifacts/{path}")).await;
        assert_eq!(artifact["sha256"], hex(&Sha256::digest(&bytes)), "{path}");
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

async fn assert_access_works(fleet: &TestFleet, fixture: &Fixture) {
    assert!(can_sign_in(fleet, "ada", fixture.text("/password")).await);
    assert!(!can_sign_in(fleet, "ada", "another-password").await);
    let ada = fleet.api.with_token(fixture.text("/token"));
    assert_eq!(ada.get("/api/session").await["name"], "ada");
    assert_contains(&ada.get("/api/configs").await, fixture.fact("/configs"), "configs");
}

async fn assert_audit_log_is_unbroken(fleet: &TestFleet, fixture: &Fixture) {
    let audit = fleet.api.get("/api/audit/verify").await;
    assert_eq!(audit["intact"], true, "{audit:#}");
    let entries = |audit: &Value| audit["entries"].as_u64().unwrap_or_else(|| panic!("{audit:#}"));
    assert!(entries(&audit) >= entries(fixture.fact("/audit")), "{audit:#}");
}

#[tokio::test]
async fn everything_is_there_after_an_upgrade() {
    let (mut fleet, fixture) = TestFleet::start_from_fixture().await;
    let database = fleet.api.get("/api/admin/system").await["database"].clone();
    assert_eq!(database["schema"], database["known_schema"], "{database:#}");
    assert!(database["schema"].as_i64() > fixture.fact("/schema").as_i64(), "nothing was migrated: {database:#}");
    // A restart finds the same.
    for _ in 0..2 {
        assert_results_are_there(&fleet, &fixture).await;
        assert_access_works(&fleet, &fixture).await;
        assert_audit_log_is_unbroken(&fleet, &fixture).await;
        fleet.kill_server().await;
        fleet.start_server().await;
    }
}

#[tokio::test]
async fn older_agents_attempts_end_as_they_should_after_an_upgrade() {
    let (fleet, fixture) = TestFleet::start_from_fixture().await;
    for job in ["ended", "running", "queued"] {
        let status = &fixture.fact(&format!("/views/{job}"))["status"];
        assert_eq!(&fleet.api.job(fixture.job(job)).await["status"], status, "{job}");
    }
    fixture.continue_boot(&fleet, "gpu-1");
    let hosts = ["gpu-1", "gpu-2"].map(|name| fixture.host(&fleet, name).with_python_trainer(TRAINER));
    let agents = hosts.each_ref().map(WorkerHost::start);

    let ended = fleet.api.wait_for_job(fixture.job("ended"), "completed").await;
    assert_eq!(ended["attempt"], 1, "{ended:#}");
    assert_eq!(fleet.api.log(fixture.job("ended")).await, "at the gate\nthrough the gate\n");
    // Its host has restarted since.
    let running = fleet.api.wait_for_job(fixture.job("running"), "completed").await;
    assert_eq!(running["attempt"], 2, "{running:#}");
    assert_eq!(running["attempts"][0]["outcome"], "lost", "{running:#}");
    fleet.api.wait_for_job(fixture.job("queued"), "completed").await;

    let ada = fleet.api.with_token(fixture.text("/token"));
    let body = json!({"config_name": "digits-small", "target": "worker", "secrets": ["HF_TOKEN"]});
    let job = ada.submit_with(&body).await;
    ada.wait_for_job(&job, "completed").await;
    let secrets: Vec<_> = hosts.iter().filter_map(|host| host.trainer_file("secret")).collect();
    assert!(secrets.iter().any(|secret| secret == fixture.text("/secret")), "{secrets:?}");
    assert_audit_log_is_unbroken(&fleet, &fixture).await;
    for agent in agents {
        agent.kill().await;
    }
}

#[tokio::test]
async fn this_version_works_on_what_the_next_one_has_only_added_to() {
    let mut fleet = TestFleet::start().await;
    let job = fleet.api.submit("digits-quick").await;
    fleet.stop_server().await;
    fleet.execute_sql(NEXT_MIGRATION).await;
    fleet.start_server().await;
    let ready = fleet.api.get("/readyz").await;
    assert_eq!(ready["checks"]["migrations"]["status"], "warning", "{ready:#}");
    let host = fleet.add_host("gpu-1").await.with_python_trainer(TRAINER);
    let _agent = host.start();
    fleet.api.wait_for_job(&job, "completed").await;
    let next = fleet.api.submit("digits-quick").await;
    fleet.api.wait_for_job(&next, "completed").await;
}

#[tokio::test]
async fn this_version_leaves_a_database_alone_that_is_too_new_for_it() {
    let mut fleet = TestFleet::start().await;
    let job = fleet.api.submit("digits-quick").await;
    fleet.stop_server().await;
    fleet.execute_sql(NEXT_MIGRATION).await;
    fleet.execute_sql(CONTRACTION).await;
    let before = fleet.row_counts().await;
    let (code, log) = fleet.start_server_in_vain().await;
    assert_eq!(code, Some(78), "{log}");
    let sentence = "error: the database was migrated by a newer version";
    assert!(log.contains(sentence) && log.contains("restore the backup from before the upgrade"), "{log}");
    assert_eq!(fleet.row_counts().await, before);
    // As if the migration had kept what this version uses.
    fleet.execute_sql("UPDATE generation SET oldest_schema = 13").await;
    fleet.start_server().await;
    assert_eq!(fleet.api.job(&job).await["status"], "queued");
}

//! The product document's commands, run by a shell as they are printed. Only the address, and the id of a worker that
//! exists, are put in their place. Those without a token are those of a server on one's own machine.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tokio::process::Command;

use crate::harness::{ADMIN, Fleet};

const COMMANDS: &str = include_str!("examples.curl");

/// The commands by name.
fn commands() -> BTreeMap<&'static str, &'static str> {
    let blocks = COMMANDS.split("\n## ").skip(1);
    blocks.filter_map(|block| block.split_once('\n')).map(|(name, command)| (name, command.trim())).collect()
}

/// Runs one against a server; answers with the JSON that it prints.
async fn run(fleet: &Fleet, name: &str, worker: &str) -> Value {
    let command =
        commands()[name].replace("localhost:8001", &format!("localhost:{}", fleet.port())).replace("w_abc123", worker);
    let bash = Command::new("bash")
        .args(["-euo", "pipefail", "-c", &command])
        .env("ADMIN_TOKEN", ADMIN)
        .env("NO_PROXY", "localhost")
        .output();
    let output = bash.await.expect("bash");
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{name}: {said}{errors}");
    serde_json::from_str(&said).unwrap_or_else(|_| panic!("{name} printed no JSON: {said}{errors}"))
}

/// A field that has to be text.
fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap_or_else(|| panic!("no {field} in {value}"))
}

#[tokio::test]
async fn every_command_of_the_document_does_what_it_says() {
    let fleet = Fleet::start_with(&[("SIMPLETUNER_SINGLE_USER", "true")]).await;
    fleet.configure("my-training-config", &json!({})).await;
    fleet.configure("my-config", &json!({})).await;

    let created = run(&fleet, "create-with-a-token", "").await;
    let (worker, token) = (text(&created, "worker_id").to_owned(), text(&created, "token").to_owned());
    assert!(worker.starts_with("w_") && token.starts_with("wt_"), "{created}");
    assert_eq!(created["name"], "gpu-worker-1");
    let labelled = run(&fleet, "create-with-labels", "").await;
    assert_eq!(labelled["name"], "worker-1");

    let submits =
        [("submit", "worker"), ("submit-by-gpu", "worker"), ("submit-by-team", "auto"), ("submit-by-glob", "auto")];
    for (name, target) in submits {
        let submitted = run(&fleet, name, "").await;
        assert_eq!((&submitted["success"], text(&submitted, "status")), (&json!(true), "queued"), "{name}");
        assert_eq!(fleet.api.job(text(&submitted, "job_id")).await["target"], target, "{name}");
    }

    let listed = run(&fleet, "list", "").await;
    let workers = listed["workers"].as_array().expect("a list");
    let shown = workers.iter().find(|shown| shown["id"] == worker.as_str()).expect("the worker");
    for field in ["id", "name", "status", "worker_type", "gpu_count", "gpu_name", "labels", "last_heartbeat"] {
        assert!(shown.get(field).is_some(), "the list says no {field}: {shown}");
    }
    assert_eq!((&shown["worker_type"], &shown["labels"]["location"]), (&json!("persistent"), &json!("datacenter-a")));

    let drained = run(&fleet, "drain", &worker).await;
    assert_eq!(drained["draining"], true);
    let rotated = run(&fleet, "rotate", &worker).await;
    assert_ne!(text(&rotated, "token"), token);
    assert_eq!(text(&rotated, "worker_id"), worker);
    assert_eq!(run(&fleet, "delete", &worker).await["success"], true);
    let left = run(&fleet, "list", "").await;
    assert_eq!(left["workers"].as_array().map(Vec::len), Some(1), "{left}");
}

#[tokio::test]
async fn without_a_token_only_a_server_of_ones_own_answers() {
    let fleet = Fleet::start().await;
    assert!(run(&fleet, "create-with-a-token", "").await["token"].is_string());
    assert_eq!(run(&fleet, "create-with-labels", "").await["code"], "not_authenticated");
}

#[test]
fn all_commands_are_run() {
    assert_eq!(COMMANDS.matches("\ncurl -s ").count(), commands().len());
    assert_eq!(commands().len(), 10, "as many as the document has");
}

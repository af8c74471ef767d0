//! Runs the code blocks of the product document in a shell, as printed, against a private server and one for several
//! users. Only the URL, the token and the ids of existing workers are replaced. Where the document prints no token,
//! curl gets it from its settings, `~/.curlrc`. The requests in the documents of this repository print their token, and
//! run too.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use reqwest::Method;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::harness::{ADMIN, TestFleet, WorkerHost, program, repository};

const BLOCKS: &str = include_str!("examples.txt");
const PRINTED_TOKEN: &str = "wt_xxxxxxxxxxxx";
const ONE_USER: &[(&str, &str)] = &[("SIMPLETUNER_SINGLE_USER", "true")];
/// What replaces `…` in our documents.
const PASSWORD: &str = "correct-horse-battery";

/// Returns the blocks by name.
fn blocks() -> BTreeMap<&'static str, &'static str> {
    let blocks = BLOCKS.split("\n## ").skip(1);
    blocks.filter_map(|block| block.split_once('\n')).map(|(name, block)| (name, block.trim())).collect()
}

fn printed_json(name: &str) -> Value {
    serde_json::from_str(blocks()[name]).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// A shell that runs this script, with the programs under test in its `PATH`.
fn bash(script: &str) -> Command {
    let programs = program("");
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let mut bash = Command::new("bash");
    bash.args(["-euo", "pipefail", "-c", script]).env("PATH", path);
    bash
}

/// Runs a command against a server with this home directory; returns the JSON that it prints.
async fn run(fleet: &TestFleet, home: &Path, name: &str, worker: &str) -> Value {
    let command =
        blocks()[name].replace("localhost:8001", &format!("localhost:{}", fleet.port())).replace("w_abc123", worker);
    let mut bash = bash(&command);
    bash.env("ADMIN_TOKEN", ADMIN).env("NO_PROXY", "localhost").env("HOME", home);
    let output = bash.output().await.expect("bash");
    let (stdout, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{name}: {stdout}{errors}");
    serde_json::from_str(&stdout).unwrap_or_else(|_| panic!("{name} printed no JSON: {stdout}{errors}"))
}

/// Returns a field that must be text.
fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap_or_else(|| panic!("no {field} in {value}"))
}

/// Checks that all documented fields exist with the right types; values that a worker without an agent cannot have may
/// be null.
fn assert_like(printed: &Value, actual: &Value, path: &str) {
    match (printed, actual) {
        (Value::Object(printed), Value::Object(actual)) if path.ends_with(".labels") => {
            assert!(printed.iter().all(|(key, value)| actual.get(key) == Some(value)), "{path}: {actual:?}");
        }
        (Value::Object(printed), Value::Object(actual)) => {
            for (key, value) in printed {
                let found = actual.get(key).unwrap_or_else(|| panic!("{path} has no {key}: {actual:?}"));
                assert_like(value, found, &format!("{path}.{key}"));
            }
        }
        (Value::Array(printed), Value::Array(actual)) => {
            assert!(!actual.is_empty(), "{path} is empty");
            for item in actual {
                assert_like(&printed[0], item, path);
            }
        }
        (Value::String(_), Value::String(_)) | (Value::Number(_), Value::Number(_)) => {}
        _ => panic!("{path}: {printed} is documented, but the response has {actual}"),
    }
}

/// With the GPUs in the document.
fn with_gpus(host: WorkerHost) -> WorkerHost {
    let printed = printed_json("reported-by-the-worker");
    let gpu = |n| json!({"uuid": format!("GPU-{n}"), "name": printed["gpu_name"], "vram_gb": printed["gpu_vram_gb"]});
    let gpus: Vec<Value> = (0..printed["gpu_count"].as_u64().expect("a number")).map(gpu).collect();
    let file = host.home().join("gpus.json");
    let content = json!({"accelerator": printed["accelerator_type"], "driver": "550.54", "gpus": gpus});
    std::fs::write(&file, content.to_string()).expect("a file");
    host.with_variable(("SIMPLETUNER_FAKE_GPUS", file.display().to_string()))
}

/// Runs all API calls of the document in order.
async fn walk_through(fleet: &TestFleet, home: &Path) {
    fleet.put_config("my-training-config", &json!({})).await;
    fleet.put_config("my-config", &json!({})).await;

    let created = run(fleet, home, "create-with-a-token", "").await;
    assert_like(&printed_json("answer-create-with-a-token"), &created, "create");
    let (worker, token) = (text(&created, "worker_id").to_owned(), text(&created, "token").to_owned());
    assert!(worker.starts_with("w_") && token.starts_with("wt_"), "{created}");
    assert_eq!(created["name"], "gpu-worker-1");
    let host = with_gpus(WorkerHost::new(fleet, "gpu-worker-1", "persistent", &created));
    let agent = host.start();
    fleet.api.wait_for_worker(&worker, "idle").await;
    let listed = run(fleet, home, "list", "").await;
    assert_like(&printed_json("answer-list"), &listed, "list");
    agent.kill().await;

    let labelled = run(fleet, home, "create-with-labels", "").await;
    assert_eq!(labelled["name"], "worker-1");
    let submits =
        [("submit", "worker"), ("submit-by-gpu", "worker"), ("submit-by-team", "auto"), ("submit-by-glob", "auto")];
    for (name, target) in submits {
        let submitted = run(fleet, home, name, "").await;
        assert_eq!(submitted["success"], json!(true), "{name}: {submitted}");
        let job = fleet.api.job(text(&submitted, "job_id")).await;
        assert_eq!(job["target"], target, "{name}");
    }

    let drained = run(fleet, home, "drain", &worker).await;
    assert_eq!(drained["draining"], true);
    let rotated = run(fleet, home, "rotate", &worker).await;
    assert_ne!(text(&rotated, "token"), token);
    assert_eq!(text(&rotated, "worker_id"), worker);
    let unused = run(fleet, home, "create-with-a-token", "").await;
    assert_eq!(unused["code"], "name_taken", "{unused}");
    assert_eq!(run(fleet, home, "delete", text(&labelled, "worker_id")).await["success"], true);
    let left = run(fleet, home, "list", "").await;
    assert_eq!(left["workers"].as_array().map(Vec::len), Some(1), "{left}");
}

#[tokio::test]
async fn documented_commands_work() {
    let fleet = TestFleet::start_with(ONE_USER).await;
    walk_through(&fleet, fleet.path()).await;
}

#[tokio::test]
async fn documented_commands_work_with_accounts_and_a_token() {
    let fleet = TestFleet::start().await;
    std::fs::write(fleet.path().join(".curlrc"), format!("header = \"Authorization: Bearer {ADMIN}\"\n"))
        .expect("curl's settings");
    walk_through(&fleet, fleet.path()).await;
}

#[tokio::test]
async fn requests_without_a_token_work_in_single_user_mode_only() {
    let fleet = TestFleet::start().await;
    assert!(run(&fleet, fleet.path(), "create-with-a-token", "").await["token"].is_string());
    assert_eq!(run(&fleet, fleet.path(), "create-with-labels", "").await["code"], "not_authenticated");
}

/// Returns the requests in the code blocks of README.md and `docs`, except those that need no token.
fn our_requests() -> Vec<String> {
    let docs = std::fs::read_dir(repository("docs")).expect("a directory").map(|entry| entry.expect("an entry").path());
    let is_document = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "md");
    let mut documents: Vec<PathBuf> = docs.filter(is_document).chain([repository("README.md")]).collect();
    documents.sort();
    let mut requests = Vec::new();
    for document in documents {
        let text = std::fs::read_to_string(document).expect("a document");
        for block in text.split("```").skip(1).step_by(2) {
            let joined = block.replace("\\\n", " ");
            let curls = joined.lines().map(str::trim).filter(|line| line.starts_with("curl "));
            requests.extend(curls.filter(|line| !line.contains("/api/openapi")).map(str::to_owned));
        }
    }
    requests
}

/// Sends a request of our documents with this token; returns curl's exit code and the output.
async fn send(fleet: &TestFleet, request: &str, token: &str, ids: &[(&str, &str)]) -> (Option<i32>, String) {
    let script = request.replace("http://orchestrator:8001", fleet.api.url()).replace('…', PASSWORD);
    let mut bash = bash(&script);
    bash.env("ADMIN_TOKEN", token).env("API_TOKEN", token).envs(ids.iter().copied());
    bash.env("NO_PROXY", "127.0.0.1").env("HOME", fleet.path());
    let output = bash.output().await.expect("bash");
    let printed = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&printed).into_owned())
}

#[tokio::test]
async fn requests_of_our_documents_work_with_a_token_of_the_readme() {
    let fleet = TestFleet::start().await;
    // curl fails if the server rejects the request, and prints the reason.
    std::fs::write(fleet.path().join(".curlrc"), "fail-with-body\n").expect("curl's settings");
    let host = fleet.add_host("gpu-1").await;
    let agent = host.start();
    let job = fleet.api.submit("digits-quick").await;
    fleet.api.wait_for_job(&job, "completed").await;
    agent.kill().await;
    let user = json!({"name": "eve", "role": "viewer", "password": PASSWORD});
    let user = fleet.api.post("/api/admin/users", &user).await;
    let ids = [("JOB", job.as_str()), ("WORKER", host.worker.as_str()), ("USER", text(&user, "id"))];
    let requests = our_requests();
    assert!(requests.len() > 9, "{requests:#?}");

    for request in &requests {
        assert!(request.contains("-H \"Authorization: Bearer $"), "{request} sends no token");
        let (code, output) = send(&fleet, request, "", &ids).await;
        assert_eq!(code, Some(22), "{request}: {output}");
        let is_explained = output.contains("not_authenticated") && output.contains("simpletuner auth tokens create");
        assert!(is_explained || request.contains("| jq"), "{request}: {output}");
    }
    let token = readme_token(&fleet).await;
    for request in &requests {
        let (code, output) = send(&fleet, request, &token, &ids).await;
        assert_eq!(code, Some(0), "{request}: {output}");
    }
}

/// Creates a token with the README's command on the server's host.
async fn readme_token(fleet: &TestFleet) -> String {
    let readme = std::fs::read_to_string(repository("README.md")).expect("a document");
    let (_, rest) = readme.split_once("`ADMIN_TOKEN=").expect("the command");
    let (command, _) = rest.split_once('`').expect("its end");
    let mut bash = bash(&format!("ADMIN_TOKEN={}; echo $ADMIN_TOKEN", command.replace("--user ada", "--user admin")));
    let output = bash.env("SIMPLETUNER_DATA_DIR", fleet.data()).env("HOME", fleet.path()).output().await.expect("bash");
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text").trim().to_owned()
}

/// The Labels example names no type, so the command that it returns starts an ephemeral worker.
#[tokio::test]
async fn worker_of_the_labels_example_exits_after_one_job() {
    let fleet = TestFleet::start_with(ONE_USER).await;
    let created = run(&fleet, fleet.path(), "create-with-labels", "").await;
    let command = text(&created, "connection_command");
    assert!(!command.contains("--persistent"), "{command}");
    let host = WorkerHost::new(&fleet, "worker-1", "ephemeral", &created);
    let mut shell = bash(&command.replace("simpletuner worker", "exec simpletuner worker"));
    shell.env("HOME", host.home()).env("SIMPLETUNER_KEEP_FREE", "0");
    let mut agent = host.start_command(shell);
    let worker = fleet.api.wait_for_worker(&host.worker, "idle").await;
    assert_eq!((&worker["worker_type"], &worker["labels"]["team"]), (&json!("ephemeral"), &json!("nlp")));
    let job = fleet.api.submit("digits-quick").await;
    assert_eq!(agent.wait().await, Some(0), "{}", agent.output());
    assert_eq!(fleet.api.job(&job).await["status"], "completed");
}

/// Starts server and agent with the document's commands, and trains.
async fn quick_start(server_block: &'static str, worker_block: &str) {
    let tls = server_block == "serve-with-tls";
    let settings: &[_] = if tls { &[("SIMPLETUNER_SSL", "true")] } else { &[] };
    let fleet = TestFleet::start_with_change(settings, move |command| {
        let args: Vec<String> = command.as_std().get_args().map(|arg| arg.to_string_lossy().into_owned()).collect();
        let flag_value = |flag: &str| &args[args.iter().position(|arg| arg == flag).expect("a flag") + 1];
        let mut server_command =
            bash(&format!("exec {}", blocks()[server_block].replace("8001", flag_value("--port"))));
        server_command.env("SIMPLETUNER_DATA_DIR", flag_value("--data-dir"));
        server_command.env("SIMPLETUNER_CONFIGS_DIR", flag_value("--configs-dir"));
        for (name, value) in
            command.as_std().get_envs().filter(|(name, _)| *name != "PATH" && *name != "SIMPLETUNER_SSL")
        {
            server_command.env(name, value.unwrap_or_default());
        }
        *command = server_command;
    })
    .await;
    let address = format!("{}://localhost:{}", if tls { "https" } else { "http" }, fleet.port());
    let created = fleet.api.post("/api/admin/workers", &json!({"name": "gpu-worker-1"})).await;
    let host = with_gpus(WorkerHost::new(&fleet, "gpu-worker-1", "persistent", &created));
    let script = blocks()[worker_block]
        .replace("https://orchestrator.example.com:8001", &address)
        .replace(PRINTED_TOKEN, &host.token)
        .replace("simpletuner worker", "exec simpletuner worker");
    let mut command = bash(&script);
    command.env("HOME", host.home()).env("SIMPLETUNER_KEEP_FREE", "0");
    if tls {
        // A self-signed certificate.
        let session = fleet.api.get("/api/session").await;
        command.env("SIMPLETUNER_ORCHESTRATOR_FINGERPRINT", text(&session, "fingerprint"));
    }
    let _agent = host.start_command(command);
    let worker = fleet.api.wait_for_worker(&host.worker, "idle").await;
    for (key, value) in printed_json("reported-by-the-worker").as_object().expect("an object") {
        assert_eq!(worker[key].to_string().trim_end_matches(".0"), value.to_string(), "the worker reports its {key}");
    }
    let job = fleet.api.submit("digits-quick").await;
    fleet.api.wait_for_job(&job, "completed").await;
    fleet.api.wait_for_worker(&host.worker, "idle").await;
}

#[tokio::test]
async fn quick_start_trains() {
    quick_start("serve", "work-by-environment").await;
}

#[tokio::test]
async fn the_quick_start_trains_over_tls() {
    quick_start("serve-with-tls", "work").await;
}

#[tokio::test]
async fn documented_worker_options_exist() {
    let output = bash("simpletuner worker --help").output().await.expect("bash");
    let help = String::from_utf8_lossy(&output.stdout).into_owned();
    let printed = blocks()["options-of-the-worker"];
    let words = printed.split(|letter: char| letter.is_whitespace() || "(),".contains(letter));
    let options: Vec<&str> =
        words.filter(|option| option.starts_with('-') || option.starts_with("SIMPLETUNER_")).collect();
    assert_eq!(options.len(), 8, "{options:?}");
    for option in options {
        assert!(help.contains(option), "{option} is not in the help:\n{help}");
    }
}

/// Requests every endpoint in the document's tables without a token: it exists and requires authentication.
#[tokio::test]
async fn documented_endpoints_exist() {
    let fleet = TestFleet::start().await;
    let unauthenticated = fleet.api.with_token("");
    let endpoints = [
        (Method::POST, "/api/workers/register"),
        (Method::GET, "/api/workers/stream"),
        (Method::POST, "/api/workers/heartbeat"),
        (Method::POST, "/api/workers/job/j_1/status"),
        (Method::POST, "/api/workers/disconnect"),
        (Method::GET, "/api/admin/workers"),
        (Method::POST, "/api/admin/workers"),
        (Method::DELETE, "/api/admin/workers/w_abc123"),
        (Method::POST, "/api/admin/workers/w_abc123/drain"),
        (Method::POST, "/api/admin/workers/w_abc123/token"),
    ];
    for (method, path) in endpoints {
        let (status, body) = unauthenticated.request(method.clone(), path, None).await;
        assert_eq!(status, 401, "{method} {path}: {body}");
    }
}

#[test]
fn every_block_is_run() {
    let blocks = blocks();
    assert_eq!(blocks.values().filter(|block| block.contains("curl -s ")).count(), 10, "as many as the document has");
    assert_eq!(blocks.len(), 18, "{:?}", blocks.keys());
    let source = include_str!("examples.rs");
    for name in blocks.keys() {
        assert!(source.contains(&format!("\"{name}\"")), "nothing runs {name}");
    }
}

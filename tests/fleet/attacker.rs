//! A malicious researcher tries to get from a configuration to the worker token, other users' jobs, the server and
//! admin rights.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{TestFleet, WorkerHost, sandbox_level, wait_until};

/// Like a model that contains code: it executes text of the configuration.
const TRAINER: &str =
    "import os; exec(open(os.path.join(os.path.dirname(os.environ['CONFIG_PATH']), 'attack.txt')).read())";
/// Another user's job on the same host.
const VICTIM: &str = "if os.environ.get('ADA_KEY'): import time; print('training', flush=True); time.sleep(3600)";
const SECRET: &str = "adas-secret-value";

/// Adds a user with this role and an API token.
async fn add_user(fleet: &TestFleet, name: &str, role: &str) -> crate::harness::Api {
    let user = json!({"name": name, "role": role, "password": "correct-horse-battery-staple"});
    let id = fleet.api.post("/api/admin/users", &user).await["id"].as_str().expect("an id").to_owned();
    let token = fleet.api.post(&format!("/api/admin/users/{id}/tokens"), &json!({"name": "t"})).await;
    fleet.api.with_token(token["secret"].as_str().expect("a token"))
}

fn code(response: &(u16, Value)) -> (u16, &str) {
    (response.0, response.1["code"].as_str().unwrap_or_default())
}

/// Lists the files of the agent, the server and other jobs that a job must not be able to read.
fn files(fleet: &TestFleet, host: &WorkerHost, victim: &str) -> Vec<String> {
    let attempt = host.attempt_dir(victim, 1);
    let mut files = vec![host.home().join("worker-token")];
    files.extend(["secrets.json", "spec.json", "trainer.log"].map(|name| attempt.join(name)));
    files.extend(["orchestrator.db", "audit.key"].map(|name| fleet.data().join(name)));
    let notes = std::fs::read_dir(fleet.data().join("operator")).expect("the operator's notes");
    files.extend(notes.map(|note| note.expect("readable").path()));
    for file in &files {
        assert!(file.exists(), "{} does not exist", file.display());
    }
    files.iter().map(|file| file.display().to_string()).collect()
}

#[tokio::test]
async fn malicious_researcher_does_not_become_admin() {
    if sandbox_level() == "none" {
        return; // without a sandbox, anyone who may submit jobs controls the host
    }
    let mut fleet = TestFleet::start_embedded().await;
    let host = fleet.add_host("shared").await.with_python_trainer(&format!("import os\n{VICTIM}\n{TRAINER}"));
    let host = host.with_flags(&["--max-jobs", "2", "--worker-token-file"]);
    let token_file = host.home().join("worker-token");
    std::fs::write(&token_file, &host.token).expect("a token file");
    let mut agent = host.with_flags(&[&token_file.display().to_string()]);
    let host = &mut agent;
    let running = host.start_with_changes(|command| {
        command.env_remove("SIMPLETUNER_WORKER_TOKEN");
        None
    });
    fleet.api.wait_for_worker(&host.worker, "idle").await;
    let (ada, rita) = (add_user(&fleet, "ada", "researcher").await, add_user(&fleet, "rita", "researcher").await);
    ada.put("/api/secrets/ADA_KEY", &json!({"value": SECRET})).await;
    fleet.put_config("adas", &json!({})).await;
    let victim = ada.submit_with(&json!({"config_name": "adas", "target": "worker", "secrets": ["ADA_KEY"]})).await;
    fleet.api.wait_for_log(&victim, 5).await;

    // Code in a configuration.
    let files_with_code = json!({"files": {"config.json": "{}", "simpletuner/train.py": "print('mine')"}});
    let response = rita.request(Method::PUT, "/api/configs/code", Some(&files_with_code)).await;
    assert_eq!(code(&response), (422, "config_code"), "{response:?}");
    // Another user's configuration, job and secrets.
    let change = json!({"files": {"config.json": "{}"}});
    let response = rita.request(Method::PUT, "/api/configs/adas", Some(&change)).await;
    assert_eq!(code(&response), (403, "config_not_yours"), "{response:?}");
    let cancelled = rita.request(Method::POST, &format!("/api/queue/{victim}/cancel"), None).await;
    assert_eq!(code(&cancelled), (403, "permission_denied"), "{cancelled:?}");
    let retried = rita.request(Method::POST, &format!("/api/queue/{victim}/retry"), None).await;
    assert_eq!(code(&retried), (409, "job_not_ended"), "{retried:?}");
    let request = json!({"config_name": "adas", "secrets": ["ADA_KEY"]});
    assert!(rita.request(Method::POST, "/api/queue/submit", Some(&request)).await.0 >= 400);

    // Code of a model, on the host.
    let targets = json!({
        "url": host.url(), "job": victim, "secret": SECRET, "agent": running.pid(), "server": fleet.server().pid(),
        "state": host.work_dir(), "files": files(&fleet, host, &victim),
    });
    let attack = json!({"files": {
        "config.json": "{}", "attack.txt": include_str!("attacker.py"), "targets.json": targets.to_string(),
    }});
    rita.put("/api/configs/attack", &attack).await;
    let job = rita.submit_with(&json!({"config_name": "attack", "target": "worker"})).await;
    fleet.api.wait_for_job(&job, "completed").await;
    let log = fleet.api.log(&job).await;
    let (blocked, leaked): (Vec<_>, Vec<_>) = log
        .lines()
        .filter(|line| line.ends_with("held") || line.ends_with("out"))
        .partition(|line| line.ends_with("held"));
    assert!(leaked.is_empty() && log.ends_with("tried\n"), "{log}");
    assert_eq!(blocked.len(), targets["files"].as_array().expect("a list").len() + 15, "{log}");
    assert!(!log.contains(SECRET) && !log.contains(&host.token));

    // The worker token, if it had leaked.
    let thief = reqwest::Client::builder().no_proxy().build().expect("a client");
    let with_stolen_token =
        |path: &str| thief.post(format!("{}{path}", host.url())).header("x-worker-token", &host.token);
    for path in ["/api/workers/heartbeat".to_owned(), format!("/api/workers/job/{victim}/secrets?attempt=1")] {
        assert_eq!(with_stolen_token(&path).json(&json!({})).send().await.expect("a response").status(), 409, "{path}");
    }
    wait_until("the alert", async || {
        let worker = fleet.api.try_get(&format!("/api/admin/workers/{}", host.worker)).await?;
        worker["token_conflict"]["at"].as_str().map(drop)
    })
    .await;

    // Her own permissions.
    let admin = json!({"name": "eve", "role": "admin", "password": "correct-horse-battery-staple"});
    assert_eq!(code(&rita.request(Method::POST, "/api/admin/users", Some(&admin)).await), (403, "permission_denied"));
    let more = json!({"name": "more", "scopes": ["admin.users"]});
    assert!(rita.request(Method::POST, "/api/account/tokens", Some(&more)).await.0 >= 400);

    assert_eq!(fleet.api.job(&victim).await["status"], "running", "other jobs were not affected");
    let users = fleet.api.get("/api/admin/users").await;
    assert_eq!((&users["counts"]["admin"], &users["counts"]["researcher"]), (&json!(1), &json!(2)), "{users}");
    let entries = fleet.api.get("/api/audit?action=worker.token_in_use").await;
    assert!(!entries["entries"].as_array().expect("a list").is_empty(), "it is in the audit log");
    fleet.api.post(&format!("/api/queue/{victim}/cancel"), &json!({})).await;
    fleet.api.wait_for_job(&victim, "cancelled").await;
}

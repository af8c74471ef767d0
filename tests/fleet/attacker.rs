//! A researcher who attacks: from a configuration to the worker's token, to other people's jobs, to the server, to its admin.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Fleet, Host, sandbox, until};

/// As a model that brings code: it runs what the configuration has as text.
const TRAINER: &str =
    "import os; exec(open(os.path.join(os.path.dirname(os.environ['CONFIG_PATH']), 'attack.txt')).read())";
/// Somebody else's job on the same host.
const VICTIM: &str = "if os.environ.get('ADA_KEY'): import time; print('training', flush=True); time.sleep(3600)";
const SECRET: &str = "adas-secret-value";

/// A person of this role, and an API token of theirs.
async fn person(fleet: &Fleet, name: &str, role: &str) -> crate::harness::Api {
    let user = json!({"name": name, "role": role, "password": "correct-horse-battery-staple"});
    let id = fleet.api.post("/api/admin/users", &user).await["id"].as_str().expect("an id").to_owned();
    let token = fleet.api.post(&format!("/api/admin/users/{id}/tokens"), &json!({"name": "t"})).await;
    fleet.api.with_token(token["secret"].as_str().expect("a token"))
}

fn code(answer: &(u16, Value)) -> (u16, &str) {
    (answer.0, answer.1["code"].as_str().unwrap_or_default())
}

/// What stands between a job and the agent, the server, and other jobs: nothing of this may be read by it.
fn files(fleet: &Fleet, host: &Host, victim: &str) -> Vec<String> {
    let attempt = host.attempt(victim, 1);
    let mut files = vec![host.home().join("worker-token")];
    files.extend(["secrets.json", "spec.json", "trainer.log"].map(|name| attempt.join(name)));
    files.extend(["orchestrator.db", "audit.key"].map(|name| fleet.data().join(name)));
    let notes = std::fs::read_dir(fleet.data().join("operator")).expect("the operator's notes");
    files.extend(notes.map(|note| note.expect("readable").path()));
    for file in &files {
        assert!(file.exists(), "{} is not there to be stolen", file.display());
    }
    files.iter().map(|file| file.display().to_string()).collect()
}

#[tokio::test]
async fn a_researcher_does_not_become_the_admin() {
    if sandbox() == "none" {
        return; // without a sandbox, who may train owns the host: that is what it is for
    }
    let mut fleet = Fleet::start_embedded().await;
    let host = fleet.host("shared").await.training_with(&format!("import os\n{VICTIM}\n{TRAINER}"));
    let host = host.flags(&["--max-jobs", "2", "--worker-token-file"]);
    let token_file = host.home().join("worker-token");
    std::fs::write(&token_file, &host.token).expect("a token file");
    let mut agent = host.flags(&[&token_file.display().to_string()]);
    let host = &mut agent;
    let running = host.start_as(|command| {
        command.env_remove("SIMPLETUNER_WORKER_TOKEN");
        None
    });
    fleet.api.until_worker(&host.worker, "idle").await;
    let (ada, rita) = (person(&fleet, "ada", "researcher").await, person(&fleet, "rita", "researcher").await);
    ada.put("/api/secrets/ADA_KEY", &json!({"value": SECRET})).await;
    fleet.configure("adas", &json!({})).await;
    let victim = ada.submit_with(&json!({"config_name": "adas", "target": "worker", "secrets": ["ADA_KEY"]})).await;
    fleet.api.until_log(&victim, 5).await;

    // Code in a configuration.
    let files_with_code = json!({"files": {"config.json": "{}", "simpletuner/train.py": "print('mine')"}});
    let answer = rita.ask(Method::PUT, "/api/configs/code", Some(&files_with_code)).await;
    assert_eq!(code(&answer), (422, "config_code"), "{answer:?}");
    // Somebody else's configuration, job, secrets.
    let change = json!({"files": {"config.json": "{}"}});
    let answer = rita.ask(Method::PUT, "/api/configs/adas", Some(&change)).await;
    assert_eq!(code(&answer), (403, "config_not_yours"), "{answer:?}");
    for path in [format!("/api/queue/{victim}/cancel"), format!("/api/queue/{victim}/retry")] {
        assert_eq!(rita.ask(Method::POST, &path, None).await.0, 404, "{path}");
    }
    let named = json!({"config_name": "adas", "secrets": ["ADA_KEY"]});
    assert!(rita.ask(Method::POST, "/api/queue/submit", Some(&named)).await.0 >= 400);

    // Code that a model brings, on the host.
    let targets = json!({
        "url": host.url(), "job": victim, "secret": SECRET, "agent": running.pid(), "server": fleet.server().pid(),
        "state": host.work_dir(), "files": files(&fleet, host, &victim),
    });
    let attack = json!({"files": {
        "config.json": "{}", "attack.txt": include_str!("attacker.py"), "targets.json": targets.to_string(),
    }});
    rita.put("/api/configs/attack", &attack).await;
    let job = rita.submit_with(&json!({"config_name": "attack", "target": "worker"})).await;
    fleet.api.until_job(&job, "completed").await;
    let log = fleet.api.log(&job).await;
    let (tried, out): (Vec<_>, Vec<_>) = log
        .lines()
        .filter(|line| line.ends_with("held") || line.ends_with("out"))
        .partition(|line| line.ends_with("held"));
    assert!(out.is_empty() && log.ends_with("tried\n"), "{log}");
    assert_eq!(tried.len(), targets["files"].as_array().expect("a list").len() + 15, "{log}");
    assert!(!log.contains(SECRET) && !log.contains(&host.token));

    // The worker's token, had it been found all the same.
    let thief = reqwest::Client::builder().no_proxy().build().expect("a client");
    let stolen = |path: &str| thief.post(format!("{}{path}", host.url())).header("x-worker-token", &host.token);
    for path in ["/api/workers/heartbeat".to_owned(), format!("/api/workers/job/{victim}/secrets?attempt=1")] {
        assert_eq!(stolen(&path).json(&json!({})).send().await.expect("an answer").status(), 409, "{path}");
    }
    until("the alarm", async || {
        let worker = fleet.api.try_get(&format!("/api/admin/workers/{}", host.worker)).await?;
        worker["token_conflict"]["at"].as_str().map(drop)
    })
    .await;

    // Her own rights.
    let admin = json!({"name": "eve", "role": "admin", "password": "correct-horse-battery-staple"});
    assert_eq!(code(&rita.ask(Method::POST, "/api/admin/users", Some(&admin)).await), (403, "permission_denied"));
    let more = json!({"name": "more", "scopes": ["admin.users"]});
    assert!(rita.ask(Method::POST, "/api/account/tokens", Some(&more)).await.0 >= 400);

    assert_eq!(fleet.api.job(&victim).await["status"], "running", "nobody was disturbed");
    let users = fleet.api.get("/api/admin/users").await;
    assert_eq!((&users["counts"]["admin"], &users["counts"]["researcher"]), (&json!(1), &json!(2)), "{users}");
    let entries = fleet.api.get("/api/audit?action=worker.token_in_use").await;
    assert!(!entries["entries"].as_array().expect("a list").is_empty(), "it is on record");
    fleet.api.post(&format!("/api/queue/{victim}/cancel"), &json!({})).await;
    fleet.api.until_job(&victim, "cancelled").await;
}

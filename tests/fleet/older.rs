//! SimpleTuner's own agent, as people have it installed, works unchanged.

use serde_json::json;
use tokio::process::Command;

use crate::harness::{Fleet, Host, Program, repository, until};

/// What its releases do differently; see `older_agent.py`.
const RELEASES: [&str; 3] = ["A", "B", "C"];

/// A fleet with a configuration that names no file beside its data loader: others an older agent is not sent.
async fn fleet() -> Fleet {
    let fleet = Fleet::start().await;
    let files = json!({"config.json": "{\"model_type\": \"lora\"}", "multidatabackend.json": "[]"});
    fleet.api.put("/api/configs/plain", &json!({"files": files})).await;
    fleet
}

fn start(host: &Host, release: &str) -> Program {
    start_as(host, release, "older")
}

fn start_as(host: &Host, release: &str, name: &str) -> Program {
    let mut command = Command::new("python3");
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", host.home());
    command.env("MEET", host.meet()).env("RELEASE", release);
    command.env("SIMPLETUNER_ORCHESTRATOR_URL", host.url()).env("SIMPLETUNER_WORKER_TOKEN", &host.token);
    command.arg(repository("tests/fleet/older_agent.py"));
    Program::start(command, host.home().with_extension(format!("{name}.log")))
}

#[tokio::test]
async fn it_runs_what_it_is_given_and_is_drained() {
    for release in RELEASES {
        let fleet = fleet().await;
        let host = fleet.host("old").await;
        let agent = start(&host, release);
        let worker = fleet.api.until_worker(&host.worker, "idle").await;
        assert_eq!((&worker["gpu_name"], &worker["gpu_count"]), (&"NVIDIA A100".into(), &1.into()));
        let job = fleet.api.submit_with(&json!({"config_name": "plain", "gpu_count": 1})).await;
        fleet.api.until_job(&job, "running").await;
        fleet.api.post(&format!("/api/admin/workers/{}/drain", host.worker), &json!({})).await;
        let waiting = fleet.api.submit("plain").await;
        host.open_gate();
        fleet.api.until_job(&job, "completed").await;
        fleet.api.until_worker(&host.worker, "draining").await;
        assert_eq!(fleet.api.job(&waiting).await["attempt"], 0);
        fleet.api.post(&format!("/api/admin/workers/{}/resume", host.worker), &json!({})).await;
        fleet.api.until_job(&waiting, "completed").await;
        assert!(!agent.said().contains("Traceback"), "{release}: {}", agent.said());
    }
}

#[tokio::test]
async fn each_job_is_taken_at_its_first_offer() {
    for release in RELEASES {
        let fleet = fleet().await;
        let host = fleet.host("old").await;
        let agent = start(&host, release);
        host.open_gate();
        let mut jobs = Vec::new();
        for _ in 0..4 {
            jobs.push(fleet.api.submit("plain").await);
        }
        for job in jobs {
            let done = fleet.api.until_job(&job, "completed").await;
            assert_eq!(done["attempt"], 1, "{release}: {done:#}");
        }
        assert!(!agent.said().contains("ignoring"), "{release}: {}", agent.said());
    }
}

#[tokio::test]
async fn a_configuration_without_a_data_loader_is_run() {
    for release in RELEASES {
        let fleet = fleet().await;
        let files = json!({"files": {"config.json": "{\"model_type\": \"lora\"}"}});
        fleet.api.put("/api/configs/bare", &files).await;
        let host = fleet.host("old").await;
        let agent = start(&host, release);
        host.open_gate();
        let job = fleet.api.submit("bare").await;
        fleet.api.until_job(&job, "completed").await;
        assert!(!agent.said().contains("worker error"), "{release}: {}", agent.said());
    }
}

#[tokio::test]
async fn its_training_is_cancelled_and_the_next_one_is_not() {
    for release in RELEASES {
        let fleet = fleet().await;
        let host = fleet.host("old").await;
        let _agent = start(&host, release);
        let (first, second) = (fleet.api.submit("plain").await, fleet.api.submit("plain").await);
        fleet.api.until_job(&first, "running").await;
        fleet.api.post(&format!("/api/queue/{first}/cancel"), &json!({})).await;
        fleet.api.until_job(&first, "cancelled").await;
        fleet.api.until_job(&second, "running").await;
        host.open_gate();
        let done = fleet.api.until_job(&second, "completed").await;
        assert_eq!(done["attempt"], 1, "{release}: {done:#}");
    }
}

#[tokio::test]
async fn a_second_one_on_the_same_host_takes_no_job() {
    let fleet = fleet().await;
    let host = fleet.host("old").await;
    let first = start(&host, "C");
    let job = fleet.api.submit("plain").await;
    fleet.api.until_job(&job, "running").await;
    let second = start_as(&host, "C", "twin");
    until("the twin to be refused", async || second.said().contains("refused 409").then_some(())).await;
    let worker = fleet.api.get(&format!("/api/admin/workers/{}", host.worker)).await;
    assert!(worker["token_conflict"].is_object(), "{worker:#}");
    host.open_gate();
    let done = fleet.api.until_job(&job, "completed").await;
    assert_eq!(done["attempt"], 1, "{done:#}");
    assert_eq!(first.said().matches("registered").count(), 1, "{}", first.said());
}

#[tokio::test]
async fn its_training_goes_on_through_a_restart_of_the_server() {
    let mut fleet = fleet().await;
    let host = fleet.host("old").await;
    let agent = start(&host, "C");
    let job = fleet.api.submit("plain").await;
    fleet.api.until_job(&job, "running").await;
    fleet.kill_server().await;
    fleet.start_server().await;
    until("the agent to be told to go on", async || {
        agent.said().contains(&format!("resume {job} abandon False")).then_some(())
    })
    .await;
    host.open_gate();
    let done = fleet.api.until_job(&job, "completed").await;
    assert_eq!(done["attempt"], 1, "{done:#}");
}

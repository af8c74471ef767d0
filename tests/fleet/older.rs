//! SimpleTuner's own agent, as people have it installed, works unchanged.

use serde_json::json;
use tokio::process::Command;

use crate::harness::{Fleet, Host, Program, repository, until};

fn start(host: &Host) -> Program {
    let mut command = Command::new("python3");
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", host.home());
    command.env("MEET", host.meet());
    command.env("SIMPLETUNER_ORCHESTRATOR_URL", host.url()).env("SIMPLETUNER_WORKER_TOKEN", &host.token);
    command.arg(repository("tests/fleet/older_agent.py"));
    Program::start(command, host.home().with_extension("older.log"))
}

#[tokio::test]
async fn it_runs_what_it_is_given_and_is_drained() {
    let fleet = Fleet::start().await;
    let host = fleet.host("old").await;
    let agent = start(&host);
    let worker = fleet.api.until_worker(&host.worker, "idle").await;
    assert_eq!((&worker["gpu_name"], &worker["gpu_count"]), (&"NVIDIA A100".into(), &1.into()));
    let job = fleet.api.submit_with(&json!({"config_name": "digits-quick", "gpu_count": 1})).await;
    fleet.api.until_job(&job, "running").await;
    fleet.api.post(&format!("/api/admin/workers/{}/drain", host.worker), &json!({})).await;
    let waiting = fleet.api.submit("digits-quick").await;
    host.open_gate();
    fleet.api.until_job(&job, "completed").await;
    fleet.api.until_worker(&host.worker, "draining").await;
    assert_eq!(fleet.api.job(&waiting).await["attempt"], 0);
    fleet.api.post(&format!("/api/admin/workers/{}/resume", host.worker), &json!({})).await;
    fleet.api.until_job(&waiting, "completed").await;
    assert!(!agent.said().contains("Traceback"), "{}", agent.said());
}

#[tokio::test]
async fn its_training_is_cancelled_and_the_next_one_is_not() {
    let fleet = Fleet::start().await;
    let host = fleet.host("old").await;
    let _agent = start(&host);
    let (first, second) = (fleet.api.submit("digits-quick").await, fleet.api.submit("digits-quick").await);
    fleet.api.until_job(&first, "running").await;
    fleet.api.post(&format!("/api/queue/{first}/cancel"), &json!({})).await;
    fleet.api.until_job(&first, "cancelled").await;
    fleet.api.until_job(&second, "running").await;
    host.open_gate();
    fleet.api.until_job(&second, "completed").await;
}

#[tokio::test]
async fn its_training_goes_on_through_a_restart_of_the_server() {
    let mut fleet = Fleet::start().await;
    let host = fleet.host("old").await;
    let agent = start(&host);
    let job = fleet.api.submit("digits-quick").await;
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

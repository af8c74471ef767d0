//! Several jobs on one host.

use std::io;

use serde_json::{Value, json};

use super::fake_orchestrator::{FakeOrchestrator, FakeState};
use super::test_host::{TestHost, wait_until};

/// Writes its environment to files, and waits.
const WAIT: &str = "echo \"$CUDA_VISIBLE_DEVICES $SIMPLETUNER_UPLOAD_TOKEN\" > given.new; mv given.new given; pwd > ../output/where; while [ ! -e ../control/go ]; do sleep 0.02; done";

fn config() -> Value {
    json!({"config.json": "{}"})
}

fn has_reported(shared: &FakeState, job: &str, status: &str) -> bool {
    shared.statuses.iter().any(|report| report["job_id"] == job && report["status"] == status)
}

/// Starts an agent with two GPUs; also returns their IDs.
async fn start_two_gpu_agent(
    fake: &FakeOrchestrator,
    max_jobs: &str,
) -> io::Result<(TestHost, super::test_host::AgentProcess, Vec<String>)> {
    let host = TestHost::with_script(WAIT)?.flags(&["--persistent", "--gpu-count", "2", "--max-jobs", max_jobs]);
    let agent = host.start(fake)?;
    let register = fake.wait_until("a registration", |shared| shared.registrations.first().cloned()).await;
    assert_eq!(register["max_jobs"], 2);
    let ids = register["gpus"].as_array().into_iter().flatten().filter_map(|gpu| gpu["uuid"].as_str());
    let ids = ids.map(str::to_owned).collect();
    Ok((host, agent, ids))
}

#[tokio::test]
async fn cancel_stops_one_of_two_running_trainers() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let (host, agent, gpus) = start_two_gpu_agent(&fake, "per-gpu").await?;
    for (index, job) in ["j_1", "j_2"].into_iter().enumerate() {
        let extra = json!({"gpus": [gpus[index]], "upload_token": format!("jt_test_{index}")});
        fake.offer_with(job, 1, &config(), extra);
        fake.wait_until("it runs", |shared| has_reported(shared, job, "running").then_some(())).await;
    }
    let mut environments = Vec::new();
    for job in ["j_1", "j_2"] {
        let file = host.attempt(job, 1).working_dir().join("given");
        environments.push(wait_until("its environment", || std::fs::read_to_string(&file).ok()).await);
    }
    assert_eq!(environments, ["0 jt_test_0\n", "1 jt_test_1\n"]);
    let running = json!([{"job_id": "j_1", "attempt": 1}, {"job_id": "j_2", "attempt": 1}]);
    fake.wait_until("a heartbeat with both", |shared| {
        shared.heartbeats.iter().any(|beat| beat["attempts"] == running).then_some(())
    })
    .await;

    let (first, second) = (host.supervisor("j_1", 1).await, host.supervisor("j_2", 1).await);
    fake.stop("j_1", 1, "cancelled");
    fake.wait_until("its end", |shared| has_reported(shared, "j_1", "cancelled").then_some(())).await;
    assert!(!first.trainer.is_alive() && second.trainer.is_alive() && second.supervisor.is_alive());
    std::fs::write(host.attempt("j_2", 1).control_dir().join("go"), "")?;
    fake.wait_until("the end of the other job", |shared| has_reported(shared, "j_2", "completed").then_some(())).await;
    assert!(!has_reported(&fake.state(), "j_2", "cancelled"));
    agent.kill().await
}

#[tokio::test]
async fn third_offer_waits_and_next_agent_adopts_both() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let (host, agent, gpus) = start_two_gpu_agent(&fake, "2").await?;
    for (index, job) in ["j_1", "j_2"].into_iter().enumerate() {
        fake.offer_with(job, 1, &config(), json!({"gpus": [gpus[index]]}));
        fake.wait_until("it runs", |shared| has_reported(shared, job, "running").then_some(())).await;
    }
    fake.offer_with("j_3", 1, &config(), json!({"gpus": [gpus[0]]}));
    agent.kill().await?;
    let agent = host.start(&fake)?;
    let registration = fake.wait_until("the second registration", |shared| shared.registrations.get(1).cloned()).await;
    assert_eq!(registration["attempts"].as_array().map(Vec::len), Some(2));
    let heartbeat_count = fake.state().heartbeats.len();
    fake.wait_until("heartbeats", |shared| (shared.heartbeats.len() > heartbeat_count + 1).then_some(())).await;
    assert!(!host.attempt("j_3", 1).path().exists(), "no slot is free yet");
    std::fs::write(host.attempt("j_1", 1).control_dir().join("go"), "")?;
    fake.wait_until("the third runs", |shared| has_reported(shared, "j_3", "running").then_some(())).await;
    assert!(has_reported(&fake.state(), "j_1", "completed") && !has_reported(&fake.state(), "j_2", "completed"));
    agent.kill().await
}

//! Several jobs on one host.

use std::io;

use serde_json::{Value, json};

use super::fake::{Fake, Shared};
use super::host::{Host, until};

/// Says what it was given in files, and waits.
const WAIT: &str = "echo \"$CUDA_VISIBLE_DEVICES $SIMPLETUNER_UPLOAD_TOKEN\" > given.new; mv given.new given; pwd > ../output/where; while [ ! -e ../control/go ]; do sleep 0.02; done";

fn config() -> Value {
    json!({"config.json": "{}"})
}

fn said(shared: &Shared, job: &str, status: &str) -> bool {
    shared.statuses.iter().any(|report| report["job_id"] == job && report["status"] == status)
}

/// An agent with two GPUs, whose ids it answers with.
async fn two_gpus(fake: &Fake, max_jobs: &str) -> io::Result<(Host, super::host::Agent, Vec<String>)> {
    let host = Host::with_script(WAIT)?.flags(&["--persistent", "--gpu-count", "2", "--max-jobs", max_jobs]);
    let agent = host.start(fake)?;
    let register = fake.until("a registration", |shared| shared.registers.first().cloned()).await;
    assert_eq!(register["max_jobs"], 2);
    let ids = register["gpus"].as_array().into_iter().flatten().filter_map(|gpu| gpu["uuid"].as_str());
    let ids = ids.map(str::to_owned).collect();
    Ok((host, agent, ids))
}

#[tokio::test]
async fn two_trainers_run_at_once_and_a_cancel_ends_one() -> io::Result<()> {
    let fake = Fake::start().await?;
    let (host, agent, gpus) = two_gpus(&fake, "per-gpu").await?;
    for (place, job) in ["j_1", "j_2"].into_iter().enumerate() {
        let more = json!({"gpus": [gpus[place]], "upload_token": format!("jt_test_{place}")});
        fake.offer_with(job, 1, &config(), more);
        fake.until("it runs", |shared| said(shared, job, "running").then_some(())).await;
    }
    let mut given = Vec::new();
    for job in ["j_1", "j_2"] {
        let file = host.attempt(job, 1).work().join("given");
        given.push(until("what it was given", || std::fs::read_to_string(&file).ok()).await);
    }
    assert_eq!(given, ["0 jt_test_0\n", "1 jt_test_1\n"]);
    let running = json!([{"job_id": "j_1", "attempt": 1}, {"job_id": "j_2", "attempt": 1}]);
    fake.until("a heartbeat with both", |shared| {
        shared.heartbeats.iter().any(|beat| beat["attempts"] == running).then_some(())
    })
    .await;

    let (first, second) = (host.supervisor("j_1", 1).await, host.supervisor("j_2", 1).await);
    fake.stop("j_1", 1, "cancelled");
    fake.until("its end", |shared| said(shared, "j_1", "cancelled").then_some(())).await;
    assert!(!first.trainer.is_alive() && second.trainer.is_alive() && second.supervisor.is_alive());
    std::fs::write(host.attempt("j_2", 1).control().join("go"), "")?;
    fake.until("the other's end", |shared| said(shared, "j_2", "completed").then_some(())).await;
    assert!(!said(&fake.shared(), "j_2", "cancelled"));
    agent.kill().await
}

#[tokio::test]
async fn a_third_offer_waits_for_a_place_and_both_are_adopted_by_the_next_agent() -> io::Result<()> {
    let fake = Fake::start().await?;
    let (host, agent, gpus) = two_gpus(&fake, "2").await?;
    for (place, job) in ["j_1", "j_2"].into_iter().enumerate() {
        fake.offer_with(job, 1, &config(), json!({"gpus": [gpus[place]]}));
        fake.until("it runs", |shared| said(shared, job, "running").then_some(())).await;
    }
    fake.offer_with("j_3", 1, &config(), json!({"gpus": [gpus[0]]}));
    agent.kill().await?;
    let agent = host.start(&fake)?;
    let again = fake.until("the second registration", |shared| shared.registers.get(1).cloned()).await;
    assert_eq!(again["attempts"].as_array().map(Vec::len), Some(2));
    let beats = fake.shared().heartbeats.len();
    fake.until("heartbeats", |shared| (shared.heartbeats.len() > beats + 1).then_some(())).await;
    assert!(!host.attempt("j_3", 1).path().exists(), "it has no place yet");
    std::fs::write(host.attempt("j_1", 1).control().join("go"), "")?;
    fake.until("the third runs", |shared| said(shared, "j_3", "running").then_some(())).await;
    assert!(said(&fake.shared(), "j_1", "completed") && !said(&fake.shared(), "j_2", "completed"));
    agent.kill().await
}

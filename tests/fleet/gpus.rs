//! Hosts with simulated GPUs: shared between jobs, and unavailable when in use by other processes or broken.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::harness::{TestFleet, WorkerHost, trainers, wait_until};

/// Simulated GPUs that a test changes.
struct SimulatedGpus {
    file: PathBuf,
    state: Value,
}

impl SimulatedGpus {
    fn of(host: &WorkerHost, count: usize) -> Self {
        let gpu = |n| json!({"uuid": format!("GPU-{n}"), "name": "H100", "vram_gb": 80.0, "reading": {"temperature_celsius": 40.0 }});
        let state = json!({"accelerator": "cuda", "driver": "550.54", "gpus": (0..count).map(gpu).collect::<Vec<_>>()});
        let gpus = Self { file: host.home().join("gpus.json"), state };
        gpus.write_file();
        gpus
    }

    fn write_file(&self) {
        let new = self.file.with_extension("new");
        std::fs::write(&new, self.state.to_string()).and_then(|()| std::fs::rename(new, &self.file)).expect("a file");
    }

    fn set(&mut self, gpu: usize, key: &str, value: Value) {
        self.state["gpus"][gpu][key] = value;
        self.write_file();
    }

    fn variable(&self) -> (&'static str, String) {
        ("SIMPLETUNER_FAKE_GPUS", self.file.display().to_string())
    }
}

/// Returns the GPUs of a worker as an admin sees them.
async fn reported_gpus(fleet: &TestFleet, host: &WorkerHost) -> Vec<Value> {
    let worker = fleet.api.try_get(&format!("/api/admin/workers/{}", host.worker)).await.unwrap_or_default();
    worker["gpus"].as_array().cloned().unwrap_or_default()
}

async fn wait_until_unavailable(fleet: &TestFleet, host: &WorkerHost, gpu: usize, reason: Option<&str>) -> Value {
    wait_until(&format!("GPU {gpu} to be unavailable: {reason:?}"), async || {
        let gpu = reported_gpus(fleet, host).await.get(gpu)?.clone();
        (gpu["unavailable"]["reason"].as_str() == reason).then_some(gpu)
    })
    .await
}

#[tokio::test]
async fn jobs_share_a_host_and_each_has_its_own_gpu() {
    let fleet = TestFleet::start().await;
    let host = fleet
        .add_host("shared")
        .await
        .with_python_trainer(trainers::GPUS_AT_THE_GATE)
        .with_flags(&["--max-jobs", "per-gpu"]);
    let gpus = SimulatedGpus::of(&host, 2);
    let host = host.with_variable(gpus.variable());
    let _agent = host.start();
    let request = json!({"config_name": "digits-quick", "target": "worker", "gpu_count": 1});
    let jobs = [fleet.api.submit_with(&request).await, fleet.api.submit_with(&request).await];
    let third = fleet.api.submit_with(&request).await;
    for job in &jobs {
        fleet.api.wait_for_job(job, "running").await;
        fleet.api.wait_for_log(job, "GPU-0\n".len() as u64).await;
    }
    assert_eq!(fleet.api.job(&third).await["status"], "queued");
    let mut outputs = [fleet.api.log(&jobs[0]).await, fleet.api.log(&jobs[1]).await];
    outputs.sort();
    assert_eq!(outputs, ["GPU-0\n", "GPU-1\n"]);

    // One is cancelled; the other continues, and the third gets the free GPU.
    fleet.api.post(&format!("/api/queue/{}/cancel", jobs[0]), &json!({})).await;
    fleet.api.wait_for_job(&jobs[0], "cancelled").await;
    fleet.api.wait_for_job(&third, "running").await;
    assert_eq!(fleet.api.job(&jobs[1]).await["status"], "running");
    host.open_gate();
    for job in [&jobs[1], &third] {
        assert_eq!(fleet.api.wait_for_job(job, "completed").await["attempt"], 1);
    }
}

#[tokio::test]
async fn gpu_in_use_by_another_process_is_not_allocated() {
    let fleet = TestFleet::start().await;
    let host = fleet.add_host("borrowed").await.with_python_trainer(trainers::AT_THE_GATE);
    let mut gpus = SimulatedGpus::of(&host, 1);
    let host = host.with_variable(gpus.variable());
    let _agent = host.start();
    fleet.api.wait_for_worker(&host.worker, "idle").await;
    gpus.set(0, "processes", json!([{"pid": 4711, "name": "a game"}]));
    let gpu = wait_until_unavailable(&fleet, &host, 0, Some("in_use")).await;
    assert!(gpu["unavailable"]["detail"].as_str().is_some_and(|detail| detail.contains("a game")), "{gpu:#}");
    let job = fleet.api.submit("digits-quick").await;
    let explanation = fleet.api.get(&format!("/api/queue/{job}/explain")).await["text"].to_string();
    assert!(explanation.contains("a game"), "{explanation}");
    gpus.set(0, "processes", json!([]));
    fleet.api.wait_for_job(&job, "running").await;
    host.open_gate();
    assert_eq!(fleet.api.wait_for_job(&job, "completed").await["attempt"], 1);
}

#[tokio::test]
async fn broken_gpu_is_quarantined_and_gets_no_job() {
    let fleet = TestFleet::start().await;
    let host = fleet
        .add_host("broken")
        .await
        .with_python_trainer(trainers::GPUS_AT_THE_GATE)
        .with_flags(&["--max-jobs", "per-gpu"]);
    let mut gpus = SimulatedGpus::of(&host, 2);
    let host = host.with_variable(gpus.variable());
    let agent = host.start();
    fleet.api.wait_for_worker(&host.worker, "idle").await;
    gpus.set(0, "xids", json!([79]));
    let gpu = wait_until_unavailable(&fleet, &host, 0, Some("quarantined")).await;
    assert!(gpu["unavailable"]["detail"].as_str().is_some_and(|detail| detail.contains("79")), "{gpu:#}");
    // A new agent keeps the quarantine, although the driver no longer reports the error.
    agent.kill().await;
    gpus.set(0, "xids", json!([]));
    let _next = host.start();
    fleet.api.wait_for_contact(&host.worker).await;
    wait_until_unavailable(&fleet, &host, 0, Some("quarantined")).await;
    let job = fleet.api.submit("digits-quick").await;
    fleet.api.wait_for_log(&job, "GPU-1\n".len() as u64).await;
    host.open_gate();
    fleet.api.wait_for_job(&job, "completed").await;
    assert_eq!(fleet.api.log(&job).await, "GPU-1\n");
}

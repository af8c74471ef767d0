//! Hosts with GPUs, as a file makes them up: shared between jobs, withheld when somebody else has them, or when they break.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::harness::{Fleet, Host, trainers, until};

/// GPUs that a test moves.
struct Gpus {
    file: PathBuf,
    now: Value,
}

impl Gpus {
    fn of(host: &Host, count: usize) -> Self {
        let gpu = |n| json!({"uuid": format!("GPU-{n}"), "name": "H100", "vram_gb": 80.0, "reading": {"temperature_celsius": 40.0 }});
        let now = json!({"accelerator": "cuda", "driver": "550.54", "gpus": (0..count).map(gpu).collect::<Vec<_>>()});
        let gpus = Self { file: host.home().join("gpus.json"), now };
        gpus.show();
        gpus
    }

    fn show(&self) {
        let new = self.file.with_extension("new");
        std::fs::write(&new, self.now.to_string()).and_then(|()| std::fs::rename(new, &self.file)).expect("a file");
    }

    fn set(&mut self, gpu: usize, key: &str, value: Value) {
        self.now["gpus"][gpu][key] = value;
        self.show();
    }

    fn variable(&self) -> (&'static str, String) {
        ("SIMPLETUNER_FAKE_GPUS", self.file.display().to_string())
    }
}

/// The GPUs of a worker, as an administrator sees them.
async fn seen(fleet: &Fleet, host: &Host) -> Vec<Value> {
    let worker = fleet.api.try_get(&format!("/api/admin/workers/{}", host.worker)).await.unwrap_or_default();
    worker["gpus"].as_array().cloned().unwrap_or_default()
}

async fn until_withheld(fleet: &Fleet, host: &Host, gpu: usize, reason: Option<&str>) -> Value {
    until(&format!("GPU {gpu} to be withheld: {reason:?}"), async || {
        let gpu = seen(fleet, host).await.get(gpu)?.clone();
        (gpu["withheld"]["reason"].as_str() == reason).then_some(gpu)
    })
    .await
}

#[tokio::test]
async fn jobs_share_a_host_and_each_has_its_own_gpu() {
    let fleet = Fleet::start().await;
    let host = fleet.host("shared").await.training_with(trainers::GPUS_AT_THE_GATE).flags(&["--max-jobs", "per-gpu"]);
    let gpus = Gpus::of(&host, 2);
    let host = host.with(gpus.variable());
    let _agent = host.start();
    let wish = json!({"config_name": "digits-quick", "target": "worker", "gpu_count": 1});
    let jobs = [fleet.api.submit_with(&wish).await, fleet.api.submit_with(&wish).await];
    let third = fleet.api.submit_with(&wish).await;
    for job in &jobs {
        fleet.api.until_job(job, "running").await;
        fleet.api.until_log(job, "GPU-0\n".len() as u64).await;
    }
    assert_eq!(fleet.api.job(&third).await["status"], "queued");
    let mut had = [fleet.api.log(&jobs[0]).await, fleet.api.log(&jobs[1]).await];
    had.sort();
    assert_eq!(had, ["GPU-0\n", "GPU-1\n"]);

    // One is cancelled; the other goes on, and the third gets what is free.
    fleet.api.post(&format!("/api/queue/{}/cancel", jobs[0]), &json!({})).await;
    fleet.api.until_job(&jobs[0], "cancelled").await;
    fleet.api.until_job(&third, "running").await;
    assert_eq!(fleet.api.job(&jobs[1]).await["status"], "running");
    host.open_gate();
    for job in [&jobs[1], &third] {
        assert_eq!(fleet.api.until_job(job, "completed").await["attempt"], 1);
    }
}

#[tokio::test]
async fn a_gpu_that_somebody_else_uses_is_shown_and_not_given_out() {
    let fleet = Fleet::start().await;
    let host = fleet.host("borrowed").await.training_with(trainers::AT_THE_GATE);
    let mut gpus = Gpus::of(&host, 1);
    let host = host.with(gpus.variable());
    let _agent = host.start();
    fleet.api.until_worker(&host.worker, "idle").await;
    gpus.set(0, "processes", json!([{"pid": 4711, "name": "a game"}]));
    let gpu = until_withheld(&fleet, &host, 0, Some("in_use")).await;
    assert!(gpu["withheld"]["detail"].as_str().is_some_and(|detail| detail.contains("a game")), "{gpu:#}");
    let job = fleet.api.submit("digits-quick").await;
    let why = fleet.api.get(&format!("/api/queue/{job}/explain")).await["text"].to_string();
    assert!(why.contains("a game"), "{why}");
    gpus.set(0, "processes", json!([]));
    fleet.api.until_job(&job, "running").await;
    host.open_gate();
    assert_eq!(fleet.api.until_job(&job, "completed").await["attempt"], 1);
}

#[tokio::test]
async fn a_gpu_that_breaks_is_quarantined_and_eats_no_job() {
    let fleet = Fleet::start().await;
    let host = fleet.host("broken").await.training_with(trainers::GPUS_AT_THE_GATE).flags(&["--max-jobs", "per-gpu"]);
    let mut gpus = Gpus::of(&host, 2);
    let host = host.with(gpus.variable());
    let agent = host.start();
    fleet.api.until_worker(&host.worker, "idle").await;
    gpus.set(0, "xids", json!([79]));
    let gpu = until_withheld(&fleet, &host, 0, Some("quarantined")).await;
    assert!(gpu["withheld"]["detail"].as_str().is_some_and(|detail| detail.contains("79")), "{gpu:#}");
    // Another agent does not forget it, although the driver says nothing of it any more.
    agent.kill().await;
    gpus.set(0, "xids", json!([]));
    let _next = host.start();
    fleet.api.until_heard_again(&host.worker).await;
    until_withheld(&fleet, &host, 0, Some("quarantined")).await;
    let job = fleet.api.submit("digits-quick").await;
    fleet.api.until_log(&job, "GPU-1\n".len() as u64).await;
    host.open_gate();
    fleet.api.until_job(&job, "completed").await;
    assert_eq!(fleet.api.log(&job).await, "GPU-1\n");
}

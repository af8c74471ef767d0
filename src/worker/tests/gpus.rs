//! The GPUs of a host: their telemetry, their users, and what makes them unavailable to jobs. A file simulates them.

use std::io;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::fake_orchestrator::{FakeOrchestrator, FakeState};
use super::test_host::{TestHost, wait_until};

/// A PID that no host has.
const HOST_PID: u32 = 2_147_483_001;

fn config() -> Value {
    json!({"config.json": "{}"})
}

/// The file that simulates the GPUs.
struct FakeGpus {
    path: PathBuf,
    content: Value,
}

impl FakeGpus {
    /// Configures the host to use it.
    fn install(host: &mut TestHost, content: Value) -> io::Result<Self> {
        let path = host.path().join("gpus.json");
        host.variables.push(("SIMPLETUNER_FAKE_GPUS".to_owned(), path.display().to_string()));
        let gpus = Self { path, content };
        gpus.write()?;
        Ok(gpus)
    }

    /// One GPU with the name `GPU-1`.
    fn with_one_gpu(host: &mut TestHost) -> io::Result<Self> {
        Self::install(host, json!({"gpus": [{"uuid": "GPU-1", "name": "H100", "vram_gb": 80.0}]}))
    }

    /// Atomically, because the agent may read it at any time.
    fn write(&self) -> io::Result<()> {
        let temp_path = self.path.with_extension("draft");
        std::fs::write(&temp_path, self.content.to_string())?;
        std::fs::rename(&temp_path, &self.path)
    }

    /// Changes a field of the first GPU.
    fn set(&mut self, field: &str, value: Value) -> io::Result<()> {
        self.content["gpus"][0][field] = value;
        self.write()
    }

    fn hang(&mut self, hang: bool) -> io::Result<()> {
        self.content["hang"] = hang.into();
        self.write()
    }
}

/// The newest sample of the first GPU in the heartbeats from this one on.
fn newest_reading(shared: &FakeState, from: usize) -> Option<Value> {
    let mut beats = shared.heartbeats.get(from..)?.iter().rev();
    let sample = beats.find_map(|beat| beat["telemetry"].as_array()?.last().cloned())?;
    Some(sample["gpus"][0].clone())
}

/// Waits until the first GPU is unavailable for this reason, and returns the detail.
async fn wait_until_unavailable(fake: &FakeOrchestrator, reason: &str) -> String {
    let found = fake.wait_until(reason, |shared| {
        let gpu = newest_reading(shared, 0)?;
        (gpu["unavailable"]["reason"] == reason).then(|| gpu["unavailable"]["detail"].clone())
    });
    found.await.as_str().unwrap_or_default().to_owned()
}

/// Waits for a new heartbeat in which the first GPU is not unavailable.
async fn wait_until_free(fake: &FakeOrchestrator) {
    let heartbeat_count = fake.state().heartbeats.len();
    let is_free =
        |shared: &mut FakeState| newest_reading(shared, heartbeat_count)?["unavailable"].is_null().then_some(());
    fake.wait_until("an available GPU", is_free).await;
}

/// Waits for this many further heartbeats.
async fn wait_for_heartbeats(fake: &FakeOrchestrator, count: usize) {
    let before = fake.state().heartbeats.len();
    fake.wait_until("heartbeats", |shared| (shared.heartbeats.len() >= before + count).then_some(())).await;
}

#[tokio::test]
async fn driver_installed_after_the_start_is_found() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let mut host = TestHost::with_script("exit 0")?.flags(&["--persistent"]);
    let mut gpus = FakeGpus::install(&mut host, json!({"error": "no driver"}))?;
    let agent = host.start(&fake)?;
    let first = fake.wait_until("a registration", |shared| shared.registrations.first().cloned()).await;
    assert_eq!((first.get("gpus"), &first["accelerator_type"]), (None, &json!("cpu")));
    gpus.content = json!({"gpus": [{"uuid": "GPU-1", "name": "H100", "vram_gb": 80.0}]});
    gpus.write()?;
    let with_gpu = |shared: &mut FakeState| {
        shared.registrations.iter().find(|registration| registration["gpus"][0]["uuid"] == "GPU-1").cloned()
    };
    let second = fake.wait_until("a registration with a GPU", with_gpu).await;
    assert_eq!((&second["accelerator_type"], &second["install_id"]), (&json!("cuda"), &first["install_id"]));
    assert_ne!(second["boot_id"], first["boot_id"]);
    // It is the same process, which its supervisor still knows.
    fake.offer_with_gpus(&["GPU-1"], "j_1", 1, &config());
    fake.wait_for_status("completed").await;
    agent.kill().await
}

#[tokio::test]
async fn gpus_are_registered_and_readings_sent_once() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let mut host = TestHost::with_script("")?.flags(&["--persistent"]);
    let all = json!({"driver": "550.54", "runtime": "12.4", "gpus": [
        {"uuid": "MIG-1", "name": "H100 1g", "vram_gb": 10.0, "memory_kind": "dedicated", "part_of": "GPU-1",
         "reading": {"temperature_celsius": 41.0, "memory_used_gb": 1.5, "ecc_errors": 0}},
        {"uuid": "GPU-2", "name": "GB10", "memory_kind": "unified", "reading": {"power_watts": 12.5}},
    ]});
    let _gpus = FakeGpus::install(&mut host, all)?;
    let agent = host.start(&fake)?;
    let register = fake.wait_until("a registration", |shared| shared.registrations.first().cloned()).await;
    assert_eq!(register["gpu_info"]["runtime"], "12.4");
    assert_eq!(
        register["gpus"],
        json!([
            {"index": 0, "uuid": "MIG-1", "name": "H100 1g", "vram_gb": 10.0, "memory_kind": "dedicated", "part_of": "GPU-1"},
            {"index": 1, "uuid": "GPU-2", "name": "GB10", "vram_gb": null, "memory_kind": "unified"},
        ])
    );
    let readings = fake.wait_until("three samples", |shared| {
        let telemetry = shared.heartbeats.iter().filter_map(|beat| beat["telemetry"].as_array());
        let readings: Vec<Value> = telemetry.flatten().cloned().collect();
        (readings.len() >= 3).then_some(readings)
    });
    let readings = readings.await;
    let mut times: Vec<&str> = readings.iter().filter_map(|sample| sample["at"].as_str()).collect();
    times.dedup();
    assert_eq!(times.len(), readings.len(), "an acknowledged sample is not sent again");
    assert_eq!(
        readings[0]["gpus"],
        json!([
            {"uuid": "MIG-1", "temperature_celsius": 41.0, "memory_used_gb": 1.5, "ecc_errors": 0},
            {"uuid": "GPU-2", "power_watts": 12.5},
        ])
    );
    agent.kill().await
}

#[tokio::test]
async fn foreign_process_makes_a_gpu_unavailable_immediately() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    // The next regular heartbeat would be within the hour.
    fake.state().hold_streams = true;
    let mut host = TestHost::with_script("")?.flags(&["--persistent"]);
    let mut gpus = FakeGpus::with_one_gpu(&mut host)?;
    let agent = host.start(&fake)?;
    fake.wait_until("a registration", |shared| shared.registrations.first().cloned()).await;
    gpus.set("processes", json!([{"pid": 4711, "name": "blender"}]))?;
    assert_eq!(wait_until_unavailable(&fake, "in_use").await, "used by process 4711 (blender)");
    gpus.set("processes", json!([]))?;
    wait_until_free(&fake).await;
    agent.kill().await
}

#[tokio::test]
async fn severe_error_quarantines_until_release() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let mut host = TestHost::with_script("")?.flags(&["--persistent"]);
    let mut gpus = FakeGpus::with_one_gpu(&mut host)?;
    let agent = host.start(&fake)?;
    gpus.set("xids", json!([31]))?;
    // Two polls see one error or none of both.
    let start = fake.state().heartbeats.len();
    let has_two_polls = |shared: &mut FakeState| {
        let beats = shared.heartbeats.iter().skip(start);
        (beats.filter(|beat| beat["telemetry"].is_array()).count() >= 2).then_some(())
    };
    fake.wait_until("two polls", has_two_polls).await;
    assert!(
        newest_reading(&fake.state(), 0).is_some_and(|gpu| gpu["unavailable"].is_null()),
        "an application error does not affect the GPU"
    );
    gpus.set("xids", json!([31, 79]))?;
    assert_eq!(wait_until_unavailable(&fake, "quarantined").await, "XID 79: it has fallen off the bus");
    agent.kill().await?;

    gpus.set("xids", json!([]))?;
    let agent = host.start(&fake)?;
    let registration = fake.wait_until("a second registration", |shared| shared.registrations.get(1).cloned()).await;
    assert_eq!(registration["gpus"][0]["unavailable"]["detail"], "XID 79: it has fallen off the bus");
    let (code, output) = host.command(&["gpus"]).await?;
    assert!(code == Some(0) && output.contains("GPU-1  H100, 80 GB  in quarantine: XID 79"), "{output}");
    let (code, output) = host.command(&["gpus", "release", "GPU-2"]).await?;
    assert!(code == Some(1) && output.contains("GPU-2 is not in quarantine"), "{output}");
    let (code, output) = host.command(&["gpus", "release", "GPU-1"]).await?;
    assert!(code == Some(0) && output.contains("from quarantine."), "{output}");
    wait_until_free(&fake).await;
    agent.kill().await
}

#[tokio::test]
async fn unhealthy_gpu_requeues_its_job_and_gets_no_other() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let mut host = TestHost::with_script("echo began")?.flags(&["--persistent"]);
    let mut gpus = FakeGpus::with_one_gpu(&mut host)?;
    gpus.set("processes", json!([{"pid": 4711, "name": "blender"}]))?;
    let agent = host.start(&fake)?;
    fake.offer_with_gpus(&["GPU-1"], "j_1", 1, &config());
    let report = fake.wait_for_status("requeue").await;
    assert!(
        report["error"].as_str().is_some_and(|error| error.contains("GPU-1 is used by process 4711 (blender)")),
        "{report}"
    );
    assert_eq!(fake.reported_statuses(), ["starting", "requeue"]);
    assert_eq!(wait_until_unavailable(&fake, "in_use").await, "used by process 4711 (blender)");
    assert!(!host.attempt("j_1", 1).join("supervisor.json").exists() && fake.state().log.is_empty());

    // No process is left, but the driver does not respond.
    gpus.set("processes", json!([]))?;
    wait_until_free(&fake).await;
    gpus.hang(true)?;
    fake.state().statuses.clear();
    fake.offer_with_gpus(&["GPU-1"], "j_2", 1, &config());
    let report = fake.wait_for_status("requeue").await;
    assert!(report["error"].as_str().is_some_and(|error| error.contains("did not respond within 5 s")), "{report}");
    assert_eq!(wait_until_unavailable(&fake, "quarantined").await, "it did not respond within 5 s before a job");
    assert!(!host.attempt("j_2", 1).join("supervisor.json").exists());
    agent.kill().await
}

#[tokio::test]
async fn end_is_reported_when_the_gpu_is_free() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let script = "echo \"$ROCR_VISIBLE_DEVICES/$HIP_VISIBLE_DEVICES/$CUDA_VISIBLE_DEVICES\"; exec sleep 1000";
    let mut host = TestHost::with_script(script)?.flags(&["--persistent"]);
    let mut gpus = FakeGpus::with_one_gpu(&mut host)?;
    gpus.content["accelerator"] = "rocm".into();
    gpus.write()?;
    let agent = host.start(&fake)?;
    fake.offer_with_gpus(&["GPU-1"], "j_1", 1, &config());
    fake.wait_for_status("running").await;
    fake.wait_until("its GPUs", |shared| shared.log.ends_with(b"\n").then_some(())).await;
    assert_eq!(String::from_utf8_lossy(&fake.state().log), "GPU-1/0/0\n");
    // In a container it is the host's PID, and nothing shows that it is the trainer.
    gpus.set("processes", json!([{"pid": HOST_PID}]))?;
    gpus.set("reading", json!({"power_watts": 300.0}))?;
    fake.wait_until("a poll", |shared| (newest_reading(shared, 0)?["power_watts"] == 300.0).then_some(())).await;
    assert!(newest_reading(&fake.state(), 0).is_some_and(|gpu| gpu["unavailable"].is_null()));
    fake.stop("j_1", 1, "cancelled");
    let dir = host.attempt("j_1", 1);
    wait_until("the trainer's end", || dir.join("exit.json").exists().then_some(())).await;
    wait_for_heartbeats(&fake, 3).await;
    assert_eq!(fake.reported_statuses(), ["starting", "running"]);
    gpus.set("processes", json!([]))?;
    fake.wait_for_status("cancelled").await;
    wait_until_free(&fake).await;
    agent.kill().await
}

#[tokio::test]
async fn foreign_process_delays_no_end_but_blocks_the_next_job() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let mut host = TestHost::with_script("while [ ! -e ../control/go ]; do sleep 0.02; done")?.flags(&["--persistent"]);
    let mut gpus = FakeGpus::with_one_gpu(&mut host)?;
    let agent = host.start(&fake)?;
    fake.offer_with_gpus(&["GPU-1"], "j_1", 1, &config());
    fake.wait_for_status("running").await;
    // This process is certainly not part of the job.
    let other_process = std::process::id();
    gpus.set("processes", json!([{"pid": other_process, "name": "blender"}]))?;
    std::fs::write(host.attempt("j_1", 1).control_dir().join("go"), "")?;
    fake.wait_for_status("completed").await;
    assert_eq!(wait_until_unavailable(&fake, "in_use").await, format!("used by process {other_process} (blender)"));
    agent.kill().await
}

#[tokio::test]
async fn gpu_with_unreleased_memory_is_unavailable() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let mut host = TestHost::with_script("while [ ! -e ../control/go ]; do sleep 0.02; done")?.flags(&["--persistent"]);
    let mut gpus = FakeGpus::with_one_gpu(&mut host)?;
    let agent = host.start(&fake)?;
    fake.offer_with_gpus(&["GPU-1"], "j_1", 1, &config());
    fake.wait_for_status("running").await;
    gpus.set("processes", json!([{"pid": HOST_PID, "name": "python3"}]))?;
    std::fs::write(host.attempt("j_1", 1).control_dir().join("go"), "")?;
    fake.wait_for_status("completed").await;
    let detail = wait_until_unavailable(&fake, "quarantined").await;
    assert_eq!(detail, "its memory is still in use by process 2147483001 (python3), 30 s after its job ended");
    agent.kill().await
}

#[tokio::test]
async fn hung_driver_does_not_delay_heartbeats() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let mut host = TestHost::with_script("")?.flags(&["--persistent"]);
    let mut gpus = FakeGpus::with_one_gpu(&mut host)?;
    let agent = host.start(&fake)?;
    fake.wait_until("telemetry", |shared| newest_reading(shared, 0)).await;
    gpus.hang(true)?;
    assert_eq!(wait_until_unavailable(&fake, "quarantined").await, "the driver has not responded for 15 s");
    let heartbeat_count = fake.state().heartbeats.len();
    wait_for_heartbeats(&fake, 3).await;
    let has_readings = |beat: &Value| beat["telemetry"].is_array();
    assert!(!fake.state().heartbeats[heartbeat_count..].iter().any(has_readings), "no readings without a driver");
    gpus.hang(false)?;
    wait_until_free(&fake).await;
    agent.kill().await
}

#[tokio::test]
async fn driver_not_loaded_yet_keeps_known_gpus() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let mut host = TestHost::with_script("")?.flags(&["--persistent"]);
    let gpus = FakeGpus::with_one_gpu(&mut host)?;
    let agent = host.start(&fake)?;
    fake.wait_until("a registration", |shared| shared.registrations.first().cloned()).await;
    agent.kill().await?;
    let content = std::fs::read(&gpus.path)?;
    std::fs::write(&gpus.path, "{}")?;
    let agent = host.start(&fake)?;
    let registration = fake.wait_until("a second registration", |shared| shared.registrations.get(1).cloned()).await;
    assert_eq!(
        (&registration["gpus"][0]["uuid"], &registration["accelerator_type"]),
        (&json!("GPU-1"), &json!("cuda"))
    );
    assert!(registration["gpus"][0]["unavailable"].is_object(), "{registration}");
    std::fs::write(&gpus.path, content)?;
    wait_until_free(&fake).await;
    agent.kill().await
}

#[tokio::test]
async fn agent_started_with_hung_driver_reports_known_gpus_unavailable() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let mut host = TestHost::with_script("")?.flags(&["--persistent"]);
    let mut gpus = FakeGpus::with_one_gpu(&mut host)?;
    let agent = host.start(&fake)?;
    fake.wait_until("a registration", |shared| shared.registrations.first().cloned()).await;
    agent.kill().await?;
    gpus.hang(true)?;
    let agent = host.start(&fake)?;
    let registration = fake.wait_until("a second registration", |shared| shared.registrations.get(1).cloned()).await;
    assert_eq!(
        (&registration["gpus"][0]["uuid"], &registration["accelerator_type"]),
        (&json!("GPU-1"), &json!("cuda"))
    );
    assert_eq!(registration["gpus"][0]["unavailable"]["detail"], "the driver has not responded for 20 s");
    gpus.hang(false)?;
    wait_until_free(&fake).await;
    agent.kill().await
}

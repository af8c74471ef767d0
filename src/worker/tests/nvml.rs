//! NVIDIA's GPUs through NVML: the agent loads a library of that name, which is compiled here and simulates the GPUs.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use super::fake_orchestrator::{FakeOrchestrator, FakeState};
use super::test_host::TestHost;

/// The directory whose files control the GPUs; see the library.
struct FakeNvml(PathBuf);

impl FakeNvml {
    fn install(host: &mut TestHost) -> io::Result<Self> {
        let dir = host.path().join("driver");
        std::fs::create_dir(&dir)?;
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/worker/tests/nvml.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-Wall", "-Werror", "-o"]).arg(dir.join("libnvidia-ml.so.1")).arg(source);
        assert!(compiler.status()?.success(), "the library cannot be compiled");
        for variable in ["LD_LIBRARY_PATH", "NVML_STUB"] {
            host.variables.push((variable.to_owned(), dir.display().to_string()));
        }
        let path = std::env::var("PATH").unwrap_or_default();
        host.variables.push(("PATH".to_owned(), format!("{}:{path}", dir.display())));
        Ok(Self(dir))
    }

    /// Atomically, because it may be read at any time.
    fn write(&self, file: &str, text: &str) -> io::Result<()> {
        std::fs::write(self.0.join("draft"), text)?;
        std::fs::rename(self.0.join("draft"), self.0.join(file))
    }

    fn start_count(&self) -> usize {
        std::fs::read(self.0.join("begun")).unwrap_or_default().len()
    }
}

/// The newest sample of a GPU from this heartbeat on.
fn newest_reading(shared: &FakeState, from: usize, gpu: usize) -> Option<Value> {
    let mut beats = shared.heartbeats.get(from..)?.iter().rev();
    let sample = beats.find_map(|beat| beat["telemetry"].as_array()?.last().cloned())?;
    Some(sample["gpus"][gpu].clone())
}

async fn wait_until_unavailable(fake: &FakeOrchestrator, detail: &str) {
    let is_unavailable = |shared: &mut FakeState| {
        let current = newest_reading(shared, 0, 0)?["unavailable"]["detail"].as_str()?.to_owned();
        current.contains(detail).then_some(())
    };
    fake.wait_until(detail, is_unavailable).await;
}

/// Waits for the next sample of the whole GPU.
async fn next_heartbeat(fake: &FakeOrchestrator) -> Value {
    let from = fake.state().heartbeats.len();
    fake.wait_until("telemetry", |shared| newest_reading(shared, from, 0)).await
}

#[tokio::test]
async fn gpus_are_read_independently() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let mut host = TestHost::with_script("")?.flags(&["--persistent"]);
    let driver = FakeNvml::install(&mut host)?;
    let agent = host.start(&fake)?;
    let register = fake.wait_until("a registration", |shared| shared.registrations.first().cloned()).await;
    assert_eq!(
        (&register["gpu_info"]["driver"], &register["gpu_info"]["runtime"]),
        (&json!("550.54.14"), &json!("12.4"))
    );
    assert_eq!(
        register["gpus"],
        json!([
            {"index": 0, "uuid": "GPU-whole", "name": "NVIDIA H100", "vram_gb": 80.0, "memory_kind": "dedicated"},
            {"index": 1, "uuid": "GPU-shared", "name": "NVIDIA GB10", "vram_gb": null, "memory_kind": "unified"},
            {"index": 2, "uuid": "MIG-part", "name": "NVIDIA H200 MIG 1g.18gb", "vram_gb": 16.0, "memory_kind": "dedicated",
             "part_of": "GPU-parted"},
        ])
    );
    let reading = next_heartbeat(&fake).await;
    assert_eq!(
        reading,
        json!({"uuid": "GPU-whole", "utilization_percent": 97.0, "memory_used_gb": 1.5, "temperature_celsius": 41.0,
            "power_watts": 412.5, "power_limit_watts": 700.0, "clock_mhz": 1980, "memory_clock_mhz": 2619, "ecc_errors": 2})
    );
    let other = |gpu| newest_reading(&fake.state(), 0, gpu);
    assert_eq!(other(1), Some(json!({"uuid": "GPU-shared", "temperature_celsius": 41.0})));
    assert_eq!(other(2), Some(json!({"uuid": "MIG-part", "memory_used_gb": 1.5, "temperature_celsius": 41.0})));
    driver.write("processes", &std::process::id().to_string())?;
    wait_until_unavailable(&fake, &format!("used by process {} (", std::process::id())).await;
    assert_eq!(driver.start_count(), 1);
    agent.kill().await
}

/// Output of `nvidia-smi`, which lists what the library does not report.
const NVIDIA_SMI: &str = "#!/bin/sh
echo '<gpu id=\"1\"><mig_devices><mig_device><index>2</index><gpu_instance_id>5</gpu_instance_id>'
echo '<compute_instance_id>1</compute_instance_id></mig_device></mig_devices><uuid>GPU-parted</uuid></gpu>'
";

#[tokio::test]
async fn mig_instances_are_known() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let mut host = TestHost::with_script("")?.flags(&["--persistent"]);
    let driver = FakeNvml::install(&mut host)?;
    driver.write("nvidia-smi", NVIDIA_SMI)?;
    std::fs::set_permissions(driver.0.join("nvidia-smi"), std::fs::Permissions::from_mode(0o755))?;
    let agent = host.start(&fake)?;
    fake.wait_until("a registration", |shared| shared.registrations.first().map(drop)).await;
    let cached: Value = serde_json::from_slice(&std::fs::read(host.path().join("state/gpus.json"))?)?;
    assert_eq!(cached["parts"], json!({"MIG-part": {"gpu": 5, "compute": 1}}));
    agent.kill().await
}

#[tokio::test]
async fn replaced_driver_is_reloaded_and_lost_gpu_stays_known() -> io::Result<()> {
    let fake = FakeOrchestrator::start().await?;
    let mut host = TestHost::with_script("")?.flags(&["--persistent"]);
    let driver = FakeNvml::install(&mut host)?;
    let agent = host.start(&fake)?;
    assert_eq!(next_heartbeat(&fake).await["temperature_celsius"], 41.0);
    driver.write("generation", "2")?;
    fake.wait_until("the library to be reloaded", |_| (driver.start_count() == 2).then_some(())).await;
    let after = next_heartbeat(&fake).await;
    assert!(after["unavailable"].is_null() && after["temperature_celsius"] == 41.0, "{after}");

    // Errors are also received from the new one.
    driver.write("xid", "48")?;
    wait_until_unavailable(&fake, "XID 48: an uncorrectable memory error").await;
    assert!(newest_reading(&fake.state(), 0, 1).is_some_and(|other| other["unavailable"].is_null()));
    let (code, output) = host.command(&["gpus", "release", "GPU-whole"]).await?;
    assert_eq!(code, Some(0), "{output}");
    driver.write("lost", "")?;
    wait_until_unavailable(&fake, "it no longer responds: device fell off the bus").await;
    assert_eq!(driver.start_count(), 2);
    agent.kill().await
}

//! NVIDIA's GPUs by NVML itself: the agent loads a library of that name, which was compiled here and has no GPU below it.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use super::fake::{Fake, Shared};
use super::host::Host;

/// Where files move the GPUs; see the library.
struct Driver(PathBuf);

impl Driver {
    /// On this host.
    fn on(host: &mut Host) -> io::Result<Self> {
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

    /// Whole, as it may be read at any moment.
    fn says(&self, file: &str, text: &str) -> io::Result<()> {
        std::fs::write(self.0.join("draft"), text)?;
        std::fs::rename(self.0.join("draft"), self.0.join(file))
    }

    fn begun(&self) -> usize {
        std::fs::read(self.0.join("begun")).unwrap_or_default().len()
    }
}

/// The newest thing that was told of a GPU from this heartbeat on.
fn newest(shared: &Shared, from: usize, gpu: usize) -> Option<Value> {
    let mut beats = shared.heartbeats.get(from..)?.iter().rev();
    let moment = beats.find_map(|beat| beat["telemetry"].as_array()?.last().cloned())?;
    Some(moment["gpus"][gpu].clone())
}

async fn withheld(fake: &Fake, detail: &str) {
    let is_said = |shared: &mut Shared| {
        let said = newest(shared, 0, 0)?["withheld"]["detail"].as_str()?.to_owned();
        said.contains(detail).then_some(())
    };
    fake.until(detail, is_said).await;
}

/// Waits for what is told next of the GPU that is whole.
async fn next(fake: &Fake) -> Value {
    let from = fake.shared().heartbeats.len();
    fake.until("telemetry", |shared| newest(shared, from, 0)).await
}

#[tokio::test]
async fn every_gpu_says_what_it_can_and_none_hides_another() -> io::Result<()> {
    let fake = Fake::start().await?;
    let mut host = Host::with_script("")?.flags(&["--persistent"]);
    let driver = Driver::on(&mut host)?;
    let agent = host.start(&fake)?;
    let register = fake.until("a registration", |shared| shared.registers.first().cloned()).await;
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
    let whole = next(&fake).await;
    assert_eq!(
        whole,
        json!({"uuid": "GPU-whole", "utilization_percent": 97.0, "memory_used_gb": 1.5, "temperature_celsius": 41.0,
            "power_watts": 412.5, "power_limit_watts": 700.0, "clock_mhz": 1980, "memory_clock_mhz": 2619, "ecc_errors": 2})
    );
    let other = |gpu| newest(&fake.shared(), 0, gpu);
    assert_eq!(other(1), Some(json!({"uuid": "GPU-shared", "temperature_celsius": 41.0})));
    assert_eq!(other(2), Some(json!({"uuid": "MIG-part", "memory_used_gb": 1.5, "temperature_celsius": 41.0})));
    driver.says("processes", &std::process::id().to_string())?;
    withheld(&fake, &format!("used by process {} (", std::process::id())).await;
    assert_eq!(driver.begun(), 1);
    agent.kill().await
}

/// As the driver's own program tells them, which the agent asks for what the library keeps to itself.
const PARTS: &str = "#!/bin/sh
echo '<gpu id=\"1\"><mig_devices><mig_device><index>2</index><gpu_instance_id>5</gpu_instance_id>'
echo '<compute_instance_id>1</compute_instance_id></mig_device></mig_devices><uuid>GPU-parted</uuid></gpu>'
";

#[tokio::test]
async fn what_a_part_is_made_of_is_known() -> io::Result<()> {
    let fake = Fake::start().await?;
    let mut host = Host::with_script("")?.flags(&["--persistent"]);
    let driver = Driver::on(&mut host)?;
    driver.says("nvidia-smi", PARTS)?;
    std::fs::set_permissions(driver.0.join("nvidia-smi"), std::fs::Permissions::from_mode(0o755))?;
    let agent = host.start(&fake)?;
    fake.until("a registration", |shared| shared.registers.first().map(drop)).await;
    let known: Value = serde_json::from_slice(&std::fs::read(host.path().join("state/gpus.json"))?)?;
    assert_eq!(known["parts"], json!({"MIG-part": {"gpu": 5, "compute": 1}}));
    agent.kill().await
}

#[tokio::test]
async fn a_driver_that_is_replaced_is_loaded_again_and_a_lost_gpu_is_not_forgotten() -> io::Result<()> {
    let fake = Fake::start().await?;
    let mut host = Host::with_script("")?.flags(&["--persistent"]);
    let driver = Driver::on(&mut host)?;
    let agent = host.start(&fake)?;
    assert_eq!(next(&fake).await["temperature_celsius"], 41.0);
    driver.says("generation", "2")?;
    fake.until("the library to be begun again", |_| (driver.begun() == 2).then_some(())).await;
    let after = next(&fake).await;
    assert!(after["withheld"].is_null() && after["temperature_celsius"] == 41.0, "{after}");

    // Errors are heard from the new one too.
    driver.says("xid", "48")?;
    withheld(&fake, "XID 48: a memory error that cannot be corrected").await;
    assert!(newest(&fake.shared(), 0, 1).is_some_and(|other| other["withheld"].is_null()));
    let (code, said) = host.command(&["gpus", "release", "GPU-whole"]).await?;
    assert_eq!(code, Some(0), "{said}");
    driver.says("lost", "")?;
    withheld(&fake, "it does not answer any more: device fell off the bus").await;
    assert_eq!(driver.begun(), 2);
    agent.kill().await
}

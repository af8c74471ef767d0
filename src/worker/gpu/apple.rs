//! Apple's GPUs, from the output of `system_profiler`. They share the host's memory and report no health.

use std::process::{Command, Stdio};

use app::protocol::gpu::{Gpu, GpuReading, MemoryKind};
use serde::Deserialize;

use super::Hardware;
use super::provider::{GpuProvider, GpuSnapshot};

/// The only GPU of the machine.
pub struct AppleProvider;

#[derive(Debug, Deserialize)]
struct SystemProfile {
    #[serde(rename = "SPDisplaysDataType", default)]
    displays: Vec<Display>,
}

#[derive(Debug, Deserialize)]
struct Display {
    #[serde(rename = "sppci_model", default)]
    model: String,
    #[serde(rename = "spdisplays_vendor", default)]
    vendor: String,
}

impl GpuProvider for AppleProvider {
    fn detect(&mut self) -> Result<Hardware, String> {
        if !cfg!(target_os = "macos") {
            return Ok(Hardware::cpu_only());
        }
        let mut command = Command::new("system_profiler");
        command.args(["SPDisplaysDataType", "-json"]).stdin(Stdio::null()).stderr(Stdio::null());
        let output = command.output().map_err(|error| format!("system_profiler: {error}"))?;
        parse_profile(&output.stdout)
    }

    fn poll(&mut self) -> Result<Vec<GpuSnapshot>, String> {
        let snapshot = |gpu: &Gpu| GpuSnapshot {
            reading: GpuReading { uuid: gpu.uuid.clone(), ..GpuReading::default() },
            ..GpuSnapshot::default()
        };
        Ok(vec![snapshot(&single_gpu(String::new()))])
    }
}

fn parse_profile(output: &[u8]) -> Result<Hardware, String> {
    let profile: SystemProfile = serde_json::from_slice(output).map_err(|error| format!("system_profiler: {error}"))?;
    let apple_display = profile.displays.into_iter().find(|display| display.vendor.ends_with("_Apple"));
    Ok(apple_display.map_or_else(Hardware::cpu_only, |display| Hardware {
        gpus: vec![single_gpu(display.model)],
        accelerator: "mps".to_owned(),
        ..Hardware::default()
    }))
}

/// A machine has one, so its ID is constant.
fn single_gpu(name: String) -> Gpu {
    Gpu { index: 0, uuid: "apple-0".to_owned(), name, memory_kind: Some(MemoryKind::Unified), ..Gpu::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_profiler_output_is_parsed() {
        let found = parse_profile(include_bytes!("recorded/m2-max.json")).unwrap_or_default();
        assert_eq!(found.accelerator, "mps");
        assert_eq!((found.gpus[0].name.as_str(), found.gpus[0].vram_gb), ("Apple M2 Max", None));
        assert_eq!(found.gpus[0].memory_kind, Some(MemoryKind::Unified));
        let other = r#"{"SPDisplaysDataType": [{"sppci_model": "Radeon", "spdisplays_vendor": "sppci_vendor_amd"}]}"#;
        assert_eq!(parse_profile(other.as_bytes()), Ok(Hardware::cpu_only()));
        assert!(parse_profile(b"").is_err());
    }
}

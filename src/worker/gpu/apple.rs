//! Apple's GPUs by what `system_profiler` prints. They share the host's memory and tell nothing of how they are.

use std::process::{Command, Stdio};

use app::protocol::gpu::{Gpu, GpuReading, MemoryKind};
use serde::Deserialize;

use super::Hardware;
use super::provider::{Provider, Seen};

/// The machine's only one.
pub struct Apple;

#[derive(Debug, Deserialize)]
struct Profile {
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

impl Provider for Apple {
    fn detect(&mut self) -> Result<Hardware, String> {
        if !cfg!(target_os = "macos") {
            return Ok(Hardware::none());
        }
        let mut command = Command::new("system_profiler");
        command.args(["SPDisplaysDataType", "-json"]).stdin(Stdio::null()).stderr(Stdio::null());
        let printed = command.output().map_err(|error| format!("system_profiler: {error}"))?;
        described(&printed.stdout)
    }

    fn look(&mut self) -> Result<Vec<Seen>, String> {
        let seen = |gpu: &Gpu| Seen {
            reading: GpuReading { uuid: gpu.uuid.clone(), ..GpuReading::default() },
            ..Seen::default()
        };
        Ok(vec![seen(&the_one(String::new()))])
    }
}

fn described(printed: &[u8]) -> Result<Hardware, String> {
    let profile: Profile = serde_json::from_slice(printed).map_err(|error| format!("system_profiler: {error}"))?;
    let own = profile.displays.into_iter().find(|display| display.vendor.ends_with("_Apple"));
    Ok(own.map_or_else(Hardware::none, |display| Hardware {
        gpus: vec![the_one(display.model)],
        accelerator: "mps".to_owned(),
        ..Hardware::default()
    }))
}

/// A machine has one, so its place is its name.
fn the_one(name: String) -> Gpu {
    Gpu { index: 0, uuid: "apple-0".to_owned(), name, memory_kind: Some(MemoryKind::Unified), ..Gpu::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_profiler_prints() {
        let found = described(include_bytes!("recorded/m2-max.json")).unwrap_or_default();
        assert_eq!(found.accelerator, "mps");
        assert_eq!((found.gpus[0].name.as_str(), found.gpus[0].vram_gb), ("Apple M2 Max", None));
        assert_eq!(found.gpus[0].memory_kind, Some(MemoryKind::Unified));
        let other = r#"{"SPDisplaysDataType": [{"sppci_model": "Radeon", "spdisplays_vendor": "sppci_vendor_amd"}]}"#;
        assert_eq!(described(other.as_bytes()), Ok(Hardware::none()));
        assert!(described(b"").is_err());
    }
}

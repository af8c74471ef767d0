//! The hardware of this host, its state, and whether jobs may use it.
//!
//! A [`provider::GpuProvider`] reads one vendor's interface. One thread polls it every few seconds ([`gpu_monitor`]),
//! because drivers hang; [`health`] evaluates the polls, and [`telemetry`] keeps them for the next heartbeat.
//! [`job_checks`] checks before and after a job whether its GPUs are healthy and free.

mod amd;
mod apple;
pub mod command;
mod devices;
mod fake;
mod gpu_monitor;
mod hardware_cache;
mod health;
mod intel;
mod job_checks;
mod late_gpus;
mod mig;
mod nvml;
mod provider;
mod quarantine;
mod sysfs;
mod telemetry;
mod visibility;
mod xid;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use app::protocol::gpu::{Gpu, GpuInfo};
use serde::{Deserialize, Serialize};

pub use gpu_monitor::{GpuMonitor, GpuReservation};
pub use late_gpus::forward_added_gpus;

use crate::worker::config::GpuOverrides;

/// The hardware to report.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Hardware {
    pub gpus: Vec<Gpu>,
    /// Instances of MIG partitions, by their IDs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parts: BTreeMap<String, mig::MigInstances>,
    /// Driver version.
    pub driver: Option<String>,
    /// The newest supported version of CUDA or ROCm.
    pub runtime: Option<String>,
    /// `cuda`, `rocm`, `mps`, `xpu` or `cpu`.
    pub accelerator: String,
}

impl Hardware {
    /// A host that computes on its CPU.
    pub fn cpu_only() -> Self {
        Self { accelerator: "cpu".to_owned(), ..Self::default() }
    }

    /// A host of a simulation with this many GPUs.
    #[cfg(feature = "simulation")]
    pub fn placeholders(count: u32, host: &str) -> Self {
        apply_overrides(Self::cpu_only(), &GpuOverrides { count: Some(count), ..GpuOverrides::default() }, host)
    }

    /// The summary in the format of older agents.
    pub fn summary(&self) -> GpuInfo {
        let first = self.gpus.first();
        GpuInfo {
            name: first.map(|gpu| gpu.name.clone()),
            vram_gb: first.and_then(|gpu| gpu.vram_gb),
            count: u32::try_from(self.gpus.len()).unwrap_or(u32::MAX),
            driver: self.driver.clone(),
            runtime: self.runtime.clone(),
            accelerator: Some(self.accelerator.clone()),
        }
    }

    /// The variables that restrict a trainer to the granted GPUs; none without a grant, so that the environment is
    /// unchanged.
    pub fn visibility_env(&self, granted: &[String]) -> Vec<(&'static str, String)> {
        visibility::visibility_env(self, granted)
    }

    pub fn device_files(&self, granted: &[String]) -> Vec<PathBuf> {
        devices::device_files(Path::new("/"), self, granted)
    }
}

/// Detects the hardware and applies overrides. May block as long as the driver does.
pub fn detect(overrides: &GpuOverrides, host: &str) -> Hardware {
    let (_, found) = provider::detect_provider();
    apply_restrictions(found, overrides, host)
}

/// Applies the agent's own environment variables and the overrides.
fn apply_restrictions(found: Hardware, overrides: &GpuOverrides, host: &str) -> Hardware {
    let visible = visibility::filter_visible(found, |name| std::env::var(name).ok());
    apply_overrides(visible, overrides, host)
}

const PLACEHOLDER_INFIX: &str = "-gpu-";

/// Whether the GPU exists only because of `--gpu-count`.
fn is_placeholder(uuid: &str) -> bool {
    !uuid.starts_with("GPU-") && !uuid.starts_with("MIG-") && uuid.contains(PLACEHOLDER_INFIX)
}

fn apply_overrides(mut found: Hardware, overrides: &GpuOverrides, host: &str) -> Hardware {
    if let Some(count) = overrides.count {
        found.gpus.truncate(count as usize);
        for index in u32::try_from(found.gpus.len()).unwrap_or(u32::MAX)..count {
            found.gpus.push(Gpu {
                index,
                uuid: format!("{host}{PLACEHOLDER_INFIX}{index}"),
                name: "GPU".to_owned(),
                ..Gpu::default()
            });
        }
        if count == 0 {
            "cpu".clone_into(&mut found.accelerator);
        } else if found.accelerator == "cpu" {
            "cuda".clone_into(&mut found.accelerator);
        }
    }
    for gpu in &mut found.gpus {
        gpu.name = overrides.name.clone().unwrap_or_else(|| gpu.name.clone());
        gpu.vram_gb = overrides.vram_gb.or(gpu.vram_gb);
    }
    if let Some(accelerator) = &overrides.accelerator {
        found.accelerator.clone_from(accelerator);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    pub fn two_gpus() -> Hardware {
        let gpu = |index: u32| Gpu {
            index,
            uuid: format!("GPU-{index}abc"),
            name: "A100".to_owned(),
            vram_gb: Some(80.0),
            ..Gpu::default()
        };
        let driver = Some("1".to_owned());
        Hardware { gpus: vec![gpu(0), gpu(1)], driver, accelerator: "cuda".to_owned(), ..Hardware::default() }
    }

    pub fn uuids(hardware: &Hardware) -> Vec<&str> {
        hardware.gpus.iter().map(|gpu| gpu.uuid.as_str()).collect()
    }

    #[test]
    fn overrides_win_over_detection() {
        assert_eq!(apply_overrides(two_gpus(), &GpuOverrides::default(), "h"), two_gpus());
        let three_gpus = GpuOverrides { count: Some(3), vram_gb: Some(24.0), ..GpuOverrides::default() };
        let actual = apply_overrides(two_gpus(), &three_gpus, "h");
        assert_eq!(uuids(&actual), ["GPU-0abc", "GPU-1abc", "h-gpu-2"]);
        assert!(actual.gpus.iter().all(|gpu| gpu.vram_gb == Some(24.0)));
        let without_gpus =
            apply_overrides(two_gpus(), &GpuOverrides { count: Some(0), ..GpuOverrides::default() }, "h");
        assert_eq!((without_gpus.gpus.len(), without_gpus.accelerator.as_str()), (0, "cpu"));
        let rocm = Hardware { accelerator: "rocm".to_owned(), ..two_gpus() };
        let one_gpu = GpuOverrides { count: Some(1), ..GpuOverrides::default() };
        assert_eq!(apply_overrides(rocm, &one_gpu, "h").accelerator, "rocm");
        assert_eq!(apply_overrides(Hardware::cpu_only(), &one_gpu, "h").accelerator, "cuda");
    }
}

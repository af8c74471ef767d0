//! What hardware this host offers, how it is, and whether a job may have it.
//!
//! A [`provider::Provider`] asks one vendor's interface. One thread asks it every few seconds ([`sampler`]), because drivers
//! hang; what it saw is judged by [`gate`], kept for the next heartbeat by [`moments`], and never waited for. Before a job
//! and after it, [`handover`] looks whether the GPUs that it was granted are fit and free.

mod amd;
mod apple;
pub mod command;
mod devices;
mod fake;
mod gate;
mod handover;
mod intel;
mod late;
mod mig;
mod moments;
mod nvml;
mod provider;
mod quarantine;
mod remembered;
mod sampler;
mod sysfs;
mod visible;
mod xid;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use app::protocol::gpu::{Gpu, GpuInfo};
use serde::{Deserialize, Serialize};

pub use late::tell_of_late_ones;
pub use sampler::{Gpus, Held};

use crate::config::GpuOverrides;

/// The hardware as it is reported.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Hardware {
    /// Every GPU.
    pub gpus: Vec<Gpu>,
    /// What parts of GPUs are made of, by their ids.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parts: BTreeMap<String, mig::Instances>,
    /// Driver version.
    pub driver: Option<String>,
    /// The newest CUDA or ROCm that runs here.
    pub runtime: Option<String>,
    /// `cuda`, `rocm`, `mps`, `xpu` or `cpu`.
    pub accelerator: String,
}

impl Hardware {
    /// Of a host that computes on its processor.
    pub fn none() -> Self {
        Self { accelerator: "cpu".to_owned(), ..Self::default() }
    }

    /// The older, summary shape.
    pub fn info(&self) -> GpuInfo {
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

    /// The variables that show a trainer the granted GPUs and no other; without a grant none, so that the environment stays
    /// as it is.
    pub fn visible(&self, granted: &[String]) -> Vec<(&'static str, String)> {
        visible::variables(self, granted)
    }

    /// The device files of the granted GPUs.
    pub fn device_files(&self, granted: &[String]) -> Vec<PathBuf> {
        devices::files(Path::new("/"), self, granted)
    }
}

/// Looks, and lets a person's word win. It may take as long as the driver does.
pub fn detect(overrides: &GpuOverrides, host: &str) -> Hardware {
    let (_, found) = provider::find();
    as_told(found, overrides, host)
}

/// What was found, as the agent's own environment and a person's words leave it.
fn as_told(found: Hardware, overrides: &GpuOverrides, host: &str) -> Hardware {
    let shown = visible::restricted(found, |name| std::env::var(name).ok());
    overridden(shown, overrides, host)
}

const MADE_UP: &str = "-gpu-";

/// Whether only `--gpu-count` says that it is there.
fn is_made_up(uuid: &str) -> bool {
    !uuid.starts_with("GPU-") && !uuid.starts_with("MIG-") && uuid.contains(MADE_UP)
}

fn overridden(mut found: Hardware, overrides: &GpuOverrides, host: &str) -> Hardware {
    if let Some(count) = overrides.count {
        found.gpus.truncate(count as usize);
        for index in u32::try_from(found.gpus.len()).unwrap_or(u32::MAX)..count {
            found.gpus.push(Gpu {
                index,
                uuid: format!("{host}{MADE_UP}{index}"),
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

    pub fn two() -> Hardware {
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
    fn a_persons_word_wins() {
        assert_eq!(overridden(two(), &GpuOverrides::default(), "h"), two());
        let three = GpuOverrides { count: Some(3), vram_gb: Some(24.0), ..GpuOverrides::default() };
        let got = overridden(two(), &three, "h");
        assert_eq!(uuids(&got), ["GPU-0abc", "GPU-1abc", "h-gpu-2"]);
        assert!(got.gpus.iter().all(|gpu| gpu.vram_gb == Some(24.0)));
        let none = overridden(two(), &GpuOverrides { count: Some(0), ..GpuOverrides::default() }, "h");
        assert_eq!((none.gpus.len(), none.accelerator.as_str()), (0, "cpu"));
        let rocm = Hardware { accelerator: "rocm".to_owned(), ..two() };
        let one = GpuOverrides { count: Some(1), ..GpuOverrides::default() };
        assert_eq!(overridden(rocm, &one, "h").accelerator, "rocm");
        assert_eq!(overridden(Hardware::none(), &one, "h").accelerator, "cuda");
    }
}

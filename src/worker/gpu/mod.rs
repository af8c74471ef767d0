//! What hardware this host offers: NVIDIA's library where there is one, what a person says, or none at all.

mod nvml;

use app::protocol::worker::{Gpu, GpuInfo};

use crate::config::GpuOverrides;

/// The hardware as it is reported.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Hardware {
    /// Every GPU.
    pub gpus: Vec<Gpu>,
    /// Driver version.
    pub driver: Option<String>,
    /// `cuda`, `rocm`, `mps`, `xpu` or `cpu`.
    pub accelerator: String,
}

impl Hardware {
    /// The older, summary shape.
    pub fn info(&self) -> GpuInfo {
        let first = self.gpus.first();
        GpuInfo {
            name: first.map(|gpu| gpu.name.clone()),
            vram_gb: first.and_then(|gpu| gpu.vram_gb),
            count: u32::try_from(self.gpus.len()).unwrap_or(u32::MAX),
            driver: self.driver.clone(),
            runtime: None,
            accelerator: Some(self.accelerator.clone()),
        }
    }

    /// `CUDA_VISIBLE_DEVICES` for granted GPUs; none leaves the environment as it is.
    pub fn visible(&self, granted: &[String]) -> Option<String> {
        let name = |uuid: &String| {
            let known = self.gpus.iter().find(|gpu| gpu.uuid == *uuid);
            known.filter(|gpu| is_made_up(&gpu.uuid)).map_or_else(|| uuid.clone(), |gpu| gpu.index.to_string())
        };
        (!granted.is_empty()).then(|| granted.iter().map(name).collect::<Vec<_>>().join(","))
    }
}

/// Looks, and lets a person's word win.
pub fn detect(overrides: &GpuOverrides, host: &str) -> Hardware {
    let found = nvml::detect().unwrap_or_else(|why| {
        tracing::debug!("no NVIDIA GPU was found: {why}");
        Hardware { accelerator: "cpu".to_owned(), ..Hardware::default() }
    });
    let visible = std::env::var("CUDA_VISIBLE_DEVICES").ok();
    overridden(restricted(found, visible.as_deref()), overrides, host)
}

/// Only what the agent's own `CUDA_VISIBLE_DEVICES` shows, in its order.
fn restricted(mut found: Hardware, visible: Option<&str>) -> Hardware {
    let Some(visible) = visible else { return found };
    let mut kept = Vec::new();
    for wanted in visible.split(',').map(str::trim) {
        let index = wanted.parse::<u32>().ok();
        let matches = |gpu: &&Gpu| Some(gpu.index) == index || (wanted.len() >= 5 && gpu.uuid.starts_with(wanted));
        // As CUDA does: the first unknown one ends the list.
        let Some(gpu) = found.gpus.iter().find(matches) else { break };
        kept.push(gpu.clone());
    }
    if kept.is_empty() && !found.gpus.is_empty() {
        "cpu".clone_into(&mut found.accelerator);
    }
    found.gpus = kept;
    found
}

const MADE_UP: &str = "-gpu-";

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
        (if count == 0 { "cpu" } else { "cuda" }).clone_into(&mut found.accelerator);
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

    fn two() -> Hardware {
        let gpu = |index: u32| Gpu {
            index,
            uuid: format!("GPU-{index}abc"),
            name: "A100".to_owned(),
            vram_gb: Some(80.0),
            ..Gpu::default()
        };
        Hardware { gpus: vec![gpu(0), gpu(1)], driver: Some("1".to_owned()), accelerator: "cuda".to_owned() }
    }

    fn uuids(hardware: &Hardware) -> Vec<&str> {
        hardware.gpus.iter().map(|gpu| gpu.uuid.as_str()).collect()
    }

    #[test]
    fn a_persons_word_wins() {
        assert_eq!(overridden(two(), &GpuOverrides::default(), "h"), two());
        let three = GpuOverrides { count: Some(3), vram_gb: Some(24.0), ..GpuOverrides::default() };
        let got = overridden(two(), &three, "h");
        assert_eq!(uuids(&got), ["GPU-0abc", "GPU-1abc", "h-gpu-2"]);
        assert!(got.gpus.iter().all(|gpu| gpu.vram_gb == Some(24.0)));
        assert_eq!(got.visible(&["h-gpu-2".to_owned(), "GPU-0abc".to_owned()]).as_deref(), Some("2,GPU-0abc"));
        assert_eq!(got.visible(&[]), None);
        let none = overridden(two(), &GpuOverrides { count: Some(0), ..GpuOverrides::default() }, "h");
        assert_eq!((none.gpus.len(), none.accelerator.as_str()), (0, "cpu"));
    }

    #[test]
    fn the_agents_own_restriction_holds() {
        assert_eq!(uuids(&restricted(two(), Some("1"))), ["GPU-1abc"]);
        assert_eq!(uuids(&restricted(two(), Some("GPU-1a,0"))), ["GPU-1abc", "GPU-0abc"]);
        assert_eq!(uuids(&restricted(two(), Some("0,9,1"))), ["GPU-0abc"]);
        let none = restricted(two(), Some(""));
        assert_eq!((none.gpus.len(), none.accelerator.as_str()), (0, "cpu"));
        assert_eq!(restricted(two(), None), two());
    }
}

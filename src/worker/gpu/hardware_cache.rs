//! The last known hardware, stored in the work directory: used while a driver does not respond.

use std::path::Path;

use app::protocol::gpu::Gpu;

use super::{Hardware, is_placeholder};
use crate::worker::config::AgentConfig;
use crate::worker::files::write_atomic;

const FILE: &str = "gpus.json";

pub fn save(work_dir: &Path, hardware: &Hardware) {
    let result = serde_json::to_vec_pretty(hardware)
        .map_err(std::io::Error::from)
        .and_then(|text| write_atomic(&work_dir.join(FILE), &text, false));
    if let Err(error) = result {
        tracing::warn!("cannot save the detected GPUs: {error}");
    }
}

/// Whether there were real GPUs, and no flag overrides them.
pub fn has_cached_gpus(config: &AgentConfig) -> bool {
    let is_real = |gpu: &Gpu| !is_placeholder(&gpu.uuid);
    config.gpu.count != Some(0) && load(&config.work_dir).gpus.iter().any(is_real)
}

/// The stored hardware; none at the first start.
pub fn load(work_dir: &Path) -> Hardware {
    let text = std::fs::read(work_dir.join(FILE)).ok();
    text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_else(Hardware::cpu_only)
}

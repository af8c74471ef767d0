//! The hardware that was found last, in the work directory: what is said of it while a driver does not answer at all.

use std::path::Path;

use app::protocol::gpu::Gpu;

use super::{Hardware, is_made_up};
use crate::config::Config;
use crate::files::write_atomic;

const FILE: &str = "gpus.json";

/// Writes it down.
pub fn keep(work_dir: &Path, hardware: &Hardware) {
    let written = serde_json::to_vec_pretty(hardware)
        .map_err(std::io::Error::from)
        .and_then(|text| write_atomic(&work_dir.join(FILE), &text, false));
    if let Err(error) = written {
        tracing::warn!("what GPUs there are cannot be written down: {error}");
    }
}

/// Whether GPUs were there that no person has made up or wants gone.
pub fn expects_any(config: &Config) -> bool {
    let found = |gpu: &Gpu| !is_made_up(&gpu.uuid);
    config.gpu.count != Some(0) && last(&config.work_dir).gpus.iter().any(found)
}

/// What was written down; of a first start, none.
pub fn last(work_dir: &Path) -> Hardware {
    let text = std::fs::read(work_dir.join(FILE)).ok();
    text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_else(Hardware::none)
}

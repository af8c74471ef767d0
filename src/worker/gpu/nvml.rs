//! NVIDIA GPUs through NVML, which is loaded at run time: a host without it has no NVIDIA GPU.

use app::protocol::worker::Gpu;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};

use super::Hardware;

/// Every GPU, and of a partitioned one every partition.
pub fn detect() -> Result<Hardware, NvmlError> {
    let nvml = Nvml::init()?;
    let mut gpus = Vec::new();
    for index in 0..nvml.device_count()? {
        // One broken GPU does not hide the others.
        match nvml.device_by_index(index) {
            Ok(device) => add(&device, &mut gpus),
            Err(error) => tracing::warn!("GPU {index} cannot be used: {error}"),
        }
    }
    if gpus.is_empty() {
        return Err(NvmlError::NotFound);
    }
    Ok(Hardware { gpus, driver: nvml.sys_driver_version().ok(), accelerator: "cuda".to_owned() })
}

fn add(device: &Device, gpus: &mut Vec<Gpu>) {
    // A partitioned GPU cannot be used whole, and CUDA knows its parts by their own ids.
    let parts = device.mig_device_count().unwrap_or(0);
    let before = gpus.len();
    for part in (0..parts).filter_map(|part| device.mig_device_by_index(part).ok()) {
        push(&part, gpus);
    }
    if gpus.len() == before {
        push(device, gpus);
    }
}

#[expect(clippy::cast_precision_loss, reason = "tenths of a GB are enough")]
fn push(device: &Device, gpus: &mut Vec<Gpu>) {
    let Ok(uuid) = device.uuid() else { return };
    let name = device.name().unwrap_or_else(|_| "NVIDIA GPU".to_owned());
    // Parts with unified memory do not say how much is theirs.
    let vram_gb =
        device.memory_info().ok().map(|memory| (memory.total as f64 / f64::from(1 << 30) * 10.0).round() / 10.0);
    let index = u32::try_from(gpus.len()).unwrap_or(u32::MAX);
    gpus.push(Gpu { index, uuid, name, vram_gb, ..Gpu::default() });
}

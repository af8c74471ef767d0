//! NVIDIA GPUs through NVML, which is loaded at run time: a host without it has no NVIDIA GPU.

mod reading;
mod xids;

use std::collections::BTreeSet;
use std::sync::Arc;

use app::protocol::gpu::{Gpu, GpuReading, MemoryKind};
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml, cuda_driver_version_major, cuda_driver_version_minor};

use self::xids::XidListener;
use super::Hardware;
use super::mig::{self, MigDevice};
use super::provider::{GpuFault, GpuProvider, GpuSnapshot, memory_size_gb};

/// NVML, and the GPUs that it listed.
#[derive(Default)]
pub struct NvidiaProvider {
    session: Option<NvmlSession>,
    devices: Vec<NvmlDevice>,
    /// GPUs that did not respond even with a reloaded library: no reason to reload it again.
    unrecoverable: BTreeSet<String>,
}

/// A GPU, or a MIG partition.
#[derive(Debug, Clone, PartialEq, Eq)]
struct NvmlDevice {
    uuid: String,
    part_of: Option<String>,
}

impl NvmlDevice {
    /// The physical device, which errors and temperatures belong to.
    fn device_uuid(&self) -> &str {
        self.part_of.as_deref().unwrap_or(&self.uuid)
    }
}

/// The loaded library. It is unloaded when the last reference is dropped.
struct NvmlSession {
    // First field, so that its thread stops using the library before it is unloaded. Set from the first poll on.
    xids: Option<XidListener>,
    nvml: Arc<Nvml>,
}

impl NvidiaProvider {
    /// The library, loaded once.
    fn session(&mut self) -> Result<&mut NvmlSession, NvmlError> {
        let session = match self.session.take() {
            Some(session) => session,
            None => NvmlSession { xids: None, nvml: Arc::new(Nvml::init()?) },
        };
        Ok(self.session.insert(session))
    }

    /// Reads every known GPU separately: a broken one does not hide the others.
    fn read_all(&mut self) -> Result<Vec<Result<GpuSnapshot, NvmlError>>, String> {
        let devices = self.devices.clone();
        let session = self.session().map_err(|error| error.to_string())?;
        if session.xids.is_none() {
            let devices = devices.iter().map(|device| device.device_uuid().to_owned()).collect();
            session.xids = Some(XidListener::start(&session.nvml, devices));
        }
        Ok(devices.iter().map(|device| reading::read_gpu(&session.nvml, device)).collect())
    }
}

impl GpuProvider for NvidiaProvider {
    fn detect(&mut self) -> Result<Hardware, String> {
        let nvml = match self.session() {
            Ok(session) => Arc::clone(&session.nvml),
            Err(error @ (NvmlError::LibraryNotFound | NvmlError::LibloadingError(_) | NvmlError::DriverNotLoaded)) => {
                tracing::debug!("no NVIDIA GPU found: {error}");
                return Ok(Hardware::cpu_only());
            }
            Err(error) => return Err(error.to_string()),
        };
        let (mut gpus, mut parts) = (Vec::new(), Vec::new());
        for index in 0..nvml.device_count().map_err(|error| error.to_string())? {
            // One broken GPU does not hide the others.
            match nvml.device_by_index(index) {
                Ok(device) => add_device(&device, &mut gpus, &mut parts),
                Err(error) => tracing::warn!("cannot use GPU {index}: {error}"),
            }
        }
        self.devices =
            gpus.iter().map(|gpu| NvmlDevice { uuid: gpu.uuid.clone(), part_of: gpu.part_of.clone() }).collect();
        let version = |cuda: i32| format!("{}.{}", cuda_driver_version_major(cuda), cuda_driver_version_minor(cuda));
        Ok(Hardware {
            gpus,
            parts: mig::find_instances(&parts),
            driver: nvml.sys_driver_version().ok(),
            runtime: nvml.sys_cuda_driver_version().ok().map(version),
            accelerator: "cuda".to_owned(),
        })
    }

    fn poll(&mut self) -> Result<Vec<GpuSnapshot>, String> {
        let mut result = self.read_all()?;
        let is_stale = |(device, result): (&NvmlDevice, &Result<GpuSnapshot, NvmlError>)| {
            result.as_ref().is_err_and(|error| !is_lost(error)) && !self.unrecoverable.contains(&device.uuid)
        };
        if self.devices.iter().zip(&result).any(is_stale) {
            // Perhaps another driver was installed: then the loaded library can no longer reach it.
            tracing::warn!("NVML no longer finds its GPUs; reloading it");
            self.session = None;
            result = self.read_all()?;
        }
        let xids = self.session.iter().filter_map(|session| session.xids.as_ref()).flat_map(XidListener::drain);
        let xids: Vec<(String, u64)> = xids.collect();
        let mut snapshots = Vec::new();
        for (device, result) in self.devices.iter().zip(result) {
            if result.is_ok() {
                self.unrecoverable.remove(&device.uuid);
            }
            let mut gpu = result.unwrap_or_else(|error| {
                self.unrecoverable.insert(device.uuid.clone());
                let reading = GpuReading { uuid: device.uuid.clone(), ..GpuReading::default() };
                GpuSnapshot { reading, processes: None, faults: vec![GpuFault::Lost(error.to_string())] }
            });
            let gpu_xids = xids.iter().filter(|(device_uuid, _)| device_uuid == device.device_uuid());
            gpu.faults.extend(gpu_xids.map(|(_, xid)| GpuFault::Xid(*xid)));
            snapshots.push(gpu);
        }
        Ok(snapshots)
    }
}

/// `NVML_DEVICE_MIG_ENABLE`.
const MIG_ON: u32 = 1;

/// An error that reloading the library does not fix.
fn is_lost(error: &NvmlError) -> bool {
    matches!(error, NvmlError::GpuLost | NvmlError::ResetRequired)
}

fn add_device(device: &Device, gpus: &mut Vec<Gpu>, parts: &mut Vec<MigDevice>) {
    // A partitioned GPU cannot be used as a whole, and CUDA identifies its partitions by their own IDs.
    let device_uuid = device.uuid().ok();
    let max_partitions = device.mig_device_count().unwrap_or(0);
    let before = gpus.len();
    for (index, part) in (0..max_partitions).filter_map(|index| Some((index, device.mig_device_by_index(index).ok()?)))
    {
        push_gpu(&part, device_uuid.clone(), gpus);
        let uuids = part.uuid().ok().zip(device_uuid.clone());
        parts.extend(uuids.map(|(uuid, parent_uuid)| MigDevice { uuid, parent_uuid, index }));
    }
    if gpus.len() > before {
        return;
    }
    if device.mig_mode().is_ok_and(|mode| mode.current == MIG_ON) {
        tracing::warn!(
            "{} has MIG enabled but no partition, so nothing can run on it",
            device_uuid.unwrap_or_default()
        );
        return;
    }
    push_gpu(device, None, gpus);
}

fn push_gpu(device: &Device, part_of: Option<String>, gpus: &mut Vec<Gpu>) {
    let Ok(uuid) = device.uuid() else { return };
    let name = device.name().unwrap_or_else(|_| "NVIDIA GPU".to_owned());
    let (vram_gb, memory_kind) = match device.memory_info() {
        Ok(memory) => (Some(memory_size_gb(memory.total)), Some(MemoryKind::Dedicated)),
        // GPUs that share the host's memory (GB10, Jetson) do not report their share.
        Err(NvmlError::NotSupported) => (None, Some(MemoryKind::Unified)),
        Err(_) => (None, None),
    };
    let index = u32::try_from(gpus.len()).unwrap_or(u32::MAX);
    gpus.push(Gpu { index, uuid, name, vram_gb, memory_kind, part_of, unavailable: None });
}

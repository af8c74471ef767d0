//! NVIDIA GPUs through NVML, which is loaded at run time: a host without it has no NVIDIA GPU.

mod reading;
mod xids;

use std::collections::BTreeSet;
use std::sync::Arc;

use app::protocol::gpu::{Gpu, GpuReading, MemoryKind};
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml, cuda_driver_version_major, cuda_driver_version_minor};

use self::xids::Xids;
use super::Hardware;
use super::mig::{self, Part};
use super::provider::{Fault, Provider, Seen, size_gb};

/// NVML, once it was asked, and what it showed.
#[derive(Default)]
pub struct Nvidia {
    session: Option<Session>,
    known: Vec<Known>,
    /// GPUs that did not answer although the library was fresh: no reason to load it again.
    hopeless: BTreeSet<String>,
}

/// A GPU, or a part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Known {
    uuid: String,
    part_of: Option<String>,
}

impl Known {
    /// The device itself, which is what errors and temperatures are of.
    fn device(&self) -> &str {
        self.part_of.as_deref().unwrap_or(&self.uuid)
    }
}

/// The library as it was loaded. It is unloaded with the last one who holds it.
struct Session {
    // First, so that its thread has let go of the library before it is unloaded. From the first look on.
    xids: Option<Xids>,
    nvml: Arc<Nvml>,
}

impl Nvidia {
    /// The library, loaded once and kept.
    fn session(&mut self) -> Result<&mut Session, NvmlError> {
        let session = match self.session.take() {
            Some(session) => session,
            None => Session { xids: None, nvml: Arc::new(Nvml::init()?) },
        };
        Ok(self.session.insert(session))
    }

    /// Every known GPU by itself: one that is broken does not hide the others.
    fn read(&mut self) -> Result<Vec<Result<Seen, NvmlError>>, String> {
        let known = self.known.clone();
        let session = self.session().map_err(|error| error.to_string())?;
        if session.xids.is_none() {
            let devices = known.iter().map(|known| known.device().to_owned()).collect();
            session.xids = Some(Xids::watch(&session.nvml, devices));
        }
        Ok(known.iter().map(|known| reading::of(&session.nvml, known)).collect())
    }
}

impl Provider for Nvidia {
    fn detect(&mut self) -> Result<Hardware, String> {
        let nvml = match self.session() {
            Ok(session) => Arc::clone(&session.nvml),
            Err(error @ (NvmlError::LibraryNotFound | NvmlError::LibloadingError(_) | NvmlError::DriverNotLoaded)) => {
                tracing::debug!("no NVIDIA GPU was found: {error}");
                return Ok(Hardware::none());
            }
            Err(error) => return Err(error.to_string()),
        };
        let (mut gpus, mut parts) = (Vec::new(), Vec::new());
        for index in 0..nvml.device_count().map_err(|error| error.to_string())? {
            // One broken GPU does not hide the others.
            match nvml.device_by_index(index) {
                Ok(device) => add(&device, &mut gpus, &mut parts),
                Err(error) => tracing::warn!("GPU {index} cannot be used: {error}"),
            }
        }
        self.known = gpus.iter().map(|gpu| Known { uuid: gpu.uuid.clone(), part_of: gpu.part_of.clone() }).collect();
        let version = |cuda: i32| format!("{}.{}", cuda_driver_version_major(cuda), cuda_driver_version_minor(cuda));
        Ok(Hardware {
            gpus,
            parts: mig::instances(&parts),
            driver: nvml.sys_driver_version().ok(),
            runtime: nvml.sys_cuda_driver_version().ok().map(version),
            accelerator: "cuda".to_owned(),
        })
    }

    fn look(&mut self) -> Result<Vec<Seen>, String> {
        let mut read = self.read()?;
        let stale = |(known, read): (&Known, &Result<Seen, NvmlError>)| {
            read.as_ref().is_err_and(|error| !is_lost(error)) && !self.hopeless.contains(&known.uuid)
        };
        if self.known.iter().zip(&read).any(stale) {
            // Perhaps another driver was installed: what is loaded here then speaks to nobody.
            tracing::warn!("NVIDIA's library does not know its GPUs any more; loading it again");
            self.session = None;
            read = self.read()?;
        }
        let thrown = self.session.iter().filter_map(|session| session.xids.as_ref()).flat_map(Xids::thrown);
        let thrown: Vec<(String, u64)> = thrown.collect();
        let mut seen = Vec::new();
        for (known, read) in self.known.iter().zip(read) {
            if read.is_ok() {
                self.hopeless.remove(&known.uuid);
            }
            let mut gpu = read.unwrap_or_else(|error| {
                self.hopeless.insert(known.uuid.clone());
                let reading = GpuReading { uuid: known.uuid.clone(), ..GpuReading::default() };
                Seen { reading, users: None, faults: vec![Fault::Lost(error.to_string())] }
            });
            let own = thrown.iter().filter(|(device, _)| device == known.device());
            gpu.faults.extend(own.map(|(_, xid)| Fault::Xid(*xid)));
            seen.push(gpu);
        }
        Ok(seen)
    }
}

/// `NVML_DEVICE_MIG_ENABLE`.
const MIG_ON: u32 = 1;

/// Nothing that a fresh library would change.
fn is_lost(error: &NvmlError) -> bool {
    matches!(error, NvmlError::GpuLost | NvmlError::ResetRequired)
}

fn add(device: &Device, gpus: &mut Vec<Gpu>, parts: &mut Vec<Part>) {
    // A partitioned GPU cannot be used whole, and CUDA knows its parts by their own ids.
    let whole = device.uuid().ok();
    let most = device.mig_device_count().unwrap_or(0);
    let before = gpus.len();
    for (index, part) in (0..most).filter_map(|index| Some((index, device.mig_device_by_index(index).ok()?))) {
        push(&part, whole.clone(), gpus);
        let told = part.uuid().ok().zip(whole.clone());
        parts.extend(told.map(|(uuid, of)| Part { uuid, of, index }));
    }
    if gpus.len() > before {
        return;
    }
    if device.mig_mode().is_ok_and(|mode| mode.current == MIG_ON) {
        tracing::warn!(
            "{} is set to be partitioned (MIG) and has no partition, so nothing can run on it",
            whole.unwrap_or_default()
        );
        return;
    }
    push(device, None, gpus);
}

fn push(device: &Device, part_of: Option<String>, gpus: &mut Vec<Gpu>) {
    let Ok(uuid) = device.uuid() else { return };
    let name = device.name().unwrap_or_else(|_| "NVIDIA GPU".to_owned());
    let (vram_gb, memory_kind) = match device.memory_info() {
        Ok(memory) => (Some(size_gb(memory.total)), Some(MemoryKind::Dedicated)),
        // Parts that share the host's memory (GB10, Jetson) do not say how much is theirs.
        Err(NvmlError::NotSupported) => (None, Some(MemoryKind::Unified)),
        Err(_) => (None, None),
    };
    let index = u32::try_from(gpus.len()).unwrap_or(u32::MAX);
    gpus.push(Gpu { index, uuid, name, vram_gb, memory_kind, part_of, withheld: None });
}

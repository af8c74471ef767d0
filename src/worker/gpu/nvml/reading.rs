//! Reads one NVIDIA GPU.

use app::protocol::gpu::GpuReading;
use nvml_wrapper::enum_wrappers::device::{Clock, EccCounter, MemoryError, TemperatureSensor};
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};

use super::NvmlDevice;
use crate::worker::gpu::provider::{GpuProcess, GpuSnapshot, bytes_to_gb};

/// NVIDIA's own services, which do not compute.
const NVIDIA_SERVICES: &[&str] = &["nvidia-cuda-mps", "nvidia-persiste"];

/// Collects results: each value is optional, because devices support different ones.
#[derive(Default)]
struct NvmlResults {
    has_success: bool,
    /// The most severe error.
    fatal_error: Option<NvmlError>,
}

impl NvmlResults {
    fn record<T>(&mut self, result: Result<T, NvmlError>) -> Option<T> {
        match result {
            Ok(value) => {
                self.has_success = true;
                Some(value)
            }
            Err(error) => {
                if is_fatal(&error) {
                    self.fatal_error = Some(error);
                }
                None
            }
        }
    }
}

/// Not limited to the one value.
fn is_fatal(error: &NvmlError) -> bool {
    matches!(
        error,
        NvmlError::GpuLost
            | NvmlError::ResetRequired
            | NvmlError::Uninitialized
            | NvmlError::DriverNotLoaded
            | NvmlError::LibRmVersionMismatch
            | NvmlError::Unknown
    )
}

/// Reads a GPU.
///
/// # Errors
/// If it does not respond at all, or reports that it is lost.
pub(super) fn read_gpu(nvml: &Nvml, gpu: &NvmlDevice) -> Result<GpuSnapshot, NvmlError> {
    let device = nvml.device_by_uuid(gpu.uuid.as_str())?;
    let parent = nvml.device_by_uuid(gpu.device_uuid())?;
    let mut results = NvmlResults::default();
    let mut reading = GpuReading {
        uuid: gpu.uuid.clone(),
        memory_used_gb: results.record(device.memory_info()).map(|memory| bytes_to_gb(memory.used)),
        temperature_celsius: results.record(parent.temperature(TemperatureSensor::Gpu)).map(f64::from),
        ecc_errors: results.record(parent.total_ecc_errors(MemoryError::Uncorrected, EccCounter::Volatile)),
        ..GpuReading::default()
    };
    // The power and utilization of a partition are unknown.
    if gpu.part_of.is_none() {
        read_device(&device, &mut results, &mut reading);
    }
    let processes = results.record(device.running_compute_processes()).map(|processes| {
        let processes = processes.iter().map(|process| GpuProcess::from_pid(process.pid));
        processes.filter(|user| !is_service(user)).collect()
    });
    match results.fatal_error {
        Some(error) if !results.has_success || matches!(error, NvmlError::GpuLost | NvmlError::ResetRequired) => {
            Err(error)
        }
        _ => Ok(GpuSnapshot { reading, processes, faults: Vec::new() }),
    }
}

fn read_device(device: &Device, results: &mut NvmlResults, reading: &mut GpuReading) {
    let watts = |milliwatts: u32| f64::from(milliwatts) / 1_000.0;
    reading.utilization_percent = results.record(device.utilization_rates()).map(|rates| f64::from(rates.gpu));
    reading.power_watts = results.record(device.power_usage()).map(watts);
    reading.power_limit_watts = results.record(device.enforced_power_limit()).map(watts);
    reading.clock_mhz = results.record(device.clock_info(Clock::SM));
    reading.memory_clock_mhz = results.record(device.clock_info(Clock::Memory));
}

fn is_service(user: &GpuProcess) -> bool {
    user.name.as_deref().is_some_and(|name| NVIDIA_SERVICES.iter().any(|service| name.starts_with(service)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_metric_does_not_hide_others() {
        let mut results = NvmlResults::default();
        assert_eq!(results.record::<u32>(Err(NvmlError::NotSupported)), None);
        assert!(!results.has_success && results.fatal_error.is_none());
        assert_eq!(results.record(Ok(7)), Some(7));
        assert_eq!(results.record::<u32>(Err(NvmlError::GpuLost)), None);
        assert!(results.has_success && matches!(results.fatal_error, Some(NvmlError::GpuLost)));
    }

    #[test]
    fn nvidia_services_do_not_count_as_use() {
        let user = |name: &str| GpuProcess { pid: 1, name: Some(name.to_owned()) };
        assert!(is_service(&user("nvidia-cuda-mps")) && !is_service(&user("python3")));
        assert!(!is_service(&GpuProcess { pid: 1, name: None }));
    }
}

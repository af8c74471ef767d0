//! One NVIDIA GPU at one look.

use app::protocol::gpu::GpuReading;
use nvml_wrapper::enum_wrappers::device::{Clock, EccCounter, MemoryError, TemperatureSensor};
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};

use super::Known;
use crate::gpu::provider::{Seen, User, gb};

/// Of these, NVIDIA's own, none computes anything.
const SERVICES: &[&str] = &["nvidia-cuda-mps", "nvidia-persiste"];

/// What every question was answered: each by itself, as every part knows other ones.
#[derive(Default)]
struct Answers {
    any: bool,
    /// The worst that was answered.
    grave: Option<NvmlError>,
}

impl Answers {
    fn take<T>(&mut self, answer: Result<T, NvmlError>) -> Option<T> {
        match answer {
            Ok(value) => {
                self.any = true;
                Some(value)
            }
            Err(error) => {
                if is_grave(&error) {
                    self.grave = Some(error);
                }
                None
            }
        }
    }
}

/// Not only about the one question.
fn is_grave(error: &NvmlError) -> bool {
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

/// Reads one.
///
/// # Errors
/// If it does not answer at all, or says that it is lost.
pub(super) fn of(nvml: &Nvml, known: &Known) -> Result<Seen, NvmlError> {
    let device = nvml.device_by_uuid(known.uuid.as_str())?;
    let whole = nvml.device_by_uuid(known.device())?;
    let mut answers = Answers::default();
    let mut reading = GpuReading {
        uuid: known.uuid.clone(),
        memory_used_gb: answers.take(device.memory_info()).map(|memory| gb(memory.used)),
        temperature_celsius: answers.take(whole.temperature(TemperatureSensor::Gpu)).map(f64::from),
        ecc_errors: answers.take(whole.total_ecc_errors(MemoryError::Uncorrected, EccCounter::Volatile)),
        ..GpuReading::default()
    };
    // Of a part nobody knows how much of the whole it draws or computes.
    if known.part_of.is_none() {
        of_the_whole(&device, &mut answers, &mut reading);
    }
    let users = answers.take(device.running_compute_processes()).map(|processes| {
        let users = processes.iter().map(|process| User::of(process.pid));
        users.filter(|user| !is_service(user)).collect()
    });
    match answers.grave {
        Some(error) if !answers.any || matches!(error, NvmlError::GpuLost | NvmlError::ResetRequired) => Err(error),
        _ => Ok(Seen { reading, users, faults: Vec::new() }),
    }
}

fn of_the_whole(device: &Device, answers: &mut Answers, reading: &mut GpuReading) {
    let watts = |milliwatts: u32| f64::from(milliwatts) / 1_000.0;
    reading.utilization_percent = answers.take(device.utilization_rates()).map(|rates| f64::from(rates.gpu));
    reading.power_watts = answers.take(device.power_usage()).map(watts);
    reading.power_limit_watts = answers.take(device.enforced_power_limit()).map(watts);
    reading.clock_mhz = answers.take(device.clock_info(Clock::SM));
    reading.memory_clock_mhz = answers.take(device.clock_info(Clock::Memory));
}

fn is_service(user: &User) -> bool {
    user.name.as_deref().is_some_and(|name| SERVICES.iter().any(|service| name.starts_with(service)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_unknown_metric_hides_no_other() {
        let mut answers = Answers::default();
        assert_eq!(answers.take::<u32>(Err(NvmlError::NotSupported)), None);
        assert!(!answers.any && answers.grave.is_none());
        assert_eq!(answers.take(Ok(7)), Some(7));
        assert_eq!(answers.take::<u32>(Err(NvmlError::GpuLost)), None);
        assert!(answers.any && matches!(answers.grave, Some(NvmlError::GpuLost)));
    }

    #[test]
    fn nvidias_own_services_use_nothing() {
        let user = |name: &str| User { pid: 1, name: Some(name.to_owned()) };
        assert!(is_service(&user("nvidia-cuda-mps")) && !is_service(&user("python3")));
        assert!(!is_service(&User { pid: 1, name: None }));
    }
}

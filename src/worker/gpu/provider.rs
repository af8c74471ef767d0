//! What every kind of GPU provides, by whichever interface its vendor has.

use app::protocol::gpu::GpuReading;

use super::{Hardware, amd, apple, fake, intel, nvml};

/// One kind of GPU on this host. Its calls may block for seconds; only the monitor's thread makes them.
pub trait GpuProvider: Send {
    /// Detects the GPUs; without GPUs of this kind the list is empty.
    ///
    /// # Errors
    /// A message, if there should be GPUs that cannot be listed.
    fn detect(&mut self) -> Result<Hardware, String>;

    /// Reads the GPUs that [`GpuProvider::detect`] found last. Missing ones may be left out.
    ///
    /// # Errors
    /// A message, if the driver as a whole does not respond.
    fn poll(&mut self) -> Result<Vec<GpuSnapshot>, String>;
}

/// The state of one GPU at one poll.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GpuSnapshot {
    /// Measurements; what the device does not report is `None`.
    pub reading: GpuReading,
    /// The processes that compute on it; `None` if they are unknown.
    pub processes: Option<Vec<GpuProcess>>,
    /// Faults since the last poll.
    pub faults: Vec<GpuFault>,
}

/// A process on a GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuProcess {
    /// In a container it may be the host's PID.
    pub pid: u32,
    /// Its name, if it is visible.
    pub name: Option<String>,
}

impl GpuProcess {
    /// With its name from `/proc`.
    pub fn from_pid(pid: u32) -> Self {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok();
        Self { pid, name: name.map(|name| name.trim().to_owned()) }
    }
}

impl std::fmt::Display for GpuProcess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.name {
            Some(name) => write!(f, "process {} ({name})", self.pid),
            None => write!(f, "process {}", self.pid),
        }
    }
}

/// Formats the processes, the first few by name.
pub fn format_processes(processes: &[GpuProcess]) -> String {
    const NAMED: usize = 3;
    let named: Vec<String> = processes.iter().take(NAMED).map(GpuProcess::to_string).collect();
    match processes.len().saturating_sub(NAMED) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GpuFault {
    /// NVIDIA's driver reported an error with this number.
    Xid(u64),
    /// It no longer responds, and why.
    Lost(String),
}

/// The kind of GPU that this host computes on, and its hardware: the first kind that exists.
///
/// A job has one kind of accelerator, and so has a worker.
pub fn detect_provider() -> (Box<dyn GpuProvider>, Hardware) {
    detect_provider_with(|kind, error| tracing::warn!("cannot use {kind} GPUs: {error}"))
}

/// The same; calls `report_failure` for kinds that cannot be used.
pub fn detect_provider_with(report_failure: impl Fn(&str, &str)) -> (Box<dyn GpuProvider>, Hardware) {
    let kinds: Vec<(&str, Box<dyn GpuProvider>)> = match fake::FakeProvider::from_environment() {
        Some(fake) => vec![("simulated", Box::new(fake))],
        None => vec![
            ("NVIDIA", Box::new(nvml::NvidiaProvider::default())),
            ("AMD", Box::new(amd::AmdProvider::new("/"))),
            ("Intel", Box::new(intel::IntelProvider::new("/"))),
            ("Apple", Box::new(apple::AppleProvider)),
        ],
    };
    for (kind, mut provider) in kinds {
        match provider.detect() {
            Ok(found) if !found.gpus.is_empty() => return (provider, found),
            Ok(_) => {}
            Err(error) => report_failure(kind, &error),
        }
    }
    (Box::new(NoGpuProvider), Hardware::cpu_only())
}

/// A host without GPUs.
struct NoGpuProvider;

impl GpuProvider for NoGpuProvider {
    fn detect(&mut self) -> Result<Hardware, String> {
        Ok(Hardware::cpu_only())
    }

    fn poll(&mut self) -> Result<Vec<GpuSnapshot>, String> {
        Ok(Vec::new())
    }
}

/// Bytes in GB, rounded to 0.01.
#[expect(clippy::cast_precision_loss, reason = "hundredths of a GB are enough")]
pub fn bytes_to_gb(bytes: u64) -> f64 {
    (bytes as f64 / f64::from(1 << 30) * 100.0).round() / 100.0
}

/// Size of a memory in GB, rounded to 0.1.
#[expect(clippy::cast_precision_loss, reason = "tenths of a GB are enough")]
pub fn memory_size_gb(bytes: u64) -> f64 {
    (bytes as f64 / f64::from(1 << 30) * 10.0).round() / 10.0
}

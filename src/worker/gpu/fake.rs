//! GPUs simulated by a file, for tests and for demos of rare hardware.
//!
//! `SIMPLETUNER_FAKE_GPUS` names a JSON file, which is read at each poll, so that changing it changes the GPUs:
//!
//! ```json
//! {
//!   "accelerator": "cuda", "driver": "550.54", "runtime": "12.4",
//!   "hang": false,            // true: no response until it is false again
//!   "error": null,            // a message: the whole driver fails with it
//!   "gpus": [{
//!     "uuid": "GPU-1", "name": "H100", "vram_gb": 80.0, "memory_kind": "dedicated", "part_of": null,
//!     "reading": { "utilization_percent": 97.0, "ecc_errors": 0 },
//!     "processes": [{ "pid": 4711, "name": "python3" }],   // null: unknown
//!     "xids": [79],           // all so far; each is reported once
//!     "lost": null            // a message: it does not respond
//!   }]
//! }
//! ```

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use app::protocol::gpu::{Gpu, GpuReading, MemoryKind};
use serde::Deserialize;

use super::Hardware;
use super::provider::{GpuFault, GpuProcess, GpuProvider, GpuSnapshot};

const VARIABLE: &str = "SIMPLETUNER_FAKE_GPUS";
/// How often a hang is checked for its end.
const HANG_POLL_INTERVAL: Duration = Duration::from_millis(50);

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct FakeGpuFile {
    accelerator: Option<String>,
    driver: Option<String>,
    runtime: Option<String>,
    hang: bool,
    error: Option<String>,
    gpus: Vec<FakeGpu>,
}

#[derive(Debug, Deserialize)]
struct FakeGpu {
    uuid: String,
    name: String,
    #[serde(default)]
    vram_gb: Option<f64>,
    #[serde(default)]
    memory_kind: Option<MemoryKind>,
    #[serde(default)]
    part_of: Option<String>,
    #[serde(default)]
    reading: serde_json::Map<String, serde_json::Value>,
    #[serde(default = "no_processes")]
    processes: Option<Vec<FakeProcess>>,
    #[serde(default)]
    xids: Vec<u64>,
    #[serde(default)]
    lost: Option<String>,
}

#[derive(Debug, Deserialize)]
struct FakeProcess {
    pid: u32,
    #[serde(default)]
    name: Option<String>,
}

#[expect(clippy::unnecessary_wraps, reason = "the default of an optional field")]
fn no_processes() -> Option<Vec<FakeProcess>> {
    Some(Vec::new())
}

/// The file, and what of it was reported.
pub struct FakeProvider {
    path: PathBuf,
    /// How many XIDs of each GPU were reported.
    reported_xids: BTreeMap<String, usize>,
}

impl FakeProvider {
    /// If the variable is set.
    pub fn from_environment() -> Option<Self> {
        let path = std::env::var_os(VARIABLE).filter(|path| !path.is_empty())?;
        tracing::warn!("{VARIABLE} is set: GPUs are simulated, and those of this machine are ignored");
        Some(Self { path: path.into(), reported_xids: BTreeMap::new() })
    }

    fn read(&self) -> Result<FakeGpuFile, String> {
        loop {
            let describe = |error: &dyn std::fmt::Display| format!("{}: {error}", self.path.display());
            let text = std::fs::read_to_string(&self.path).map_err(|error| describe(&error))?;
            let file: FakeGpuFile = serde_json::from_str(&text).map_err(|error| describe(&error))?;
            if !file.hang {
                return file.error.map_or(Ok(FakeGpuFile { error: None, ..file }), Err);
            }
            std::thread::sleep(HANG_POLL_INTERVAL);
        }
    }

    fn snapshot(&mut self, gpu: FakeGpu) -> GpuSnapshot {
        let reported_count = self.reported_xids.insert(gpu.uuid.clone(), gpu.xids.len()).unwrap_or_default();
        let xids = gpu.xids.iter().skip(reported_count).copied().map(GpuFault::Xid);
        let mut reading = gpu.reading;
        reading.insert("uuid".to_owned(), gpu.uuid.as_str().into());
        let reading = serde_json::from_value(reading.into())
            .unwrap_or_else(|_| GpuReading { uuid: gpu.uuid, ..GpuReading::default() });
        let to_process = |process: FakeProcess| GpuProcess { pid: process.pid, name: process.name };
        GpuSnapshot {
            reading,
            processes: gpu.processes.map(|all| all.into_iter().map(to_process).collect()),
            faults: xids.chain(gpu.lost.map(GpuFault::Lost)).collect(),
        }
    }
}

impl GpuProvider for FakeProvider {
    fn detect(&mut self) -> Result<Hardware, String> {
        let file = self.read()?;
        let gpu = |(index, fake): (u32, FakeGpu)| Gpu {
            index,
            uuid: fake.uuid,
            name: fake.name,
            vram_gb: fake.vram_gb,
            memory_kind: fake.memory_kind,
            part_of: fake.part_of,
            unavailable: None,
        };
        Ok(Hardware {
            gpus: (0..).zip(file.gpus).map(gpu).collect(),
            driver: file.driver,
            runtime: file.runtime,
            accelerator: file.accelerator.unwrap_or_else(|| "cuda".to_owned()),
            ..Hardware::default()
        })
    }

    fn poll(&mut self) -> Result<Vec<GpuSnapshot>, String> {
        Ok(self.read()?.gpus.into_iter().map(|gpu| self.snapshot(gpu)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simulated_gpus_follow_the_file_and_each_xid_counts_once() -> Result<(), Box<dyn std::error::Error>> {
        let temp = tempfile::tempdir()?;
        let path = temp.path().join("gpus.json");
        let mut fake = FakeProvider { path: path.clone(), reported_xids: BTreeMap::new() };
        assert!(fake.detect().is_err_and(|error| error.contains("gpus.json")));
        std::fs::write(
            &path,
            r#"{"gpus": [{"uuid": "GPU-1", "name": "X", "reading": {"power_watts": 70.5}, "xids": [79]}]}"#,
        )?;
        assert_eq!(fake.detect()?.gpus[0].name, "X");
        let snapshots = fake.poll()?;
        assert_eq!(snapshots[0].reading.power_watts, Some(70.5));
        assert_eq!((&snapshots[0].processes, &snapshots[0].faults), (&Some(Vec::new()), &vec![GpuFault::Xid(79)]));
        assert_eq!(fake.poll()?[0].faults, []);
        std::fs::write(&path, r#"{"error": "no driver"}"#)?;
        assert_eq!(fake.poll(), Err("no driver".to_owned()));
        Ok(())
    }
}

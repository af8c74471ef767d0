//! GPUs that a file makes up: for tests, and for showing odd hardware without having it.
//!
//! `SIMPLETUNER_FAKE_GPUS` names a JSON file, which is read anew at each look, so whoever writes it moves the GPUs:
//!
//! ```json
//! {
//!   "accelerator": "cuda", "driver": "550.54", "runtime": "12.4",
//!   "hang": false,            // true: no answer until it is false again
//!   "error": null,            // a sentence: the driver as a whole answers this
//!   "gpus": [{
//!     "uuid": "GPU-1", "name": "H100", "vram_gb": 80.0, "memory_kind": "dedicated", "part_of": null,
//!     "reading": { "utilization_percent": 97.0, "ecc_errors": 0 },
//!     "processes": [{ "pid": 4711, "name": "python3" }],   // null: nobody can tell
//!     "xids": [79],           // all since the file exists; each counts once
//!     "lost": null            // a sentence: it does not answer
//!   }]
//! }
//! ```

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use app::protocol::gpu::{Gpu, GpuReading, MemoryKind};
use serde::Deserialize;

use super::Hardware;
use super::provider::{Fault, Provider, Seen, User};

const VARIABLE: &str = "SIMPLETUNER_FAKE_GPUS";
/// Between two looks whether it still hangs.
const HANGING: Duration = Duration::from_millis(50);

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct File {
    accelerator: Option<String>,
    driver: Option<String>,
    runtime: Option<String>,
    hang: bool,
    error: Option<String>,
    gpus: Vec<Made>,
}

#[derive(Debug, Deserialize)]
struct Made {
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
    #[serde(default = "nobody")]
    processes: Option<Vec<Process>>,
    #[serde(default)]
    xids: Vec<u64>,
    #[serde(default)]
    lost: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Process {
    pid: u32,
    #[serde(default)]
    name: Option<String>,
}

#[expect(clippy::unnecessary_wraps, reason = "the default of an optional field")]
fn nobody() -> Option<Vec<Process>> {
    Some(Vec::new())
}

/// The file, and what of it was told.
pub struct Fake {
    path: PathBuf,
    /// How many XIDs of each GPU were told.
    told: BTreeMap<String, usize>,
}

impl Fake {
    /// If the variable is set.
    pub fn from_environment() -> Option<Self> {
        let path = std::env::var_os(VARIABLE).filter(|path| !path.is_empty())?;
        tracing::warn!("{VARIABLE} is set: the GPUs are made up, and those of this machine are not looked at");
        Some(Self { path: path.into(), told: BTreeMap::new() })
    }

    fn read(&self) -> Result<File, String> {
        loop {
            let why = |error: &dyn std::fmt::Display| format!("{}: {error}", self.path.display());
            let text = std::fs::read_to_string(&self.path).map_err(|error| why(&error))?;
            let file: File = serde_json::from_str(&text).map_err(|error| why(&error))?;
            if !file.hang {
                return file.error.map_or(Ok(File { error: None, ..file }), Err);
            }
            std::thread::sleep(HANGING);
        }
    }

    fn seen(&mut self, made: Made) -> Seen {
        let told = self.told.insert(made.uuid.clone(), made.xids.len()).unwrap_or_default();
        let xids = made.xids.iter().skip(told).copied().map(Fault::Xid);
        let mut reading = made.reading;
        reading.insert("uuid".to_owned(), made.uuid.as_str().into());
        let reading = serde_json::from_value(reading.into())
            .unwrap_or_else(|_| GpuReading { uuid: made.uuid, ..GpuReading::default() });
        let user = |process: Process| User { pid: process.pid, name: process.name };
        Seen {
            reading,
            users: made.processes.map(|all| all.into_iter().map(user).collect()),
            faults: xids.chain(made.lost.map(Fault::Lost)).collect(),
        }
    }
}

impl Provider for Fake {
    fn detect(&mut self) -> Result<Hardware, String> {
        let file = self.read()?;
        let gpu = |(index, made): (u32, Made)| Gpu {
            index,
            uuid: made.uuid,
            name: made.name,
            vram_gb: made.vram_gb,
            memory_kind: made.memory_kind,
            part_of: made.part_of,
            withheld: None,
        };
        Ok(Hardware {
            gpus: (0..).zip(file.gpus).map(gpu).collect(),
            driver: file.driver,
            runtime: file.runtime,
            accelerator: file.accelerator.unwrap_or_else(|| "cuda".to_owned()),
            ..Hardware::default()
        })
    }

    fn look(&mut self) -> Result<Vec<Seen>, String> {
        Ok(self.read()?.gpus.into_iter().map(|made| self.seen(made)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_moves_them_and_each_xid_counts_once() -> Result<(), Box<dyn std::error::Error>> {
        let temp = tempfile::tempdir()?;
        let path = temp.path().join("gpus.json");
        let mut fake = Fake { path: path.clone(), told: BTreeMap::new() };
        assert!(fake.detect().is_err_and(|why| why.contains("gpus.json")));
        std::fs::write(
            &path,
            r#"{"gpus": [{"uuid": "GPU-1", "name": "X", "reading": {"power_watts": 70.5}, "xids": [79]}]}"#,
        )?;
        assert_eq!(fake.detect()?.gpus[0].name, "X");
        let seen = fake.look()?;
        assert_eq!(seen[0].reading.power_watts, Some(70.5));
        assert_eq!((&seen[0].users, &seen[0].faults), (&Some(Vec::new()), &vec![Fault::Xid(79)]));
        assert_eq!(fake.look()?[0].faults, []);
        std::fs::write(&path, r#"{"error": "no driver"}"#)?;
        assert_eq!(fake.look(), Err("no driver".to_owned()));
        Ok(())
    }
}

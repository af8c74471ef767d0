//! `simpletuner-worker gpus`: lists this host's GPUs and their state, and releases GPUs from quarantine.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use app::protocol::gpu::Gpu;

use super::health::{GpuHealth, mark_missing_as_lost};
use super::quarantine::{Quarantine, QuarantineEntries};
use super::{Hardware, is_placeholder, provider, visibility};
use crate::worker::exit::{self, FatalError};
use crate::worker::files::{self, AttemptSpec, AttemptState};
use crate::worker::process;

/// Prints every GPU with its state.
///
/// # Errors
/// If the work directory cannot be read.
pub fn list(work_dir: &Path) -> Result<u8, FatalError> {
    let (mut provider, found) = provider::detect_provider();
    let hardware = visibility::filter_visible(found, |name| std::env::var(name).ok());
    let known: Vec<String> =
        hardware.gpus.iter().map(|gpu| gpu.uuid.clone()).filter(|uuid| !is_placeholder(uuid)).collect();
    let holders = attempts_by_gpu(work_dir, &known)?;
    let mut health = GpuHealth::default();
    let reserved: BTreeSet<String> = holders.keys().cloned().collect();
    let failures = health.record(&mark_missing_as_lost(provider.poll(), &known), &reserved);
    let mut quarantine = Quarantine::open(work_dir, process::host_boot_id());
    let failure_details: BTreeMap<String, String> =
        failures.into_iter().map(|failure| (failure.uuid, failure.detail)).collect();
    print!("{}", format_table(&hardware, &health, quarantine.entries(), &failure_details, &holders));
    Ok(exit::OK)
}

/// Releases a GPU from quarantine; a running agent notices at its next poll.
///
/// # Errors
/// If it is not in quarantine, or on an I/O error.
pub fn release(work_dir: &Path, uuid: &str) -> Result<u8, FatalError> {
    match Quarantine::open(work_dir, process::host_boot_id()).release(uuid) {
        Ok(true) => {
            println!("Released {uuid} from quarantine.");
            Ok(exit::OK)
        }
        Ok(false) => Err(FatalError::error(format!(
            "{uuid} is not in quarantine in {}; list GPUs with `simpletuner-worker gpus`",
            work_dir.display()
        ))),
        Err(error) => Err(FatalError::config(format!("cannot change {}: {error}", work_dir.display()))),
    }
}

/// Which attempts hold which GPUs.
fn attempts_by_gpu(work_dir: &Path, known: &[String]) -> Result<BTreeMap<String, String>, FatalError> {
    let unreadable = |error| FatalError::config(format!("cannot read {}: {error}", work_dir.display()));
    let mut holders = BTreeMap::new();
    for dir in files::list_attempts(work_dir).map_err(unreadable)? {
        let Ok(Some(spec)) = dir.read_json::<AttemptSpec>("spec.json") else { continue };
        let state: AttemptState = dir.read_json("state.json").ok().flatten().unwrap_or_default();
        if !state.delivered {
            let granted = if spec.offer.gpus.is_empty() { known.to_vec() } else { spec.offer.gpus };
            holders.extend(granted.into_iter().map(|uuid| (uuid, spec.key.to_string())));
        }
    }
    Ok(holders)
}

fn format_table(
    hardware: &Hardware,
    health: &GpuHealth,
    quarantined: &QuarantineEntries,
    failure_details: &BTreeMap<String, String>,
    holders: &BTreeMap<String, String>,
) -> String {
    let mut text = String::new();
    if hardware.gpus.is_empty() {
        return "This host has no GPU that a driver knows.\n".to_owned();
    }
    for gpu in &hardware.gpus {
        let Gpu { index, uuid, name, .. } = gpu;
        let memory = gpu.vram_gb.map_or_else(|| "shared memory".to_owned(), |gb| format!("{gb} GB"));
        let reason =
            quarantined.get(uuid).map(|entry| entry.reason.as_str()).or(failure_details.get(uuid).map(String::as_str));
        let state = match (health.unavailable_reason(uuid, reason), holders.get(uuid)) {
            (Some(unavailable), _) if quarantined.contains_key(uuid) => {
                format!("in quarantine: {}", unavailable.detail)
            }
            (Some(unavailable), _) => format!("unavailable: {}", unavailable.detail),
            (None, Some(job)) => format!("held by {job}"),
            (None, None) => "free".to_owned(),
        };
        let _ = writeln!(text, "{index}  {uuid}  {name}, {memory}  {state}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::gpu::tests::two_gpus;

    #[test]
    fn each_gpu_is_listed_on_one_line() {
        let mut health = GpuHealth::default();
        health.record(&Ok(Vec::new()), &BTreeSet::new());
        let holders = BTreeMap::from([("GPU-1abc".to_owned(), "j_1 attempt 2".to_owned())]);
        let failure_details = BTreeMap::from([("GPU-0abc".to_owned(), "XID 79".to_owned())]);
        let text = format_table(&two_gpus(), &health, &QuarantineEntries::new(), &failure_details, &holders);
        assert_eq!(
            text,
            "0  GPU-0abc  A100, 80 GB  unavailable: XID 79\n1  GPU-1abc  A100, 80 GB  held by j_1 attempt 2\n"
        );
        assert!(
            format_table(&Hardware::cpu_only(), &health, &QuarantineEntries::new(), &failure_details, &holders)
                .contains("no GPU")
        );
    }
}

//! `simpletuner-worker gpus`: what this host has, how it stands, and letting a GPU out of quarantine.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use app::protocol::gpu::Gpu;

use super::gate::{Gate, whole};
use super::quarantine::{Entries, Quarantine};
use super::{Hardware, is_made_up, provider, visible};
use crate::exit::{self, Fatal};
use crate::files::{self, Spec, State};
use crate::process;

/// Prints every GPU with its state.
///
/// # Errors
/// If the work directory cannot be read.
pub fn list(work_dir: &Path) -> Result<u8, Fatal> {
    let (mut provider, found) = provider::find();
    let hardware = visible::restricted(found, |name| std::env::var(name).ok());
    let known: Vec<String> =
        hardware.gpus.iter().map(|gpu| gpu.uuid.clone()).filter(|uuid| !is_made_up(uuid)).collect();
    let holders = holders(work_dir, &known)?;
    let mut gate = Gate::default();
    let held: BTreeSet<String> = holders.keys().cloned().collect();
    let broken = gate.take(&whole(provider.look(), &known), &held);
    let mut quarantine = Quarantine::at(work_dir, &process::host_boot());
    let now: BTreeMap<String, String> = broken.into_iter().map(|broken| (broken.uuid, broken.detail)).collect();
    print!("{}", table(&hardware, &gate, quarantine.entries(), &now, &holders));
    Ok(exit::OK)
}

/// Lets a GPU out of quarantine; a running agent notices at its next look.
///
/// # Errors
/// If it is not in quarantine, or the disk refuses.
pub fn release(work_dir: &Path, uuid: &str) -> Result<u8, Fatal> {
    match Quarantine::at(work_dir, &process::host_boot()).release(uuid) {
        Ok(true) => {
            println!("{uuid} may be given to jobs again.");
            Ok(exit::OK)
        }
        Ok(false) => Err(Fatal::error(format!(
            "{uuid} is not in quarantine in {}; `simpletuner-worker gpus` lists what is",
            work_dir.display()
        ))),
        Err(error) => Err(Fatal::config(format!("{} cannot be changed: {error}", work_dir.display()))),
    }
}

/// Whose attempts have which GPUs here.
fn holders(work_dir: &Path, known: &[String]) -> Result<BTreeMap<String, String>, Fatal> {
    let unreadable = |error| Fatal::config(format!("{} cannot be read: {error}", work_dir.display()));
    let mut holders = BTreeMap::new();
    for dir in files::attempts(work_dir).map_err(unreadable)? {
        let Ok(Some(spec)) = dir.read::<Spec>("spec.json") else { continue };
        let state: State = dir.read("state.json").ok().flatten().unwrap_or_default();
        if !state.delivered {
            let granted = if spec.offer.gpus.is_empty() { known.to_vec() } else { spec.offer.gpus };
            holders.extend(granted.into_iter().map(|uuid| (uuid, spec.key.to_string())));
        }
    }
    Ok(holders)
}

fn table(
    hardware: &Hardware,
    gate: &Gate,
    quarantined: &Entries,
    broken: &BTreeMap<String, String>,
    holders: &BTreeMap<String, String>,
) -> String {
    let mut text = String::new();
    if hardware.gpus.is_empty() {
        return "This host has no GPU that a driver knows.\n".to_owned();
    }
    for gpu in &hardware.gpus {
        let Gpu { index, uuid, name, .. } = gpu;
        let memory = gpu.vram_gb.map_or_else(|| "shared memory".to_owned(), |gb| format!("{gb} GB"));
        let reason = quarantined.get(uuid).map(|entry| entry.reason.as_str()).or(broken.get(uuid).map(String::as_str));
        let state = match (gate.withheld(uuid, reason), holders.get(uuid)) {
            (Some(withheld), _) if quarantined.contains_key(uuid) => format!("in quarantine: {}", withheld.detail),
            (Some(withheld), _) => format!("withheld: {}", withheld.detail),
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
    use crate::gpu::tests::two;

    #[test]
    fn each_gpu_has_a_line() {
        let mut gate = Gate::default();
        gate.take(&Ok(Vec::new()), &BTreeSet::new());
        let holders = BTreeMap::from([("GPU-1abc".to_owned(), "j_1 attempt 2".to_owned())]);
        let broken = BTreeMap::from([("GPU-0abc".to_owned(), "XID 79".to_owned())]);
        let text = table(&two(), &gate, &Entries::new(), &broken, &holders);
        assert_eq!(
            text,
            "0  GPU-0abc  A100, 80 GB  withheld: XID 79\n1  GPU-1abc  A100, 80 GB  held by j_1 attempt 2\n"
        );
        assert!(table(&Hardware::none(), &gate, &Entries::new(), &broken, &holders).contains("no GPU"));
    }
}

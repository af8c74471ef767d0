//! Parts of NVIDIA's GPUs (MIG): the instances that each is made of, and the device files by which a process gets at them.
//!
//! NVIDIA's library tells the parts and, to C alone, their instances; `nvidia-smi` tells those too.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use super::sysfs::text;

/// What a part is made of, by the driver's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instances {
    /// Of memory and processors, within its GPU.
    pub gpu: u32,
    /// Of processors, within that.
    pub compute: u32,
}

/// A part as NVIDIA's library lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Its id.
    pub uuid: String,
    /// The id of its GPU.
    pub of: String,
    /// Its number there.
    pub index: u32,
}

/// The instances of all parts, as far as anybody says so.
pub fn instances(parts: &[Part]) -> BTreeMap<String, Instances> {
    if parts.is_empty() {
        return BTreeMap::new();
    }
    let asked = Command::new("nvidia-smi").args(["-q", "-x"]).stdin(Stdio::null()).stderr(Stdio::null()).output();
    let told = asked.map(|output| told(&String::from_utf8_lossy(&output.stdout))).unwrap_or_default();
    let found: BTreeMap<_, _> = parts
        .iter()
        .filter_map(|part| {
            let known = of_id(&part.uuid).or_else(|| told.get(&(part.of.clone(), part.index)).copied());
            Some((part.uuid.clone(), known?))
        })
        .collect();
    for part in parts.iter().filter(|part| !found.contains_key(&part.uuid)) {
        tracing::warn!(
            uuid = part.uuid,
            "nvidia-smi -q -x does not tell its instances: confined jobs cannot compute there"
        );
    }
    found
}

/// Older drivers name parts `MIG-GPU-…/1/0`.
fn of_id(uuid: &str) -> Option<Instances> {
    let (rest, compute) = uuid.rsplit_once('/')?;
    let (_, gpu) = rest.rsplit_once('/')?;
    Some(Instances { gpu: gpu.parse().ok()?, compute: compute.parse().ok()? })
}

/// By GPU and number there, of what `nvidia-smi -q -x` prints: an element a line.
fn told(xml: &str) -> BTreeMap<(String, u32), Instances> {
    let mut all = BTreeMap::new();
    for gpu in xml.split("<gpu id=").skip(1) {
        let (before, parts) = gpu.split_once("<mig_devices>").unwrap_or((gpu, ""));
        let (parts, after) = parts.split_once("</mig_devices>").unwrap_or_default();
        let Some(uuid) = element(before, "uuid").or_else(|| element(after, "uuid")) else { continue };
        for part in parts.split("<mig_device>").skip(1) {
            let number = |name| element(part, name)?.parse().ok();
            let told = (number("index"), number("gpu_instance_id"), number("compute_instance_id"));
            if let (Some(index), Some(gpu), Some(compute)) = told {
                all.insert((uuid.to_owned(), index), Instances { gpu, compute });
            }
        }
    }
    all
}

fn element<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    rest.split_once('<').map(|(value, _)| value.trim())
}

/// The files that open the instances of a part to whoever can open them; `minor` is the number of its GPU's device file.
pub fn files(root: &Path, minor: &str, instances: Instances) -> Vec<PathBuf> {
    let own = root.join(format!("proc/driver/nvidia/capabilities/gpu{minor}/mig/gi{}", instances.gpu));
    let access = [own.join("access"), own.join(format!("ci{}/access", instances.compute))];
    let number = |file: &PathBuf| {
        let text = text(file)?;
        let value = text.lines().find_map(|line| line.strip_prefix("DeviceFileMinor:"))?;
        value.trim().parse::<u32>().ok()
    };
    let numbers = access.iter().filter_map(number);
    numbers.map(|number| root.join(format!("dev/nvidia-caps/nvidia-cap{number}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nvidia_smi_prints() {
        let told = told(include_str!("recorded/mig.xml"));
        let of = |uuid: &str, index| told.get(&(uuid.to_owned(), index)).map(|found| (found.gpu, found.compute));
        assert_eq!((of("GPU-a", 0), of("GPU-a", 1), of("GPU-a", 2)), (Some((1, 0)), Some((2, 1)), None));
        assert_eq!((of("GPU-b", 0), told.len()), (Some((7, 0)), 3), "{told:?}");
        assert!(super::told("").is_empty() && super::told("<gpu id=<uuid>").is_empty());
    }

    #[test]
    fn what_older_ids_say() {
        assert_eq!(of_id("MIG-GPU-5a/3/1"), Some(Instances { gpu: 3, compute: 1 }));
        assert_eq!(of_id("MIG-c7384736-a75d-5afc-978f-d2f1294409fd"), None);
    }
}

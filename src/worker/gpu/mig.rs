//! Partitions of NVIDIA's GPUs (MIG): their instances, and the device files that give access to them.
//!
//! NVML lists the partitions, but their instances only through its C API; `nvidia-smi` prints those too.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use super::sysfs::read_text;

/// The instances of a partition, by the driver's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MigInstances {
    /// GPU instance (memory and processors), within its GPU.
    pub gpu: u32,
    /// Compute instance, within the GPU instance.
    pub compute: u32,
}

/// A partition as NVML lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MigDevice {
    pub uuid: String,
    pub parent_uuid: String,
    /// Its index on the GPU.
    pub index: u32,
}

/// The instances of all partitions, as far as they are known.
pub fn find_instances(parts: &[MigDevice]) -> BTreeMap<String, MigInstances> {
    if parts.is_empty() {
        return BTreeMap::new();
    }
    let output = Command::new("nvidia-smi").args(["-q", "-x"]).stdin(Stdio::null()).stderr(Stdio::null()).output();
    let instances = output.map(|output| parse_smi_xml(&String::from_utf8_lossy(&output.stdout))).unwrap_or_default();
    let found: BTreeMap<_, _> = parts
        .iter()
        .filter_map(|part| {
            let known =
                parse_legacy_id(&part.uuid).or_else(|| instances.get(&(part.parent_uuid.clone(), part.index)).copied());
            Some((part.uuid.clone(), known?))
        })
        .collect();
    for part in parts.iter().filter(|part| !found.contains_key(&part.uuid)) {
        tracing::warn!(
            uuid = part.uuid,
            "nvidia-smi -q -x does not list its instances: sandboxed jobs cannot compute there"
        );
    }
    found
}

/// Older drivers name partitions `MIG-GPU-…/1/0`.
fn parse_legacy_id(uuid: &str) -> Option<MigInstances> {
    let (rest, compute) = uuid.rsplit_once('/')?;
    let (_, gpu) = rest.rsplit_once('/')?;
    Some(MigInstances { gpu: gpu.parse().ok()?, compute: compute.parse().ok()? })
}

/// Instances by GPU and index, from the output of `nvidia-smi -q -x`: one element per line.
fn parse_smi_xml(xml: &str) -> BTreeMap<(String, u32), MigInstances> {
    let mut all = BTreeMap::new();
    for gpu in xml.split("<gpu id=").skip(1) {
        let (before, parts) = gpu.split_once("<mig_devices>").unwrap_or((gpu, ""));
        let (parts, after) = parts.split_once("</mig_devices>").unwrap_or_default();
        let Some(uuid) = xml_element(before, "uuid").or_else(|| xml_element(after, "uuid")) else { continue };
        for part in parts.split("<mig_device>").skip(1) {
            let number = |name| xml_element(part, name)?.parse().ok();
            let ids = (number("index"), number("gpu_instance_id"), number("compute_instance_id"));
            if let (Some(index), Some(gpu), Some(compute)) = ids {
                all.insert((uuid.to_owned(), index), MigInstances { gpu, compute });
            }
        }
    }
    all
}

fn xml_element<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    rest.split_once('<').map(|(value, _)| value.trim())
}

/// The files that give access to a partition's instances; `minor` is the number of its GPU's device file.
pub fn device_files(root: &Path, minor: &str, instances: MigInstances) -> Vec<PathBuf> {
    let instance_dir = root.join(format!("proc/driver/nvidia/capabilities/gpu{minor}/mig/gi{}", instances.gpu));
    let access = [instance_dir.join("access"), instance_dir.join(format!("ci{}/access", instances.compute))];
    let number = |file: &PathBuf| {
        let text = read_text(file)?;
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
    fn nvidia_smi_output_is_parsed() {
        let instances = parse_smi_xml(include_str!("recorded/mig.xml"));
        let instance =
            |uuid: &str, index| instances.get(&(uuid.to_owned(), index)).map(|found| (found.gpu, found.compute));
        assert_eq!(
            (instance("GPU-a", 0), instance("GPU-a", 1), instance("GPU-a", 2)),
            (Some((1, 0)), Some((2, 1)), None)
        );
        assert_eq!((instance("GPU-b", 0), instances.len()), (Some((7, 0)), 3), "{instances:?}");
        assert!(super::parse_smi_xml("").is_empty() && super::parse_smi_xml("<gpu id=<uuid>").is_empty());
    }

    #[test]
    fn legacy_mig_ids_are_parsed() {
        assert_eq!(parse_legacy_id("MIG-GPU-5a/3/1"), Some(MigInstances { gpu: 3, compute: 1 }));
        assert_eq!(parse_legacy_id("MIG-c7384736-a75d-5afc-978f-d2f1294409fd"), None);
    }
}

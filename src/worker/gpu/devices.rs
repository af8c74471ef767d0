//! The device files that give a process access to its granted GPUs, and to no others.

use std::path::{Path, PathBuf};

use app::protocol::gpu::Gpu;

use super::sysfs::{list_cards, list_dir, read_text};
use super::{Hardware, is_placeholder, mig};

/// Files of NVIDIA's driver itself: every process that computes opens them.
const NVIDIA_CONTROL_FILES: [&str; 4] =
    ["dev/nvidiactl", "dev/nvidia-uvm", "dev/nvidia-uvm-tools", "dev/nvidia-modeset"];
/// Devices with an integrated GPU, and WSL, have these instead; they stand for all GPUs.
const SHARED_DEVICE_FILES: [&str; 6] =
    ["dev/dxg", "dev/nvmap", "dev/nvgpu", "dev/nvhost-ctrl-gpu", "dev/nvhost-gpu", "dev/nvhost-as-gpu"];
const AMD_KFD: &str = "dev/kfd";
const VENDOR_AMD: &str = "0x1002";
const VENDOR_INTEL: &str = "0x8086";

/// The files that exist.
pub fn device_files(root: &Path, hardware: &Hardware, granted: &[String]) -> Vec<PathBuf> {
    let is_granted = |gpu: &&Gpu| granted.contains(&gpu.uuid) && !is_placeholder(&gpu.uuid);
    let gpus: Vec<&Gpu> = hardware.gpus.iter().filter(is_granted).collect();
    if gpus.is_empty() {
        return Vec::new();
    }
    let found = match hardware.accelerator.as_str() {
        "cuda" => nvidia_files(root, hardware, &gpus),
        "rocm" => [vec![root.join(AMD_KFD)], drm_files(root, VENDOR_AMD, &gpus)].concat(),
        "xpu" => drm_files(root, VENDOR_INTEL, &gpus),
        _ => Vec::new(),
    };
    found.into_iter().filter(|file| file.exists()).collect()
}

fn nvidia_files(root: &Path, hardware: &Hardware, gpus: &[&Gpu]) -> Vec<PathBuf> {
    let gpu_dirs = list_dir(&root.join("proc/driver/nvidia/gpus"));
    let minors: Vec<(String, String)> =
        gpu_dirs.iter().filter_map(|(_, dir)| parse_minor(&dir.join("information"))).collect();
    let gpu_files = gpus.iter().flat_map(|gpu| {
        // A MIG partition needs the whole GPU's file, and its own files.
        let device = gpu.part_of.as_ref().unwrap_or(&gpu.uuid);
        let Some((_, minor)) = minors.iter().find(|(uuid, _)| uuid == device) else { return Vec::new() };
        let instance_files = hardware.parts.get(&gpu.uuid).map(|instances| mig::device_files(root, minor, *instances));
        [vec![root.join(format!("dev/nvidia{minor}"))], instance_files.unwrap_or_default()].concat()
    });
    NVIDIA_CONTROL_FILES.iter().chain(&SHARED_DEVICE_FILES).map(|name| root.join(name)).chain(gpu_files).collect()
}

/// A GPU's UUID and the minor number of its device file, from the driver's description.
fn parse_minor(information: &Path) -> Option<(String, String)> {
    let text = read_text(information)?;
    let field = |name: &str| {
        text.lines().find_map(|line| {
            line.strip_prefix(name)?.trim_start().strip_prefix(':').map(|value| value.trim().to_owned())
        })
    };
    Some((field("GPU UUID")?, field("Device Minor")?))
}

/// The kernel's files of a graphics card: one for display, one for compute.
fn drm_files(root: &Path, vendor: &str, gpus: &[&Gpu]) -> Vec<PathBuf> {
    let is_granted = |card: &super::sysfs::DrmCard| {
        let id = read_text(&card.device_file("unique_id"))
            .map_or_else(|| format!("PCI-{}", card.slot), |id| format!("GPU-{id}"));
        gpus.iter().any(|gpu| gpu.uuid == id || gpu.uuid == format!("PCI-{}", card.slot))
    };
    let cards = list_cards(root, vendor).into_iter().filter(is_granted);
    cards.flat_map(|card| list_dir(&card.device_file("drm"))).map(|(name, _)| root.join("dev/dri").join(name)).collect()
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::worker::gpu::sysfs::unpack_recorded;

    fn files_by_uuid(root: &Path, accelerator: &str, uuids: &[&str], granted: &[&str]) -> Vec<String> {
        let gpu = |uuid: &&str| Gpu { uuid: (*uuid).to_owned(), ..Gpu::default() };
        let accelerator = accelerator.to_owned();
        let hardware = Hardware { gpus: uuids.iter().map(gpu).collect(), accelerator, ..Hardware::default() };
        accessible_files(root, &hardware, granted)
    }

    fn accessible_files(root: &Path, hardware: &Hardware, granted: &[&str]) -> Vec<String> {
        let granted: Vec<String> = granted.iter().map(|uuid| (*uuid).to_owned()).collect();
        let mut found: Vec<_> = device_files(root, hardware, &granted)
            .iter()
            .map(|file| file.strip_prefix(root.join("dev")).unwrap_or(file).display().to_string())
            .collect();
        found.sort();
        found
    }

    #[test]
    fn only_granted_nvidia_gpus_are_accessible() -> io::Result<()> {
        let root = unpack_recorded(
            "dev/nvidia0 = \ndev/nvidia1 = \ndev/nvidiactl = \ndev/nvidia-uvm = \n\
             proc/driver/nvidia/gpus/0000:01:00.0/information = Model:   A\\nGPU UUID:   GPU-a\\nDevice Minor:   1\n\
             proc/driver/nvidia/gpus/0000:02:00.0/information = Model:   A\\nGPU UUID:   GPU-b\\nDevice Minor:   0\n",
        )?;
        let granted_files = |granted: &[&str]| files_by_uuid(root.path(), "cuda", &["GPU-a", "GPU-b"], granted);
        assert_eq!(granted_files(&["GPU-a"]), ["nvidia-uvm", "nvidia1", "nvidiactl"]);
        assert_eq!(granted_files(&["GPU-b", "GPU-a"]), ["nvidia-uvm", "nvidia0", "nvidia1", "nvidiactl"]);
        assert!(granted_files(&[]).is_empty() && granted_files(&["GPU-c"]).is_empty());
        Ok(())
    }

    /// A GPU with two partitions and a whole one: `GPU-a` has the device file 1.
    fn partitioned_host() -> io::Result<(tempfile::TempDir, Hardware)> {
        let caps = "proc/driver/nvidia/capabilities/gpu";
        let access =
            |path: &str, minor| format!("{caps}{path}/access = DeviceFileMinor: {minor}\\nDeviceFileMode: 292\n");
        let files: String = ["nvidia0", "nvidia1", "nvidiactl"].map(|name| format!("dev/{name} = \n")).concat();
        let files = (1..9).fold(files, |all, cap| format!("{all}dev/nvidia-caps/nvidia-cap{cap} = \n"));
        let root = unpack_recorded(&format!(
            "{files}{}{}{}{}{}\
             proc/driver/nvidia/gpus/0000:01:00.0/information = GPU UUID:   GPU-a\\nDevice Minor:   1\n\
             proc/driver/nvidia/gpus/0000:02:00.0/information = GPU UUID:   GPU-b\\nDevice Minor:   0\n",
            access("1/mig/gi1", 3),
            access("1/mig/gi1/ci0", 4),
            access("1/mig/gi2", 5),
            access("1/mig/gi2/ci1", 6),
            // The other GPU, with the same numbers.
            access("0/mig/gi1", 7),
        ))?;
        let part = |uuid: &str| Gpu { uuid: uuid.to_owned(), part_of: Some("GPU-a".to_owned()), ..Gpu::default() };
        let unpartitioned = Gpu { uuid: "GPU-b".to_owned(), ..Gpu::default() };
        let instances = |gpu, compute| mig::MigInstances { gpu, compute };
        let parts = [("MIG-1".to_owned(), instances(1, 0)), ("MIG-2".to_owned(), instances(2, 1))].into();
        let gpus = vec![part("MIG-1"), part("MIG-2"), part("MIG-3"), unpartitioned];
        Ok((root, Hardware { gpus, parts, accelerator: "cuda".to_owned(), ..Hardware::default() }))
    }

    #[test]
    fn mig_partition_gets_only_its_own_files() -> io::Result<()> {
        let (root, hardware) = partitioned_host()?;
        let granted_files = |granted: &[&str]| accessible_files(root.path(), &hardware, granted);
        assert_eq!(
            granted_files(&["MIG-1"]),
            ["nvidia-caps/nvidia-cap3", "nvidia-caps/nvidia-cap4", "nvidia1", "nvidiactl"]
        );
        assert_eq!(
            granted_files(&["MIG-2"]),
            ["nvidia-caps/nvidia-cap5", "nvidia-caps/nvidia-cap6", "nvidia1", "nvidiactl"]
        );
        assert_eq!(granted_files(&["MIG-3"]), ["nvidia1", "nvidiactl"], "unknown without its parent device");
        assert_eq!(granted_files(&["GPU-b"]), ["nvidia0", "nvidiactl"]);
        Ok(())
    }

    #[test]
    fn other_vendors_cards_are_accessible_by_their_own_files() -> io::Result<()> {
        let recorded = include_str!("recorded/mi210.txt");
        let card_files = "\ndev/dri/card1 = \ndev/dri/renderD128 = \ndev/dri/renderD129 = \n\
                    sys/class/drm/card1/device/drm/card1/dev = 226:1\nsys/class/drm/card1/device/drm/renderD128/dev = 226:128\n\
                    sys/class/drm/card2/device/drm/renderD129/dev = 226:129\n";
        let root = unpack_recorded(&format!("{recorded}{card_files}"))?;
        let granted_files = |granted: &[&str]| {
            files_by_uuid(root.path(), "rocm", &["GPU-da5b6cd7d5d4b1e1", "PCI-0000:83:00.0"], granted)
        };
        assert_eq!(granted_files(&["GPU-da5b6cd7d5d4b1e1"]), ["dri/card1", "dri/renderD128", "kfd"]);
        assert_eq!(granted_files(&["PCI-0000:83:00.0"]), ["dri/renderD129", "kfd"]);
        assert!(granted_files(&[]).is_empty());
        Ok(())
    }
}

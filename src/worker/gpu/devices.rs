//! The device files by which a process reaches the GPUs that it was granted, and no other.

use std::path::{Path, PathBuf};

use app::protocol::gpu::Gpu;

use super::sysfs::{cards, entries, text};
use super::{Hardware, is_made_up, mig};

/// Of NVIDIA's driver itself: every process that computes opens them.
const NVIDIA: [&str; 4] = ["dev/nvidiactl", "dev/nvidia-uvm", "dev/nvidia-uvm-tools", "dev/nvidia-modeset"];
/// Boards whose GPU is part of the processor, and WSL, have these instead; they stand for all GPUs there are.
const SHARED: [&str; 6] =
    ["dev/dxg", "dev/nvmap", "dev/nvgpu", "dev/nvhost-ctrl-gpu", "dev/nvhost-gpu", "dev/nvhost-as-gpu"];
const AMD: &str = "dev/kfd";
const VENDOR_AMD: &str = "0x1002";
const VENDOR_INTEL: &str = "0x8086";

/// Those that are there.
pub fn files(root: &Path, hardware: &Hardware, granted: &[String]) -> Vec<PathBuf> {
    let is_granted = |gpu: &&Gpu| granted.contains(&gpu.uuid) && !is_made_up(&gpu.uuid);
    let gpus: Vec<&Gpu> = hardware.gpus.iter().filter(is_granted).collect();
    if gpus.is_empty() {
        return Vec::new();
    }
    let found = match hardware.accelerator.as_str() {
        "cuda" => nvidia(root, hardware, &gpus),
        "rocm" => [vec![root.join(AMD)], rendering(root, VENDOR_AMD, &gpus)].concat(),
        "xpu" => rendering(root, VENDOR_INTEL, &gpus),
        _ => Vec::new(),
    };
    found.into_iter().filter(|file| file.exists()).collect()
}

fn nvidia(root: &Path, hardware: &Hardware, gpus: &[&Gpu]) -> Vec<PathBuf> {
    let described = entries(&root.join("proc/driver/nvidia/gpus"));
    let known: Vec<(String, String)> =
        described.iter().filter_map(|(_, dir)| minor(&dir.join("information"))).collect();
    let own = gpus.iter().flat_map(|gpu| {
        // A part of a GPU is reached through the whole, and opened by its own files.
        let device = gpu.part_of.as_ref().unwrap_or(&gpu.uuid);
        let Some((_, minor)) = known.iter().find(|(uuid, _)| uuid == device) else { return Vec::new() };
        let part = hardware.parts.get(&gpu.uuid).map(|instances| mig::files(root, minor, *instances));
        [vec![root.join(format!("dev/nvidia{minor}"))], part.unwrap_or_default()].concat()
    });
    NVIDIA.iter().chain(&SHARED).map(|name| root.join(name)).chain(own).collect()
}

/// A GPU's UUID and the number of its device file, as the driver describes it.
fn minor(information: &Path) -> Option<(String, String)> {
    let text = text(information)?;
    let says = |name: &str| {
        text.lines().find_map(|line| {
            line.strip_prefix(name)?.trim_start().strip_prefix(':').map(|value| value.trim().to_owned())
        })
    };
    Some((says("GPU UUID")?, says("Device Minor")?))
}

/// What the kernel's graphics drivers have for a card: one file to show pictures, one to compute.
fn rendering(root: &Path, vendor: &str, gpus: &[&Gpu]) -> Vec<PathBuf> {
    let is_ours = |card: &super::sysfs::Card| {
        let id = text(&card.device("unique_id")).map_or_else(|| format!("PCI-{}", card.slot), |id| format!("GPU-{id}"));
        gpus.iter().any(|gpu| gpu.uuid == id || gpu.uuid == format!("PCI-{}", card.slot))
    };
    let own = cards(root, vendor).into_iter().filter(is_ours);
    own.flat_map(|card| entries(&card.device("drm"))).map(|(name, _)| root.join("dev/dri").join(name)).collect()
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::gpu::sysfs::planted;

    fn names(root: &Path, accelerator: &str, uuids: &[&str], granted: &[&str]) -> Vec<String> {
        let gpu = |uuid: &&str| Gpu { uuid: (*uuid).to_owned(), ..Gpu::default() };
        let accelerator = accelerator.to_owned();
        let hardware = Hardware { gpus: uuids.iter().map(gpu).collect(), accelerator, ..Hardware::default() };
        shown(root, &hardware, granted)
    }

    fn shown(root: &Path, hardware: &Hardware, granted: &[&str]) -> Vec<String> {
        let granted: Vec<String> = granted.iter().map(|uuid| (*uuid).to_owned()).collect();
        let mut found: Vec<_> = files(root, hardware, &granted)
            .iter()
            .map(|file| file.strip_prefix(root.join("dev")).unwrap_or(file).display().to_string())
            .collect();
        found.sort();
        found
    }

    #[test]
    fn only_the_granted_gpus_of_nvidia_are_reached() -> io::Result<()> {
        let root = planted(
            "dev/nvidia0 = \ndev/nvidia1 = \ndev/nvidiactl = \ndev/nvidia-uvm = \n\
             proc/driver/nvidia/gpus/0000:01:00.0/information = Model:   A\\nGPU UUID:   GPU-a\\nDevice Minor:   1\n\
             proc/driver/nvidia/gpus/0000:02:00.0/information = Model:   A\\nGPU UUID:   GPU-b\\nDevice Minor:   0\n",
        )?;
        let of = |granted: &[&str]| names(root.path(), "cuda", &["GPU-a", "GPU-b"], granted);
        assert_eq!(of(&["GPU-a"]), ["nvidia-uvm", "nvidia1", "nvidiactl"]);
        assert_eq!(of(&["GPU-b", "GPU-a"]), ["nvidia-uvm", "nvidia0", "nvidia1", "nvidiactl"]);
        assert!(of(&[]).is_empty() && of(&["GPU-c"]).is_empty());
        Ok(())
    }

    /// A GPU in two parts beside one that is whole: `GPU-a` has the device file 1.
    fn parted() -> io::Result<(tempfile::TempDir, Hardware)> {
        let caps = "proc/driver/nvidia/capabilities/gpu";
        let access =
            |path: &str, minor| format!("{caps}{path}/access = DeviceFileMinor: {minor}\\nDeviceFileMode: 292\n");
        let files: String = ["nvidia0", "nvidia1", "nvidiactl"].map(|name| format!("dev/{name} = \n")).concat();
        let files = (1..9).fold(files, |all, cap| format!("{all}dev/nvidia-caps/nvidia-cap{cap} = \n"));
        let root = planted(&format!(
            "{files}{}{}{}{}{}\
             proc/driver/nvidia/gpus/0000:01:00.0/information = GPU UUID:   GPU-a\\nDevice Minor:   1\n\
             proc/driver/nvidia/gpus/0000:02:00.0/information = GPU UUID:   GPU-b\\nDevice Minor:   0\n",
            access("1/mig/gi1", 3),
            access("1/mig/gi1/ci0", 4),
            access("1/mig/gi2", 5),
            access("1/mig/gi2/ci1", 6),
            // Of the other GPU, with the same numbers.
            access("0/mig/gi1", 7),
        ))?;
        let part = |uuid: &str| Gpu { uuid: uuid.to_owned(), part_of: Some("GPU-a".to_owned()), ..Gpu::default() };
        let whole = Gpu { uuid: "GPU-b".to_owned(), ..Gpu::default() };
        let instances = |gpu, compute| mig::Instances { gpu, compute };
        let parts = [("MIG-1".to_owned(), instances(1, 0)), ("MIG-2".to_owned(), instances(2, 1))].into();
        let gpus = vec![part("MIG-1"), part("MIG-2"), part("MIG-3"), whole];
        Ok((root, Hardware { gpus, parts, accelerator: "cuda".to_owned(), ..Hardware::default() }))
    }

    #[test]
    fn a_part_is_opened_by_its_own_files_and_no_others() -> io::Result<()> {
        let (root, hardware) = parted()?;
        let of = |granted: &[&str]| shown(root.path(), &hardware, granted);
        assert_eq!(of(&["MIG-1"]), ["nvidia-caps/nvidia-cap3", "nvidia-caps/nvidia-cap4", "nvidia1", "nvidiactl"]);
        assert_eq!(of(&["MIG-2"]), ["nvidia-caps/nvidia-cap5", "nvidia-caps/nvidia-cap6", "nvidia1", "nvidiactl"]);
        assert_eq!(of(&["MIG-3"]), ["nvidia1", "nvidiactl"], "nobody says what it is made of");
        assert_eq!(of(&["GPU-b"]), ["nvidia0", "nvidiactl"]);
        Ok(())
    }

    #[test]
    fn cards_of_other_vendors_are_reached_by_their_own_files() -> io::Result<()> {
        let recorded = include_str!("recorded/mi210.txt");
        let more = "\ndev/dri/card1 = \ndev/dri/renderD128 = \ndev/dri/renderD129 = \n\
                    sys/class/drm/card1/device/drm/card1/dev = 226:1\nsys/class/drm/card1/device/drm/renderD128/dev = 226:128\n\
                    sys/class/drm/card2/device/drm/renderD129/dev = 226:129\n";
        let root = planted(&format!("{recorded}{more}"))?;
        let of = |granted: &[&str]| names(root.path(), "rocm", &["GPU-da5b6cd7d5d4b1e1", "PCI-0000:83:00.0"], granted);
        assert_eq!(of(&["GPU-da5b6cd7d5d4b1e1"]), ["dri/card1", "dri/renderD128", "kfd"]);
        assert_eq!(of(&["PCI-0000:83:00.0"]), ["dri/renderD129", "kfd"]);
        assert!(of(&[]).is_empty());
        Ok(())
    }
}

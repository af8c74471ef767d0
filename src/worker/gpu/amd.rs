//! AMD GPUs, as their driver (amdgpu) and its compute part (KFD) describe them in `/sys`.

use std::fs;
use std::path::{Path, PathBuf};

use app::protocol::gpu::{Gpu, GpuReading, MemoryKind};

use super::Hardware;
use super::provider::{GpuProcess, GpuProvider, GpuSnapshot, bytes_to_gb, memory_size_gb};
use super::sysfs::{
    DrmCard, GROUP_HINT, can_open_device, list_cards, list_dir, number_after, read_number, read_scaled, read_text,
};

const VENDOR: &str = "0x1002";

/// Files below a root directory, which is `/` except in tests.
pub struct AmdProvider {
    root: PathBuf,
    gpus: Vec<AmdGpu>,
    /// Whether this user may open a device.
    can_open: fn(&Path) -> bool,
}

struct AmdGpu {
    uuid: String,
    card: DrmCard,
    /// Its number in KFD.
    kfd: Option<u64>,
}

/// A node of KFD.
struct KfdNode {
    id: u64,
    /// A CPU with integrated graphics, which older kernels show as one node.
    has_cpu: bool,
}

impl AmdProvider {
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), gpus: Vec::new(), can_open: can_open_device }
    }

    fn kfd_dir(&self) -> PathBuf {
        self.root.join("sys/class/kfd/kfd")
    }

    fn kfd_node(&self, card: &DrmCard) -> Option<KfdNode> {
        let (domain, bus, function) = card.pci_address()?;
        list_dir(&self.kfd_dir().join("topology/nodes")).into_iter().find_map(|(_, dir)| {
            let properties = read_text(&dir.join("properties"))?;
            let property = |name| number_after(&properties, name);
            let is_node = property("location_id")? == u64::from(bus << 8 | function)
                && property("domain").unwrap_or_default() == u64::from(domain);
            let has_cpu = property("cpu_cores_count").unwrap_or_default() > 0;
            is_node.then(|| Some(KfdNode { id: read_number(&dir.join("gpu_id"))?, has_cpu }))?
        })
    }

    /// The processes that have allocated its memory.
    fn processes(&self, gpu: &AmdGpu) -> Option<Vec<GpuProcess>> {
        let file = format!("vram_{}", gpu.kfd?);
        let processes = self.kfd_dir().join("proc");
        processes.is_dir().then(|| {
            let all = list_dir(&processes).into_iter();
            let in_use = all.filter(|(_, dir)| read_number(&dir.join(&file)).is_some_and(|bytes| bytes > 0));
            in_use.filter_map(|(pid, _)| pid.parse().ok()).map(GpuProcess::from_pid).collect()
        })
    }
}

impl GpuProvider for AmdProvider {
    fn detect(&mut self) -> Result<Hardware, String> {
        // Without it nothing can compute here, even if GPUs are listed: a container without GPU access.
        let device = self.root.join("dev/kfd");
        if !device.exists() {
            return Ok(Hardware::cpu_only());
        }
        if !(self.can_open)(&device) {
            return Err(format!("this user may not open {}: {GROUP_HINT}", device.display()));
        }
        let mut found: Vec<(DrmCard, Option<KfdNode>)> = list_cards(&self.root, VENDOR)
            .into_iter()
            .map(|card| (self.kfd_node(&card), card))
            .map(|(node, card)| (card, node))
            .collect();
        let shares_memory = |(card, node): &(DrmCard, Option<KfdNode>)| {
            node.as_ref().is_some_and(|node| node.has_cpu) || is_integrated(card)
        };
        // Integrated graphics count only if there is no other GPU.
        if !found.iter().all(shares_memory) {
            found.retain(|entry| !shares_memory(entry));
        }
        let gpu = |(index, entry): (u32, &(DrmCard, Option<KfdNode>))| to_gpu(index, &entry.0, shares_memory(entry));
        let gpus: Vec<Gpu> = (0..).zip(&found).map(gpu).collect();
        self.gpus = gpus
            .iter()
            .zip(found)
            .map(|(gpu, (card, node))| AmdGpu { uuid: gpu.uuid.clone(), card, kfd: node.map(|node| node.id) })
            .collect();
        let rocm = read_text(&self.root.join("opt/rocm/.info/version"));
        Ok(Hardware {
            gpus,
            driver: read_text(&self.root.join("sys/module/amdgpu/version")),
            runtime: rocm.and_then(|version| version.split('-').next().map(str::to_owned)),
            accelerator: "rocm".to_owned(),
            ..Hardware::default()
        })
    }

    fn poll(&mut self) -> Result<Vec<GpuSnapshot>, String> {
        let present = self.gpus.iter().filter(|gpu| gpu.card.device_file("vendor").exists());
        Ok(present
            .map(|gpu| GpuSnapshot { reading: read_gpu(gpu), processes: self.processes(gpu), faults: Vec::new() })
            .collect())
    }
}

/// Whether it is integrated graphics, which share the host's memory: their table of metrics has another format, which
/// its third byte names. 1 is a card's.
fn is_integrated(card: &DrmCard) -> bool {
    fs::read(card.device_file("gpu_metrics")).is_ok_and(|table| matches!(table.get(2), Some(2 | 3)))
}

fn to_gpu(index: u32, card: &DrmCard, shares_memory: bool) -> Gpu {
    let total = read_number(&card.device_file("mem_info_vram_total")).filter(|_| !shares_memory);
    let id = read_text(&card.device_file("device")).unwrap_or_default();
    Gpu {
        index,
        // As ROCm names them; those without a unique ID are identified by their slot.
        uuid: read_text(&card.device_file("unique_id"))
            .map_or_else(|| format!("PCI-{}", card.slot), |id| format!("GPU-{id}")),
        name: read_text(&card.device_file("product_name")).unwrap_or_else(|| format!("AMD GPU {id}")),
        vram_gb: total.map(memory_size_gb),
        memory_kind: if shares_memory { Some(MemoryKind::Unified) } else { total.map(|_| MemoryKind::Dedicated) },
        part_of: None,
        unavailable: None,
    }
}

fn read_gpu(gpu: &AmdGpu) -> GpuReading {
    let card = &gpu.card;
    let sensor = |name: &str, per_unit| read_scaled(&card.hwmon_dir()?.join(name), per_unit);
    GpuReading {
        uuid: gpu.uuid.clone(),
        utilization_percent: read_scaled(&card.device_file("gpu_busy_percent"), 1.0),
        memory_used_gb: read_number(&card.device_file("mem_info_vram_used")).map(bytes_to_gb),
        temperature_celsius: sensor("temp1_input", 1e3),
        power_watts: sensor("power1_average", 1e6).or_else(|| sensor("power1_input", 1e6)),
        power_limit_watts: sensor("power1_cap", 1e6),
        clock_mhz: active_clock(&card.device_file("pp_dpm_sclk")),
        memory_clock_mhz: active_clock(&card.device_file("pp_dpm_mclk")),
        ecc_errors: uncorrected_errors(&card.device_file("ras")),
        unavailable: None,
    }
}

/// The clock marked with a star: `1: 1700Mhz *`.
fn active_clock(path: &Path) -> Option<u32> {
    let text = read_text(path)?;
    let line = text.lines().find(|line| line.trim_end().ends_with('*'))?;
    let (_, clock) = line.split_once(':')?;
    clock.trim().trim_end_matches('*').trim().to_ascii_lowercase().strip_suffix("mhz")?.parse().ok()
}

/// The uncorrected errors of all its units: `ue: 2`.
fn uncorrected_errors(ras: &Path) -> Option<u64> {
    let counters = list_dir(ras).into_iter().filter(|(name, _)| name.ends_with("_err_count"));
    let counts: Vec<u64> = counters.filter_map(|(_, path)| number_after(&read_text(&path)?, "ue")).collect();
    (!counts.is_empty()).then(|| counts.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::gpu::sysfs::unpack_recorded;

    #[test]
    fn server_cards_and_their_processes_are_read() -> Result<(), Box<dyn std::error::Error>> {
        let root = unpack_recorded(include_str!("recorded/mi210.txt"))?;
        let mut amd = AmdProvider::new(root.path());
        let found = amd.detect()?;
        assert_eq!((found.accelerator.as_str(), found.driver.as_deref()), ("rocm", Some("6.8.5")));
        assert_eq!(found.runtime.as_deref(), Some("6.2.0"));
        let uuids: Vec<&str> = found.gpus.iter().map(|gpu| gpu.uuid.as_str()).collect();
        assert_eq!(uuids, ["GPU-da5b6cd7d5d4b1e1", "PCI-0000:83:00.0"]);
        assert_eq!(found.gpus[0].name, "AMD Instinct MI210");
        assert_eq!(found.gpus[1].name, "AMD GPU 0x740f");
        assert_eq!((found.gpus[0].vram_gb, found.gpus[0].memory_kind), (Some(64.0), Some(MemoryKind::Dedicated)));
        let snapshots = amd.poll()?;
        assert_eq!(
            snapshots[0].reading,
            GpuReading {
                uuid: "GPU-da5b6cd7d5d4b1e1".to_owned(),
                utilization_percent: Some(87.0),
                memory_used_gb: Some(16.0),
                temperature_celsius: Some(61.0),
                power_watts: Some(243.0),
                power_limit_watts: Some(300.0),
                clock_mhz: Some(1700),
                memory_clock_mhz: Some(1600),
                ecc_errors: Some(3),
                unavailable: None,
            }
        );
        assert_eq!(
            snapshots[0].processes.as_ref().map(|users| users.iter().map(|user| user.pid).collect()),
            Some(vec![2_147_483_001])
        );
        assert_eq!(snapshots[1].processes, Some(Vec::new()));
        assert_eq!((snapshots[1].reading.power_watts, snapshots[1].reading.clock_mhz), (Some(41.0), None));
        std::fs::remove_dir_all(root.path().join("sys/class/drm/card2"))?;
        assert_eq!(amd.poll()?.len(), 1);
        Ok(())
    }

    #[test]
    fn integrated_graphics_share_the_hosts_memory() -> Result<(), Box<dyn std::error::Error>> {
        let root = unpack_recorded(include_str!("recorded/strix-halo.txt"))?;
        let found = AmdProvider::new(root.path()).detect()?;
        assert_eq!(found.gpus.len(), 1);
        assert_eq!((found.gpus[0].vram_gb, found.gpus[0].memory_kind), (None, Some(MemoryKind::Unified)));
        // Kernels since 6.6 show the CPU as a separate node.
        let nodes = root.path().join("sys/class/kfd/kfd/topology/nodes");
        let node = "cpu_cores_count 0\nsimd_count 80\nlocation_id 50176\ndomain 0\n";
        std::fs::write(nodes.join("0/properties"), node)?;
        std::fs::write(root.path().join("sys/class/drm/card0/device/gpu_metrics"), [8, 1, 3, 0, 9, 9])?;
        assert_eq!(AmdProvider::new(root.path()).detect()?, found);
        std::fs::write(root.path().join("sys/class/drm/card0/device/gpu_metrics"), [8, 1, 1, 3, 9, 9])?;
        let card = AmdProvider::new(root.path()).detect()?.gpus;
        assert_eq!((card[0].vram_gb, card[0].memory_kind), (Some(0.5), Some(MemoryKind::Dedicated)));
        // Otherwise jobs would fail one by one.
        let rejected = AmdProvider { can_open: |_| false, ..AmdProvider::new(root.path()) }.detect();
        assert!(rejected.is_err_and(|error| error.contains("dev/kfd: add it to the groups render")));
        // A container without the device.
        std::fs::remove_file(root.path().join("dev/kfd"))?;
        assert_eq!(AmdProvider::new(root.path()).detect()?, Hardware::cpu_only());
        Ok(())
    }
}

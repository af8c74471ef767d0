//! AMD GPUs by what their driver (amdgpu) and its compute half (KFD) say in `/sys`.

use std::fs;
use std::path::{Path, PathBuf};

use app::protocol::gpu::{Gpu, GpuReading, MemoryKind};

use super::Hardware;
use super::provider::{Provider, Seen, User, gb, size_gb};
use super::sysfs::{Card, GROUPS, after, cards, entries, may_open, number, scaled, text};

const VENDOR: &str = "0x1002";

/// The files below a root directory, which is `/` except in tests.
pub struct Amd {
    root: PathBuf,
    known: Vec<Known>,
    /// Whether this user may open a device.
    may: fn(&Path) -> bool,
}

struct Known {
    uuid: String,
    card: Card,
    /// The number by which KFD knows it.
    kfd: Option<u64>,
}

/// What KFD says of one of its nodes.
struct Node {
    id: u64,
    /// A processor with graphics in it, which older kernels show as one.
    has_cpu: bool,
}

impl Amd {
    /// Below this root.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), known: Vec::new(), may: may_open }
    }

    fn kfd(&self) -> PathBuf {
        self.root.join("sys/class/kfd/kfd")
    }

    fn node(&self, card: &Card) -> Option<Node> {
        let (domain, bus, function) = card.location()?;
        entries(&self.kfd().join("topology/nodes")).into_iter().find_map(|(_, dir)| {
            let properties = text(&dir.join("properties"))?;
            let says = |word| after(&properties, word);
            let here = says("location_id")? == u64::from(bus << 8 | function)
                && says("domain").unwrap_or_default() == u64::from(domain);
            let has_cpu = says("cpu_cores_count").unwrap_or_default() > 0;
            here.then(|| Some(Node { id: number(&dir.join("gpu_id"))?, has_cpu }))?
        })
    }

    /// The processes that have memory on it.
    fn users(&self, known: &Known) -> Option<Vec<User>> {
        let file = format!("vram_{}", known.kfd?);
        let processes = self.kfd().join("proc");
        processes.is_dir().then(|| {
            let all = entries(&processes).into_iter();
            let using = all.filter(|(_, dir)| number(&dir.join(&file)).is_some_and(|bytes| bytes > 0));
            using.filter_map(|(pid, _)| pid.parse().ok()).map(User::of).collect()
        })
    }
}

impl Provider for Amd {
    fn detect(&mut self) -> Result<Hardware, String> {
        // Without it nothing can compute here, whatever is shown: a container that was given no GPU.
        let device = self.root.join("dev/kfd");
        if !device.exists() {
            return Ok(Hardware::none());
        }
        if !(self.may)(&device) {
            return Err(format!("this user may not open {}: {GROUPS}", device.display()));
        }
        let mut found: Vec<(Card, Option<Node>)> = cards(&self.root, VENDOR)
            .into_iter()
            .map(|card| (self.node(&card), card))
            .map(|(node, card)| (card, node))
            .collect();
        let shares = |(card, node): &(Card, Option<Node>)| {
            node.as_ref().is_some_and(|node| node.has_cpu) || is_in_a_processor(card)
        };
        // The graphics inside a processor counts only where there is nothing else.
        if !found.iter().all(shares) {
            found.retain(|one| !shares(one));
        }
        let gpu = |(index, one): (u32, &(Card, Option<Node>))| describe(index, &one.0, shares(one));
        let gpus: Vec<Gpu> = (0..).zip(&found).map(gpu).collect();
        self.known = gpus
            .iter()
            .zip(found)
            .map(|(gpu, (card, node))| Known { uuid: gpu.uuid.clone(), card, kfd: node.map(|node| node.id) })
            .collect();
        let rocm = text(&self.root.join("opt/rocm/.info/version"));
        Ok(Hardware {
            gpus,
            driver: text(&self.root.join("sys/module/amdgpu/version")),
            runtime: rocm.and_then(|version| version.split('-').next().map(str::to_owned)),
            accelerator: "rocm".to_owned(),
            ..Hardware::default()
        })
    }

    fn look(&mut self) -> Result<Vec<Seen>, String> {
        let there = self.known.iter().filter(|known| known.card.device("vendor").exists());
        Ok(there.map(|known| Seen { reading: read(known), users: self.users(known), faults: Vec::new() }).collect())
    }
}

/// Whether it is graphics inside a processor, which shares the host's memory: its table of measurements then is of another
/// kind, which the third byte tells. 1 is a card's.
fn is_in_a_processor(card: &Card) -> bool {
    fs::read(card.device("gpu_metrics")).is_ok_and(|table| matches!(table.get(2), Some(2 | 3)))
}

fn describe(index: u32, card: &Card, shared: bool) -> Gpu {
    let total = number(&card.device("mem_info_vram_total")).filter(|_| !shared);
    let id = text(&card.device("device")).unwrap_or_default();
    Gpu {
        index,
        // As ROCm names them; those without an id of their own are known by their place.
        uuid: text(&card.device("unique_id")).map_or_else(|| format!("PCI-{}", card.slot), |id| format!("GPU-{id}")),
        name: text(&card.device("product_name")).unwrap_or_else(|| format!("AMD GPU {id}")),
        vram_gb: total.map(size_gb),
        memory_kind: if shared { Some(MemoryKind::Unified) } else { total.map(|_| MemoryKind::Dedicated) },
        part_of: None,
        withheld: None,
    }
}

fn read(known: &Known) -> GpuReading {
    let card = &known.card;
    let sensor = |name: &str, per_unit| scaled(&card.sensors()?.join(name), per_unit);
    GpuReading {
        uuid: known.uuid.clone(),
        utilization_percent: scaled(&card.device("gpu_busy_percent"), 1.0),
        memory_used_gb: number(&card.device("mem_info_vram_used")).map(gb),
        temperature_celsius: sensor("temp1_input", 1e3),
        power_watts: sensor("power1_average", 1e6).or_else(|| sensor("power1_input", 1e6)),
        power_limit_watts: sensor("power1_cap", 1e6),
        clock_mhz: current(&card.device("pp_dpm_sclk")),
        memory_clock_mhz: current(&card.device("pp_dpm_mclk")),
        ecc_errors: uncorrected(&card.device("ras")),
        withheld: None,
    }
}

/// The clock with the star: `1: 1700Mhz *`.
fn current(path: &Path) -> Option<u32> {
    let text = text(path)?;
    let line = text.lines().find(|line| line.trim_end().ends_with('*'))?;
    let (_, clock) = line.split_once(':')?;
    clock.trim().trim_end_matches('*').trim().to_ascii_lowercase().strip_suffix("mhz")?.parse().ok()
}

/// The errors of all its units that could not be corrected: `ue: 2`.
fn uncorrected(ras: &Path) -> Option<u64> {
    let counters = entries(ras).into_iter().filter(|(name, _)| name.ends_with("_err_count"));
    let counts: Vec<u64> = counters.filter_map(|(_, path)| after(&text(&path)?, "ue")).collect();
    (!counts.is_empty()).then(|| counts.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::sysfs::planted;

    #[test]
    fn two_server_cards_and_who_uses_them() -> Result<(), Box<dyn std::error::Error>> {
        let root = planted(include_str!("recorded/mi210.txt"))?;
        let mut amd = Amd::at(root.path());
        let found = amd.detect()?;
        assert_eq!((found.accelerator.as_str(), found.driver.as_deref()), ("rocm", Some("6.8.5")));
        assert_eq!(found.runtime.as_deref(), Some("6.2.0"));
        let uuids: Vec<&str> = found.gpus.iter().map(|gpu| gpu.uuid.as_str()).collect();
        assert_eq!(uuids, ["GPU-da5b6cd7d5d4b1e1", "PCI-0000:83:00.0"]);
        assert_eq!(found.gpus[0].name, "AMD Instinct MI210");
        assert_eq!(found.gpus[1].name, "AMD GPU 0x740f");
        assert_eq!((found.gpus[0].vram_gb, found.gpus[0].memory_kind), (Some(64.0), Some(MemoryKind::Dedicated)));
        let seen = amd.look()?;
        assert_eq!(
            seen[0].reading,
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
                withheld: None,
            }
        );
        assert_eq!(
            seen[0].users.as_ref().map(|users| users.iter().map(|user| user.pid).collect()),
            Some(vec![2_147_483_001])
        );
        assert_eq!(seen[1].users, Some(Vec::new()));
        assert_eq!((seen[1].reading.power_watts, seen[1].reading.clock_mhz), (Some(41.0), None));
        std::fs::remove_dir_all(root.path().join("sys/class/drm/card2"))?;
        assert_eq!(amd.look()?.len(), 1);
        Ok(())
    }

    #[test]
    fn graphics_in_a_processor_shares_the_hosts_memory() -> Result<(), Box<dyn std::error::Error>> {
        let root = planted(include_str!("recorded/strix-halo.txt"))?;
        let found = Amd::at(root.path()).detect()?;
        assert_eq!(found.gpus.len(), 1);
        assert_eq!((found.gpus[0].vram_gb, found.gpus[0].memory_kind), (None, Some(MemoryKind::Unified)));
        // Kernels since 6.6 show the processor as a node of its own.
        let nodes = root.path().join("sys/class/kfd/kfd/topology/nodes");
        let node = "cpu_cores_count 0\nsimd_count 80\nlocation_id 50176\ndomain 0\n";
        std::fs::write(nodes.join("0/properties"), node)?;
        std::fs::write(root.path().join("sys/class/drm/card0/device/gpu_metrics"), [8, 1, 3, 0, 9, 9])?;
        assert_eq!(Amd::at(root.path()).detect()?, found);
        std::fs::write(root.path().join("sys/class/drm/card0/device/gpu_metrics"), [8, 1, 1, 3, 9, 9])?;
        let card = Amd::at(root.path()).detect()?.gpus;
        assert_eq!((card[0].vram_gb, card[0].memory_kind), (Some(0.5), Some(MemoryKind::Dedicated)));
        // Jobs would fail of it one by one.
        let refused = Amd { may: |_| false, ..Amd::at(root.path()) }.detect();
        assert!(refused.is_err_and(|why| why.contains("dev/kfd: add it to the groups render")));
        // A container that was not given the device.
        std::fs::remove_file(root.path().join("dev/kfd"))?;
        assert_eq!(Amd::at(root.path()).detect()?, Hardware::none());
        Ok(())
    }
}

//! Intel GPUs, as their drivers (xe, i915) describe them in `/sys`. Discrete cards only: integrated graphics train
//! nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use app::protocol::gpu::{Gpu, GpuReading, MemoryKind};

use super::Hardware;
use super::provider::{GpuProvider, GpuSnapshot, memory_size_gb};
use super::sysfs::{DrmCard, GROUP_HINT, can_open_device, list_cards, list_dir, read_number, read_scaled, read_text};

const VENDOR: &str = "0x8086";

/// Files below a root directory, which is `/` except in tests.
pub struct IntelProvider {
    root: PathBuf,
    gpus: Vec<(String, DrmCard)>,
    /// Whether this user may open a device.
    can_open: fn(&Path) -> bool,
    /// Energy used at the last poll, in µJ.
    energy_uj: BTreeMap<String, (u64, Instant)>,
}

impl IntelProvider {
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), gpus: Vec::new(), can_open: can_open_device, energy_uj: BTreeMap::new() }
    }

    /// The device file that programs here use to compute; `None` if a container lists a GPU without access to it.
    fn render_node(&self, card: &DrmCard) -> Option<PathBuf> {
        let names = list_dir(&card.device_file("drm")).into_iter().map(|(name, _)| name);
        let nodes = names.filter(|name| name.starts_with("renderD")).map(|name| self.root.join("dev/dri").join(name));
        nodes.into_iter().find(|node| node.exists())
    }
}

impl GpuProvider for IntelProvider {
    fn detect(&mut self) -> Result<Hardware, String> {
        // Integrated graphics are on the CPU's own bus.
        let is_card = |card: &DrmCard| card.pci_address().is_some_and(|(_, bus, _)| bus != 0);
        let cards: Vec<(DrmCard, PathBuf)> = list_cards(&self.root, VENDOR)
            .into_iter()
            .filter(is_card)
            .filter_map(|card| self.render_node(&card).map(|node| (card, node)))
            .collect();
        if let Some((_, node)) = cards.iter().find(|(_, node)| !(self.can_open)(node)) {
            return Err(format!("this user may not open {}: {GROUP_HINT}", node.display()));
        }
        let found: Vec<DrmCard> = cards.into_iter().map(|(card, _)| card).collect();
        let gpus: Vec<Gpu> = (0..).zip(&found).map(|(index, card)| to_gpu(index, card)).collect();
        let driver = found.first().and_then(driver);
        self.gpus = gpus.iter().map(|gpu| gpu.uuid.clone()).zip(found).collect();
        if gpus.is_empty() {
            return Ok(Hardware::cpu_only());
        }
        Ok(Hardware { gpus, driver, accelerator: "xpu".to_owned(), ..Hardware::default() })
    }

    fn poll(&mut self) -> Result<Vec<GpuSnapshot>, String> {
        let present = self.gpus.iter().filter(|(_, card)| card.device_file("vendor").exists());
        let mut snapshots = Vec::new();
        for known in present {
            let now = energy_microjoules(&known.1).map(|used| (used, Instant::now()));
            let before = self.energy_uj.get(&known.0).copied();
            let reading = GpuReading {
                power_watts: before.zip(now).and_then(|(from, to)| average_watts(from, to)),
                ..read_gpu(known)
            };
            self.energy_uj.extend(now.map(|now| (known.0.clone(), now)));
            // The driver does not report processes.
            snapshots.push(GpuSnapshot { reading, processes: None, faults: Vec::new() });
        }
        Ok(snapshots)
    }
}

/// Energy used since the driver was loaded, in µJ; some cards only report it without their memory.
fn energy_microjoules(card: &DrmCard) -> Option<u64> {
    let sensors = card.hwmon_dir()?;
    read_number(&sensors.join("energy1_input")).or_else(|| read_number(&sensors.join("energy2_input")))
}

/// Average power between two polls. The counter may have been reset.
#[expect(clippy::cast_precision_loss, reason = "a few digits are enough")]
fn average_watts((before, then): (u64, Instant), (now, at): (u64, Instant)) -> Option<f64> {
    let seconds = at.saturating_duration_since(then).as_secs_f64();
    let used = now.checked_sub(before).filter(|_| seconds > 0.0)?;
    Some((used as f64 / 1e6 / seconds * 10.0).round() / 10.0)
}

fn driver(card: &DrmCard) -> Option<String> {
    read_text(&card.device_file("uevent"))?.lines().find_map(|line| line.strip_prefix("DRIVER=")).map(str::to_owned)
}

fn to_gpu(index: u32, card: &DrmCard) -> Gpu {
    let total = memory_bytes(card);
    let id = read_text(&card.device_file("device")).unwrap_or_default();
    Gpu {
        index,
        uuid: format!("PCI-{}", card.slot),
        name: read_text(&card.device_file("product_name")).unwrap_or_else(|| format!("Intel GPU {id}")),
        vram_gb: total.map(memory_size_gb),
        memory_kind: total.map(|_| MemoryKind::Dedicated),
        part_of: None,
        unavailable: None,
    }
}

/// In bytes, if reported: of all tiles, or of the card.
fn memory_bytes(card: &DrmCard) -> Option<u64> {
    let tiles = list_dir(&card.dir.join("device")).into_iter().filter(|(name, _)| name.starts_with("tile"));
    let sizes: Vec<u64> = tiles.filter_map(|(_, dir)| read_number(&dir.join("physical_vram_size_bytes"))).collect();
    if sizes.is_empty() { read_number(&card.dir.join("lmem_total_bytes")) } else { Some(sizes.iter().sum()) }
}

fn read_gpu((uuid, card): &(String, DrmCard)) -> GpuReading {
    let sensor = |name: &str, per_unit| read_scaled(&card.hwmon_dir()?.join(name), per_unit);
    // Zero means that a limit is disabled.
    let limit = |name: &str| sensor(name, 1e6).filter(|watts| *watts > 0.0);
    let clock = read_number(&card.device_file("tile0/gt0/freq0/act_freq"))
        .or_else(|| read_number(&card.dir.join("gt_act_freq_mhz")));
    GpuReading {
        uuid: uuid.clone(),
        temperature_celsius: sensor("temp2_input", 1e3).or_else(|| sensor("temp1_input", 1e3)),
        power_limit_watts: limit("power1_max").or_else(|| limit("power1_rated_max")),
        clock_mhz: clock.and_then(|mhz| u32::try_from(mhz).ok()),
        ..GpuReading::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::gpu::sysfs::unpack_recorded;

    #[test]
    fn only_discrete_cards_are_reported() -> Result<(), Box<dyn std::error::Error>> {
        let root = unpack_recorded(include_str!("recorded/arc.txt"))?;
        let mut intel = IntelProvider::new(root.path());
        let found = intel.detect()?;
        assert_eq!((found.accelerator.as_str(), found.driver.as_deref()), ("xpu", Some("xe")));
        let sizes: Vec<_> = found.gpus.iter().map(|gpu| (gpu.uuid.as_str(), gpu.vram_gb)).collect();
        assert_eq!(sizes, [("PCI-0000:03:00.0", Some(12.0)), ("PCI-0000:07:00.0", None)]);
        let snapshots = intel.poll()?;
        let reading = &snapshots[0].reading;
        assert_eq!((reading.temperature_celsius, reading.power_limit_watts), (Some(54.0), Some(190.0)));
        assert_eq!((reading.clock_mhz, reading.utilization_percent), (Some(2850), None));
        assert_eq!((&snapshots[0].processes, snapshots[1].reading.clock_mhz), (&None, Some(2400)));
        Ok(())
    }

    #[test]
    fn power_is_the_average_between_two_polls() -> Result<(), Box<dyn std::error::Error>> {
        let start = Instant::now();
        let at = |micro, seconds| (micro, start + std::time::Duration::from_secs(seconds));
        assert_eq!(average_watts(at(5_000_000, 0), at(755_000_000, 5)), Some(150.0));
        assert_eq!((average_watts(at(9, 0), at(5, 5)), average_watts(at(5, 0), at(9, 0))), (None, None));
        let root = unpack_recorded(include_str!("recorded/arc.txt"))?;
        let sensors = root.path().join("sys/class/drm/card1/device/hwmon/hwmon3");
        std::fs::write(sensors.join("energy1_input"), "1000000\n")?;
        std::fs::write(sensors.join("power1_max"), "0\n")?;
        std::fs::write(sensors.join("power1_rated_max"), "185000000\n")?;
        let mut intel = IntelProvider::new(root.path());
        intel.detect()?;
        let first = intel.poll()?;
        assert_eq!((first[0].reading.power_watts, first[0].reading.power_limit_watts), (None, Some(185.0)));
        std::fs::write(sensors.join("energy1_input"), "900000000000000\n")?;
        let second = intel.poll()?;
        assert!(
            second[0].reading.power_watts.is_some_and(|watts| watts > 0.0) && second[1].reading.power_watts.is_none()
        );
        Ok(())
    }

    #[test]
    fn integrated_graphics_alone_are_no_accelerator() -> Result<(), Box<dyn std::error::Error>> {
        let root = unpack_recorded(include_str!("recorded/arc.txt"))?;
        // Otherwise jobs would fail one by one.
        let rejected =
            IntelProvider { can_open: |node| !node.ends_with("renderD130"), ..IntelProvider::new(root.path()) }
                .detect();
        assert!(rejected.is_err_and(|error| error.contains("dev/dri/renderD130: add it to the groups render")));
        for card in ["card1", "card2"] {
            std::fs::remove_dir_all(root.path().join("sys/class/drm").join(card))?;
        }
        assert_eq!(IntelProvider::new(root.path()).detect()?, Hardware::cpu_only());
        Ok(())
    }
}

//! Intel GPUs by what their drivers (xe, i915) say in `/sys`. Cards only: the graphics inside a processor trains nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use app::protocol::gpu::{Gpu, GpuReading, MemoryKind};

use super::Hardware;
use super::provider::{Provider, Seen, size_gb};
use super::sysfs::{Card, GROUPS, cards, entries, may_open, number, scaled, text};

const VENDOR: &str = "0x8086";

/// The files below a root directory, which is `/` except in tests.
pub struct Intel {
    root: PathBuf,
    known: Vec<(String, Card)>,
    /// Whether this user may open a device.
    may: fn(&Path) -> bool,
    /// What each had used at the last look, in µJ.
    used: BTreeMap<String, (u64, Instant)>,
}

impl Intel {
    /// Below this root.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), known: Vec::new(), may: may_open, used: BTreeMap::new() }
    }

    /// The device by which programs here compute on it; none if a container shows what it was not given.
    fn node(&self, card: &Card) -> Option<PathBuf> {
        let names = entries(&card.device("drm")).into_iter().map(|(name, _)| name);
        let nodes = names.filter(|name| name.starts_with("renderD")).map(|name| self.root.join("dev/dri").join(name));
        nodes.into_iter().find(|node| node.exists())
    }
}

impl Provider for Intel {
    fn detect(&mut self) -> Result<Hardware, String> {
        // What is inside the processor is on its own bus.
        let is_card = |card: &Card| card.location().is_some_and(|(_, bus, _)| bus != 0);
        let given: Vec<(Card, PathBuf)> = cards(&self.root, VENDOR)
            .into_iter()
            .filter(is_card)
            .filter_map(|card| self.node(&card).map(|node| (card, node)))
            .collect();
        if let Some((_, node)) = given.iter().find(|(_, node)| !(self.may)(node)) {
            return Err(format!("this user may not open {}: {GROUPS}", node.display()));
        }
        let found: Vec<Card> = given.into_iter().map(|(card, _)| card).collect();
        let gpus: Vec<Gpu> = (0..).zip(&found).map(|(index, card)| describe(index, card)).collect();
        let driver = found.first().and_then(driver);
        self.known = gpus.iter().map(|gpu| gpu.uuid.clone()).zip(found).collect();
        if gpus.is_empty() {
            return Ok(Hardware::none());
        }
        Ok(Hardware { gpus, driver, accelerator: "xpu".to_owned(), ..Hardware::default() })
    }

    fn look(&mut self) -> Result<Vec<Seen>, String> {
        let there = self.known.iter().filter(|(_, card)| card.device("vendor").exists());
        let mut seen = Vec::new();
        for known in there {
            let now = energy(&known.1).map(|used| (used, Instant::now()));
            let before = self.used.get(&known.0).copied();
            let reading =
                GpuReading { power_watts: before.zip(now).and_then(|(from, to)| watts(from, to)), ..read(known) };
            self.used.extend(now.map(|now| (known.0.clone(), now)));
            // Who uses it is not told here.
            seen.push(Seen { reading, users: None, faults: Vec::new() });
        }
        Ok(seen)
    }
}

/// What the card has used since its driver was loaded, in µJ; of some only the part without its memory is told.
fn energy(card: &Card) -> Option<u64> {
    let sensors = card.sensors()?;
    number(&sensors.join("energy1_input")).or_else(|| number(&sensors.join("energy2_input")))
}

/// The power between two looks. The counter may have begun anew.
#[expect(clippy::cast_precision_loss, reason = "a few digits are enough")]
fn watts((before, then): (u64, Instant), (now, at): (u64, Instant)) -> Option<f64> {
    let seconds = at.saturating_duration_since(then).as_secs_f64();
    let used = now.checked_sub(before).filter(|_| seconds > 0.0)?;
    Some((used as f64 / 1e6 / seconds * 10.0).round() / 10.0)
}

fn driver(card: &Card) -> Option<String> {
    text(&card.device("uevent"))?.lines().find_map(|line| line.strip_prefix("DRIVER=")).map(str::to_owned)
}

fn describe(index: u32, card: &Card) -> Gpu {
    let total = memory(card);
    let id = text(&card.device("device")).unwrap_or_default();
    Gpu {
        index,
        uuid: format!("PCI-{}", card.slot),
        name: text(&card.device("product_name")).unwrap_or_else(|| format!("Intel GPU {id}")),
        vram_gb: total.map(size_gb),
        memory_kind: total.map(|_| MemoryKind::Dedicated),
        part_of: None,
        withheld: None,
    }
}

/// In bytes, if the driver says it: of all tiles, or of the card.
fn memory(card: &Card) -> Option<u64> {
    let tiles = entries(&card.dir.join("device")).into_iter().filter(|(name, _)| name.starts_with("tile"));
    let sizes: Vec<u64> = tiles.filter_map(|(_, dir)| number(&dir.join("physical_vram_size_bytes"))).collect();
    if sizes.is_empty() { number(&card.dir.join("lmem_total_bytes")) } else { Some(sizes.iter().sum()) }
}

fn read((uuid, card): &(String, Card)) -> GpuReading {
    let sensor = |name: &str, per_unit| scaled(&card.sensors()?.join(name), per_unit);
    // Zero stands for a limit that is switched off.
    let limit = |name: &str| sensor(name, 1e6).filter(|watts| *watts > 0.0);
    let clock = number(&card.device("tile0/gt0/freq0/act_freq")).or_else(|| number(&card.dir.join("gt_act_freq_mhz")));
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
    use crate::gpu::sysfs::planted;

    #[test]
    fn cards_count_and_processors_graphics_does_not() -> Result<(), Box<dyn std::error::Error>> {
        let root = planted(include_str!("recorded/arc.txt"))?;
        let mut intel = Intel::at(root.path());
        let found = intel.detect()?;
        assert_eq!((found.accelerator.as_str(), found.driver.as_deref()), ("xpu", Some("xe")));
        let sizes: Vec<_> = found.gpus.iter().map(|gpu| (gpu.uuid.as_str(), gpu.vram_gb)).collect();
        assert_eq!(sizes, [("PCI-0000:03:00.0", Some(12.0)), ("PCI-0000:07:00.0", None)]);
        let seen = intel.look()?;
        let reading = &seen[0].reading;
        assert_eq!((reading.temperature_celsius, reading.power_limit_watts), (Some(54.0), Some(190.0)));
        assert_eq!((reading.clock_mhz, reading.utilization_percent), (Some(2850), None));
        assert_eq!((&seen[0].users, seen[1].reading.clock_mhz), (&None, Some(2400)));
        Ok(())
    }

    #[test]
    fn power_is_what_was_used_between_two_looks() -> Result<(), Box<dyn std::error::Error>> {
        let begun = Instant::now();
        let at = |micro, seconds| (micro, begun + std::time::Duration::from_secs(seconds));
        assert_eq!(watts(at(5_000_000, 0), at(755_000_000, 5)), Some(150.0));
        assert_eq!((watts(at(9, 0), at(5, 5)), watts(at(5, 0), at(9, 0))), (None, None));
        let root = planted(include_str!("recorded/arc.txt"))?;
        let sensors = root.path().join("sys/class/drm/card1/device/hwmon/hwmon3");
        std::fs::write(sensors.join("energy1_input"), "1000000\n")?;
        std::fs::write(sensors.join("power1_max"), "0\n")?;
        std::fs::write(sensors.join("power1_rated_max"), "185000000\n")?;
        let mut intel = Intel::at(root.path());
        intel.detect()?;
        let first = intel.look()?;
        assert_eq!((first[0].reading.power_watts, first[0].reading.power_limit_watts), (None, Some(185.0)));
        std::fs::write(sensors.join("energy1_input"), "900000000000000\n")?;
        let second = intel.look()?;
        assert!(
            second[0].reading.power_watts.is_some_and(|watts| watts > 0.0) && second[1].reading.power_watts.is_none()
        );
        Ok(())
    }

    #[test]
    fn a_processors_graphics_alone_is_no_accelerator() -> Result<(), Box<dyn std::error::Error>> {
        let root = planted(include_str!("recorded/arc.txt"))?;
        // Jobs would fail of it one by one.
        let refused = Intel { may: |node| !node.ends_with("renderD130"), ..Intel::at(root.path()) }.detect();
        assert!(refused.is_err_and(|why| why.contains("dev/dri/renderD130: add it to the groups render")));
        for card in ["card1", "card2"] {
            std::fs::remove_dir_all(root.path().join("sys/class/drm").join(card))?;
        }
        assert_eq!(Intel::at(root.path()).detect()?, Hardware::none());
        Ok(())
    }
}

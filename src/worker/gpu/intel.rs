//! Intel GPUs by what their drivers (xe, i915) say in `/sys`. Cards only: the graphics inside a processor trains nothing.

use std::path::PathBuf;

use app::protocol::gpu::{Gpu, GpuReading, MemoryKind};

use super::Hardware;
use super::provider::{Provider, Seen, size_gb};
use super::sysfs::{Card, cards, entries, number, scaled, text};

const VENDOR: &str = "0x8086";

/// The files below a root directory, which is `/` except in tests.
pub struct Intel {
    root: PathBuf,
    known: Vec<(String, Card)>,
}

impl Intel {
    /// Below this root.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), known: Vec::new() }
    }

    /// Whether programs here can compute on it: a container may show what it was not given.
    fn is_given(&self, card: &Card) -> bool {
        let nodes = entries(&card.device("drm")).into_iter().filter(|(name, _)| name.starts_with("renderD"));
        nodes.into_iter().any(|(name, _)| self.root.join("dev/dri").join(name).exists())
    }
}

impl Provider for Intel {
    fn detect(&mut self) -> Result<Hardware, String> {
        // What is inside the processor is on its own bus.
        let is_card = |card: &Card| card.location().is_some_and(|(_, bus, _)| bus != 0);
        let found: Vec<Card> =
            cards(&self.root, VENDOR).into_iter().filter(|card| is_card(card) && self.is_given(card)).collect();
        let gpus: Vec<Gpu> = (0..).zip(&found).map(|(index, card)| describe(index, card)).collect();
        let driver = found.first().and_then(driver);
        self.known = gpus.iter().map(|gpu| gpu.uuid.clone()).zip(found).collect();
        if gpus.is_empty() {
            return Ok(Hardware::none());
        }
        Ok(Hardware { gpus, driver, runtime: None, accelerator: "xpu".to_owned() })
    }

    fn look(&mut self) -> Result<Vec<Seen>, String> {
        let there = self.known.iter().filter(|(_, card)| card.device("vendor").exists());
        // Who uses it is not told here.
        Ok(there.map(|known| Seen { reading: read(known), users: None, faults: Vec::new() }).collect())
    }
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
    let clock = number(&card.device("tile0/gt0/freq0/act_freq")).or_else(|| number(&card.dir.join("gt_act_freq_mhz")));
    GpuReading {
        uuid: uuid.clone(),
        temperature_celsius: sensor("temp2_input", 1e3).or_else(|| sensor("temp1_input", 1e3)),
        power_limit_watts: sensor("power1_max", 1e6).or_else(|| sensor("power1_rated_max", 1e6)),
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
    fn a_processors_graphics_alone_is_no_accelerator() -> Result<(), Box<dyn std::error::Error>> {
        let root = planted(include_str!("recorded/arc.txt"))?;
        for card in ["card1", "card2"] {
            std::fs::remove_dir_all(root.path().join("sys/class/drm").join(card))?;
        }
        assert_eq!(Intel::at(root.path()).detect()?, Hardware::none());
        Ok(())
    }
}

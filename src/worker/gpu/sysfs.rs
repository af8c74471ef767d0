//! The kernel's description of GPUs: small files below `/sys/class/drm`.

use std::fs;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

/// A graphics card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrmCard {
    /// Its directory, `…/card0`.
    pub dir: PathBuf,
    /// Its PCI address: `0000:03:00.0`.
    pub slot: String,
}

impl DrmCard {
    /// A file of the device.
    pub fn device_file(&self, name: &str) -> PathBuf {
        self.dir.join("device").join(name)
    }

    /// Domain, bus, and the number of device and function together.
    pub fn pci_address(&self) -> Option<(u32, u32, u32)> {
        let mut parts = self.slot.split([':', '.']).map(|part| u32::from_str_radix(part, 16).ok());
        let mut next = || parts.next().flatten();
        let (domain, bus, device, function) = (next()?, next()?, next()?, next()?);
        Some((domain, bus, device << 3 | function))
    }

    /// The first sensor directory of the driver.
    pub fn hwmon_dir(&self) -> Option<PathBuf> {
        list_dir(&self.device_file("hwmon"))
            .into_iter()
            .find(|(name, _)| name.starts_with("hwmon"))
            .map(|(_, path)| path)
    }
}

/// Advice for a user who may not open a device.
pub const GROUP_HINT: &str = "add it to the groups render and video, and log in again";

/// Whether this user may open a device. It is not opened: some drivers count that as use.
pub fn can_open_device(device: &Path) -> bool {
    access(device, AccessFlags::R_OK | AccessFlags::W_OK).is_ok()
}

/// The cards of a vendor (`0x1002`), in the order of the bus.
pub fn list_cards(root: &Path, vendor: &str) -> Vec<DrmCard> {
    // `card0`, not its connectors `card0-DP-1`.
    let is_card = |name: &str| name.strip_prefix("card").is_some_and(|rest| rest.parse::<u32>().is_ok());
    let all = list_dir(&root.join("sys/class/drm")).into_iter().filter(|(name, _)| is_card(name));
    let mut cards: Vec<DrmCard> = all
        .filter(|(_, dir)| read_text(&dir.join("device/vendor")).as_deref() == Some(vendor))
        .filter_map(|(_, dir)| {
            let uevent = read_text(&dir.join("device/uevent"))?;
            let slot = uevent.lines().find_map(|line| line.strip_prefix("PCI_SLOT_NAME="))?.to_owned();
            Some(DrmCard { dir, slot })
        })
        .collect();
    cards.sort_by(|a, b| a.slot.cmp(&b.slot));
    cards
}

/// The content of a directory, by name; empty if it does not exist.
pub fn list_dir(dir: &Path) -> Vec<(String, PathBuf)> {
    let Ok(found) = fs::read_dir(dir) else { return Vec::new() };
    let mut found: Vec<_> =
        found.flatten().map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path())).collect();
    found.sort();
    found
}

/// The trimmed text of a file; `None` if it is empty.
pub fn read_text(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

pub fn read_number(path: &Path) -> Option<u64> {
    read_text(path)?.parse().ok()
}

/// A number in a file, divided by the unit: thousandths or millionths.
pub fn read_scaled(path: &Path, per_unit: f64) -> Option<f64> {
    Some(read_text(path)?.parse::<f64>().ok()? / per_unit)
}

/// The number after this word at the start of a line.
pub fn number_after(text: &str, word: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (name, value) = line.trim().split_once([' ', ':'])?;
        (name == word).then(|| value.trim().parse().ok())?
    })
}

/// Creates the files of a recorded tree: a line is `path = content`, where `\n` stands for a line break.
#[cfg(test)]
pub fn unpack_recorded(recorded: &str) -> std::io::Result<tempfile::TempDir> {
    let root = tempfile::tempdir()?;
    for line in recorded.lines().filter(|line| !line.starts_with('#')) {
        let Some((path, content)) = line.split_once(" = ") else { continue };
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap_or(root.path()))?;
        fs::write(path, content.replace("\\n", "\n") + "\n")?;
    }
    Ok(root)
}

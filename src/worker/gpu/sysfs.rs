//! The kernel's own description of GPUs: small files below `/sys/class/drm`.

use std::fs;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

/// A graphics card as the kernel shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Card {
    /// Its directory, `…/card0`.
    pub dir: PathBuf,
    /// Where it is on the PCI bus: `0000:03:00.0`.
    pub slot: String,
}

impl Card {
    /// A file of the device.
    pub fn device(&self, name: &str) -> PathBuf {
        self.dir.join("device").join(name)
    }

    /// Domain, bus, and the number of device and function together.
    pub fn location(&self) -> Option<(u32, u32, u32)> {
        let mut parts = self.slot.split([':', '.']).map(|part| u32::from_str_radix(part, 16).ok());
        let mut next = || parts.next().flatten();
        let (domain, bus, device, function) = (next()?, next()?, next()?, next()?);
        Some((domain, bus, device << 3 | function))
    }

    /// The first sensor directory that the driver has.
    pub fn sensors(&self) -> Option<PathBuf> {
        entries(&self.device("hwmon")).into_iter().find(|(name, _)| name.starts_with("hwmon")).map(|(_, path)| path)
    }
}

/// What helps a user who may not open a device.
pub const GROUPS: &str = "add it to the groups render and video, and begin a new session";

/// Whether this user may open a device. It is not opened: that alone tells some drivers that somebody computes.
pub fn may_open(device: &Path) -> bool {
    access(device, AccessFlags::R_OK | AccessFlags::W_OK).is_ok()
}

/// The cards of a vendor (`0x1002`), in the order of the bus.
pub fn cards(root: &Path, vendor: &str) -> Vec<Card> {
    // `card0`, and not its connectors `card0-DP-1`.
    let is_card = |name: &str| name.strip_prefix("card").is_some_and(|rest| rest.parse::<u32>().is_ok());
    let all = entries(&root.join("sys/class/drm")).into_iter().filter(|(name, _)| is_card(name));
    let mut cards: Vec<Card> = all
        .filter(|(_, dir)| text(&dir.join("device/vendor")).as_deref() == Some(vendor))
        .filter_map(|(_, dir)| {
            let uevent = text(&dir.join("device/uevent"))?;
            let slot = uevent.lines().find_map(|line| line.strip_prefix("PCI_SLOT_NAME="))?.to_owned();
            Some(Card { dir, slot })
        })
        .collect();
    cards.sort_by(|one, other| one.slot.cmp(&other.slot));
    cards
}

/// What is in a directory, by name; nothing if it is not there.
pub fn entries(dir: &Path) -> Vec<(String, PathBuf)> {
    let Ok(found) = fs::read_dir(dir) else { return Vec::new() };
    let mut found: Vec<_> =
        found.flatten().map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path())).collect();
    found.sort();
    found
}

/// The file's text without white space around it, if it says anything.
pub fn text(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// The file's number.
pub fn number(path: &Path) -> Option<u64> {
    text(path)?.parse().ok()
}

/// The file's number as a share: of thousandths, or of millionths.
pub fn scaled(path: &Path, per_unit: f64) -> Option<f64> {
    Some(text(path)?.parse::<f64>().ok()? / per_unit)
}

/// The number after this word at a line's start.
pub fn after(text: &str, word: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (name, value) = line.trim().split_once([' ', ':'])?;
        (name == word).then(|| value.trim().parse().ok())?
    })
}

/// Writes down a recorded tree: a line is `path = content`, where `\n` stands for the end of a line.
#[cfg(test)]
pub fn planted(recorded: &str) -> std::io::Result<tempfile::TempDir> {
    let root = tempfile::tempdir()?;
    for line in recorded.lines().filter(|line| !line.starts_with('#')) {
        let Some((path, content)) = line.split_once(" = ") else { continue };
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap_or(root.path()))?;
        fs::write(path, content.replace("\\n", "\n") + "\n")?;
    }
    Ok(root)
}

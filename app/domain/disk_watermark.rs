//! The disk space that is kept free: below it, no new work starts.

/// The minimum free space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskFloor {
    /// In bytes.
    Bytes(u64),
    /// In percent of the disk.
    Percent(u8),
}

impl DiskFloor {
    /// Parses `2GiB`, `500MB` or `5%`; `0` for none.
    ///
    /// # Errors
    ///
    /// Returns a description of the valid formats.
    pub fn parse(text: &str) -> Result<Self, String> {
        let invalid_size =
            || format!("invalid size {text:?}: use a size like 2GiB or 500MB, or a percentage of the disk like 5%");
        let text = text.trim();
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let number: u64 = text[..digits].parse().map_err(|_| invalid_size())?;
        let unit = match text[digits..].trim().to_ascii_lowercase().as_str() {
            "%" if number < 100 => return Ok(Self::Percent(u8::try_from(number).map_err(|_| invalid_size())?)),
            "" | "b" => 1,
            "k" | "kib" => 1 << 10,
            "m" | "mib" => 1 << 20,
            "g" | "gib" => 1 << 30,
            "t" | "tib" => 1 << 40,
            "kb" => 1_000,
            "mb" => 1_000_000,
            "gb" => 1_000_000_000,
            "tb" => 1_000_000_000_000,
            _ => return Err(invalid_size()),
        };
        number.checked_mul(unit).map(Self::Bytes).ok_or_else(invalid_size)
    }

    /// Returns the minimum in bytes, for a disk of this size.
    pub const fn to_bytes(self, total: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Percent(percent) => total / 100 * percent as u64,
        }
    }
}

/// Returns whether the disk counts as full. A full disk stays full until the minimum plus a tenth is free; otherwise
/// jobs would be accepted and rejected in turn.
pub const fn is_full(was_full: bool, floor: DiskFloor, total: u64, free: u64) -> bool {
    let floor = floor.to_bytes(total);
    if was_full { free < floor.saturating_add(floor / 10) } else { free < floor }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sizes_and_percentages_are_parsed() {
        let rows = [
            ("0", DiskFloor::Bytes(0)),
            ("2GiB", DiskFloor::Bytes(2 << 30)),
            (" 2 g ", DiskFloor::Bytes(2 << 30)),
            ("500MB", DiskFloor::Bytes(500_000_000)),
            ("10%", DiskFloor::Percent(10)),
            ("7b", DiskFloor::Bytes(7)),
            ("7kib", DiskFloor::Bytes(7_168)),
            ("7M", DiskFloor::Bytes(7_340_032)),
            ("7TiB", DiskFloor::Bytes(7_696_581_394_432)),
            ("7kB", DiskFloor::Bytes(7_000)),
            ("7gb", DiskFloor::Bytes(7_000_000_000)),
            ("7TB", DiskFloor::Bytes(7_000_000_000_000)),
        ];
        for (text, floor) in rows {
            assert_eq!(DiskFloor::parse(text), Ok(floor), "{text}");
        }
        for text in ["", "GiB", "-1", "1.5G", "100%", "2 lots", "99999999999999999999", "99999999999TiB"] {
            assert!(DiskFloor::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn full_disk_recovers_with_hysteresis() {
        let floor = DiskFloor::Bytes(100);
        let full = |was_full, free| is_full(was_full, floor, 1_000, free);
        assert_eq!((full(false, 99), full(false, 100), full(true, 109), full(true, 110)), (true, false, true, false));
        assert_eq!(
            (is_full(false, DiskFloor::Percent(5), 1_000, 49), is_full(false, DiskFloor::Percent(5), 1_000, 50)),
            (true, false)
        );
        assert!(!is_full(true, DiskFloor::Bytes(0), 1_000, 0), "no floor");
    }

    proptest! {
        #[test]
        fn state_is_stable_and_monotonic(was_full: bool, floor: u64, free: u64) {
            let floor = DiskFloor::Bytes(floor);
            let full = is_full(was_full, floor, u64::MAX, free);
            prop_assert_eq!(is_full(full, floor, u64::MAX, free), full, "the same free space gives the same result");
            let is_full_with_more = is_full(was_full, floor, u64::MAX, free.saturating_add(1));
            prop_assert!(full || !is_full_with_more, "more space is never fuller");
        }
    }
}

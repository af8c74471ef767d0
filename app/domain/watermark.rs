//! How much of the disk is kept free: below it, nothing new is begun.

/// The least that stays free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Floor {
    /// So many bytes.
    Bytes(u64),
    /// So many hundredths of the disk.
    Percent(u8),
}

impl Floor {
    /// `2GiB`, `500MB`, `5%`; `0` for none.
    ///
    /// # Errors
    /// With what can be written.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("write a size like 2GiB or 500MB, or a part of the disk like 5%; {text:?} is neither");
        let text = text.trim();
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let number: u64 = text[..digits].parse().map_err(|_| wrong())?;
        let unit = match text[digits..].trim().to_ascii_lowercase().as_str() {
            "%" if number < 100 => return Ok(Self::Percent(u8::try_from(number).map_err(|_| wrong())?)),
            "" | "b" => 1,
            "k" | "kib" => 1 << 10,
            "m" | "mib" => 1 << 20,
            "g" | "gib" => 1 << 30,
            "t" | "tib" => 1 << 40,
            "kb" => 1_000,
            "mb" => 1_000_000,
            "gb" => 1_000_000_000,
            "tb" => 1_000_000_000_000,
            _ => return Err(wrong()),
        };
        number.checked_mul(unit).map(Self::Bytes).ok_or_else(wrong)
    }

    /// In bytes, on a disk of this size.
    pub const fn of(self, total: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Percent(percent) => total / 100 * percent as u64,
        }
    }
}

/// Whether the disk counts as full now. One that was stays so until a tenth more than the floor is free, or jobs would be
/// taken and refused in turn.
pub const fn is_full(was: bool, floor: Floor, total: u64, free: u64) -> bool {
    let floor = floor.of(total);
    if was { free < floor.saturating_add(floor / 10) } else { free < floor }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sizes_and_parts() {
        let rows = [
            ("0", Floor::Bytes(0)),
            ("2GiB", Floor::Bytes(2 << 30)),
            (" 2 g ", Floor::Bytes(2 << 30)),
            ("500MB", Floor::Bytes(500_000_000)),
            ("10%", Floor::Percent(10)),
            ("7b", Floor::Bytes(7)),
            ("7kib", Floor::Bytes(7_168)),
            ("7M", Floor::Bytes(7_340_032)),
            ("7TiB", Floor::Bytes(7_696_581_394_432)),
            ("7kB", Floor::Bytes(7_000)),
            ("7gb", Floor::Bytes(7_000_000_000)),
            ("7TB", Floor::Bytes(7_000_000_000_000)),
        ];
        for (text, floor) in rows {
            assert_eq!(Floor::parse(text), Ok(floor), "{text}");
        }
        for text in ["", "GiB", "-1", "1.5G", "100%", "2 lots", "99999999999999999999", "99999999999TiB"] {
            assert!(Floor::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_was_full_has_to_be_clearly_free() {
        let floor = Floor::Bytes(100);
        let full = |was, free| is_full(was, floor, 1_000, free);
        assert_eq!((full(false, 99), full(false, 100), full(true, 109), full(true, 110)), (true, false, true, false));
        assert_eq!(
            (is_full(false, Floor::Percent(5), 1_000, 49), is_full(false, Floor::Percent(5), 1_000, 50)),
            (true, false)
        );
        assert!(!is_full(true, Floor::Bytes(0), 1_000, 0), "no floor");
    }

    proptest! {
        #[test]
        fn it_never_hangs_between(was: bool, floor: u64, free: u64) {
            let floor = Floor::Bytes(floor);
            let now = is_full(was, floor, u64::MAX, free);
            prop_assert_eq!(is_full(now, floor, u64::MAX, free), now, "the same space says the same again");
            prop_assert!(now || !is_full(was, floor, u64::MAX, free.saturating_add(1)), "more space is never fuller");
        }
    }
}

//! What NVIDIA's error numbers (XIDs) mean for the next job, by NVIDIA's catalogue of them
//! (docs.nvidia.com/deploy/xid-errors, the table for Ampere and newer).

/// What a number says about the GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// A program did something wrong, or was cleaned up after; the catalogue says to start it again.
    Program,
    /// The GPU took note of something and goes on.
    Note,
    /// No job should get this GPU before somebody has looked, or it was reset.
    Broken(&'static str),
}

/// What an XID means: by the action that the catalogue says is due at once. One that it does not name, or for which it
/// names no action, is taken for the worst, as the driver calls all of them critical.
pub fn meaning(xid: u64) -> Meaning {
    match xid {
        // "Restart the application": faults of its own work on the graphics, copy, video and security engines; and what the
        // catalogue ignores as a program's: a channel that was reset, its clean-up, an illegal address of another GPU.
        8
        | 11
        | 13
        | 25
        | 31
        | 32
        | 39..=41
        | 43
        | 45
        | 60
        | 68..=72
        | 75..=77
        | 80
        | 82..=86
        | 88
        | 89
        | 96..=105
        | 108
        | 126..=135
        | 137
        | 139 => Meaning::Program,
        // "Ignore", or nothing to do: a row is to be remapped, many corrected errors, a link's own notes, channels that are
        // not used any more, power smoothing; 94 is contained in one program, and 154 only says what is due after another.
        14 | 37 | 38 | 44 | 63 | 66 | 67 | 92..=94 | 106 | 107 | 121 | 141 | 147 | 148 | 154 | 157 | 160..=165 => {
            Meaning::Note
        }
        46 => Meaning::Broken("it stopped processing"),
        48 => Meaning::Broken("a memory error that cannot be corrected"),
        54 => Meaning::Broken("its extra power is not connected"),
        62 => Meaning::Broken("its own controller stopped"),
        64 => Meaning::Broken("broken memory cannot be remapped"),
        74 | 136 | 144..=146 | 149 | 150 | 155 => Meaning::Broken("an error of NVLink"),
        79 => Meaning::Broken("it has fallen off the bus"),
        95 => Meaning::Broken("a memory error that was not contained"),
        109 => Meaning::Broken("it could not switch between programs in time"),
        110 => Meaning::Broken("a security fault"),
        119 | 120 => Meaning::Broken("its system processor does not answer"),
        140 => Meaning::Broken("a memory error without recovery"),
        143 => Meaning::Broken("it could not be started"),
        156 => Meaning::Broken("a broken part is left out after a reset only"),
        158 => Meaning::Broken("it did not answer in time"),
        _ => Meaning::Broken("see NVIDIA's catalogue of XIDs"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_faults_are_not_the_gpus() {
        for xid in [8, 13, 31, 32, 43, 45, 60, 68, 72, 77, 86, 104, 131, 137, 139] {
            assert_eq!(meaning(xid), Meaning::Program, "{xid}");
        }
        for xid in [37, 44, 63, 92, 94, 121, 141, 154, 157, 163] {
            assert_eq!(meaning(xid), Meaning::Note, "{xid}");
        }
        for xid in [46, 48, 62, 64, 74, 78, 79, 87, 95, 109, 110, 119, 120, 140, 143, 145, 151, 158, 168, 999] {
            assert!(matches!(meaning(xid), Meaning::Broken(_)), "{xid}");
        }
    }
}

//! What NVIDIA's error numbers (XIDs) mean for the next job, by NVIDIA's catalogue of them.

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

/// What an XID means. One that is not known is taken for the worst, as the driver calls all of them critical.
pub fn meaning(xid: u64) -> Meaning {
    match xid {
        // Faults of shaders and of addresses, bad command buffers, copy and video engines fed wrongly, channels that were
        // stopped or cleaned up, context switches that took too long.
        8 | 13 | 31 | 32 | 39..=41 | 43 | 45 | 66 | 68..=70 | 109 => Meaning::Program,
        // A row is to be remapped, many corrected errors, an error that was contained in one program, a corrected error of
        // a link, a changed recommendation.
        63 | 92 | 94 | 121 | 154 => Meaning::Note,
        48 => Meaning::Broken("a memory error that cannot be corrected"),
        61 | 62 => Meaning::Broken("its own controller stopped"),
        64 => Meaning::Broken("broken memory cannot be remapped"),
        74 => Meaning::Broken("an error of NVLink"),
        79 => Meaning::Broken("it has fallen off the bus"),
        95 => Meaning::Broken("a memory error that was not contained"),
        110 => Meaning::Broken("a security fault"),
        119 | 120 => Meaning::Broken("its system processor does not answer"),
        140 => Meaning::Broken("a memory error without recovery"),
        143 => Meaning::Broken("it could not be started"),
        _ => Meaning::Broken("see NVIDIA's catalogue of XIDs"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_faults_are_not_the_gpus() {
        for xid in [13, 31, 43, 45, 68, 109] {
            assert_eq!(meaning(xid), Meaning::Program, "{xid}");
        }
        for xid in [63, 94] {
            assert_eq!(meaning(xid), Meaning::Note, "{xid}");
        }
        for xid in [48, 64, 74, 79, 95, 119, 140, 999] {
            assert!(matches!(meaning(xid), Meaning::Broken(_)), "{xid}");
        }
    }
}

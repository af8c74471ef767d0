//! What NVIDIA's error numbers (XIDs) mean for the next job, according to NVIDIA's catalog
//! (docs.nvidia.com/deploy/xid-errors, the table for Ampere and newer).

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum XidSeverity {
    /// A program's fault or its cleanup; the catalog says to restart the application.
    ApplicationError,
    /// The GPU reports something and continues.
    Informational,
    /// No job should get this GPU before it was inspected or reset.
    GpuFailure(&'static str),
}

/// Classifies an XID by the immediate action in the catalog. One without an entry or action is considered a failure,
/// because the driver calls all of them critical.
pub fn classify_xid(xid: u64) -> XidSeverity {
    match xid {
        // "Restart the application": faults of its own work on the graphics, copy, video and security engines; and what
        // the catalog ignores as a program's: a channel that was reset, its cleanup, an illegal address of another GPU.
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
        | 139 => XidSeverity::ApplicationError,
        // "Ignore", or no action: a row is to be remapped, many corrected errors, a link's notices, unused channels,
        // power smoothing; 94 is contained in one program, and 154 only names the action that another one needs.
        14 | 37 | 38 | 44 | 63 | 66 | 67 | 92..=94 | 106 | 107 | 121 | 141 | 147 | 148 | 154 | 157 | 160..=165 => {
            XidSeverity::Informational
        }
        46 => XidSeverity::GpuFailure("it stopped processing"),
        48 => XidSeverity::GpuFailure("an uncorrectable memory error"),
        54 => XidSeverity::GpuFailure("its auxiliary power is not connected"),
        62 => XidSeverity::GpuFailure("its internal controller stopped"),
        64 => XidSeverity::GpuFailure("broken memory cannot be remapped"),
        74 | 136 | 144..=146 | 149 | 150 | 155 => XidSeverity::GpuFailure("an NVLink error"),
        79 => XidSeverity::GpuFailure("it has fallen off the bus"),
        95 => XidSeverity::GpuFailure("an uncontained memory error"),
        109 => XidSeverity::GpuFailure("a context switch timed out"),
        110 => XidSeverity::GpuFailure("a security fault"),
        119 | 120 => XidSeverity::GpuFailure("its system processor does not respond"),
        140 => XidSeverity::GpuFailure("an unrecoverable memory error"),
        143 => XidSeverity::GpuFailure("it could not be initialized"),
        156 => XidSeverity::GpuFailure("a broken part is disabled only after a reset"),
        158 => XidSeverity::GpuFailure("it timed out"),
        _ => XidSeverity::GpuFailure("see NVIDIA's catalog of XIDs"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn application_errors_do_not_affect_the_gpu() {
        for xid in [8, 13, 31, 32, 43, 45, 60, 68, 72, 77, 86, 104, 131, 137, 139] {
            assert_eq!(classify_xid(xid), XidSeverity::ApplicationError, "{xid}");
        }
        for xid in [37, 44, 63, 92, 94, 121, 141, 154, 157, 163] {
            assert_eq!(classify_xid(xid), XidSeverity::Informational, "{xid}");
        }
        for xid in [46, 48, 62, 64, 74, 78, 79, 87, 95, 109, 110, 119, 120, 140, 143, 145, 151, 158, 168, 999] {
            assert!(matches!(classify_xid(xid), XidSeverity::GpuFailure(_)), "{xid}");
        }
    }
}

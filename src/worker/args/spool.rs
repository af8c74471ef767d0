//! Flags for a job's undelivered output.

use app::domain::disk_watermark::DiskFloor;
use clap::Args;

/// With less, the last lines of a crash might be lost, in bytes.
const MIN_SPOOL_BYTES: u64 = 1 << 20;

#[derive(Debug, Clone, Copy, Args)]
pub struct SpoolArgs {
    /// Max undelivered output per job; beyond it the oldest is dropped
    #[arg(long, value_name = "SIZE", env = "SIMPLETUNER_SPOOL_LIMIT", default_value = "1GiB", value_parser = parse_size)]
    pub spool_limit: u64,
}

fn parse_size(text: &str) -> Result<u64, String> {
    match DiskFloor::parse(text) {
        Ok(DiskFloor::Bytes(bytes)) if bytes >= MIN_SPOOL_BYTES => Ok(bytes),
        Ok(DiskFloor::Bytes(_)) => Err("must be at least 1MiB".to_owned()),
        Ok(DiskFloor::Percent(_)) | Err(_) => Err("use a size such as 1GiB or 500MB".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spool_sizes_are_parsed() {
        for (text, bytes) in
            [("1GiB", Some(1 << 30)), ("1048576", Some(1 << 20)), ("1MB", None), ("5%", None), ("x", None)]
        {
            assert_eq!(parse_size(text).ok(), bytes, "{text}");
        }
    }
}

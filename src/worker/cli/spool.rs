//! What a job may leave on this host's disk.

use app::domain::watermark::Floor;
use clap::Args;

/// With less, the last lines of a crash would not be sure to stay, in bytes.
const LEAST: u64 = 1 << 20;

/// Limits of one attempt.
#[derive(Debug, Clone, Copy, Args)]
pub struct SpoolArgs {
    /// Keep so much of a job's output on disk until the orchestrator has it; then the oldest goes
    #[arg(long, value_name = "SIZE", env = "SIMPLETUNER_SPOOL_LIMIT", default_value = "1GiB", value_parser = size)]
    pub spool_limit: u64,
}

fn size(text: &str) -> Result<u64, String> {
    match Floor::parse(text) {
        Ok(Floor::Bytes(bytes)) if bytes >= LEAST => Ok(bytes),
        Ok(Floor::Bytes(_)) => Err("it must be 1MiB or more".to_owned()),
        Ok(Floor::Percent(_)) | Err(_) => Err("write a size like 1GiB or 500MB".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, bytes) in
            [("1GiB", Some(1 << 30)), ("1048576", Some(1 << 20)), ("1MB", None), ("5%", None), ("x", None)]
        {
            assert_eq!(size(text).ok(), bytes, "{text}");
        }
    }
}

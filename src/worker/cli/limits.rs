//! What a job may take of this host.

use std::str::FromStr;

use app::domain::watermark::Floor;
use clap::Args;

use crate::limits::Wanted;
use crate::limits::memory::JobMemory;

/// No trainer runs with less memory, in bytes.
const LEAST_MEMORY: u64 = 64 << 20;
/// No trainer runs with fewer processes.
const LEAST_PROCESSES: u64 = 64;
/// No trainer does with less of the disk, in bytes.
const LEAST_DISK: u64 = 1 << 20;
/// More have no number.
const MOST_PROCESSES: u64 = 1 << 22;

/// See the module.
#[derive(Debug, Clone, Copy, Args)]
pub struct LimitArgs {
    /// Stop a job that takes more memory, where the host can: a size, or none [default: the host's memory less a reserve,
    /// shared out among --max-jobs]
    #[arg(long = "job-memory", value_name = "SIZE|none", env = "SIMPLETUNER_JOB_MEMORY", value_parser = memory)]
    pub memory: Option<JobMemory>,
    /// Give a job so many processes and threads at most, where the host can, or none for as many as it likes
    #[arg(long = "job-pids", value_name = "N|none", env = "SIMPLETUNER_JOB_PIDS", default_value = "32768")]
    pub processes: JobProcesses,
    /// Stop a job that has written more to the work directory's disk than this, a size or a part of it (`200GiB`, `25%`), or none
    #[arg(long = "job-disk", value_name = "SIZE|none", env = "SIMPLETUNER_JOB_DISK", default_value = "none")]
    pub disk: JobDisk,
}

impl LimitArgs {
    /// Together.
    pub fn wanted(&self) -> Wanted {
        Wanted { memory: self.memory.unwrap_or(JobMemory::Usual), processes: self.processes }
    }
}

/// How many processes and threads a job may have; none for as many as it likes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobProcesses(pub Option<u64>);

impl FromStr for JobProcesses {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self(None));
        }
        let number = text.parse().ok().filter(|number| (LEAST_PROCESSES..=MOST_PROCESSES).contains(number));
        let wrong = || format!("give a number from {LEAST_PROCESSES} to {MOST_PROCESSES}, or none");
        number.map(|number| Self(Some(number))).ok_or_else(wrong)
    }
}

/// What a job may take of the disk; none for whatever there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobDisk(pub Option<Floor>);

impl FromStr for JobDisk {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match Floor::parse(text) {
            _ if text == "none" => Ok(Self(None)),
            Ok(Floor::Bytes(..LEAST_DISK) | Floor::Percent(0)) => Err("it must be 1MiB or more, or none".to_owned()),
            Ok(floor) => Ok(Self(Some(floor))),
            Err(why) => Err(format!("{why}; or none")),
        }
    }
}

fn memory(text: &str) -> Result<JobMemory, String> {
    match Floor::parse(text) {
        _ if text == "none" => Ok(JobMemory::Unlimited),
        Ok(Floor::Bytes(bytes)) if bytes >= LEAST_MEMORY => Ok(JobMemory::Bytes(bytes)),
        Ok(Floor::Bytes(_)) => Err("it must be 64MiB or more, or none".to_owned()),
        Ok(Floor::Percent(_)) | Err(_) => Err("write a size like 64GiB, or none".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_numbers_or_none() {
        for (text, expected) in [
            ("none", Some(JobMemory::Unlimited)),
            ("64GiB", Some(JobMemory::Bytes(64 << 30))),
            ("1MiB", None),
            ("0", None),
            ("50%", None),
            ("", None),
        ] {
            assert_eq!(memory(text).ok(), expected, "{text}");
        }
        for (text, expected) in [
            ("none", Some(None)),
            ("25%", Some(Some(Floor::Percent(25)))),
            ("1MiB", Some(Some(Floor::Bytes(1 << 20)))),
            ("1kB", None),
            ("0", None),
            ("0%", None),
            ("x", None),
        ] {
            assert_eq!(text.parse().ok(), expected.map(JobDisk), "{text}");
        }
        for (text, expected) in
            [("none", Some(None)), ("64", Some(Some(64))), ("63", None), ("4194305", None), ("-1", None), ("", None)]
        {
            assert_eq!(text.parse().ok(), expected.map(JobProcesses), "{text}");
        }
    }
}

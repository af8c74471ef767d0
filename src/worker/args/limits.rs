//! Flags for the resources of a job.

use std::str::FromStr;

use app::domain::disk_watermark::DiskFloor;
use clap::Args;

/// Minimum for a trainer, in bytes.
const MIN_MEMORY_BYTES: u64 = 64 << 20;
/// Minimum for a trainer.
const MIN_PROCESSES: u64 = 64;
/// Minimum for a trainer, in bytes.
const MIN_DISK_BYTES: u64 = 1 << 20;
/// The kernel's maximum of process IDs.
const MAX_PROCESSES: u64 = 1 << 22;

#[derive(Debug, Clone, Copy, Args)]
pub struct JobLimitArgs {
    /// Stop a job that uses more memory, if the host supports it: a size, or none [default: the host's memory minus a
    /// reserve, divided by --max-jobs]
    #[arg(long = "job-memory", value_name = "SIZE|none", env = "SIMPLETUNER_JOB_MEMORY", value_parser = parse_memory)]
    pub memory: Option<JobMemoryLimit>,
    /// Max processes and threads per job, if the host supports it, or none
    #[arg(long = "job-pids", value_name = "N|none", env = "SIMPLETUNER_JOB_PIDS", default_value = "32768")]
    pub processes: JobProcessLimit,
    /// Stop a job that has written more to the work directory's disk: a size, a percentage (`200GiB`, `25%`), or none
    #[arg(long = "job-disk", value_name = "SIZE|none", env = "SIMPLETUNER_JOB_DISK", default_value = "none")]
    pub disk: JobDiskArg,
}

impl JobLimitArgs {
    pub fn requested_limits(&self) -> RequestedLimits {
        RequestedLimits { memory: self.memory.unwrap_or(JobMemoryLimit::EqualShare), processes: self.processes }
    }
}

/// The limits that the owner requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestedLimits {
    pub memory: JobMemoryLimit,
    /// Processes and threads.
    pub processes: JobProcessLimit,
}

/// Max memory of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobMemoryLimit {
    /// An equal share for each job, after the reserve.
    EqualShare,
    Unlimited,
    Bytes(u64),
}

/// Max processes and threads of a job; `None` for no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobProcessLimit(pub Option<u64>);

impl FromStr for JobProcessLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self(None));
        }
        let number = text.parse().ok().filter(|number| (MIN_PROCESSES..=MAX_PROCESSES).contains(number));
        let range_error = || format!("use a number from {MIN_PROCESSES} to {MAX_PROCESSES}, or none");
        number.map(|number| Self(Some(number))).ok_or_else(range_error)
    }
}

/// Max disk usage of a job; `None` for no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobDiskArg(pub Option<DiskFloor>);

impl FromStr for JobDiskArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match DiskFloor::parse(text) {
            _ if text == "none" => Ok(Self(None)),
            Ok(DiskFloor::Bytes(..MIN_DISK_BYTES) | DiskFloor::Percent(0)) => {
                Err("must be at least 1MiB, or none".to_owned())
            }
            Ok(floor) => Ok(Self(Some(floor))),
            Err(error) => Err(format!("{error}; or none")),
        }
    }
}

fn parse_memory(text: &str) -> Result<JobMemoryLimit, String> {
    match DiskFloor::parse(text) {
        _ if text == "none" => Ok(JobMemoryLimit::Unlimited),
        Ok(DiskFloor::Bytes(bytes)) if bytes >= MIN_MEMORY_BYTES => Ok(JobMemoryLimit::Bytes(bytes)),
        Ok(DiskFloor::Bytes(_)) => Err("must be at least 64MiB, or none".to_owned()),
        Ok(DiskFloor::Percent(_)) | Err(_) => Err("use a size such as 64GiB, or none".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn job_limits_are_numbers_or_none() {
        for (text, expected) in [
            ("none", Some(JobMemoryLimit::Unlimited)),
            ("64GiB", Some(JobMemoryLimit::Bytes(64 << 30))),
            ("1MiB", None),
            ("0", None),
            ("50%", None),
            ("", None),
        ] {
            assert_eq!(parse_memory(text).ok(), expected, "{text}");
        }
        for (text, expected) in [
            ("none", Some(None)),
            ("25%", Some(Some(DiskFloor::Percent(25)))),
            ("1MiB", Some(Some(DiskFloor::Bytes(1 << 20)))),
            ("1kB", None),
            ("0", None),
            ("0%", None),
            ("x", None),
        ] {
            assert_eq!(text.parse().ok(), expected.map(JobDiskArg), "{text}");
        }
        for (text, expected) in
            [("none", Some(None)), ("64", Some(Some(64))), ("63", None), ("4194305", None), ("-1", None), ("", None)]
        {
            assert_eq!(text.parse().ok(), expected.map(JobProcessLimit), "{text}");
        }
    }
}

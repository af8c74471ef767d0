//! Blockers: why a job does not match a worker, and what would remove them.

use crate::domain::gpu::Unavailable;
use crate::domain::ids::JobId;
use crate::domain::job::JobTarget;
use crate::domain::sandbox::SandboxLevel;

/// A reason why a job does not match a worker. It borrows from both: the planner finds millions, and drops them.
#[derive(Debug, Clone, PartialEq)]
pub enum Blocker<'a> {
    /// The job requires a remote worker and this is the orchestrator's own, or vice versa.
    WrongTarget {
        /// The job's target.
        wanted: JobTarget,
    },
    /// A label is missing or has another value.
    Label {
        /// The label's key.
        key: &'a str,
        /// The required glob.
        wanted: &'a str,
        /// The worker's value.
        found: Option<&'a str>,
    },
    /// A different kind of accelerator.
    Accelerator {
        /// The required accelerator.
        wanted: &'a str,
        /// The worker's accelerator.
        found: &'a str,
    },
    /// Too few GPUs.
    Gpus {
        /// The required number.
        wanted: u32,
        /// The worker's number.
        found: u32,
    },
    /// Too few GPUs with the required memory.
    Vram {
        /// The required memory, in GB.
        wanted_gb: f64,
        /// The number of GPUs.
        gpus: u32,
        /// The memory that this many of its GPUs have, in GB; none if they do not report it.
        found_gb: Option<f64>,
    },
    /// Too few GPUs are available: others are quarantined or in use.
    GpusUnavailable {
        /// The required number.
        wanted: u32,
        /// Number of suitable GPUs that are available.
        left: u32,
        /// The other suitable GPUs: their indexes, and why each is unavailable.
        why: Vec<(u32, &'a Unavailable)>,
    },
    /// The sandbox level is not supported.
    Sandbox {
        /// The required level.
        wanted: SandboxLevel,
        /// The highest supported level.
        found: SandboxLevel,
        /// Why a higher level is not supported, as reported by the agent.
        why: Option<&'a str>,
    },
    /// An ephemeral worker whose job has ended.
    Retired,
    /// Its older agent cannot stop a trainer when it loses contact, as an exclusive job requires.
    CannotSelfStop,
    /// Its older agent would not receive all files of the configuration.
    LacksFiles {
        /// The files that it would not receive.
        files: &'a [String],
    },
    /// It does not provide directories that the configuration needs.
    LacksPaths {
        /// The names of the missing directories.
        names: Vec<&'a str>,
    },
    /// Draining.
    Draining,
    /// The host cannot run new jobs.
    HostUnhealthy {
        /// The reason, as reported by the agent.
        why: &'a str,
    },
    /// Its agent has never connected, so its capability is not known.
    NeverConnected,
    /// Offline.
    Offline,
    /// Registered, without a stream.
    Connecting,
    /// Its older agent runs a job that is not assigned to it, and would ignore an offer.
    UnassignedRun {
        /// That job.
        job: &'a JobId,
    },
    /// Its older agent has just reported the end of a job and is not ready for the next one.
    Finishing,
    /// It runs its maximum number of jobs.
    AtCapacity {
        /// The maximum number.
        max_jobs: u32,
    },
    /// Its GPUs are allocated to other jobs.
    GpusBusy {
        /// The required number.
        wanted: u32,
        /// Number of suitable free GPUs.
        free: u32,
    },
    /// Reserved for a job that has waited too long.
    Reserved {
        /// That job.
        job: &'a JobId,
    },
}

/// What removes a blocker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Remedy {
    /// It disappears by waiting.
    Wait,
    /// An admin must act on the worker.
    FixWorker,
    /// The job must require less, or the worker must change.
    ChangeJob,
}

impl Blocker<'_> {
    /// Returns what would remove the blocker.
    pub const fn remedy(&self) -> Remedy {
        match self {
            Self::Connecting
            | Self::UnassignedRun { .. }
            | Self::Finishing
            | Self::AtCapacity { .. }
            | Self::GpusBusy { .. }
            | Self::Reserved { .. } => Remedy::Wait,
            Self::NeverConnected
            | Self::CannotSelfStop
            | Self::LacksFiles { .. }
            | Self::LacksPaths { .. }
            | Self::Draining
            | Self::Offline
            | Self::HostUnhealthy { .. }
            | Self::GpusUnavailable { .. } => Remedy::FixWorker,
            Self::WrongTarget { .. }
            | Self::Label { .. }
            | Self::Accelerator { .. }
            | Self::Gpus { .. }
            | Self::Vram { .. }
            | Self::Sandbox { .. }
            | Self::Retired => Remedy::ChangeJob,
        }
    }

    /// Returns whether the worker does not meet the job's requirements, or is not known to, regardless of its current
    /// state.
    pub const fn is_mismatch(&self) -> bool {
        match self {
            Self::NeverConnected | Self::CannotSelfStop | Self::LacksFiles { .. } | Self::LacksPaths { .. } => true,
            _ => matches!(self.remedy(), Remedy::ChangeJob),
        }
    }
}

//! What can be in the way of a job on a worker, and what has to happen for it to go.

use crate::domain::gpu::Withheld;
use crate::domain::ids::JobId;
use crate::domain::job::Target;
use crate::domain::sandbox::SandboxLevel;

/// One thing that keeps a job from a worker.
#[derive(Debug, Clone, PartialEq)]
pub enum Blocker {
    /// The job wants a remote worker and this is the orchestrator's own, or the other way round.
    WrongTarget {
        /// What the job wants.
        wanted: Target,
    },
    /// A label is missing or different.
    Label {
        /// The label's key.
        key: String,
        /// The glob that was asked for.
        wanted: String,
        /// What the worker has.
        found: Option<String>,
    },
    /// Another kind of accelerator.
    Accelerator {
        /// What was asked for.
        wanted: String,
        /// What it has.
        found: String,
    },
    /// It has fewer GPUs.
    Gpus {
        /// How many were asked for.
        wanted: u32,
        /// How many it has.
        found: u32,
    },
    /// Too few of its GPUs have that much memory.
    Vram {
        /// What was asked for, in GB.
        wanted_gb: f64,
        /// On how many GPUs.
        gpus: u32,
        /// What it has on so many GPUs, in GB; none where it does not say.
        found_gb: Option<f64>,
    },
    /// Too few of its GPUs are given out: its agent withholds the others.
    GpusWithheld {
        /// How many were asked for.
        wanted: u32,
        /// How many that would do are left.
        left: u32,
        /// The others that would do: their numbers on the host, and why.
        why: Vec<(u32, Withheld)>,
    },
    /// It cannot confine the trainer as closely.
    Sandbox {
        /// What was asked for.
        wanted: SandboxLevel,
        /// The most that it can do.
        found: SandboxLevel,
        /// Why it is not more, in the agent's words.
        why: Option<String>,
    },
    /// An ephemeral worker whose job has ended.
    Spent,
    /// Its older agent cannot stop by itself when it loses contact, as an exclusive job's has to.
    CannotStop,
    /// Its older agent would not get all files of the configuration.
    LacksFiles {
        /// Those that it would not get.
        files: Vec<String>,
    },
    /// It gives jobs no directory of these names, which the configuration needs.
    LacksPaths {
        /// Those that it lacks.
        names: Vec<String>,
    },
    /// A person wants it to drain.
    Draining,
    /// Its agent takes no new job: the host is not fit for one.
    Unfit {
        /// Why, in the agent's words.
        why: String,
    },
    /// Its agent has never connected: what it has, nobody knows.
    NeverConnected,
    /// Its agent is gone.
    Offline,
    /// Registered, not listening yet.
    Connecting,
    /// Its older agent runs a job that it does not hold, and would not hear of an offer.
    Astray {
        /// That job.
        job: JobId,
    },
    /// Its older agent has just reported the end of a job, and is not free for the next yet.
    Finishing,
    /// It has as many jobs as it takes.
    Occupied {
        /// How many it takes.
        max_jobs: u32,
    },
    /// Its GPUs are with other jobs.
    GpusBusy {
        /// How many were asked for.
        wanted: u32,
        /// How many that would do are free.
        free: u32,
    },
    /// It is kept free for a job that has waited too long.
    Reserved {
        /// That job.
        job: JobId,
    },
}

/// What has to happen for a blocker to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Remedy {
    /// It passes by itself.
    Time,
    /// Somebody sees to the worker.
    Worker,
    /// The job asks for less, or the worker becomes another one.
    Demand,
}

impl Blocker {
    /// What has to happen for it to go.
    pub const fn remedy(&self) -> Remedy {
        match self {
            Self::Connecting
            | Self::Astray { .. }
            | Self::Finishing
            | Self::Occupied { .. }
            | Self::GpusBusy { .. }
            | Self::Reserved { .. } => Remedy::Time,
            Self::NeverConnected
            | Self::CannotStop
            | Self::LacksFiles { .. }
            | Self::LacksPaths { .. }
            | Self::Draining
            | Self::Offline
            | Self::Unfit { .. }
            | Self::GpusWithheld { .. } => Remedy::Worker,
            Self::WrongTarget { .. }
            | Self::Label { .. }
            | Self::Accelerator { .. }
            | Self::Gpus { .. }
            | Self::Vram { .. }
            | Self::Sandbox { .. }
            | Self::Spent => Remedy::Demand,
        }
    }

    /// Whether the worker is not known to be what the job asks for, however it stands now.
    pub const fn is_mismatch(&self) -> bool {
        match self {
            Self::NeverConnected | Self::CannotStop | Self::LacksFiles { .. } | Self::LacksPaths { .. } => true,
            _ => matches!(self.remedy(), Remedy::Demand),
        }
    }
}

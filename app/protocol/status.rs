//! Status values, with one spelling for the API, the database, the code and the pages.

use serde::{Deserialize, Serialize};

use crate::words::words;

/// Declares words that the API uses.
macro_rules! wire_words {
    ($(#[$meta:meta])* $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $word:literal,)+ }) => {
        words! {
            $(#[$meta])*
            #[derive(PartialOrd, Ord, Hash, Serialize, Deserialize)]
            #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
            $name { $($(#[$variant_meta])* #[serde(rename = $word)] $variant = $word,)+ }
        }
    };
}

wire_words!(
    /// The status of a worker.
    WorkerStatus {
        /// Registered; the stream is not open yet.
        Connecting = "connecting",
        /// Ready for jobs.
        Idle = "idle",
        /// Has at least one job.
        Busy = "busy",
        /// Finishes its jobs and accepts no new ones.
        Draining = "draining",
        /// Not connected, or never connected.
        Offline = "offline",
    }
);

wire_words!(
    /// The state of a GPU. Quarantined and in use take precedence over busy.
    GpuState {
        /// Allocated to a job.
        Busy = "busy",
        /// Available for jobs.
        Free = "free",
        /// A process outside of jobs uses it.
        InUse = "in_use",
        /// Quarantined after an error.
        Quarantined = "quarantined",
        /// Its worker is not connected.
        NotConnected = "not_connected",
    }
);

/// The state of a GPU without any reports.
impl Default for GpuState {
    fn default() -> Self {
        Self::NotConnected
    }
}

wire_words!(
    /// Whether a worker exits when its job ends.
    WorkerType {
        /// Exits after one job.
        Ephemeral = "ephemeral",
        /// Stays online between jobs.
        Persistent = "persistent",
    }
);

wire_words!(
    /// What a list of workers can be filtered by.
    FacetKind {
        /// Their status; `never` are those that have never connected, which are `offline` too.
        Status = "status",
        /// Ephemeral or persistent.
        Type = "type",
        /// The model of their GPUs.
        Gpu = "gpu",
        /// A label.
        Label = "label",
        /// Their agent's version.
        Version = "version",
        /// Whether their agent verifies the server's certificate: `off` if not.
        Tls = "tls",
    }
);

wire_words!(
    /// The status of a job.
    JobStatus {
        /// Waits for a worker.
        Queued = "queued",
        /// Offered to a worker that has not accepted it yet; clients that do not know it treat it as queued.
        Offered = "offered",
        /// The worker prepares the trainer.
        Starting = "starting",
        /// The trainer runs.
        Running = "running",
        /// A user cancelled it; the worker has not confirmed yet.
        Cancelling = "cancelling",
        /// The trainer exited successfully.
        Completed = "completed",
        /// The trainer failed, or all retries are used up.
        Failed = "failed",
        /// Cancelled by a user.
        Cancelled = "cancelled",
    }
);

impl JobStatus {
    /// Returns the phase: waiting, running or ended.
    pub const fn phase(self) -> JobPhase {
        match self {
            Self::Queued | Self::Offered => JobPhase::Waiting,
            Self::Starting | Self::Running | Self::Cancelling => JobPhase::Running,
            Self::Completed | Self::Failed | Self::Cancelled => JobPhase::Ended,
        }
    }

    /// Returns whether the status is final.
    pub const fn is_terminal(self) -> bool {
        matches!(self.phase(), JobPhase::Ended)
    }
}

wire_words!(
    /// A phase of a job.
    JobPhase {
        /// It has not ended.
        Active = "active",
        /// `queued` or `offered`.
        Waiting = "waiting",
        /// `starting`, `running` or `cancelling`.
        Running = "running",
        /// It has ended.
        Ended = "ended",
    }
);

impl JobStatus {
    /// Returns whether the status belongs to this phase.
    pub const fn is_in_phase(self, phase: JobPhase) -> bool {
        match phase {
            JobPhase::Active => !self.is_terminal(),
            JobPhase::Waiting => matches!(self.phase(), JobPhase::Waiting),
            JobPhase::Running => matches!(self.phase(), JobPhase::Running),
            JobPhase::Ended => self.is_terminal(),
        }
    }
}

wire_words!(
    /// Where a job may run.
    Target {
        /// Prefers a remote worker, and falls back to the orchestrator's own GPUs.
        Auto = "auto",
        /// Remote workers only.
        Worker = "worker",
        /// The orchestrator's own GPUs only.
        Local = "local",
    }
);

wire_words!(
    /// The kind of an artifact.
    ArtifactKind {
        /// The trained weights at the end.
        Final = "final",
        /// Part of a checkpoint.
        Checkpoint = "checkpoint",
        /// A validation sample.
        Sample = "sample",
        /// Anything else in the output directory.
        Other = "other",
    }
);

wire_words!(
    /// An action on several workers or jobs.
    BulkAction {
        /// Drains workers.
        Drain = "drain",
        /// Resumes workers.
        Resume = "resume",
        /// Deletes workers that are offline.
        Delete = "delete",
        /// Cancels jobs.
        Cancel = "cancel",
        /// Retries jobs that have ended.
        Retry = "retry",
    }
);

wire_words!(
    /// The outcome for one target of a bulk action.
    BulkOutcome {
        /// It was done.
        Done = "done",
        /// It already was in this state.
        Unchanged = "unchanged",
        /// Rejected; the other targets are not affected.
        Refused = "refused",
    }
);

//! Status values, with one spelling for the API, the database, the code and the pages.

pub use crate::domain::job_status::{CancelEffect, JobOutcome, JobPhase, JobStatus};
use crate::words::wire_words;

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

/// The kind of item that a bulk action is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BulkTarget {
    /// Workers.
    Workers,
    /// Jobs.
    Jobs,
}

impl BulkAction {
    /// Returns the kind of item that it is for.
    pub const fn target(self) -> BulkTarget {
        match self {
            Self::Drain | Self::Resume | Self::Delete => BulkTarget::Workers,
            Self::Cancel | Self::Retry => BulkTarget::Jobs,
        }
    }
}

wire_words!(
    /// The outcome for one target of a bulk action.
    BulkOutcome {
        /// It was done.
        Done = "done",
        /// It already was in this state.
        Unchanged = "unchanged",
        /// Rejected; the other targets are not affected.
        Rejected = "rejected",
    }
);

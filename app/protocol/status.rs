//! Status words, spelled the same on the wire, in the database, in code and on the page.

use serde::{Deserialize, Serialize};

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum $name {
            $($(#[$variant_doc])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// Every word, in the order of a life.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The word itself.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// Reads the word.
            pub fn parse(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|known| known.as_str() == word)
            }
        }
    };
}

words!(
    /// Where a worker stands.
    WorkerStatus {
        /// Registered, its stream is not open yet.
        Connecting = "connecting",
        /// Ready to receive jobs.
        Idle = "idle",
        /// Holds at least one job.
        Busy = "busy",
        /// Finishes what it has and takes nothing new.
        Draining = "draining",
        /// Not connected, or never seen.
        Offline = "offline",
    }
);

words!(
    /// Where a GPU stands. That it is withheld comes before that a job has it.
    GpuState {
        /// A job has it.
        Busy = "busy",
        /// A job may have it.
        Free = "free",
        /// Withheld: a process that belongs to no job uses it.
        InUse = "in_use",
        /// Withheld: it has shown an error.
        Quarantined = "quarantined",
        /// Its worker is not connected.
        NotConnected = "not_connected",
    }
);

/// What is known of a GPU of which nothing was heard.
impl Default for GpuState {
    fn default() -> Self {
        Self::NotConnected
    }
}

words!(
    /// Whether a worker goes when its job ends.
    WorkerType {
        /// Ends after one job.
        Ephemeral = "ephemeral",
        /// Stays between jobs.
        Persistent = "persistent",
    }
);

words!(
    /// What a list of workers can be narrowed by.
    FacetKind {
        /// Where they stand; `never` are those that were never heard of, which are `offline` too.
        Status = "status",
        /// Whether they go when their job ends.
        Type = "type",
        /// The model of their GPUs.
        Gpu = "gpu",
        /// A label.
        Label = "label",
        /// Their agent's version.
        Version = "version",
        /// Whether their agent verifies the server's certificate: `off` are those that do not.
        Tls = "tls",
    }
);

words!(
    /// Where a job stands.
    JobStatus {
        /// Waits for a worker.
        Queued = "queued",
        /// Offered to a worker that has not answered yet; reads as queued to whoever does not know it.
        Offered = "offered",
        /// The worker prepares the trainer.
        Starting = "starting",
        /// The trainer runs.
        Running = "running",
        /// A person cancelled it; the worker has not confirmed yet.
        Cancelling = "cancelling",
        /// The trainer ended well.
        Completed = "completed",
        /// The trainer failed, or its retries are used up.
        Failed = "failed",
        /// Cancelled by a person.
        Cancelled = "cancelled",
    }
);

impl JobStatus {
    /// Whether nothing follows.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

words!(
    /// A part of a job's life.
    Phase {
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
    /// Whether it belongs to this part of a life.
    pub const fn is_in(self, phase: Phase) -> bool {
        match phase {
            Phase::Active => !self.is_terminal(),
            Phase::Waiting => matches!(self, Self::Queued | Self::Offered),
            Phase::Running => matches!(self, Self::Starting | Self::Running | Self::Cancelling),
            Phase::Ended => self.is_terminal(),
        }
    }
}

words!(
    /// Where a job may run.
    Target {
        /// Prefers a remote worker, falls back to the orchestrator's own GPUs.
        Auto = "auto",
        /// Remote workers only.
        Worker = "worker",
        /// The orchestrator's own GPUs only.
        Local = "local",
    }
);

words!(
    /// What kind of file an artifact is.
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

words!(
    /// What can be done to several workers or jobs at once.
    BulkAction {
        /// Workers finish what they have and take nothing new.
        Drain = "drain",
        /// Workers take jobs again.
        Resume = "resume",
        /// Workers that are offline are removed.
        Delete = "delete",
        /// Jobs are cancelled.
        Cancel = "cancel",
        /// Jobs that have ended are submitted once more.
        Retry = "retry",
    }
);

words!(
    /// What became of one of several.
    BulkOutcome {
        /// It was done.
        Done = "done",
        /// It was so already.
        Unchanged = "unchanged",
        /// It could not be done; the others were all the same.
        Refused = "refused",
    }
);

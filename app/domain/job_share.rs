//! To whose share a job counts: its team and its class.

use crate::words::wire_words;

/// The team of the users who are in no other one. It always exists.
pub const DEFAULT_TEAM: &str = "default";

wire_words!(
    /// The class of a job.
    #[derive(Default)]
    JobClass {
        /// Before all others.
        Urgent = "urgent",
        /// By share.
        #[default]
        Normal = "normal",
        /// Only on what no other job can use; it is not counted, and no limit of a share applies.
        Idle = "idle",
    }
);

impl JobClass {
    /// Returns whether it is the default.
    pub const fn is_normal(&self) -> bool {
        matches!(self, Self::Normal)
    }

    /// Returns whether its jobs count for shares and their limits.
    pub const fn is_counted(self) -> bool {
        match self {
            Self::Urgent | Self::Normal => true,
            Self::Idle => false,
        }
    }
}

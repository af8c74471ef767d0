//! Work that use cases leave for the end of their group commit.

use std::time::Duration;

use super::TransactionWork;

pub type NotifyHook = Box<dyn Fn(&[String]) + Send + Sync>;

/// The result of a group commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupResult {
    /// The group is durable.
    Committed {
        /// The time from its beginning.
        duration: Duration,
        /// The number of use cases in it.
        members: usize,
        /// Whether anything was written.
        has_writes: bool,
    },
    /// As far as known, nothing of the group was written.
    RolledBack,
}

pub type GroupObserver = Box<dyn Fn(GroupResult) + Send + Sync>;

/// What a store calls around each group commit.
pub struct GroupHooks {
    /// Runs in the same transaction, at the end of a group in which a use case requested planning.
    pub plan: TransactionWork,
    /// Gets the changed topics after the commit.
    pub notify: NotifyHook,
    /// Gets the result of each group, before any caller gets its own.
    pub observe: GroupObserver,
}

/// The group that a transaction belongs to.
pub trait CommitGroup {
    /// Requests planning at the end of the group.
    fn request_planning(&mut self);
    /// Notifies topics after the commit, here and on other servers.
    fn notify(&mut self, topics: Vec<String>);
}

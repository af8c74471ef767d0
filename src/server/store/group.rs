//! What a use case leaves to be done once for all that are committed together.

use std::time::Duration;

use super::Work;

/// Hears which topics changed.
pub type Bell = Box<dyn Fn(&[String]) + Send + Sync>;

/// How the writing of a group ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It is durable.
    Committed {
        /// How long it took, from its beginning.
        took: Duration,
        /// How many use cases were in it.
        members: usize,
        /// Whether anything was written.
        wrote: bool,
    },
    /// Nothing of it was kept, as far as is known.
    Undone,
}

/// Hears how the writing of a group ended.
pub type Witness = Box<dyn Fn(Ended) + Send + Sync>;

/// What a store does around each group of use cases that it commits.
pub struct Hooks {
    /// Runs at the end of a group in which a use case asked for it, in the same transaction.
    pub plan: Work,
    /// Is told after the commit which topics changed.
    pub bell: Bell,
    /// Is told how the writing of each group ended, before anybody is answered.
    pub witness: Witness,
}

/// The group that a transaction belongs to.
pub trait Group {
    /// Asks for planning at the end of the group.
    fn plan_after(&mut self);
    /// Says that topics changed: their bells ring after the commit, here and on other servers.
    fn announce(&mut self, topics: Vec<String>);
}

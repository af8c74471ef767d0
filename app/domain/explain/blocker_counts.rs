//! Counts workers by the kind of their most relevant blocker.

use std::mem::discriminant;

use super::UnlistedWorkers;
use crate::domain::matching::Blocker;

#[derive(Default)]
pub(super) struct BlockerCounts<'a>(Vec<UnlistedWorkers<'a>>);

impl<'a> BlockerCounts<'a> {
    pub(super) fn add(&mut self, blocker: Option<&Blocker<'a>>) {
        match self.find(blocker) {
            Some(counted) => counted.workers += 1,
            None => self.0.push(UnlistedWorkers { blocker: blocker.cloned(), workers: 1 }),
        }
    }

    /// Subtracts a worker that was counted.
    pub(super) fn remove(&mut self, blocker: Option<&Blocker<'_>>) {
        if let Some(counted) = self.find(blocker) {
            counted.workers -= 1;
        }
    }

    /// Returns the counts, the largest first.
    pub(super) fn into_list(mut self) -> Vec<UnlistedWorkers<'a>> {
        self.0.retain(|counted| counted.workers > 0);
        self.0.sort_by_key(|counted| std::cmp::Reverse(counted.workers));
        self.0
    }

    fn find(&mut self, blocker: Option<&Blocker<'_>>) -> Option<&mut UnlistedWorkers<'a>> {
        let kind = blocker.map(discriminant);
        self.0.iter_mut().find(|counted| counted.blocker.as_ref().map(discriminant) == kind)
    }
}

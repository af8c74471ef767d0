//! Which running jobs a waiting job may stop.

use super::cost::RunningAttempt;
use crate::domain::job::{Job, PreemptionReason};
use crate::domain::job_share::JobClass;
use crate::domain::shares::{ShareLoad, ShareStanding, ShareTree, counted_gpus};
use crate::domain::time::{Millis, Timestamp};

/// A job runs at least this long before an urgent one may stop it.
pub const MIN_RUNTIME: Millis = Millis::from_secs(1_200);
/// A job runs at least this long before one of another share may stop it.
pub const TURN: Millis = Millis::from_secs(7_200);

/// What a waiting job may do.
pub(super) struct PreemptionRight<'r, 'w> {
    pub job: &'w Job,
    pub shares: &'r ShareTree<'w>,
    pub now: Timestamp,
}

impl<'w> PreemptionRight<'_, 'w> {
    /// Returns why the job may stop a running one, if it may.
    pub fn over(&self, running: &RunningAttempt<'w>) -> Option<PreemptionReason> {
        let (mine, theirs) = (self.job.spec.class, running.job.spec.class);
        if running.job.is_protected_from_preemption(self.now) || mine == JobClass::Idle {
            return None;
        }
        if theirs == JobClass::Idle {
            return Some(PreemptionReason::Idle);
        }
        if theirs == JobClass::Urgent {
            return None;
        }
        let has_run_for = |span: Millis| self.now - running.since >= span;
        if mine == JobClass::Urgent && has_run_for(MIN_RUNTIME) {
            return Some(PreemptionReason::Urgent);
        }
        let (mine, theirs) = self.shares_that_differ(running.job)?;
        if self.is_guaranteed(&mine, &theirs, running) {
            return Some(PreemptionReason::Guaranteed);
        }
        // Without a checkpoint, a turn would begin from scratch.
        let may_alternate = has_run_for(TURN) && running.checkpoint.is_some();
        let is_equal = self.job.priority >= running.job.priority && self.job.spec.class == JobClass::Normal;
        (may_alternate && is_equal && self.has_less(&mine, &theirs)).then_some(PreemptionReason::Turn)
    }

    /// Returns the shares of both jobs on the first level on which they differ: teams, or members of one team.
    fn shares_that_differ<'s>(&'s self, other: &'s Job) -> Option<(ShareStanding<'s>, ShareStanding<'s>)> {
        let (mine, theirs) = (self.shares.standings(self.job), self.shares.standings(other));
        [0, 1].into_iter().map(|level| (mine[level], theirs[level])).find(|(mine, theirs)| mine.name != theirs.name)
    }

    /// Whether the job is within what its share is guaranteed, and the other one beyond.
    fn is_guaranteed(
        &self,
        mine: &ShareStanding<'_>,
        theirs: &ShareStanding<'_>,
        running: &RunningAttempt<'_>,
    ) -> bool {
        let wanted = mine.load.required_gpus.saturating_add(counted_gpus(&self.job.spec.demand));
        let freed = ShareLoad::of(running.job, running.lease.gpus.len());
        let left = theirs.load.required_gpus.saturating_sub(freed.required_gpus);
        wanted <= mine.settings.guaranteed_gpus && left >= theirs.settings.guaranteed_gpus
    }

    /// Whether the job's share has used less, and then has no more than the other one has now.
    fn has_less(&self, mine: &ShareStanding<'_>, theirs: &ShareStanding<'_>) -> bool {
        let by_weight =
            |gpus: u32, share: &ShareStanding<'_>| f64::from(gpus) / f64::from(share.settings.weight.max(1));
        let gpus = by_weight(mine.load.required_gpus.saturating_add(counted_gpus(&self.job.spec.demand)), mine);
        let has_no_more = gpus <= by_weight(theirs.load.required_gpus, theirs);
        has_no_more && self.shares.comes_before(mine, theirs)
    }
}

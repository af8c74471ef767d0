//! The sentence about a limit that a job has reached.

use crate::protocol::jobs::explain::{ReachedLimitView, ShareLimitKind};
use crate::ui::locales::words::Blockers;

/// Describes the limit.
pub(crate) fn describe_limit(words: &Blockers, limit: Option<&ReachedLimitView>) -> String {
    let Some(limit) = limit else { return words.limited.of(0) };
    let Some(share) = &limit.share else {
        let count = limit.jobs.into();
        return if limit.per_user { words.limited_user.of(count) } else { words.limited.of(count) };
    };
    let sentence = match (share.kind, share.is_member) {
        (ShareLimitKind::Gpus, false) => words.limited_team_gpus,
        (ShareLimitKind::GpuHours, false) => words.limited_team_hours,
        (ShareLimitKind::RunningJobs, false) => words.limited_team_jobs,
        (ShareLimitKind::Gpus, true) => words.limited_member_gpus,
        (ShareLimitKind::GpuHours, true) => words.limited_member_hours,
        (ShareLimitKind::RunningJobs, true) => words.limited_member_jobs,
    };
    sentence.with(&[&share.team, &share.max])
}

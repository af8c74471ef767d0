//! Bulk actions on workers or jobs: their predicted effects, and the summary of their results.

use std::collections::BTreeMap;

use super::bulk_action::bulk_action_row;
use super::flash::{Flash, Undo};
use super::format::short_id;
use super::locales::Language;
use super::locales::words::ServerPagesBulk;
use super::prefs::Locale;
use crate::protocol::jobs::JobView;
use crate::protocol::status::{BulkAction, BulkTarget, CancelEffect, WorkerStatus, WorkerType};
use crate::protocol::workers::WorkerView;
use crate::protocol::workers::deletion::DeletionStatus;

/// Returns the URL of the list of these items.
pub const fn list_url(target: BulkTarget) -> &'static str {
    match target {
        BulkTarget::Workers => "/admin/workers",
        BulkTarget::Jobs => "/jobs",
    }
}

/// Returns the URL to which the form of an action posts.
pub fn form_url(action: BulkAction) -> String {
    let list_name = match action.target() {
        BulkTarget::Workers => "workers",
        BulkTarget::Jobs => "jobs",
    };
    format!("/ui/{list_name}/bulk/{}", action.as_str())
}

/// Returns the name of a job in a list of several: its configuration and short ID.
pub fn job_name(job: &JobView) -> String {
    format!("{} ({})", job.config_name, short_id(job.job_id.as_str()))
}

/// The effect of an action on one item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BulkEffect {
    StopsAcceptingJobs,
    FinishesJobs(Vec<String>),
    Retires,
    FinishesJobsAndRetires(Vec<String>),
    DrainsOnReconnect,
    AlreadyDraining,
    AcceptsJobs,
    NotDraining,
    Deleted,
    DeletedWithJobs(u64),
    NotOffline,
    RemovedFromQueue,
    Stops,
    AlreadyStopping,
    AlreadyEnded,
    NotOwner(String),
    Resubmitted,
    NotEnded,
}

impl BulkEffect {
    /// Returns the effect on a worker. Actions for jobs have no effect.
    pub fn for_worker(action: BulkAction, worker: &WorkerView) -> Self {
        let job_names = || worker.jobs.iter().map(|job| job.config_name.clone()).collect();
        let (free, offline) = (worker.jobs.is_empty(), worker.status == WorkerStatus::Offline);
        match action {
            BulkAction::Drain if worker.draining => Self::AlreadyDraining,
            BulkAction::Drain if offline && free => Self::DrainsOnReconnect,
            BulkAction::Drain => match (worker.worker_type, free) {
                (Some(WorkerType::Ephemeral), true) => Self::Retires,
                (Some(WorkerType::Ephemeral), false) => Self::FinishesJobsAndRetires(job_names()),
                (_, true) => Self::StopsAcceptingJobs,
                (_, false) => Self::FinishesJobs(job_names()),
            },
            BulkAction::Resume if worker.draining => Self::AcceptsJobs,
            BulkAction::Resume | BulkAction::Cancel | BulkAction::Retry => Self::NotDraining,
            BulkAction::Delete if worker.deletion_status() != DeletionStatus::Allowed => Self::NotOffline,
            BulkAction::Delete if free => Self::Deleted,
            BulkAction::Delete => Self::DeletedWithJobs(worker.jobs.len() as u64),
        }
    }

    /// Returns the effect on a job; `can_cancel` is whether the user may cancel it. Actions for workers have no effect.
    pub fn for_job(action: BulkAction, job: &JobView, can_cancel: bool) -> Self {
        let status = job.status;
        match action {
            BulkAction::Retry if status.is_terminal() => Self::Resubmitted,
            BulkAction::Cancel => match status.cancel_effect() {
                CancelEffect::AlreadyEnded => Self::AlreadyEnded,
                _ if !can_cancel => Self::NotOwner(job.submitted_by.clone()),
                CancelEffect::AlreadyStopping => Self::AlreadyStopping,
                CancelEffect::Ends => Self::RemovedFromQueue,
                CancelEffect::StopsTrainer => Self::Stops,
            },
            BulkAction::Retry | BulkAction::Drain | BulkAction::Resume | BulkAction::Delete => Self::NotEnded,
        }
    }

    /// Returns whether the item changes.
    pub fn is_change(&self) -> bool {
        match self {
            Self::StopsAcceptingJobs
            | Self::FinishesJobs(_)
            | Self::Retires
            | Self::FinishesJobsAndRetires(_)
            | Self::DrainsOnReconnect
            | Self::AcceptsJobs
            | Self::Deleted
            | Self::DeletedWithJobs(_)
            | Self::RemovedFromQueue
            | Self::Stops
            | Self::Resubmitted => true,
            Self::AlreadyDraining
            | Self::NotDraining
            | Self::NotOffline
            | Self::AlreadyStopping
            | Self::AlreadyEnded
            | Self::NotOwner(_)
            | Self::NotEnded => false,
        }
    }

    /// Returns a sentence in the user's language.
    pub fn describe(&self, words: &ServerPagesBulk) -> String {
        let jobs = |jobs: &[String]| jobs.join(words.between);
        match self {
            Self::StopsAcceptingJobs => words.stops_accepting_jobs.to_owned(),
            Self::FinishesJobs(job_names) => words.finishes.of(jobs(job_names)),
            Self::Retires => words.leaves.to_owned(),
            Self::FinishesJobsAndRetires(job_names) => words.finishes_and_retires.of(jobs(job_names)),
            Self::DrainsOnReconnect => words.drains_on_reconnect.to_owned(),
            Self::AlreadyDraining => words.already_draining.to_owned(),
            Self::AcceptsJobs => words.accepts_jobs.to_owned(),
            Self::NotDraining => words.not_draining.to_owned(),
            Self::Deleted => words.deleted.to_owned(),
            Self::DeletedWithJobs(job_count) => words.deleted_with.of(*job_count),
            Self::NotOffline => words.not_offline.to_owned(),
            Self::RemovedFromQueue => words.leaves_queue.to_owned(),
            Self::Stops => words.stops.to_owned(),
            Self::AlreadyStopping => words.stops_already.to_owned(),
            Self::AlreadyEnded => words.ended.to_owned(),
            Self::NotOwner(owner) => words.not_owner.of(owner),
            Self::Resubmitted => words.submitted_again.to_owned(),
            Self::NotEnded => words.not_ended.to_owned(),
        }
    }
}

/// The result of a bulk action.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BulkSummary {
    /// The IDs of the changed items.
    pub done: Vec<String>,
    /// The number of items that already had the requested state.
    pub unchanged: u64,
    /// The items for which the action was rejected.
    pub rejected: Vec<BulkRejection>,
}

/// An item for which the action was rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BulkRejection {
    /// The item's name.
    pub name: String,
    /// The reason, in the user's language.
    pub reason: String,
}

impl BulkSummary {
    /// Returns the message for the list, whose URL is `back`.
    pub fn to_flash(&self, action: BulkAction, back: &str, locale: Locale) -> Flash {
        let words = &Language::of(locale).server_pages().bulk;
        let texts = (bulk_action_row(action).confirmation.texts)(words);
        let done = self.done.len() as u64;
        let text = if done == 0 { words.nothing_done.to_owned() } else { texts.done.of(done) };
        let text = match self.unchanged {
            0 => text,
            unchanged => words.both.with(&[&text, &words.unchanged.of(unchanged)]),
        };
        let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for BulkRejection { name, reason } in &self.rejected {
            reasons.entry(reason).or_default().push(name);
        }
        let line = |(reason, names): (&str, Vec<&str>)| words.rejected.with(&[&names.join(words.between), &reason]);
        Flash::Several { text, rejected: reasons.into_iter().map(line).collect(), undo: self.undo(action, back) }
    }

    /// Returns the undo for the changed items, if the action has an opposite.
    fn undo(&self, action: BulkAction, back: &str) -> Option<Undo> {
        let opposite = bulk_action_row(action).confirmation.opposite?;
        let ids = self.done.iter().map(|id| ("id".to_owned(), id.clone()));
        let fields = ids.chain([("back".to_owned(), back.to_owned())]).collect();
        (!self.done.is_empty()).then(|| Undo::from_form(form_url(opposite), fields))
    }
}

#[cfg(test)]
#[path = "bulk_tests.rs"]
mod tests;

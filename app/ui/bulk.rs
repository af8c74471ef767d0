//! What is done to several workers or jobs at once: what will become of each, before it is asked, and what became of them,
//! after it was answered.

use std::collections::BTreeMap;

use super::flash::{Flash, Undo};
use super::format::short_id;
use super::locales::Language;
use super::locales::sentence::Count;
use super::locales::words::bulk::Bulk;
use super::prefs::Locale;
use crate::protocol::queue::JobView;
use crate::protocol::status::{BulkAction, JobStatus, Phase, WorkerStatus, WorkerType};
use crate::protocol::workers::WorkerView;

/// What a list has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listed {
    /// Workers.
    Workers,
    /// Jobs.
    Jobs,
}

impl Listed {
    /// What an action is done to.
    pub fn of(action: BulkAction) -> Self {
        match action {
            BulkAction::Drain | BulkAction::Resume | BulkAction::Delete => Self::Workers,
            BulkAction::Cancel | BulkAction::Retry => Self::Jobs,
        }
    }

    /// The list's address.
    pub fn path(self) -> &'static str {
        match self {
            Self::Workers => "/admin/workers",
            Self::Jobs => "/jobs",
        }
    }
}

/// The address of the form that does it.
pub(crate) fn form(action: BulkAction) -> String {
    let of = match Listed::of(action) {
        Listed::Workers => "workers",
        Listed::Jobs => "jobs",
    };
    format!("/ui/{of}/bulk/{}", action.as_str())
}

/// How a list of several jobs calls one.
pub fn job_name(job: &JobView) -> String {
    format!("{} ({})", job.config_name, short_id(job.job_id.as_str()))
}

/// What becomes of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fate {
    TakesNothing,
    Finishes(Vec<String>),
    Leaves,
    FinishesAndLeaves(Vec<String>),
    TakesNothingLater,
    DrainsAlready,
    TakesAgain,
    DrainsNot,
    Deleted,
    DeletedWith(u64),
    NotOffline,
    LeavesQueue,
    Stops,
    StopsAlready,
    Ended,
    OfSomebodyElse(String),
    SubmittedAgain,
    NotEnded,
}

impl Fate {
    /// What becomes of a worker; of jobs' actions nothing.
    pub fn of_worker(action: BulkAction, worker: &WorkerView) -> Self {
        let held = || worker.jobs.iter().map(|job| job.config_name.clone()).collect();
        let (free, offline) = (worker.jobs.is_empty(), worker.status == WorkerStatus::Offline);
        match action {
            BulkAction::Drain if worker.draining => Self::DrainsAlready,
            BulkAction::Drain if offline && free => Self::TakesNothingLater,
            BulkAction::Drain => match (worker.worker_type, free) {
                (Some(WorkerType::Ephemeral), true) => Self::Leaves,
                (Some(WorkerType::Ephemeral), false) => Self::FinishesAndLeaves(held()),
                (_, true) => Self::TakesNothing,
                (_, false) => Self::Finishes(held()),
            },
            BulkAction::Resume if worker.draining => Self::TakesAgain,
            BulkAction::Resume | BulkAction::Cancel | BulkAction::Retry => Self::DrainsNot,
            BulkAction::Delete if !offline => Self::NotOffline,
            BulkAction::Delete if free => Self::Deleted,
            BulkAction::Delete => Self::DeletedWith(worker.jobs.len() as u64),
        }
    }

    /// What becomes of a job that is, or is not, the reader's to cancel; of workers' actions nothing.
    pub fn of_job(action: BulkAction, job: &JobView, theirs: bool) -> Self {
        let status = job.status;
        match action {
            BulkAction::Retry if status.is_terminal() => Self::SubmittedAgain,
            BulkAction::Retry => Self::NotEnded,
            _ if status.is_terminal() => Self::Ended,
            BulkAction::Cancel if !theirs => Self::OfSomebodyElse(job.submitted_by.clone()),
            _ if status == JobStatus::Cancelling => Self::StopsAlready,
            _ if status.is_in(Phase::Waiting) => Self::LeavesQueue,
            _ => Self::Stops,
        }
    }

    /// Whether it changes anything.
    pub fn changes(&self) -> bool {
        match self {
            Self::TakesNothing
            | Self::Finishes(_)
            | Self::Leaves
            | Self::FinishesAndLeaves(_)
            | Self::TakesNothingLater
            | Self::TakesAgain
            | Self::Deleted
            | Self::DeletedWith(_)
            | Self::LeavesQueue
            | Self::Stops
            | Self::SubmittedAgain => true,
            Self::DrainsAlready
            | Self::DrainsNot
            | Self::NotOffline
            | Self::StopsAlready
            | Self::Ended
            | Self::OfSomebodyElse(_)
            | Self::NotEnded => false,
        }
    }

    /// In words.
    pub fn said(&self, words: &Bulk) -> String {
        let jobs = |jobs: &[String]| jobs.join(words.between);
        match self {
            Self::TakesNothing => words.takes_nothing.to_owned(),
            Self::Finishes(held) => words.finishes.of(jobs(held)),
            Self::Leaves => words.leaves.to_owned(),
            Self::FinishesAndLeaves(held) => words.finishes_and_leaves.of(jobs(held)),
            Self::TakesNothingLater => words.takes_nothing_later.to_owned(),
            Self::DrainsAlready => words.drains_already.to_owned(),
            Self::TakesAgain => words.takes_again.to_owned(),
            Self::DrainsNot => words.drains_not.to_owned(),
            Self::Deleted => words.deleted.to_owned(),
            Self::DeletedWith(held) => words.deleted_with.of(*held),
            Self::NotOffline => words.not_offline.to_owned(),
            Self::LeavesQueue => words.leaves_queue.to_owned(),
            Self::Stops => words.stops.to_owned(),
            Self::StopsAlready => words.stops_already.to_owned(),
            Self::Ended => words.ended.to_owned(),
            Self::OfSomebodyElse(owner) => words.of_somebody_else.of(owner),
            Self::SubmittedAgain => words.submitted_again.to_owned(),
            Self::NotEnded => words.not_ended.to_owned(),
        }
    }
}

/// What will be done to so many, for a heading and a button.
pub(crate) fn asked(words: &Bulk, action: BulkAction) -> Count {
    match action {
        BulkAction::Drain => words.drain,
        BulkAction::Resume => words.resume,
        BulkAction::Delete => words.delete,
        BulkAction::Cancel => words.cancel,
        BulkAction::Retry => words.retry,
    }
}

/// What became of several.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tally {
    /// The ids of those that it was done to.
    pub done: Vec<String>,
    /// How many were so already.
    pub unchanged: u64,
    /// Those that it was not done to.
    pub refused: Vec<Refused>,
}

/// One that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// How people call it.
    pub name: String,
    /// Why, in the reader's words.
    pub why: String,
}

impl Tally {
    /// What the list says, to which one comes `back`.
    pub fn flash(&self, action: BulkAction, back: &str, locale: Locale) -> Flash {
        let words = &Language::of(locale).plain().bulk;
        let count = match action {
            BulkAction::Drain => words.drained,
            BulkAction::Resume => words.resumed,
            BulkAction::Delete => words.gone,
            BulkAction::Cancel => words.cancelled,
            BulkAction::Retry => words.retried,
        };
        let done = self.done.len() as u64;
        let text = if done == 0 { words.nothing_done.to_owned() } else { count.of(done) };
        let text = match self.unchanged {
            0 => text,
            so_already => words.both.with(&[&text, &words.unchanged.of(so_already)]),
        };
        let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for Refused { name, why } in &self.refused {
            reasons.entry(why).or_default().push(name);
        }
        let line = |(why, names): (&str, Vec<&str>)| words.refused.with(&[&names.join(words.between), &why]);
        Flash::Several { text, refused: reasons.into_iter().map(line).collect(), undo: self.undo(action, back) }
    }

    /// How those are set back that were changed.
    fn undo(&self, action: BulkAction, back: &str) -> Option<Undo> {
        let opposite = match action {
            BulkAction::Drain => BulkAction::Resume,
            BulkAction::Resume => BulkAction::Drain,
            BulkAction::Delete | BulkAction::Cancel | BulkAction::Retry => return None,
        };
        let ids = self.done.iter().map(|id| ("id".to_owned(), id.clone()));
        let fields = ids.chain([("back".to_owned(), back.to_owned())]).collect();
        (!self.done.is_empty()).then(|| Undo::by_form(form(opposite), fields))
    }
}

#[cfg(test)]
#[path = "bulk_tests.rs"]
mod tests;

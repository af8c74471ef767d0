//! Which sentences there are, by page. What only the server renders stays out of the browser's half.

#[cfg(feature = "ssr")]
pub(crate) mod account;
pub(crate) mod bulk;
pub(crate) mod charts;
#[cfg(feature = "ssr")]
pub(crate) mod configs;
#[cfg(feature = "ssr")]
pub(crate) mod desk;
pub(crate) mod frame;
pub(crate) mod gpus;
pub(crate) mod habits;
#[cfg(feature = "ssr")]
pub(crate) mod job_pages;
pub(crate) mod jobs;
pub(crate) mod logs;
pub(crate) mod overview;
#[cfg(feature = "ssr")]
pub(crate) mod plain;
pub(crate) mod token;
#[cfg(feature = "ssr")]
pub(crate) mod train;
pub(crate) mod why;
pub(crate) mod work;
#[cfg(feature = "ssr")]
pub(crate) mod worker_pages;
pub(crate) mod workers;

use crate::ui::locales::sentence::words;

use bulk::Picking;
use charts::Charts;
use frame::{Common, FlashWords, Nav, ProblemWords, StatusWords, TimeWords};
use gpus::Gpus;
use habits::Habits;
use jobs::{Job, Jobs, Log};
use logs::Logs;
use overview::Overview;
use token::WorkerToken;
use why::Why;
use work::{Gallery, Lanes, Work};
use workers::{Worker, Workers};

words! {
    /// The sentences of the pages that live in the browser, in one language.
    pub(crate) Pages {
        common: Common,
        nav: Nav,
        time: TimeWords,
        status: StatusWords,
        overview: Overview,
        jobs: Jobs,
        job: Job,
        log: Log,
        logs: Logs,
        work: Work,
        why: Why,
        lanes: Lanes,
        gallery: Gallery,
        workers: Workers,
        worker: Worker,
        token: WorkerToken,
        gpus: Gpus,
        habits: Habits,
        charts: Charts,
        picking: Picking,
        flash: FlashWords,
        problem: ProblemWords,
    }
}

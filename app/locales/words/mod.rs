//! Which sentences there are, by page. What only the server renders stays out of the browser's half.

pub(crate) mod frame;
pub(crate) mod gpus;
pub(crate) mod jobs;
pub(crate) mod overview;
#[cfg(feature = "ssr")]
pub(crate) mod plain;
pub(crate) mod token;
#[cfg(feature = "ssr")]
pub(crate) mod train;
pub(crate) mod workers;

use crate::ui::locales::sentence::words;

use frame::{Common, FlashWords, Nav, ProblemWords, StatusWords, TimeWords};
use gpus::Gpus;
use jobs::{Job, Jobs, Log};
use overview::Overview;
use token::WorkerToken;
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
        workers: Workers,
        worker: Worker,
        token: WorkerToken,
        gpus: Gpus,
        flash: FlashWords,
        problem: ProblemWords,
    }
}

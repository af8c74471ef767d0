//! Spanish.

mod frame;
mod gpus;
mod jobs;
mod overview;
mod plain;
mod token;
mod train;
mod workers;

use super::sentence::{Count, Text};
use super::words::Pages;
use crate::ui::prefs::Locale;

pub(super) use plain::PLAIN;

pub(super) const PAGES: Pages = Pages {
    common: frame::COMMON,
    nav: frame::NAV,
    time: frame::TIME,
    status: frame::STATUS,
    overview: overview::OVERVIEW,
    jobs: jobs::JOBS,
    job: jobs::JOB,
    log: jobs::LOG,
    workers: workers::WORKERS,
    worker: workers::WORKER,
    token: token::TOKEN,
    gpus: gpus::GPUS,
    flash: frame::FLASH,
    problem: frame::PROBLEM,
};

const fn count(one: Text, other: Text) -> Count {
    Count::new(Locale::Es, one, other)
}

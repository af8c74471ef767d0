//! Chinese (simplified).

mod account;
mod bulk;
mod charts;
mod configs;
mod desk;
mod frame;
mod gpus;
mod habits;
mod job_pages;
mod jobs;
mod logs;
mod overview;
mod plain;
mod token;
mod train;
mod why;
mod work;
mod worker_pages;
mod workers;

language!(crate::ui::prefs::Locale::Zh);

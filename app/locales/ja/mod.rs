//! Japanese.

mod frame;
mod gpus;
mod jobs;
mod overview;
mod plain;
mod token;
mod train;
mod workers;

language!(crate::ui::prefs::Locale::Ja);

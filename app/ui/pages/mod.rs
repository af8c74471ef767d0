//! The pages, one per file. Each requests its data from the backend, and works without JavaScript.

#[cfg(feature = "ssr")]
pub(crate) mod account;
#[cfg(feature = "ssr")]
mod account_notices;
#[cfg(feature = "ssr")]
pub(crate) mod audit;
#[cfg(feature = "ssr")]
pub(crate) mod audit_verify;
#[cfg(feature = "ssr")]
pub(crate) mod bulk;
pub(crate) mod compare;
#[cfg(feature = "ssr")]
pub(crate) mod config;
#[cfg(feature = "ssr")]
pub(crate) mod config_delete;
#[cfg(feature = "ssr")]
mod config_files;
#[cfg(feature = "ssr")]
pub(crate) mod config_form;
#[cfg(feature = "ssr")]
mod config_query;
#[cfg(feature = "ssr")]
mod config_revisions;
#[cfg(feature = "ssr")]
pub(crate) mod configs;
#[cfg(feature = "ssr")]
pub(crate) mod confirm;
pub(crate) mod gpus;
pub(crate) mod job;
pub(crate) mod job_log;
pub(crate) mod jobs;
#[cfg(feature = "ssr")]
pub(crate) mod login;
pub(crate) mod not_found;
pub(crate) mod overview;
#[cfg(feature = "ssr")]
pub(crate) mod passkeys;
#[cfg(feature = "ssr")]
pub(crate) mod preferences;
#[cfg(feature = "ssr")]
pub(crate) mod search;
#[cfg(feature = "ssr")]
pub(crate) mod second_factor;
#[cfg(feature = "ssr")]
pub(crate) mod second_step;
#[cfg(feature = "ssr")]
pub(crate) mod secrets;
#[cfg(feature = "ssr")]
mod server_rendered_page;
#[cfg(feature = "ssr")]
pub(crate) mod shares;
#[cfg(feature = "ssr")]
pub(crate) mod system;
#[cfg(feature = "ssr")]
pub(crate) mod train;
#[cfg(feature = "ssr")]
mod train_changes;
#[cfg(feature = "ssr")]
mod train_form_fields;
#[cfg(feature = "ssr")]
pub(crate) mod usage;
#[cfg(feature = "ssr")]
pub(crate) mod user;
#[cfg(feature = "ssr")]
pub(crate) mod users;
pub(crate) mod worker;
#[cfg(feature = "ssr")]
pub(crate) mod worker_delete;
#[cfg(feature = "ssr")]
pub(crate) mod worker_edit;
#[cfg(feature = "ssr")]
pub(crate) mod worker_new;
pub(crate) mod workers;

//! The pages, one a file. Each asks the port for what it shows, and is complete without JavaScript.

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
#[cfg(feature = "ssr")]
pub(crate) mod config;
#[cfg(feature = "ssr")]
pub(crate) mod config_form;
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
#[cfg(feature = "ssr")]
pub(crate) mod login_code;
pub(crate) mod not_found;
pub(crate) mod overview;
#[cfg(feature = "ssr")]
pub(crate) mod passkeys;
#[cfg(feature = "ssr")]
pub(crate) mod people;
#[cfg(feature = "ssr")]
pub(crate) mod person;
#[cfg(feature = "ssr")]
mod plain_page;
#[cfg(feature = "ssr")]
pub(crate) mod preferences;
#[cfg(feature = "ssr")]
pub(crate) mod search;
#[cfg(feature = "ssr")]
pub(crate) mod second_factor;
#[cfg(feature = "ssr")]
pub(crate) mod secrets;
#[cfg(feature = "ssr")]
pub(crate) mod system;
#[cfg(feature = "ssr")]
pub(crate) mod train;
#[cfg(feature = "ssr")]
mod train_changes;
#[cfg(feature = "ssr")]
pub(crate) mod usage;
pub(crate) mod worker;
#[cfg(feature = "ssr")]
pub(crate) mod worker_delete;
#[cfg(feature = "ssr")]
pub(crate) mod worker_edit;
#[cfg(feature = "ssr")]
pub(crate) mod worker_new;
pub(crate) mod workers;

use leptos::prelude::*;
use leptos_router::params::ParamsMap;

use crate::ui::erase::Erase;
#[cfg(feature = "ssr")]
use crate::ui::port::SharedDesk;
use crate::ui::port::SharedPort;

/// What pages ask. It is there on every page; only the listing of routes goes without.
pub(crate) fn use_port() -> SharedPort {
    expect_context::<SharedPort>()
}

/// What plain pages ask.
#[cfg(feature = "ssr")]
fn use_desk() -> SharedDesk {
    expect_context::<SharedDesk>()
}

/// A text of the address, without surrounding blanks; none if it is empty.
fn asked(params: &ParamsMap, name: &str) -> Option<String> {
    params.get(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// A moment of the address: a form sends it without seconds and zone; a link of ours, or of a script, has them.
fn asked_moment(params: &ParamsMap, name: &str) -> Option<String> {
    asked(params, name).map(|moment| if moment.len() == 16 { format!("{moment}:00Z") } else { moment })
}

/// A moment as a form's field has it.
fn field_moment(moment: Option<&String>) -> Option<String> {
    moment.map(|moment| moment.chars().take(16).collect())
}

/// What stands where data will be; on the server nothing does, it waits.
#[component]
pub(crate) fn Skeleton() -> impl IntoView {
    view! { <div class="skeleton-panel" aria-hidden="true"></div> }.erased()
}

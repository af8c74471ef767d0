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

use leptos::prelude::*;

use crate::domain::time::Timestamp;
use crate::ui::clock::PageClock;
use crate::ui::erase::Erase;

/// The value of a date-time field, in the user's time zone.
fn input_timestamp(timestamp: Option<&String>, clock: PageClock) -> Option<String> {
    let input_text = |timestamp: &String| Timestamp::parse_rfc3339(timestamp).map(|at| clock.format_for_input(at));
    timestamp.map(|timestamp| input_text(timestamp).unwrap_or_else(|| timestamp.chars().take(16).collect()))
}

/// A hidden field with the time zone of the times in a form, by which the server interprets them. Like their labels and
/// values, it does not change after the form was rendered.
#[component]
fn TimeZoneInput(clock: PageClock) -> impl IntoView {
    let zone = untrack(|| clock.zone_name());
    let is_utc = zone == "UTC";
    view! { <input type="hidden" name="time_zone" value=zone disabled=is_utc/> }.into_erased()
}

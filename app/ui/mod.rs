//! The dashboard: rendered on the server, hydrated in the browser.
//!
//! Pages read through [`backend::Backend`] and do not know where they run. They are complete without JavaScript: lists,
//! details and forms are plain HTML. The browser adds live updates (`live`), relative times and small conveniences.

#![expect(clippy::needless_pass_by_value, reason = "a component owns its properties")]

mod app;
mod boot;
pub(crate) mod browser;
#[cfg(feature = "ssr")]
pub mod bulk;
mod bulk_action;
mod checkpoints;
mod clock;
mod components;
#[cfg(feature = "hydrate")]
mod config_editor;
mod configs;
mod empty_state;
#[cfg(feature = "hydrate")]
pub(crate) mod enhance;
mod erase;
pub mod flash;
#[cfg(feature = "ssr")]
pub(crate) mod form_errors;
mod format;
mod glyph;
#[cfg(feature = "hydrate")]
pub(crate) mod http_backend;
mod http_status;
mod i18n;
mod job_feed;
pub mod job_status;
mod live;
mod locales;
mod logs;
mod losses;
mod notifications;
pub(crate) mod permissions;
mod timeline;
#[cfg(feature = "ssr")]
pub mod worker_edit_form;

pub mod audit_actions;
mod axis;
pub mod backend;
#[cfg(feature = "ssr")]
pub mod error_page;
mod gpu_readings;
pub(crate) mod lazy_routes;
#[cfg(feature = "ssr")]
pub mod localized_explanation;
mod navigation;
#[cfg(feature = "ssr")]
pub mod page_problem;
pub mod page_query;
mod pages;
#[cfg(feature = "ssr")]
pub mod pending;
pub mod prefs;
#[cfg(feature = "ssr")]
pub mod problem_sentence;
mod safe_url;
mod samples;
mod schedule;
#[cfg(feature = "ssr")]
mod server_rendered;
#[cfg(feature = "ssr")]
mod shell;
mod shortcuts;
mod status_style;
pub mod submit_form;
#[cfg(any(feature = "hydrate", test))]
mod svg;
#[cfg(feature = "ssr")]
pub mod terminal;
pub mod time_zone;
mod typing;
mod view_scope;

/// The header by which the script of a server-rendered page requests it again to refresh fragments.
pub const FRAGMENTS_HEADER: &str = "x-simpletuner-fragments";

pub use app::App;
#[cfg(feature = "ssr")]
pub use server_rendered::ServerRenderedApp;
#[cfg(feature = "ssr")]
pub use shell::{error_shell, login_shell, server_rendered_shell, shell};

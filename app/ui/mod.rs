//! The dashboard: rendered on the server, brought to life in the browser.
//!
//! A page asks through [`port::Port`] and never knows where it runs. It is complete without JavaScript: lists, details
//! and forms are plain HTML, and the browser adds news ([`live`]), ticking ages and small conveniences.

#![expect(clippy::needless_pass_by_value, reason = "a component owns its properties")]

mod answer;
mod app;
#[cfg(feature = "hydrate")]
pub(crate) mod attend;
mod boot;
pub(crate) mod browser;
#[cfg(feature = "ssr")]
pub mod bulk;
mod checkpoints;
#[cfg(feature = "hydrate")]
pub(crate) mod client;
mod clock;
mod components;
#[cfg(feature = "ssr")]
mod configs;
#[cfg(feature = "ssr")]
pub mod edited;
mod empty_state;
mod erase;
pub mod flash;
mod format;
mod i18n;
mod lanes;
mod live;
#[path = "../locales/mod.rs"]
mod locales;
mod logs;
mod notes;

mod pages;
mod palette;
pub(crate) mod parts;
#[cfg(feature = "ssr")]
pub mod pending;
mod places;
#[cfg(feature = "ssr")]
mod plain;
pub mod port;
pub mod prefs;
mod readings;
mod safe_url;
mod samples;
#[cfg(feature = "ssr")]
mod shell;
mod shortcuts;
#[cfg(feature = "ssr")]
pub mod terminal;
mod ticks;
#[cfg(feature = "ssr")]
pub mod told;
pub mod trail;
#[cfg(feature = "ssr")]
pub mod trouble;

/// A program that asks for a plain page, to put parts of it in the place of older ones, says so by this header.
pub const PARTS_HEADER: &str = "x-simpletuner-parts";

pub use app::App;
#[cfg(feature = "ssr")]
pub use plain::Plain;
#[cfg(feature = "ssr")]
pub use shell::{login_shell, plain_shell, shell, trouble_shell};

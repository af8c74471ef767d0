//! The dashboard: rendered on the server, brought to life in the browser.
//!
//! A page asks through [`port::Port`] and never knows where it runs. It is complete without JavaScript: lists, details
//! and forms are plain HTML, and the browser adds news ([`live`]), ticking ages and small conveniences.

#![expect(clippy::needless_pass_by_value, reason = "a component owns its properties")]

mod answer;
mod app;
mod browser;
#[cfg(feature = "hydrate")]
pub(crate) mod client;
mod clock;
mod components;
mod erase;
pub mod flash;
mod format;
mod i18n;
mod live;
#[path = "../locales/mod.rs"]
mod locales;
mod logs;
mod pages;
#[cfg(feature = "ssr")]
mod plain;
pub mod port;
pub mod prefs;
mod readings;
mod safe_url;
#[cfg(feature = "ssr")]
mod shell;
#[cfg(feature = "ssr")]
pub mod terminal;
mod ticks;

pub use app::App;
#[cfg(feature = "ssr")]
pub use plain::Plain;
#[cfg(feature = "ssr")]
pub use shell::{plain_shell, shell};

//! Pages and forms without a browser.

mod empty_state;
mod form_errors;
pub mod pages;
mod time_zones;

//! Numbers, sizes and moments as the pages show them, for terminals.

use super::format::plain_moment;
use super::locales::Language;
use super::prefs::Locale;
use super::readings;
use crate::domain::time::{Millis, Timestamp};
use crate::protocol::gpu::{GpuView, Reading};

/// How long ago: `20 s ago`.
pub fn ago(at: Timestamp, now: Timestamp) -> String {
    plain(&english().ago(at, now))
}

/// A span in its two largest units: `4 min 12 s`.
pub fn span(span: Millis) -> String {
    plain(&english().span(span))
}

/// The moment in full: `2024-01-15 10:30:00 UTC`.
pub fn moment(at: Timestamp) -> String {
    plain_moment(at)
}

/// A size: `4.7 GB`.
pub fn bytes(size: u64) -> String {
    english().bytes(size)
}

/// A share of 100: `41%`.
pub fn percent(percent: f64) -> String {
    english().percent(percent)
}

/// A measured number in about four digits: `0.0823`.
pub fn number(value: f64) -> String {
    english().number(value)
}

/// A GPU's memory, in use and in all: `61.5 / 80 GB`.
pub fn memory(gpu: &GpuView) -> String {
    plain(&readings::memory(gpu))
}

/// How warm a GPU is: `71 °C`.
pub fn temperature(reading: &Reading) -> String {
    plain(&readings::temperature(reading))
}

/// What a GPU draws and may draw: `390 / 400 W`.
pub fn power(reading: &Reading) -> String {
    plain(&readings::power(reading))
}

/// A GPU's clocks: `1410 / 1593 MHz`.
pub fn clocks(reading: &Reading) -> String {
    plain(&readings::clocks(reading))
}

/// Terminals are English.
fn english() -> &'static Language {
    Language::of(Locale::En)
}

/// With spaces that a search finds.
fn plain(text: &str) -> String {
    text.replace('\u{a0}', " ")
}

//! Numbers, sizes and moments as the pages show them, for terminals.

use super::format::format_utc;
use super::gpu_readings;
use super::locales::Language;
use super::prefs::Locale;
use crate::domain::time::{Millis, Timestamp};
use crate::protocol::gpus::gpu::{GpuReadingView, GpuView};

/// How long ago: `20 s ago`.
pub fn ago(at: Timestamp, now: Timestamp) -> String {
    normalize_spaces(&english().format_ago(at, now))
}

/// A span in its two largest units: `4 min 12 s`.
pub fn duration(span: Millis) -> String {
    normalize_spaces(&english().format_duration(span))
}

/// The moment in full: `2024-01-15 10:30:00 UTC`.
pub fn timestamp(at: Timestamp) -> String {
    format_utc(at)
}

/// A size: `4.7 GB`.
pub fn bytes(size: u64) -> String {
    english().format_bytes(size)
}

/// A share of 100: `41%`.
pub fn percent(percent: f64) -> String {
    english().format_percent(percent)
}

/// A measured number in about four digits: `0.0823`.
pub fn number(value: f64) -> String {
    english().format_number(value)
}

/// A GPU's memory, in use and in all: `61.5 / 80 GB`.
pub fn memory(gpu: &GpuView) -> String {
    normalize_spaces(&gpu_readings::memory(gpu))
}

/// How warm a GPU is: `71 °C`.
pub fn temperature(reading: &GpuReadingView) -> String {
    normalize_spaces(&gpu_readings::temperature(reading))
}

/// What a GPU draws and may draw: `390 / 400 W`.
pub fn power(reading: &GpuReadingView) -> String {
    normalize_spaces(&gpu_readings::power(reading))
}

/// A GPU's clocks: `1410 / 1593 MHz`.
pub fn clocks(reading: &GpuReadingView) -> String {
    normalize_spaces(&gpu_readings::clocks(reading))
}

/// Terminals are English.
fn english() -> &'static Language {
    Language::of(Locale::En)
}

/// With spaces that a search finds.
fn normalize_spaces(text: &str) -> String {
    text.replace('\u{a0}', " ")
}

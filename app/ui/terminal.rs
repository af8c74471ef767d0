//! Numbers, sizes and times for terminals, formatted as on the pages.

use super::format::format_utc;
use super::gpu_readings;
use super::locales::Language;
use super::prefs::Locale;
use crate::domain::time::{Millis, Timestamp};
use crate::protocol::gpu::{GpuReadingView, GpuView};

/// Formats the age of a time: `20 s ago`.
pub fn ago(at: Timestamp, now: Timestamp) -> String {
    normalize_spaces(&english().format_ago(at, now))
}

/// Formats a duration in its two largest units: `4 min 12 s`.
pub fn duration(span: Millis) -> String {
    normalize_spaces(&english().format_duration(span))
}

/// Formats a time with its date: `2024-01-15 10:30:00 UTC`.
pub fn timestamp(at: Timestamp) -> String {
    format_utc(at)
}

/// Formats a size: `4.4 GiB`.
pub fn bytes(size: u64) -> String {
    english().format_bytes(size)
}

/// Formats a percentage: `41%`.
pub fn percent(percent: f64) -> String {
    english().format_percent(percent)
}

/// Formats a measured number with about four digits: `0.0823`.
pub fn number(value: f64) -> String {
    english().format_number(value)
}

/// Returns the used and total memory of a GPU: `61.5 / 80 GB`.
pub fn memory(gpu: &GpuView) -> String {
    normalize_spaces(&gpu_readings::memory(gpu))
}

/// Returns the temperature of a GPU: `71 °C`.
pub fn temperature(reading: &GpuReadingView) -> String {
    normalize_spaces(&gpu_readings::temperature(reading))
}

/// Returns the power draw of a GPU and its limit: `390 / 400 W`.
pub fn power(reading: &GpuReadingView) -> String {
    normalize_spaces(&gpu_readings::power(reading))
}

/// Returns the core and memory clocks of a GPU: `1410 / 1593 MHz`.
pub fn clocks(reading: &GpuReadingView) -> String {
    normalize_spaces(&gpu_readings::clocks(reading))
}

/// Terminal output is always English.
fn english() -> &'static Language {
    Language::of(Locale::En)
}

/// Replaces no-break spaces, so that the text can be searched.
fn normalize_spaces(text: &str) -> String {
    text.replace('\u{a0}', " ")
}

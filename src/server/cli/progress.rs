//! The progress of a transfer, on a terminal.

use std::io;

use indicatif::{ProgressBar, ProgressStyle};

use super::output::Output;

/// Transfers of this size or more show their progress, in bytes.
const THRESHOLD_BYTES: u64 = 256 << 10;

/// Returns the bar of a transfer of which `done` bytes are there already; a hidden one if it is small, or without a
/// terminal.
pub fn transfer_bar(output: &Output<'_>, name: &str, total: u64, done: u64) -> io::Result<ProgressBar> {
    if !output.shows_progress || total < THRESHOLD_BYTES {
        return Ok(ProgressBar::hidden());
    }
    let style = ProgressStyle::with_template("{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec}");
    let bar = ProgressBar::new(total).with_position(done);
    bar.set_style(style.map_err(io::Error::other)?);
    bar.set_message(name.to_owned());
    bar.reset_eta();
    Ok(bar)
}

//! A worker's GPUs in a terminal.

use app::domain::time::Timestamp;
use app::protocol::gpu::{GpuView, UnavailableReason};
use app::ui::terminal;

use super::table::{CellStyle, Table, TableCell};

/// Returns a table with a row for each GPU.
pub fn table(gpus: &[GpuView], now: Timestamp) -> Table {
    let mut table = Table::new(&["GPU", "MODEL", "STATE", "MEMORY", "USE", "TEMP", "POWER", "CLOCKS", "READ", "UUID!"]);
    for shown in gpus {
        let reading = shown.reading.clone().unwrap_or_default();
        let read = shown.reading.as_ref().map_or_else(|| "never".to_owned(), |reading| terminal::ago(reading.at, now));
        table.add_row(vec![
            TableCell::from(shown.gpu.index.to_string()),
            TableCell::from(&shown.gpu.name),
            state_cell(shown),
            terminal::memory(shown).into(),
            reading.utilization_percent.map_or_else(|| "–".to_owned(), terminal::percent).into(),
            terminal::temperature(&reading).into(),
            terminal::power(&reading).into(),
            terminal::clocks(&reading).into(),
            TableCell::new(read, CellStyle::Dim),
            TableCell::from(&shown.gpu.uuid),
        ]);
    }
    table
}

/// Returns the job that uses the GPU, or why it is unavailable.
fn state_cell(shown: &GpuView) -> TableCell {
    let unavailable = shown.gpu.unavailable.as_ref().map(|unavailable| {
        let (reason, paint) = match unavailable.reason {
            UnavailableReason::Quarantined => ("quarantined", CellStyle::Error),
            UnavailableReason::InUse => ("in use", CellStyle::Warning),
        };
        let detail = if unavailable.detail.is_empty() { String::new() } else { format!(": {}", unavailable.detail) };
        (format!("{reason}{detail}"), paint)
    });
    match (unavailable, &shown.job_id) {
        (Some((why, paint)), None) => TableCell::new(why, paint),
        (Some((why, paint)), Some(job)) => TableCell::new(format!("{job}, {why}"), paint),
        (None, Some(job)) => TableCell::new(job.as_str(), CellStyle::Active),
        (None, None) => TableCell::new("free", CellStyle::Success),
    }
}

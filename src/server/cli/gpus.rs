//! A worker's GPUs in a terminal.

use app::domain::time::Timestamp;
use app::protocol::gpu::{GpuView, UnavailableReason};
use app::ui::terminal;

use super::table::{CellStyle, Table, TableCell};

/// Returns a table with a row for each GPU.
pub fn table(gpus: &[GpuView], now: Timestamp) -> Table {
    let mut table = Table::new(&["GPU", "MODEL", "STATE", "MEMORY", "USE", "TEMP", "POWER", "CLOCKS", "READ", "UUID!"]);
    for view in gpus {
        let reading = view.reading.clone().unwrap_or_default();
        let age = view.reading.as_ref().map_or_else(|| "never".to_owned(), |reading| terminal::ago(reading.at, now));
        table.add_row(vec![
            TableCell::from(view.gpu.index.to_string()),
            TableCell::from(&view.gpu.name),
            state_cell(view),
            terminal::memory(view).into(),
            reading.utilization_percent.map_or_else(|| "–".to_owned(), terminal::percent).into(),
            terminal::temperature(&reading).into(),
            terminal::power(&reading).into(),
            terminal::clocks(&reading).into(),
            TableCell::new(age, CellStyle::Dim),
            TableCell::from(&view.gpu.uuid),
        ]);
    }
    table
}

/// Returns the job that uses the GPU, or why it is unavailable.
fn state_cell(view: &GpuView) -> TableCell {
    let unavailable = view.gpu.unavailable.as_ref().map(|unavailable| {
        let (reason, style) = match unavailable.reason {
            UnavailableReason::Quarantined => ("quarantined", CellStyle::Error),
            UnavailableReason::InUse => ("in use", CellStyle::Warning),
        };
        let detail = if unavailable.detail.is_empty() { String::new() } else { format!(": {}", unavailable.detail) };
        (format!("{reason}{detail}"), style)
    });
    match (unavailable, &view.job_id) {
        (Some((text, style)), None) => TableCell::new(text, style),
        (Some((text, style)), Some(job)) => TableCell::new(format!("{job}, {text}"), style),
        (None, Some(job)) => TableCell::new(job.as_str(), CellStyle::Active),
        (None, None) => TableCell::new("free", CellStyle::Success),
    }
}

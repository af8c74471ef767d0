//! A worker's GPUs, as a terminal shows them.

use app::domain::time::Timestamp;
use app::protocol::gpu::{GpuView, WithheldReason};
use app::ui::terminal;

use super::table::{Cell, Paint, Table};

/// A row for each.
pub fn table(gpus: &[GpuView], now: Timestamp) -> Table {
    let mut table = Table::new(&["GPU", "MODEL", "STATE", "MEMORY", "USE", "TEMP", "POWER", "CLOCKS", "READ", "UUID!"]);
    for shown in gpus {
        let reading = shown.reading.clone().unwrap_or_default();
        let read = shown.reading.as_ref().map_or_else(|| "never".to_owned(), |reading| terminal::ago(reading.at, now));
        table.row(vec![
            Cell::from(shown.gpu.index.to_string()),
            Cell::from(&shown.gpu.name),
            state(shown),
            terminal::memory(shown).into(),
            reading.utilization_percent.map_or_else(|| "–".to_owned(), terminal::percent).into(),
            terminal::temperature(&reading).into(),
            terminal::power(&reading).into(),
            terminal::clocks(&reading).into(),
            Cell::new(read, Paint::Dim),
            Cell::from(&shown.gpu.uuid),
        ]);
    }
    table
}

/// Who has it, or why nobody may.
fn state(shown: &GpuView) -> Cell {
    let withheld = shown.gpu.withheld.as_ref().map(|withheld| {
        let (word, paint) = match withheld.reason {
            WithheldReason::Quarantined => ("quarantined", Paint::Bad),
            WithheldReason::InUse => ("in use by others", Paint::Odd),
        };
        let detail = if withheld.detail.is_empty() { String::new() } else { format!(": {}", withheld.detail) };
        (format!("{word}{detail}"), paint)
    });
    match (withheld, &shown.job_id) {
        (Some((why, paint)), None) => Cell::new(why, paint),
        (Some((why, paint)), Some(job)) => Cell::new(format!("{job}, {why}"), paint),
        (None, Some(job)) => Cell::new(job.as_str(), Paint::Busy),
        (None, None) => Cell::new("free", Paint::Good),
    }
}

//! Jobs in a terminal.

use app::domain::time::Timestamp;
use app::protocol::jobs::JobView;
use app::protocol::jobs::explain::{ExplanationView, UnlistedWorkersView};
use app::ui::terminal;
use serde_json::Value;

use super::fields::{LIST_COLUMNS, ListColumn, facts, text_cell};
use super::strip_control;
use crate::cli::output::Output;
use crate::cli::table::{CellStyle, Table, TableCell};

/// Returns a table of jobs. `values` are the columns of metrics and of values of the configuration.
pub fn jobs_table(jobs: &[JobView], values: &[String], now: Timestamp) -> Table {
    let columns: Vec<&ListColumn> = LIST_COLUMNS.iter().filter(|column| column.is_shown(jobs, now)).collect();
    let headings = columns.iter().map(|column| column.heading.to_owned());
    let headings: Vec<String> = headings.chain(values.iter().map(|name| format!("{name}~"))).collect();
    let mut table = Table::new(&headings);
    for job in jobs {
        let cells = columns.iter().map(|column| (column.cell)(job, now));
        table.add_row(cells.chain(values.iter().map(|name| value_cell(job.values.get(name)))).collect());
    }
    table
}

fn value_cell(value: Option<&Value>) -> TableCell {
    match value {
        None => "–".into(),
        Some(Value::String(text)) => text.into(),
        Some(other) => other.to_string().into(),
    }
}

/// Formats one job.
pub fn format_job(job: &JobView, now: Timestamp, output: &Output<'_>) -> String {
    let facts = output.format_facts(&facts(job, now));
    let attempts = job.attempts.as_deref().unwrap_or_default();
    if attempts.is_empty() {
        return facts;
    }
    let mut table =
        Table::new(&["ATTEMPT!", "WORKER", "FROM STEP?", "OUTCOME!", "EXIT!", "LOG?", "DURATION", "ERROR_"]);
    for attempt in attempts {
        let end = attempt.ended_at.unwrap_or(now);
        table.add_row(vec![
            attempt.attempt.to_string().into(),
            attempt.worker_name.clone().unwrap_or_else(|| attempt.worker_id.to_string()).into(),
            attempt.resumed_from_step.map(|step| step.to_string()).unwrap_or_default().into(),
            attempt.outcome.clone().unwrap_or_default().into(),
            attempt.exit_code.map(|code| code.to_string()).unwrap_or_default().into(),
            terminal::bytes(attempt.log_bytes).into(),
            attempt.started_at.map(|start| terminal::duration(end - start)).unwrap_or_default().into(),
            attempt.error.clone().unwrap_or_default().into(),
        ]);
    }
    format!("{facts}\n{}", output.format_table(&table))
}

/// Formats why a job is pending, or would be.
pub fn format_explanation(explanation: &ExplanationView, output: &Output<'_>) -> String {
    let mut table = Table::new(&["WORKER", "MATCH!", "BLOCKER~", "SUGGESTION~"]);
    for worker in &explanation.workers {
        let match_cell = if worker.fits {
            TableCell::new("yes", CellStyle::Success)
        } else {
            TableCell::new("no", CellStyle::Warning)
        };
        let first_blocker = worker.blockers.first();
        table.add_row(vec![
            TableCell::from(&worker.name),
            match_cell,
            text_cell(first_blocker.map(|first_blocker| &first_blocker.text)),
            text_cell(first_blocker.map(|first_blocker| &first_blocker.change)),
        ]);
        for blocker in worker.blockers.iter().skip(1) {
            table.add_row(vec!["".into(), "".into(), TableCell::from(&blocker.text), TableCell::from(&blocker.change)]);
        }
    }
    let table =
        if explanation.workers.is_empty() { String::new() } else { format!("\n{}", output.format_table(&table)) };
    let unlisted = format_unlisted(explanation);
    let summary = explanation.summary.as_ref().map(|summary| format!("{}\n", strip_control(&summary.text)));
    format!("{}\n{}{table}{unlisted}", strip_control(&explanation.text), summary.unwrap_or_default())
}

/// Formats the number of workers that are not listed, by their most relevant blocker.
fn format_unlisted(explanation: &ExplanationView) -> String {
    if explanation.unlisted.is_empty() {
        return String::new();
    }
    let number = |unlisted: &UnlistedWorkersView| match unlisted.code {
        Some(code) => format!("{} {}", unlisted.workers, code.as_str()),
        None => format!("{} match", unlisted.workers),
    };
    let numbers: Vec<String> = explanation.unlisted.iter().map(number).collect();
    format!("Other workers: {} ({})\n", explanation.unlisted_count(), numbers.join(", "))
}

//! `simpletuner jobs compare`: what differs between jobs, and their final metrics.

use std::ops::Range;

use app::domain::job_comparison::best_values;
use app::protocol::jobs::compare::{CompareJobsQuery, ComparedConfigKey, FinalValue, JobComparison};
use app::ui::terminal;
use clap::Args;
use serde_json::Value;

use super::strip_control;
use crate::cli::client::Client;
use crate::cli::output::Output;
use crate::cli::run::parse_value;
use crate::cli::table::{CellStyle, Table, TableCell};
use crate::exit::ExitError;

/// The width of the names of settings and metrics.
const NAME_WIDTH: usize = 24;
/// The width of a job's column with its gap.
const JOB_WIDTH: usize = 14;

/// `simpletuner jobs compare`
#[derive(Debug, Clone, Args)]
pub struct CompareArgs {
    /// Job IDs, 2 to 20.
    #[arg(value_name = "JOB", required = true, num_args = 2..)]
    jobs: Vec<String>,
}

/// A setting or metric, with a cell for each job.
type Row = (String, Vec<TableCell>);

pub async fn run(args: CompareArgs, client: &Client, output: &mut Output<'_>) -> Result<(), ExitError> {
    let query = CompareJobsQuery { ids: args.jobs.join(",") };
    let document = client.list_all(&["queue", "compare"], &query, "jobs", None).await?;
    let comparison: JobComparison = parse_value(&document)?;
    if !comparison.missing.is_empty() {
        let missing = strip_control(&comparison.missing.join(", "));
        output.print_warning(format!("Not compared, because they do not exist or you may not see them: {missing}"))?;
    }
    let ids = comparison.jobs.iter().map(|job| job.job.job_id.to_string());
    output.print_document(&document, ids, |screen| format_comparison(&comparison, screen))
}

fn format_comparison(comparison: &JobComparison, output: &Output<'_>) -> String {
    if comparison.jobs.is_empty() {
        return String::new();
    }
    let mut jobs = Table::new(&["NO!", "JOB!", "STATUS!", "NAME"]);
    for (number, job) in (1..).zip(&comparison.jobs) {
        let (number, job): (u32, _) = (number, &job.job);
        jobs.add_row(vec![
            number.to_string().into(),
            job.job_id.as_str().into(),
            job.status.as_str().into(),
            job.title().into(),
        ]);
    }
    let mut parts = vec![output.format_table(&jobs)];
    let ranges = column_ranges(comparison.jobs.len(), output.width);
    let tables = |heading: &str, rows: &[Row]| {
        let table = |range: &Range<usize>| output.format_table(&rows_table(heading, rows, range.clone()));
        ranges.iter().map(table).collect::<Vec<_>>()
    };
    if let Some(keys) = &comparison.config {
        let differing: Vec<Row> = keys.iter().filter(|key| key.differs).map(config_row).collect();
        let same = keys.len() - differing.len();
        if differing.is_empty() {
            parts.push(format!("No differences: {same} settings are the same.\n"));
        } else {
            parts.extend(tables("SETTING", &differing));
            parts.push(format!("{same} more settings are the same.\n"));
        }
    }
    let metrics: Vec<Row> = comparison.metric_names().iter().map(|name| metric_row(comparison, name)).collect();
    if !metrics.is_empty() {
        parts.extend(tables("METRIC", &metrics));
    }
    parts.join("\n")
}

/// Divides the columns of jobs into those that fit beside each other.
fn column_ranges(jobs: usize, width: Option<usize>) -> Vec<Range<usize>> {
    let fitting = width.map_or(jobs, |width| width.saturating_sub(NAME_WIDTH) / JOB_WIDTH).max(1);
    (0..jobs).step_by(fitting).map(|first| first..(first + fitting).min(jobs)).collect()
}

/// A table whose headings are the numbers of the jobs in the table above.
fn rows_table(heading: &str, rows: &[Row], range: Range<usize>) -> Table {
    let numbers = range.clone().map(|index| (index + 1).to_string());
    let mut table = Table::new(&std::iter::once(heading.to_owned()).chain(numbers).collect::<Vec<_>>());
    for (name, cells) in rows {
        table.add_row(std::iter::once(name.into()).chain(cells[range.clone()].iter().cloned()).collect());
    }
    table
}

fn config_row(key: &ComparedConfigKey) -> Row {
    let cell = |value: &Option<Value>| match value {
        None => TableCell::new("not set", CellStyle::Dim),
        Some(Value::String(text)) => text.into(),
        Some(value) => value.to_string().into(),
    };
    (key.key.clone(), key.values.iter().map(cell).collect())
}

fn metric_row(comparison: &JobComparison, name: &str) -> Row {
    let values: Vec<FinalValue> = comparison.jobs.iter().map(|job| job.final_value(name)).collect();
    let best = best_values(name, &values.iter().map(|value| value.number()).collect::<Vec<_>>());
    let cell = |(value, is_best): (FinalValue, bool)| match value {
        FinalValue::NotReported => TableCell::default(),
        FinalValue::NotANumber => TableCell::new("NaN", CellStyle::Error),
        FinalValue::Number(number) if is_best => {
            TableCell::new(format!("{} best", terminal::number(number)), CellStyle::Success)
        }
        FinalValue::Number(number) => terminal::number(number).into(),
    };
    (name.to_owned(), values.into_iter().zip(best).map(cell).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_jobs_as_fit_are_beside_each_other() {
        let lengths = |jobs, width| column_ranges(jobs, width).iter().map(ExactSizeIterator::len).collect::<Vec<_>>();
        assert_eq!(lengths(20, None), [20]);
        assert_eq!(lengths(6, Some(80)), [4, 2]);
        assert_eq!(lengths(3, Some(10)), [1, 1, 1]);
    }
}

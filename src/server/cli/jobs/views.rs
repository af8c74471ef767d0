//! Jobs in a terminal.

use app::domain::time::{Millis, Timestamp};
use app::protocol::jobs::JobView;
use app::protocol::jobs::explain::ExplanationView;
use app::protocol::status::JobStatus;
use app::ui::job_status::{StatusTone, status_tone};
use app::ui::terminal;

use super::escape_control;
use super::fields::submitted_facts;
use crate::cli::output::Output;
use crate::cli::table::{CellStyle, Table, TableCell};

/// Returns a table of jobs; failed ones with the reason.
pub fn jobs_table(jobs: &[JobView], now: Timestamp) -> Table {
    let headings = ["JOB!", "STATUS!", "PROGRESS", "CONFIG", "USER?", "WORKER?", "PRIORITY?", "SUBMITTED!", "REASON_"];
    let says_why = jobs.iter().any(|job| job.error.is_some());
    let mut table = Table::new(if says_why { &headings } else { &headings[..headings.len() - 1] });
    for job in jobs {
        let why = says_why.then(|| text_cell(job.error.as_ref()));
        let mut cells = vec![
            TableCell::from(job.job_id.as_str()),
            status_cell(job.status),
            format_progress(job).into(),
            TableCell::from(&job.config_name),
            TableCell::from(&job.submitted_by),
            job.worker_name.clone().unwrap_or_default().into(),
            job.priority.to_string().into(),
            TableCell::new(terminal::ago(job.submitted_at, now), CellStyle::Dim),
        ];
        cells.extend(why);
        table.add_row(cells);
    }
    table
}

/// Formats one job.
pub fn format_job(job: &JobView, now: Timestamp, output: &Output<'_>) -> String {
    let moment = |at: Option<Timestamp>| at.map_or_else(|| "–".to_owned(), terminal::timestamp);
    let took = job.started_at.map(|start| terminal::duration(job.ended_at.unwrap_or(now) - start));
    let in_log = job.error_line.map(|line| format!("line {line} of the log of attempt {}", job.attempt));
    let mut pairs = vec![
        ("job", TableCell::from(job.job_id.as_str())),
        ("status", status_cell(job.status)),
        ("reason", job.error.clone().unwrap_or_else(|| "–".to_owned()).into()),
    ];
    pairs.extend(in_log.map(|line| ("said in", line.into())));
    pairs.extend([
        ("progress", format_progress(job).into()),
        ("config", format!("{} (revision {})", job.config_name, job.config_revision).into()),
    ]);
    pairs.extend(submitted_facts(job));
    pairs.extend([
        ("user", TableCell::from(&job.submitted_by)),
        ("worker", job.worker_name.clone().unwrap_or_else(|| "–".to_owned()).into()),
        ("attempt", format!("{} of {}", job.attempt, job.max_attempts).into()),
        ("priority", job.priority.to_string().into()),
        ("submitted", terminal::timestamp(job.submitted_at).into()),
        ("started", moment(job.started_at).into()),
        ("ended", moment(job.ended_at).into()),
        ("duration", took.unwrap_or_else(|| "–".to_owned()).into()),
    ]);
    let facts = output.format_facts(&pairs);
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
        let fits = if worker.fits {
            TableCell::new("yes", CellStyle::Success)
        } else {
            TableCell::new("no", CellStyle::Warning)
        };
        let first = worker.blockers.first();
        table.add_row(vec![
            TableCell::from(&worker.name),
            fits,
            text_cell(first.map(|first| &first.text)),
            text_cell(first.map(|first| &first.change)),
        ]);
        for more in worker.blockers.iter().skip(1) {
            table.add_row(vec!["".into(), "".into(), TableCell::from(&more.text), TableCell::from(&more.change)]);
        }
    }
    let table =
        if explanation.workers.is_empty() { String::new() } else { format!("\n{}", output.format_table(&table)) };
    let summary = explanation.summary.as_ref().map(|summary| format!("{}\n", escape_control(&summary.text)));
    format!("{}\n{}{table}", escape_control(&explanation.text), summary.unwrap_or_default())
}

fn text_cell(text: Option<&String>) -> TableCell {
    text.map(TableCell::from).unwrap_or_default()
}

fn status_cell(status: JobStatus) -> TableCell {
    let paint = match status_tone(status) {
        StatusTone::Waiting => CellStyle::Plain,
        StatusTone::Active => CellStyle::Active,
        StatusTone::Warning => CellStyle::Warning,
        StatusTone::Good => CellStyle::Success,
        StatusTone::Bad => CellStyle::Error,
        StatusTone::Off => CellStyle::Dim,
    };
    TableCell::new(status.as_str(), paint)
}

fn format_progress(job: &JobView) -> String {
    let Some(progress) = &job.progress else {
        return match job.queue_position {
            Some(_) if job.fits_none => "no match".to_owned(),
            place => place.map(|place| format!("place {place}")).unwrap_or_default(),
        };
    };
    let share = progress.percent.map_or_else(|| format!("step {}", progress.step), terminal::percent);
    let loss = progress.loss.map(|loss| format!(" loss {}", terminal::number(loss))).unwrap_or_default();
    let left = progress.eta_seconds.filter(|_| !job.status.is_terminal()).map(to_millis);
    let left = left.map(|left| format!(" {} left", terminal::duration(left))).unwrap_or_default();
    format!("{share}{loss}{left}")
}

#[expect(clippy::cast_possible_truncation, reason = "an estimate, and `as` keeps to the range")]
fn to_millis(seconds: f64) -> Millis {
    Millis((seconds * 1_000.0) as i64)
}

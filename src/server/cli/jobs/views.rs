//! Jobs as a terminal shows them.

use app::domain::time::{Millis, Timestamp};
use app::protocol::explain::ExplanationView;
use app::protocol::overrides;
use app::protocol::queue::JobView;
use app::protocol::status::JobStatus;
use app::ui::terminal;

use super::printable;
use crate::cli::screen::Screen;
use crate::cli::table::{Cell, Paint, Table};

/// Many of them, and why those failed that have.
pub fn table(jobs: &[JobView], now: Timestamp) -> Table {
    let headings = ["JOB!", "STATUS!", "PROGRESS", "CONFIG", "BY?", "WORKER?", "PRIORITY?", "SUBMITTED!", "WHY_"];
    let says_why = jobs.iter().any(|job| job.error.is_some());
    let mut table = Table::new(if says_why { &headings } else { &headings[..headings.len() - 1] });
    for job in jobs {
        let why = says_why.then(|| text(job.error.as_ref()));
        let mut cells = vec![
            Cell::from(job.job_id.as_str()),
            status(job.status),
            progress(job).into(),
            Cell::from(&job.config_name),
            Cell::from(&job.submitted_by),
            job.worker_name.clone().unwrap_or_default().into(),
            job.priority.to_string().into(),
            Cell::new(terminal::ago(job.submitted_at, now), Paint::Dim),
        ];
        cells.extend(why);
        table.row(cells);
    }
    table
}

/// One of them.
pub fn whole(job: &JobView, now: Timestamp, screen: &Screen<'_>) -> String {
    let moment = |at: Option<Timestamp>| at.map_or_else(|| "–".to_owned(), terminal::moment);
    let took = job.started_at.map(|start| terminal::span(job.ended_at.unwrap_or(now) - start));
    let in_log = job.error_line.map(|line| format!("line {line} of the log of attempt {}", job.attempt));
    let asks: Vec<String> = job.worker_labels.0.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let mut pairs = vec![
        ("job", Cell::from(job.job_id.as_str())),
        ("status", status(job.status)),
        ("why", job.error.clone().unwrap_or_else(|| "–".to_owned()).into()),
    ];
    pairs.extend(in_log.map(|line| ("said in", line.into())));
    pairs.extend([
        ("progress", progress(job).into()),
        ("config", format!("{} (revision {})", job.config_name, job.config_revision).into()),
    ]);
    let overrides = overrides::lines(&overrides::values(&job.overrides)).join(" ");
    pairs.extend((!overrides.is_empty()).then(|| ("overrides", overrides.into())));
    pairs.extend(job.resume_from.as_deref().map(|from| ("resume", from.into())));
    pairs.extend([
        ("target", job.target.as_str().into()),
        ("labels", asks.join(" ").into()),
        ("exclusive", if job.exclusive { "yes" } else { "no" }.into()),
        ("sandbox", job.sandbox.as_str().into()),
        ("by", Cell::from(&job.submitted_by)),
        ("worker", job.worker_name.clone().unwrap_or_else(|| "–".to_owned()).into()),
        ("attempt", format!("{} of {}", job.attempt, job.max_attempts).into()),
        ("priority", job.priority.to_string().into()),
        ("submitted", terminal::moment(job.submitted_at).into()),
        ("started", moment(job.started_at).into()),
        ("ended", moment(job.ended_at).into()),
        ("took", took.unwrap_or_else(|| "–".to_owned()).into()),
    ]);
    let facts = screen.facts(&pairs);
    let attempts = job.attempts.as_deref().unwrap_or_default();
    if attempts.is_empty() {
        return facts;
    }
    let mut table = Table::new(&["ATTEMPT!", "WORKER", "FROM STEP?", "OUTCOME!", "EXIT!", "LOG?", "TOOK", "ERROR_"]);
    for attempt in attempts {
        let end = attempt.ended_at.unwrap_or(now);
        table.row(vec![
            attempt.attempt.to_string().into(),
            attempt.worker_name.clone().unwrap_or_else(|| attempt.worker_id.to_string()).into(),
            attempt.resumed_from_step.map(|step| step.to_string()).unwrap_or_default().into(),
            attempt.outcome.clone().unwrap_or_default().into(),
            attempt.exit_code.map(|code| code.to_string()).unwrap_or_default().into(),
            terminal::bytes(attempt.log_bytes).into(),
            attempt.started_at.map(|start| terminal::span(end - start)).unwrap_or_default().into(),
            attempt.error.clone().unwrap_or_default().into(),
        ]);
    }
    format!("{facts}\n{}", screen.table(&table))
}

/// Why a job waits, or would.
pub fn explanation(explanation: &ExplanationView, screen: &Screen<'_>) -> String {
    let mut table = Table::new(&["WORKER", "FITS!", "IN THE WAY~", "WHAT WOULD HELP~"]);
    for worker in &explanation.workers {
        let fits = if worker.fits { Cell::new("yes", Paint::Good) } else { Cell::new("no", Paint::Odd) };
        let first = worker.blockers.first();
        table.row(vec![
            Cell::from(&worker.name),
            fits,
            text(first.map(|first| &first.text)),
            text(first.map(|first| &first.change)),
        ]);
        for more in worker.blockers.iter().skip(1) {
            table.row(vec!["".into(), "".into(), Cell::from(&more.text), Cell::from(&more.change)]);
        }
    }
    let table = if explanation.workers.is_empty() { String::new() } else { format!("\n{}", screen.table(&table)) };
    let summary = explanation.summary.as_ref().map(|summary| format!("{}\n", printable(&summary.text)));
    format!("{}\n{}{table}", printable(&explanation.text), summary.unwrap_or_default())
}

fn text(text: Option<&String>) -> Cell {
    text.map(Cell::from).unwrap_or_default()
}

fn status(status: JobStatus) -> Cell {
    let paint = match status {
        JobStatus::Queued | JobStatus::Offered => Paint::Plain,
        JobStatus::Starting | JobStatus::Running => Paint::Busy,
        JobStatus::Cancelling => Paint::Odd,
        JobStatus::Completed => Paint::Good,
        JobStatus::Failed => Paint::Bad,
        JobStatus::Cancelled => Paint::Dim,
    };
    Cell::new(status.as_str(), paint)
}

fn progress(job: &JobView) -> String {
    let Some(progress) = &job.progress else {
        return match job.queue_position {
            Some(_) if job.fits_none => "fits no worker".to_owned(),
            place => place.map(|place| format!("place {place}")).unwrap_or_default(),
        };
    };
    let share = progress.percent.map_or_else(|| format!("step {}", progress.step), terminal::percent);
    let loss = progress.loss.map(|loss| format!(" loss {}", terminal::number(loss))).unwrap_or_default();
    let left = progress.eta_seconds.filter(|_| !job.status.is_terminal()).map(to_span);
    let left = left.map(|left| format!(" {} left", terminal::span(left))).unwrap_or_default();
    format!("{share}{loss}{left}")
}

#[expect(clippy::cast_possible_truncation, reason = "an estimate, and `as` keeps to the range")]
fn to_span(seconds: f64) -> Millis {
    Millis((seconds * 1_000.0) as i64)
}

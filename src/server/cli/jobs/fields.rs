//! The fields of a job on the command line: the flags of a submit, and what `jobs list` and `jobs show` print.

use std::collections::BTreeSet;

use app::domain::job_share::JobClass;
use app::domain::sandbox::SandboxLevel;
use app::domain::time::{Millis, Timestamp};
use app::protocol::agents::dispatch::CheckpointPolicy;
use app::protocol::jobs::overrides;
use app::protocol::jobs::{JobView, SubmitJob};
use app::protocol::status::{JobStatus, Target};
use app::ui::job_status::{StatusTone, status_tone};
use app::ui::terminal;
use clap::Args;
use itertools::Itertools;
use serde_json::Value;

use crate::cli::run::{collect_labels, one_of, parse_label, parse_override};
use crate::cli::table::{CellStyle, TableCell};

#[derive(Debug, Clone, Args)]
pub struct SubmitFlags {
    /// Configuration to run.
    config: String,
    /// Where to run it.
    #[arg(long, default_value = "auto", value_parser = one_of(Target::ALL.iter().map(|target| target.as_str())))]
    target: String,
    /// Require a worker label (repeatable); the value may be a pattern.
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = parse_label)]
    labels: Vec<(String, String)>,
    /// Number of GPUs [default: from the configuration].
    #[arg(long, value_name = "N")]
    gpus: Option<u32>,
    /// Min memory per GPU in GB.
    #[arg(long, value_name = "GB")]
    min_vram: Option<f64>,
    /// Accelerator type.
    #[arg(long, value_name = "KIND", value_parser = ["cuda", "rocm", "mps", "xpu", "cpu"])]
    accelerator: Option<String>,
    /// Priority (0–50).
    #[arg(long, default_value_t = app::domain::priority::DEFAULT_PRIORITY, value_parser = clap::value_parser!(u8).range(0..=50))]
    priority: u8,
    /// Team that the job counts for [default: the one that you joined first].
    #[arg(long, value_name = "TEAM")]
    team: Option<String>,
    /// Class: urgent jobs start before all others (requires `job.urgent`), idle ones only on GPUs that no other job can
    /// use.
    #[arg(long, value_name = "CLASS", default_value = "normal", value_parser = one_of(JobClass::ALL.map(JobClass::as_str)))]
    class: String,
    /// Max retries of lost attempts.
    #[arg(long, value_name = "N", default_value_t = 3)]
    max_retries: u32,
    /// Also retry when the trainer itself fails.
    #[arg(long)]
    retry_on_failure: bool,
    /// Time limit in seconds of training; a longer attempt is stopped and the job fails.
    #[arg(long, value_name = "SECONDS")]
    max_runtime: Option<u32>,
    /// Never run two trainers of this job at once: an agent that loses contact stops its own.
    #[arg(long)]
    exclusive: bool,
    /// Minimum sandbox level of the trainer; a higher level of the worker takes precedence.
    #[arg(long, value_name = "LEVEL", default_value = "none", value_parser = one_of(SandboxLevel::ALL.iter().map(|level| level.as_str())))]
    sandbox: String,
    /// Checkpoints to upload, to resume on other workers.
    #[arg(long, value_name = "WHICH", default_value = "last", value_parser = one_of(CheckpointPolicy::ALL.iter().map(|policy| policy.as_str())))]
    checkpoints: String,
    /// Give the job this secret (repeatable) [default: none].
    #[arg(long = "secret", value_name = "NAME")]
    secrets: Vec<String>,
    /// Run this revision [default: the newest]. Required if another user has changed the configuration since your last
    /// run.
    #[arg(long, value_name = "N")]
    config_revision: Option<u32>,
    /// Override a value of the configuration for this job (repeatable); KEY= removes the key.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_override)]
    set: Vec<(String, Value)>,
    /// Name of the job, to find it again.
    #[arg(long)]
    name: Option<String>,
    /// Tag of the job (repeatable).
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Notes on the job.
    #[arg(long, value_name = "TEXT")]
    notes: Option<String>,
    /// Validate and explain scheduling without submitting.
    #[arg(long, conflicts_with = "follow")]
    dry_run: bool,
}

impl SubmitFlags {
    /// Returns the API request.
    pub fn to_submit_job(&self) -> SubmitJob {
        SubmitJob {
            config_name: self.config.clone(),
            target: Target::parse(&self.target).unwrap_or(Target::Auto),
            worker_labels: collect_labels(self.labels.clone()),
            gpu_count: self.gpus,
            min_vram_gb: self.min_vram,
            accelerator_type: self.accelerator.clone(),
            priority: self.priority,
            team: self.team.clone(),
            class: JobClass::parse(&self.class).unwrap_or_default(),
            max_retries: self.max_retries,
            retry_on_failure: self.retry_on_failure,
            max_runtime_seconds: self.max_runtime,
            secrets: Some(self.secrets.clone()).filter(|names| !names.is_empty()),
            config_revision: self.config_revision,
            overrides: self.set.iter().cloned().collect(),
            exclusive: self.exclusive,
            sandbox: SandboxLevel::parse(&self.sandbox).unwrap_or_default(),
            checkpoints: CheckpointPolicy::parse(&self.checkpoints).unwrap_or_default(),
            name: self.name.clone(),
            tags: self.tags.iter().cloned().collect(),
            notes: self.notes.clone(),
            dry_run: self.dry_run,
        }
    }
}

/// A column of `jobs list`.
pub struct ListColumn {
    /// The heading, with its rule for narrow terminals ([`Table::new`](crate::cli::table::Table::new)).
    pub heading: &'static str,
    pub cell: fn(&JobView, Timestamp) -> TableCell,
    /// Whether it is omitted if no job has a value in it.
    optional: bool,
}

/// The columns of `jobs list`; failed jobs have the reason.
pub const LIST_COLUMNS: &[ListColumn] = &[
    column("JOB!", |job, _| job.job_id.as_str().into()),
    column("STATUS!", |job, _| status_cell(job.status)),
    column("PROGRESS", |job, _| format_progress(job).into()),
    column("CONFIG", |job, _| (&job.config_name).into()),
    optional_column("NAME?", |job, _| text_cell(job.name.as_ref())),
    optional_column("TAGS?", |job, _| joined(&job.tags).into()),
    column("USER?", |job, _| (&job.submitted_by).into()),
    column("WORKER?", |job, _| text_cell(job.worker_name.as_ref())),
    column("PRIORITY?", |job, _| job.priority.to_string().into()),
    column("NO?", |job, _| job.number.map(|number| format!("#{number}")).unwrap_or_default().into()),
    column("SUBMITTED!", |job, now| TableCell::new(terminal::ago(job.submitted_at, now), CellStyle::Dim)),
    optional_column("REASON_", |job, _| text_cell(job.error.as_ref())),
];

const fn column(heading: &'static str, cell: fn(&JobView, Timestamp) -> TableCell) -> ListColumn {
    ListColumn { heading, cell, optional: false }
}

const fn optional_column(heading: &'static str, cell: fn(&JobView, Timestamp) -> TableCell) -> ListColumn {
    ListColumn { heading, cell, optional: true }
}

impl ListColumn {
    pub fn is_shown(&self, jobs: &[JobView], now: Timestamp) -> bool {
        !self.optional || jobs.iter().any(|job| !(self.cell)(job, now).is_empty())
    }
}

/// A name, and its value for a job at a time; none if it is omitted.
type Fact = (&'static str, fn(&JobView, Timestamp) -> Option<TableCell>);

/// What `jobs show` prints above the attempts.
const FACTS: &[Fact] = &[
    ("job", |job, _| Some(job.job_id.as_str().into())),
    ("name", |job, _| job.name.as_ref().map(TableCell::from)),
    ("tags", |job, _| (!job.tags.is_empty()).then(|| joined(&job.tags).into())),
    ("starred by", |job, _| (!job.starred_by.is_empty()).then(|| joined(&job.starred_by).into())),
    ("notes", |job, _| job.notes.as_ref().map(TableCell::from)),
    ("status", |job, _| Some(status_cell(job.status))),
    ("reason", |job, _| Some(job.error.as_deref().unwrap_or("–").into())),
    ("error at", |job, _| {
        job.error_line.map(|line| format!("line {line} of the log of attempt {}", job.attempt).into())
    }),
    ("progress", |job, _| Some(format_progress(job).into())),
    ("config", |job, _| Some(format!("{} (revision {})", job.numbered_config(), job.config_revision).into())),
    ("overrides", |job, _| {
        let lines = overrides::to_lines(&overrides::to_values(&job.overrides));
        (!lines.is_empty()).then(|| lines.join(" ").into())
    }),
    ("resume", |job, _| job.resume_from.as_ref().map(TableCell::from)),
    ("target", |job, _| Some(job.target.as_str().into())),
    ("labels", |job, _| {
        let labels: Vec<String> = job.worker_labels.0.iter().map(|(key, value)| format!("{key}={value}")).collect();
        Some(labels.join(" ").into())
    }),
    ("gpus", |job, _| job.gpu_count.map(|count| count.to_string().into())),
    ("memory", |job, _| job.min_vram_gb.map(|gb| format!("at least {gb} GB per GPU").into())),
    ("accelerator", |job, _| job.accelerator_type.as_ref().map(TableCell::from)),
    ("time limit", |job, _| {
        let limit = job.max_runtime_seconds.and_then(|seconds| i64::try_from(seconds).ok());
        limit.map(|seconds| terminal::duration(Millis::from_secs(seconds)).into())
    }),
    ("secrets", |job, _| job.secrets.as_ref().filter(|names| !names.is_empty()).map(|names| names.join(" ").into())),
    ("checkpoints", |job, _| Some(job.checkpoints.as_str().into())),
    ("exclusive", |job, _| Some(if job.exclusive { "yes" } else { "no" }.into())),
    ("sandbox", |job, _| Some(job.sandbox.as_str().into())),
    ("user", |job, _| Some((&job.submitted_by).into())),
    ("worker", |job, _| Some(job.worker_name.as_deref().unwrap_or("–").into())),
    ("attempt", |job, _| {
        let failures = if job.retry_on_failure { ", also after trainer failures" } else { "" };
        Some(format!("{} of {}{failures}", job.attempt, job.max_attempts).into())
    }),
    ("priority", |job, _| Some(job.priority.to_string().into())),
    ("team", |job, _| Some((&job.team).into())),
    ("class", |job, _| Some(job.class.as_str().into())),
    ("submitted", |job, _| Some(time_cell(Some(job.submitted_at)))),
    ("started", |job, _| Some(time_cell(job.started_at))),
    ("ended", |job, _| Some(time_cell(job.ended_at))),
    ("retry at", |job, _| job.retry_at.map(|at| time_cell(Some(at)))),
    ("cancelled by", |job, _| job.cancelled_by.as_ref().map(TableCell::from)),
    ("duration", |job, now| {
        let duration = job.started_at.map(|start| terminal::duration(job.ended_at.unwrap_or(now) - start));
        Some(duration.unwrap_or_else(|| "–".to_owned()).into())
    }),
];

/// Returns the facts of a job, without those that are omitted.
pub fn facts(job: &JobView, now: Timestamp) -> Vec<(&'static str, TableCell)> {
    FACTS.iter().filter_map(|(name, value)| Some((*name, value(job, now)?))).collect()
}

fn time_cell(at: Option<Timestamp>) -> TableCell {
    at.map_or_else(|| "–".to_owned(), terminal::timestamp).into()
}

fn joined(tags: &BTreeSet<String>) -> String {
    tags.iter().join(", ")
}

pub fn text_cell(text: Option<&String>) -> TableCell {
    text.map(TableCell::from).unwrap_or_default()
}

fn status_cell(status: JobStatus) -> TableCell {
    let style = match status_tone(status) {
        StatusTone::Waiting => CellStyle::Plain,
        StatusTone::Active => CellStyle::Active,
        StatusTone::Warning => CellStyle::Warning,
        StatusTone::Good => CellStyle::Success,
        StatusTone::Bad => CellStyle::Error,
        StatusTone::Off => CellStyle::Dim,
    };
    TableCell::new(status.as_str(), style)
}

fn format_progress(job: &JobView) -> String {
    let Some(progress) = &job.progress else {
        return match job.queue_position {
            Some(_) if job.fits_none => "no match".to_owned(),
            position => position.map(|position| format!("place {position}")).unwrap_or_default(),
        };
    };
    let position = progress.percent.map_or_else(|| format!("step {}", progress.step), terminal::percent);
    let loss = progress.loss.map(|loss| format!(" loss {}", terminal::number(loss))).unwrap_or_default();
    let left = progress.eta_seconds.filter(|_| !job.status.is_terminal()).map(to_millis);
    let left = left.map(|left| format!(" {} left", terminal::duration(left))).unwrap_or_default();
    format!("{position}{loss}{left}")
}

#[expect(clippy::cast_possible_truncation, reason = "an estimate, and `as` keeps to the range")]
fn to_millis(seconds: f64) -> Millis {
    Millis((seconds * 1_000.0) as i64)
}

#[cfg(test)]
mod tests {
    use app::protocol::shown_fields::fields_not_shown;

    use super::*;
    use crate::cli::jobs::views::jobs_table;
    use crate::cli::table::render_facts;

    const NOW: Timestamp = Timestamp(1_705_320_000_000);

    /// `jobs show --json` has them, and the table of attempts has the last one.
    const NOT_AMONG_FACTS: [&str; 11] = [
        "status_since",
        "values",
        "shared_secrets_only",
        "retry_of",
        "resumable",
        "family",
        "last_completed",
        "worker_id",
        "older_agent",
        "loss_code",
        "attempts",
    ];

    /// `jobs show` or `jobs list --json` has them; a row has no space for them.
    const NOT_LISTED: [&str; 35] = [
        "team",
        "class",
        "starred_by",
        "status_since",
        "config_revision",
        "target",
        "worker_labels",
        "gpu_count",
        "min_vram_gb",
        "accelerator_type",
        "retry_on_failure",
        "max_runtime_seconds",
        "secrets",
        "shared_secrets_only",
        "exclusive",
        "sandbox",
        "checkpoints",
        "retry_of",
        "resume_from",
        "overrides",
        "resumable",
        "family",
        "last_completed",
        "notes",
        "attempt",
        "max_attempts",
        "worker_id",
        "older_agent",
        "started_at",
        "ended_at",
        "retry_at",
        "cancelled_by",
        "error_line",
        "loss_code",
        "attempts",
    ];

    /// A job with progress, and one without.
    fn examples() -> [JobView; 2] {
        [JobView::example(), JobView { progress: None, ..JobView::example() }]
    }

    #[test]
    fn each_field_is_a_fact_or_listed() {
        let not_shown = fields_not_shown(&examples(), |job| render_facts(&facts(job, NOW), false));
        assert_eq!(not_shown, BTreeSet::from(NOT_AMONG_FACTS.map(str::to_owned)));
    }

    #[test]
    fn each_field_is_in_a_column_or_listed() {
        let values: Vec<String> = JobView::example().values.into_keys().collect();
        let not_shown = fields_not_shown(&examples(), |job| {
            jobs_table(std::slice::from_ref(job), &values, NOW).render(None, false)
        });
        assert_eq!(not_shown, BTreeSet::from(NOT_LISTED.map(str::to_owned)));
    }
}

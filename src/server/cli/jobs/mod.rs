//! `simpletuner jobs …`

mod compare;
mod download;
mod fields;
mod files;
mod logs;
mod open;
mod submit;
mod transfer;
mod views;

use app::domain::job_search::columns::JobListColumns;
use app::domain::time::Timestamp;
use app::protocol::jobs::explain::ExplanationView;
use app::protocol::jobs::submit::{DescribeJob, RetryJob, SetPriority, SubmitJobResponse};
use app::protocol::jobs::{JobView, JobsQuery};
use app::protocol::status::JobPhase;
use app::protocol::status::JobStatus;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::client::Client;
use super::output::{Output, OutputFormat};
use super::run::{one_of, parse_override, parse_value};
use crate::exit::ExitError;

/// Jobs per request.
const PAGE_SIZE: u32 = 1_000;

/// A job by ID.
#[derive(Debug, Clone, Args)]
pub struct JobArg {
    /// Job ID.
    #[arg(value_name = "JOB")]
    job: String,
}

/// Commands for jobs.
#[derive(Debug, Clone, Subcommand)]
pub enum JobsCommand {
    /// Submit a job and print its ID.
    Submit(Box<submit::SubmitArgs>),
    /// List jobs, newest first.
    List(Box<ListJobsArgs>),
    /// Show a job with its attempts.
    Show(JobArg),
    /// Compare jobs: what differs between their configurations, and their final metrics.
    Compare(compare::CompareArgs),
    /// Open a job in the browser, a comparison, or the list of jobs; prints the address.
    Open(Box<open::OpenArgs>),
    /// Print a job's log.
    Logs(logs::LogsArgs),
    /// List the files that a job has uploaded.
    Files(JobArg),
    /// Download a job's weights or other files.
    Download(download::DownloadArgs),
    /// Cancel a job.
    Cancel(JobArg),
    /// Retry a job that has ended, or fork one from a checkpoint; prints the new ID.
    Retry(RetryArgs),
    /// Show why a job is pending, worker by worker.
    Explain(JobArg),
    /// Change a job's name, tags or notes.
    Describe(DescribeArgs),
    /// Star a job, to find it with `jobs list starred:me`.
    Star(JobArg),
    /// Remove your star of a job.
    Unstar(JobArg),
    /// Set a job's priority (0–50).
    Priority(SetPriorityArgs),
}

/// `simpletuner jobs retry`
#[derive(Debug, Clone, Args)]
pub struct RetryArgs {
    #[command(flatten)]
    target: JobArg,
    /// Give the new job this secret (repeatable) [default: those of your own job; of another user's job, the shared
    /// ones].
    #[arg(long = "secret", value_name = "NAME")]
    secrets: Vec<String>,
    /// Start from scratch, from the newest checkpoint, or from a checkpoint by name [default: scratch if the job
    /// completed, otherwise newest].
    #[arg(long, value_name = "WHERE")]
    resume_from: Option<String>,
    /// Name of the new job [default: that of the original job].
    #[arg(long)]
    name: Option<String>,
    /// Run this revision of the configuration [default: that of the original job].
    #[arg(long, value_name = "N")]
    config_revision: Option<u32>,
    /// Override a value of the configuration for this job (repeatable); KEY= removes the key [default: overrides of the
    /// original job].
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_override)]
    set: Vec<(String, Value)>,
}

/// Which jobs are listed.
#[derive(Debug, Clone, Default, Args)]
pub struct JobFilters {
    /// Filter by status.
    #[arg(long, value_parser = one_of(JobStatus::ALL.iter().map(|status| status.as_str())))]
    status: Option<String>,
    /// Only jobs that have not ended.
    #[arg(long, conflicts_with = "ended")]
    active: bool,
    /// Only jobs that have ended.
    #[arg(long)]
    ended: bool,
    #[command(flatten)]
    query: JobsQuery,
}

impl JobFilters {
    fn into_query(self) -> JobsQuery {
        let phase = match (self.active, self.ended) {
            (true, _) => Some(JobPhase::Active),
            (false, true) => Some(JobPhase::Ended),
            (false, false) => None,
        };
        JobsQuery { status: self.status.as_deref().and_then(JobStatus::parse), phase, ..self.query }
    }
}

/// `simpletuner jobs list`
#[derive(Debug, Clone, Default, Args)]
pub struct ListJobsArgs {
    #[command(flatten)]
    filters: JobFilters,
    /// Max results [default: all].
    #[arg(long, short = 'n', value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
}

/// `simpletuner jobs describe`
#[derive(Debug, Clone, Args)]
#[group(required = true, multiple = true, id = "change", args = ["name", "notes", "add_tags", "remove_tags"])]
pub struct DescribeArgs {
    #[command(flatten)]
    target: JobArg,
    /// New name; an empty one removes it.
    #[arg(long)]
    name: Option<String>,
    /// New notes; empty ones remove them.
    #[arg(long, value_name = "TEXT")]
    notes: Option<String>,
    /// Add this tag (repeatable).
    #[arg(long = "tag", value_name = "TAG")]
    add_tags: Vec<String>,
    /// Remove this tag (repeatable).
    #[arg(long = "remove-tag", value_name = "TAG")]
    remove_tags: Vec<String>,
}

/// `simpletuner jobs priority`
#[derive(Debug, Clone, Args)]
pub struct SetPriorityArgs {
    #[command(flatten)]
    target: JobArg,
    /// New priority; 50 is the highest.
    #[arg(value_parser = clap::value_parser!(u8).range(0..=50))]
    priority: u8,
}

pub async fn run(command: JobsCommand, client: &Client, output: &mut Output<'_>) -> Result<(), ExitError> {
    match command {
        JobsCommand::Submit(submit) => submit::run(*submit, client, output).await,
        JobsCommand::List(list) => self::list_jobs(*list, client, output).await,
        JobsCommand::Compare(args) => compare::run(args, client, output).await,
        JobsCommand::Open(args) => open::run(*args, client, output),
        JobsCommand::Logs(logs) => logs::run(logs, client, output).await,
        JobsCommand::Files(target) => files::list(&target, client, output).await,
        JobsCommand::Download(args) => download::run(&args, client, output).await,
        JobsCommand::Show(JobArg { job }) => {
            let document = client.get(&["queue", &job]).await?;
            let view: JobView = parse_value(&document)?;
            let now = output.now();
            output.print_document(&document, [job], |screen| views::format_job(&view, now, screen))
        }
        JobsCommand::Cancel(JobArg { job }) => {
            let document = client.post(&["queue", &job, "cancel"], &json!({})).await?;
            let view: JobView = parse_value(&document)?;
            output.print_info(if view.status.is_terminal() {
                format!("{job} is {}.", view.status.as_str())
            } else {
                format!("Cancelling {job}; its worker stops the trainer.")
            })?;
            output.print_document(&document, [job], |_| String::new())
        }
        JobsCommand::Retry(RetryArgs { target: JobArg { job }, secrets, resume_from, name, config_revision, set }) => {
            let retry = RetryJob {
                secrets: Some(secrets).filter(|names| !names.is_empty()),
                resume_from,
                name,
                config_revision,
                overrides: Some(set).filter(|set| !set.is_empty()).map(|set| set.into_iter().collect()),
            };
            let document = client.post(&["queue", &job, "retry"], &retry).await?;
            print_submitted(&document, output)
        }
        JobsCommand::Explain(JobArg { job }) => {
            let document = client.get(&["queue", &job, "explain"]).await?;
            let explanation: ExplanationView = parse_value(&document)?;
            let matching = explanation.workers.iter().filter(|worker| worker.fits);
            let ids: Vec<String> = matching.map(|worker| worker.worker_id.to_string()).collect();
            output.print_document(&document, ids, |screen| views::format_explanation(&explanation, screen))
        }
        JobsCommand::Describe(DescribeArgs { target: JobArg { job }, name, notes, add_tags, remove_tags }) => {
            let (add_tags, remove_tags) = (add_tags.into_iter().collect(), remove_tags.into_iter().collect());
            let describe = DescribeJob { name, notes, tags: None, add_tags, remove_tags };
            let document = client.patch(&["queue", &job], &describe).await?;
            let view: JobView = parse_value(&document)?;
            let now = output.now();
            output.print_document(&document, [job], |screen| views::format_job(&view, now, screen))
        }
        JobsCommand::Star(JobArg { job }) => {
            let document = client.put(&["queue", &job, "star"], &json!({})).await?;
            output.print_info(format!("{job} is starred."))?;
            output.print_document(&document, [job], |_| String::new())
        }
        JobsCommand::Unstar(JobArg { job }) => {
            let document = client.delete(&["queue", &job, "star"]).await?;
            output.print_info(format!("{job} is no longer starred."))?;
            output.print_document(&document, [job], |_| String::new())
        }
        JobsCommand::Priority(SetPriorityArgs { target: JobArg { job }, priority }) => {
            let document = client.post(&["queue", &job, "priority"], &SetPriority { priority }).await?;
            output.print_info(format!("Priority of {job} set to {priority}."))?;
            output.print_document(&document, [job], |_| String::new())
        }
    }
}

async fn list_jobs(list: ListJobsArgs, client: &Client, output: &mut Output<'_>) -> Result<(), ExitError> {
    let query = JobsQuery { limit: list.limit.or(Some(PAGE_SIZE)), ..list.filters.into_query() };
    let columns = query.columns.as_deref().and_then(JobListColumns::parse).unwrap_or_default();
    let values = columns.value_names();
    let max = list.limit.and_then(|limit| usize::try_from(limit).ok());
    let page = client.list_all(&["queue"], &query, "jobs", max).await?;
    let jobs: Vec<JobView> = parse_value(&page["jobs"])?;
    if jobs.is_empty() {
        output.print_info("No jobs.")?;
    }
    let ids = jobs.iter().map(|job| job.job_id.to_string());
    let now = parse_value::<Option<Timestamp>>(&page["server_time"])?.unwrap_or(output.now());
    output.print_document(&page, ids, |screen| {
        if jobs.is_empty() { String::new() } else { screen.format_table(&views::jobs_table(&jobs, &values, now)) }
    })
}

/// Prints the state of a new job; only its id goes to stdout.
fn print_submitted(document: &Value, output: &mut Output<'_>) -> Result<(), ExitError> {
    let response: SubmitJobResponse = parse_value(document)?;
    output.print_info(queue_state_text(&response))?;
    match output.format {
        OutputFormat::Json => output.print_line(format!("{document:#}")),
        OutputFormat::Text | OutputFormat::Ids => output.print_line(response.job_id.as_str()),
    }
}

fn strip_control(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

fn queue_state_text(response: &SubmitJobResponse) -> String {
    match (&response.allocated_worker_id, response.queue_position, &response.warning) {
        (Some(worker), ..) => format!("Submitted: dispatched to {worker}."),
        (None, _, Some(warning)) => format!(
            "Submitted: no worker matches. {} `simpletuner jobs explain {}` shows details.",
            strip_control(warning),
            response.job_id
        ),
        (None, Some(position), None) => {
            format!(
                "Submitted: queued at position {position}. `simpletuner jobs explain {}` shows why it is pending.",
                response.job_id
            )
        }
        (None, None, None) => "Submitted.".to_owned(),
    }
}

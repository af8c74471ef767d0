//! `simpletuner jobs …`

mod logs;
mod submit;
mod views;

use app::domain::ids::WorkerId;
use app::domain::time::Timestamp;
use app::protocol::explain::ExplanationView;
use app::protocol::queue::{JobView, JobsQuery};
use app::protocol::status::JobStatus;
use app::protocol::status::Phase;
use app::protocol::submit::{RetryJob, SetPriority, Submitted};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::client::Client;
use super::operate::{read, setting, words};
use super::screen::{Form, Screen};
use crate::boot::exit::Exit;

/// How many jobs are asked for at once.
const PAGE: u32 = 1_000;

/// Which job.
#[derive(Debug, Clone, Args)]
pub struct Which {
    /// The job's id.
    #[arg(value_name = "JOB")]
    job: String,
}

/// What can be done with jobs.
#[derive(Debug, Clone, Subcommand)]
pub enum JobsCommand {
    /// Submit a job; prints its id.
    Submit(Box<submit::Submit>),
    /// List jobs, the newest first.
    List(List),
    /// Show one job with its attempts.
    Show(Which),
    /// Print a job's log.
    Logs(logs::Logs),
    /// Cancel a job.
    Cancel(Which),
    /// Submit a job that has ended once more; prints the new job's id.
    Retry(Retry),
    /// Say why a job waits, worker by worker.
    Explain(Which),
    /// Say how urgent a job is: 0 to 50.
    Priority(Priority),
}

/// `simpletuner jobs retry`
#[derive(Debug, Clone, Args)]
pub struct Retry {
    #[command(flatten)]
    which: Which,
    /// Give the new job this secret (repeatable) [default: those of your own job; of another's, those that are shared].
    #[arg(long = "secret", value_name = "NAME")]
    secrets: Vec<String>,
    /// Start from scratch, from the newest checkpoint, or from a checkpoint by its name [default: scratch if the job
    /// completed, else newest].
    #[arg(long, value_name = "WHERE")]
    resume_from: Option<String>,
    /// Run this revision of the configuration [default: the one that the job ran].
    #[arg(long, value_name = "N")]
    config_revision: Option<u32>,
    /// Override a value of the configuration for this job (repeatable); KEY= removes the key [default: the job's own overrides].
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = setting)]
    set: Vec<(String, Value)>,
}

/// `simpletuner jobs list`
#[derive(Debug, Clone, Default, Args)]
pub struct List {
    /// Only jobs in this status.
    #[arg(long, value_parser = words(JobStatus::ALL.iter().map(|status| status.as_str())))]
    status: Option<String>,
    /// Only jobs that have not ended.
    #[arg(long, conflicts_with = "ended")]
    active: bool,
    /// Only jobs that have ended.
    #[arg(long)]
    ended: bool,
    /// Only jobs of this person.
    #[arg(long)]
    user: Option<String>,
    /// Only jobs that ask for this label: KEY, or KEY=VALUE.
    #[arg(long)]
    label: Option<String>,
    /// Only jobs of which an attempt was offered to the worker of this id.
    #[arg(long, value_parser = WorkerId::parse)]
    worker: Option<WorkerId>,
    /// Only jobs that were submitted at this moment or later (RFC 3339).
    #[arg(long)]
    since: Option<String>,
    /// Only jobs that were submitted before this moment (RFC 3339).
    #[arg(long)]
    until: Option<String>,
    /// Only jobs that have ended, at this moment or later (RFC 3339).
    #[arg(long)]
    ended_since: Option<String>,
    /// At most so many [default: all].
    #[arg(long, short = 'n', value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
}

/// `simpletuner jobs priority`
#[derive(Debug, Clone, Args)]
pub struct Priority {
    #[command(flatten)]
    which: Which,
    /// 50 is the most urgent.
    #[arg(value_parser = clap::value_parser!(u8).range(0..=50))]
    priority: u8,
}

/// Does it.
pub async fn run(command: JobsCommand, client: &Client, screen: &mut Screen<'_>) -> Result<(), Exit> {
    match command {
        JobsCommand::Submit(submit) => submit::run(*submit, client, screen).await,
        JobsCommand::List(list) => self::list(list, client, screen).await,
        JobsCommand::Logs(logs) => logs::run(logs, client, screen).await,
        JobsCommand::Show(Which { job }) => {
            let document = client.get(&["queue", &job]).await?;
            let view: JobView = read(&document)?;
            let now = screen.now();
            screen.answer(&document, [job], |screen| views::whole(&view, now, screen))
        }
        JobsCommand::Cancel(Which { job }) => {
            let document = client.post(&["queue", &job, "cancel"], &json!({})).await?;
            let view: JobView = read(&document)?;
            screen.say(if view.status.is_terminal() {
                format!("{job} is {}.", view.status.as_str())
            } else {
                format!("{job} is being cancelled; its worker stops the trainer.")
            })?;
            screen.answer(&document, [job], |_| String::new())
        }
        JobsCommand::Retry(Retry { which: Which { job }, secrets, resume_from, config_revision, set }) => {
            let retry = RetryJob {
                secrets: Some(secrets).filter(|names| !names.is_empty()),
                resume_from,
                config_revision,
                overrides: Some(set).filter(|set| !set.is_empty()).map(|set| set.into_iter().collect()),
            };
            let document = client.post(&["queue", &job, "retry"], &retry).await?;
            submitted(&document, screen)
        }
        JobsCommand::Explain(Which { job }) => {
            let document = client.get(&["queue", &job, "explain"]).await?;
            let explanation: ExplanationView = read(&document)?;
            let fitting = explanation.workers.iter().filter(|worker| worker.fits);
            let ids: Vec<String> = fitting.map(|worker| worker.worker_id.to_string()).collect();
            screen.answer(&document, ids, |screen| views::explanation(&explanation, screen))
        }
        JobsCommand::Priority(Priority { which: Which { job }, priority }) => {
            let document = client.post(&["queue", &job, "priority"], &SetPriority { priority }).await?;
            screen.say(format!("{job} has priority {priority}."))?;
            screen.answer(&document, [job], |_| String::new())
        }
    }
}

async fn list(list: List, client: &Client, screen: &mut Screen<'_>) -> Result<(), Exit> {
    let phase = match (list.active, list.ended) {
        (true, _) => Some(Phase::Active),
        (false, true) => Some(Phase::Ended),
        (false, false) => None,
    };
    let query = JobsQuery {
        status: list.status.as_deref().and_then(JobStatus::parse),
        phase,
        user: list.user,
        label: list.label,
        worker: list.worker,
        since: list.since,
        until: list.until,
        ended_since: list.ended_since,
        limit: list.limit.or(Some(PAGE)),
        ..JobsQuery::default()
    };
    let most = list.limit.and_then(|limit| usize::try_from(limit).ok());
    let page = client.list(&["queue"], &query, "jobs", most).await?;
    let jobs: Vec<JobView> = read(&page["jobs"])?;
    if jobs.is_empty() {
        screen.say("No jobs.")?;
    }
    let ids = jobs.iter().map(|job| job.job_id.to_string());
    let now = read::<Option<Timestamp>>(&page["server_time"])?.unwrap_or(screen.now());
    screen.answer(
        &page,
        ids,
        |screen| if jobs.is_empty() { String::new() } else { screen.table(&views::table(&jobs, now)) },
    )
}

/// Says where a new job stands; its id alone goes to stdout.
fn submitted(document: &Value, screen: &mut Screen<'_>) -> Result<(), Exit> {
    let new: Submitted = read(document)?;
    screen.say(standing(&new))?;
    match screen.form {
        Form::Json => screen.line(format!("{document:#}")),
        Form::Words | Form::Ids => screen.line(new.job_id.as_str()),
    }
}

fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

fn standing(new: &Submitted) -> String {
    match (&new.allocated_worker_id, new.queue_position, &new.warning) {
        (Some(worker), ..) => format!("Submitted, and offered to {worker}."),
        (None, _, Some(warning)) => format!(
            "Submitted; no worker can take it. {} `simpletuner jobs explain {}` says more.",
            printable(warning),
            new.job_id
        ),
        (None, Some(place), None) => {
            format!("Submitted; it waits at place {place}. `simpletuner jobs explain {}` says why.", new.job_id)
        }
        (None, None, None) => "Submitted.".to_owned(),
    }
}

//! `simpletuner workers …`

use app::domain::labels::Labels;
use app::domain::search_terms::quote;
use app::domain::time::Timestamp;
use app::protocol::status::{WorkerStatus, WorkerType};
use app::protocol::workers::{
    CreateWorker, CreatedWorker, DrainWorker, RotateToken, TokenLifetime, WorkerView, WorkersQuery,
    uses_loopback_address,
};
use app::ui::terminal;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::client::Client;
use super::gpus;
use super::output::{Output, OutputFormat};
use super::run::{one_of, parse_value};
use super::table::{CellStyle, Table, TableCell};
use crate::exit::ExitError;

/// A worker by name or ID.
#[derive(Debug, Clone, Args)]
pub struct WorkerArg {
    /// Worker name or ID.
    #[arg(value_name = "WORKER")]
    worker: String,
}

/// Commands for workers.
#[derive(Debug, Clone, Subcommand)]
pub enum WorkersCommand {
    /// List workers.
    List(ListWorkersArgs),
    /// Show one worker.
    Show(WorkerArg),
    /// Create a worker and print its token (shown once).
    Create(CreateWorkerArgs),
    /// Stop scheduling new jobs on a worker; running jobs finish.
    Drain(DrainWorkerArgs),
    /// Resume a drained worker.
    Resume(WorkerArg),
    /// Rotate a worker's token and print the new one. The old one stops working immediately, or after --overlap.
    Rotate(RotateTokenArgs),
    /// Delete a worker and revoke its token.
    Delete(WorkerArg),
}

/// `simpletuner workers list`
#[derive(Debug, Clone, Default, Args)]
pub struct ListWorkersArgs {
    /// Filter by status.
    #[arg(long, value_parser = one_of(WorkerStatus::ALL.iter().map(|status| status.as_str())))]
    status: Option<String>,
    /// Filter by label: KEY, or KEY=VALUE with an optional pattern as the value.
    #[arg(long)]
    label: Option<String>,
    /// Filter by text in name, ID, GPUs or labels.
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
}

/// `simpletuner workers create`
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate flag")]
pub struct CreateWorkerArgs {
    /// Worker name (1 to 64 characters).
    name: String,
    /// Persistent worker.
    #[arg(long, conflicts_with = "ephemeral")]
    persistent: bool,
    /// Ephemeral worker (exits after one job) [default: set by the agent].
    #[arg(long)]
    ephemeral: bool,
    /// Add a label for matching jobs (repeatable).
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = super::run::parse_label)]
    labels: Vec<(String, String)>,
    /// Ignore labels that the agent reports.
    #[arg(long)]
    ignore_reported_labels: bool,
    /// Reject agents of the older protocol, which use the worker token for every request.
    #[arg(long)]
    reject_older_agents: bool,
    /// Allow the agent from this network only (repeatable).
    #[arg(long = "network", value_name = "CIDR")]
    networks: Vec<String>,
    #[command(flatten)]
    token_lifetime: TokenLifetimeArgs,
}

/// Lifetime of a new token.
#[derive(Debug, Clone, Copy, Args)]
pub struct TokenLifetimeArgs {
    /// Expire the token after this many days [default: never, once an agent has registered with it].
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=3_660))]
    expires_in_days: Option<u32>,
}

impl From<TokenLifetimeArgs> for TokenLifetime {
    fn from(lifetime: TokenLifetimeArgs) -> Self {
        Self { expires_in_seconds: lifetime.expires_in_days.map(|days| days * 86_400), ..Self::default() }
    }
}

/// `simpletuner workers rotate`
#[derive(Debug, Clone, Args)]
pub struct RotateTokenArgs {
    #[command(flatten)]
    target: WorkerArg,
    #[command(flatten)]
    token_lifetime: TokenLifetimeArgs,
    /// Keep the old token valid for this many seconds, or until an agent registers with the new one.
    #[arg(long, value_name = "SECONDS")]
    overlap: Option<u32>,
}

/// `simpletuner workers drain`
#[derive(Debug, Clone, Args)]
pub struct DrainWorkerArgs {
    #[command(flatten)]
    target: WorkerArg,
    /// Record a reason.
    #[arg(long)]
    reason: Option<String>,
    /// Stop and requeue remaining jobs after this many seconds.
    #[arg(long, value_name = "SECONDS")]
    deadline: Option<u32>,
}

pub async fn run(command: WorkersCommand, client: &Client, output: &mut Output<'_>) -> Result<(), ExitError> {
    match command {
        WorkersCommand::List(list) => self::list_workers(list, client, output).await,
        WorkersCommand::Show(target) => {
            let worker = find_worker(client, &target).await?;
            let worker = client.get(&["admin", "workers", worker_id(&worker)]).await?;
            print_worker(&worker, output)
        }
        WorkersCommand::Create(create) => self::create_worker(create, client, output).await,
        WorkersCommand::Drain(drain) => {
            let worker = find_worker(client, &drain.target).await?;
            let body = DrainWorker { reason: drain.reason, deadline_seconds: drain.deadline };
            let drained = client.post(&["admin", "workers", worker_id(&worker), "drain"], &body).await?;
            output.print_info(format!(
                "Draining {}. Running jobs will finish; no new jobs will start.",
                worker_name(&worker)
            ))?;
            print_updated(&drained, output)
        }
        WorkersCommand::Resume(target) => {
            let worker = find_worker(client, &target).await?;
            let resumed = client.post(&["admin", "workers", worker_id(&worker), "resume"], &json!({})).await?;
            output.print_info(format!("Resumed {}.", worker_name(&worker)))?;
            print_updated(&resumed, output)
        }
        WorkersCommand::Rotate(rotate) => {
            let worker = find_worker(client, &rotate.target).await?;
            let question = format!("Rotate the token of {}? The current one stops working.", worker_name(&worker));
            output.confirm(&question)?;
            let rotated = client
                .post(
                    &["admin", "workers", worker_id(&worker), "token"],
                    &RotateToken { lifetime: rotate.token_lifetime.into(), overlap_seconds: rotate.overlap },
                )
                .await?;
            print_token(&rotated, output)
        }
        WorkersCommand::Delete(target) => {
            let worker = find_worker(client, &target).await?;
            output.confirm(&format!("Delete {}? Its token will be revoked.", worker_name(&worker)))?;
            let deleted = client.delete(&["admin", "workers", worker_id(&worker)]).await?;
            output.print_info(format!("Deleted {}.", worker_name(&worker)))?;
            output.print_document(&deleted, [worker_id(&worker).to_owned()], |_| String::new())
        }
    }
}

async fn list_workers(list: ListWorkersArgs, client: &Client, output: &mut Output<'_>) -> Result<(), ExitError> {
    let query = WorkersQuery {
        status: list.status.as_deref().and_then(WorkerStatus::parse),
        label: list.label,
        q: list.search,
        ..WorkersQuery::default()
    };
    let page = client.list_all(&["admin", "workers"], &query, "workers", None).await?;
    let workers: Vec<WorkerView> = parse_value(&page["workers"])?;
    if workers.is_empty() {
        output.print_info("No workers. Create one with `simpletuner workers create NAME`.")?;
    }
    let ids = workers.iter().map(|worker| worker.id.to_string());
    let now = parse_value::<Option<Timestamp>>(&page["server_time"])?.unwrap_or(output.now());
    output.print_document(&page, ids, |screen| {
        if workers.is_empty() { String::new() } else { screen.format_table(&table(&workers, now)) }
    })
}

async fn create_worker(create: CreateWorkerArgs, client: &Client, output: &mut Output<'_>) -> Result<(), ExitError> {
    let worker_type = match (create.persistent, create.ephemeral) {
        (true, _) => Some(WorkerType::Persistent),
        (false, true) => Some(WorkerType::Ephemeral),
        (false, false) => None,
    };
    let body = CreateWorker {
        name: create.name,
        worker_type,
        labels: super::run::collect_labels(create.labels),
        ignore_reported_labels: create.ignore_reported_labels,
        reject_older_agents: create.reject_older_agents,
        allowed_networks: create.networks,
        lifetime: create.token_lifetime.into(),
    };
    let created = client.post(&["admin", "workers"], &body).await?;
    print_token(&created, output)?;
    if worker_type.is_none() {
        output.print_info("Without --persistent, the agent exits after one job.")?;
    }
    Ok(())
}

/// Returns the worker of this name or id.
async fn find_worker(client: &Client, target: &WorkerArg) -> Result<Value, ExitError> {
    let query = WorkersQuery { q: Some(quote(&target.worker)), ..WorkersQuery::default() };
    let mut page = client.list_all(&["admin", "workers"], &query, "workers", None).await?;
    let worker = page["workers"].as_array_mut().and_then(|workers| {
        let index = workers
            .iter()
            .position(|worker| [worker_name(worker), worker_id(worker)].contains(&target.worker.as_str()))?;
        Some(workers.swap_remove(index))
    });
    worker.ok_or_else(|| {
        ExitError::failed(format!("worker {:?} not found; `simpletuner workers list` shows all workers", target.worker))
    })
}

fn worker_id(worker: &Value) -> &str {
    worker["id"].as_str().unwrap_or_default()
}

fn worker_name(worker: &Value) -> &str {
    worker["name"].as_str().unwrap_or_default()
}

fn print_updated(worker: &Value, output: &mut Output<'_>) -> Result<(), ExitError> {
    output.print_document(worker, [worker_id(worker).to_owned()], |_| String::new())
}

/// Prints the token alone to stdout, and the instructions without it to stderr.
fn print_token(document: &Value, output: &mut Output<'_>) -> Result<(), ExitError> {
    let created: CreatedWorker = parse_value(document)?;
    let command = created.connection_command.replace(&created.token, "wt_…");
    output.print_info(format!("Token of {} ({}), shown once:", created.name, created.worker_id))?;
    if let Some(end) = created.token_unused_ends_at {
        output
            .print_info(format!("It expires on {} if no agent registers with it by then.", terminal::timestamp(end)))?;
    }
    match output.format {
        OutputFormat::Json => output.print_line(format!("{document:#}"))?,
        OutputFormat::Text | OutputFormat::Ids => output.print_line(&created.token)?,
    }
    output.print_info(format!("Run on the GPU host, with the token instead of wt_…:\n  {command}"))?;
    if uses_loopback_address(&command) {
        output.print_info("The URL is only valid on this host; another host needs a URL that it can reach.")?;
    }
    Ok(())
}

fn table(workers: &[WorkerView], now: Timestamp) -> Table {
    let mut table = Table::new(&["NAME", "STATUS!", "GPUS", "JOBS", "LABELS?", "SEEN?", "ID!"]);
    for worker in workers {
        let jobs: Vec<&str> = worker.jobs.iter().map(|job| job.config_name.as_str()).collect();
        table.add_row(vec![
            TableCell::from(&worker.name),
            status_cell(worker),
            gpu_models(worker).into(),
            jobs.join(", ").into(),
            format_labels(&worker.labels).into(),
            TableCell::new(last_seen(worker, now), CellStyle::Dim),
            TableCell::from(worker.id.as_str()),
        ]);
    }
    table
}

fn print_worker(document: &Value, output: &mut Output<'_>) -> Result<(), ExitError> {
    let worker: WorkerView = parse_value(document)?;
    let now = output.now();
    output.print_document(document, [worker.id.to_string()], |screen| {
        let none = || "–".to_owned();
        let unavailable = match worker.gpus_unavailable {
            0 => String::new(),
            number => format!(", {number} unavailable"),
        };
        let jobs: Vec<String> = worker.jobs.iter().map(|job| format!("{} ({})", job.job_id, job.config_name)).collect();
        let kind = worker.worker_type.map_or("set by the agent", WorkerType::as_str);
        let facts = screen.format_facts(&[
            ("name", TableCell::from(&worker.name)),
            ("id", TableCell::from(worker.id.as_str())),
            ("status", status_cell(&worker)),
            ("since", terminal::timestamp(worker.status_since).into()),
            ("unhealthy", worker.unhealthy_reason.clone().unwrap_or_else(none).into()),
            ("drain reason", worker.drain_reason.clone().unwrap_or_else(none).into()),
            ("type", kind.into()),
            ("gpus", format!("{}{unavailable}", gpu_models(&worker)).into()),
            ("labels", format_labels(&worker.labels).into()),
            ("jobs", jobs.join(", ").into()),
            ("last seen", last_seen(&worker, now).into()),
            ("host", worker.hostname.clone().unwrap_or_else(none).into()),
            ("agent", worker.agent_version.clone().unwrap_or_else(none).into()),
            ("created", terminal::timestamp(worker.created_at).into()),
            ("token expiry", token_expiry(&worker).into()),
        ]);
        if worker.gpus.is_empty() {
            return facts;
        }
        format!("{facts}\n{}", screen.format_table(&gpus::table(&worker.gpus, now)))
    })
}

/// Returns when a worker's token expires.
fn token_expiry(worker: &WorkerView) -> String {
    match (worker.token_expires_at, worker.token_unused_ends_at) {
        (Some(at), _) => terminal::timestamp(at),
        (None, Some(at)) => format!("{}, unless an agent registers first", terminal::timestamp(at)),
        (None, None) => "never".to_owned(),
    }
}

fn status_cell(worker: &WorkerView) -> TableCell {
    let style = match worker.status {
        WorkerStatus::Idle => CellStyle::Success,
        WorkerStatus::Busy => CellStyle::Active,
        WorkerStatus::Connecting | WorkerStatus::Draining => CellStyle::Warning,
        WorkerStatus::Offline if worker.last_heartbeat.is_none() => CellStyle::Dim,
        WorkerStatus::Offline => CellStyle::Error,
    };
    let status = worker.status.as_str();
    let draining = worker.draining && worker.status != WorkerStatus::Draining;
    TableCell::new(if draining { format!("{status}, draining") } else { status.to_owned() }, style)
}

fn gpu_models(worker: &WorkerView) -> String {
    let memory = worker.gpu_vram_gb.map(|gb| format!(" {gb:.0} GB")).unwrap_or_default();
    match (&worker.gpu_name, worker.gpu_count) {
        (_, 0) => worker.accelerator_type.clone().unwrap_or_default(),
        (Some(name), 1) => format!("{name}{memory}"),
        (Some(name), count) => format!("{count}× {name}{memory}"),
        (None, count) => format!("{count}"),
    }
}

fn format_labels(labels: &Labels) -> String {
    let pairs: Vec<String> = labels.0.iter().map(|(key, value)| format!("{key}={value}")).collect();
    pairs.join(" ")
}

fn last_seen(worker: &WorkerView, now: Timestamp) -> String {
    worker.last_heartbeat.map_or_else(|| "never".to_owned(), |at| terminal::ago(at, now))
}

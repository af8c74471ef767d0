//! `simpletuner workers …`

use app::domain::labels::Labels;
use app::domain::roster::query::quoted;
use app::domain::time::Timestamp;
use app::protocol::status::{WorkerStatus, WorkerType};
use app::protocol::workers::{
    CreateWorker, CreatedWorker, DrainWorker, RotateToken, TokenLife, WorkerView, WorkersQuery, names_own_host,
};
use app::ui::terminal;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::client::Client;
use super::gpus;
use super::operate::{read, words};
use super::screen::{Form, Screen};
use super::table::{Cell, Paint, Table};
use crate::boot::exit::Exit;

/// Which worker: its name or its id.
#[derive(Debug, Clone, Args)]
pub struct Which {
    /// The worker's name or id.
    #[arg(value_name = "WORKER")]
    worker: String,
}

/// What can be done with workers.
#[derive(Debug, Clone, Subcommand)]
pub enum WorkersCommand {
    /// List workers.
    List(List),
    /// Show one worker.
    Show(Which),
    /// Make a worker; prints its token, this once.
    Create(Create),
    /// Let a worker finish what it runs, and give it nothing new.
    Drain(Drain),
    /// Take a drain back.
    Resume(Which),
    /// Give a worker a new token, and print it; the old one opens nothing from then on, but for an --overlap.
    Rotate(Rotate),
    /// Remove a worker and its token.
    Delete(Which),
}

/// `simpletuner workers list`
#[derive(Debug, Clone, Default, Args)]
pub struct List {
    /// Only workers in this status.
    #[arg(long, value_parser = words(WorkerStatus::ALL.iter().map(|status| status.as_str())))]
    status: Option<String>,
    /// Only workers with this label: KEY, or KEY=VALUE, which may be a pattern.
    #[arg(long)]
    label: Option<String>,
    /// Only workers whose name, id, GPU or label contains this.
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
}

/// `simpletuner workers create`
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct Create {
    /// Its name, of 1 to 64 characters.
    name: String,
    /// It stays between jobs.
    #[arg(long, conflicts_with = "ephemeral")]
    persistent: bool,
    /// It goes after one job. Left out, the agent decides.
    #[arg(long)]
    ephemeral: bool,
    /// A label to match jobs by (repeatable).
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = super::operate::label)]
    labels: Vec<(String, String)>,
    /// Labels that the agent reports are not to count.
    #[arg(long)]
    ignore_reported_labels: bool,
    /// Refuse agents of the older protocol, which use the worker's token for everything.
    #[arg(long)]
    refuse_older_agents: bool,
    /// The agent may come from this network only (repeatable).
    #[arg(long = "network", value_name = "CIDR")]
    networks: Vec<String>,
    #[command(flatten)]
    life: Life,
}

/// When a new token ends.
#[derive(Debug, Clone, Copy, Args)]
pub struct Life {
    /// The token ends after so many days [default: never, once an agent has registered with it].
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=3_660))]
    expires_in_days: Option<u32>,
}

impl From<Life> for TokenLife {
    fn from(life: Life) -> Self {
        Self { expires_in_seconds: life.expires_in_days.map(|days| days * 86_400), ..Self::default() }
    }
}

/// `simpletuner workers rotate`
#[derive(Debug, Clone, Args)]
pub struct Rotate {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    life: Life,
    /// The old token works for so many seconds more, or until an agent registers with the new one.
    #[arg(long, value_name = "SECONDS")]
    overlap: Option<u32>,
}

/// `simpletuner workers drain`
#[derive(Debug, Clone, Args)]
pub struct Drain {
    #[command(flatten)]
    which: Which,
    /// Why, for whoever looks later.
    #[arg(long)]
    reason: Option<String>,
    /// After so many seconds what still runs is stopped and goes back to the queue.
    #[arg(long, value_name = "SECONDS")]
    deadline: Option<u32>,
}

/// Does it.
pub async fn run(command: WorkersCommand, client: &Client, screen: &mut Screen<'_>) -> Result<(), Exit> {
    match command {
        WorkersCommand::List(list) => self::list(list, client, screen).await,
        WorkersCommand::Show(which) => {
            let found = find(client, &which).await?;
            let worker = client.get(&["admin", "workers", id(&found)]).await?;
            show(&worker, screen)
        }
        WorkersCommand::Create(create) => self::create(create, client, screen).await,
        WorkersCommand::Drain(drain) => {
            let worker = find(client, &drain.which).await?;
            let body = DrainWorker { reason: drain.reason, deadline_seconds: drain.deadline };
            let drained = client.post(&["admin", "workers", id(&worker), "drain"], &body).await?;
            screen.say(format!("{} drains: it finishes what it runs, and gets nothing new.", name(&worker)))?;
            changed(&drained, screen)
        }
        WorkersCommand::Resume(which) => {
            let worker = find(client, &which).await?;
            let resumed = client.post(&["admin", "workers", id(&worker), "resume"], &json!({})).await?;
            screen.say(format!("{} takes jobs again.", name(&worker)))?;
            changed(&resumed, screen)
        }
        WorkersCommand::Rotate(rotate) => {
            let worker = find(client, &rotate.which).await?;
            let question =
                format!("Give {} a new token? The one that its agent has opens nothing then.", name(&worker));
            screen.confirm(&question)?;
            let rotated = client
                .post(
                    &["admin", "workers", id(&worker), "token"],
                    &RotateToken { life: rotate.life.into(), overlap_seconds: rotate.overlap },
                )
                .await?;
            secret(&rotated, screen)
        }
        WorkersCommand::Delete(which) => {
            let worker = find(client, &which).await?;
            screen.confirm(&format!("Delete {}? Its token opens nothing then.", name(&worker)))?;
            let deleted = client.delete(&["admin", "workers", id(&worker)]).await?;
            screen.say(format!("{} is gone.", name(&worker)))?;
            screen.answer(&deleted, [id(&worker).to_owned()], |_| String::new())
        }
    }
}

async fn list(list: List, client: &Client, screen: &mut Screen<'_>) -> Result<(), Exit> {
    let query = WorkersQuery {
        status: list.status.as_deref().and_then(WorkerStatus::parse),
        label: list.label,
        q: list.search,
        ..WorkersQuery::default()
    };
    let page = client.list(&["admin", "workers"], &query, "workers", None).await?;
    let workers: Vec<WorkerView> = read(&page["workers"])?;
    if workers.is_empty() {
        screen.say("No workers. Make one with `simpletuner workers create NAME`.")?;
    }
    let ids = workers.iter().map(|worker| worker.id.to_string());
    let now = read::<Option<Timestamp>>(&page["server_time"])?.unwrap_or(screen.now());
    screen.answer(
        &page,
        ids,
        |screen| if workers.is_empty() { String::new() } else { screen.table(&table(&workers, now)) },
    )
}

async fn create(create: Create, client: &Client, screen: &mut Screen<'_>) -> Result<(), Exit> {
    let worker_type = match (create.persistent, create.ephemeral) {
        (true, _) => Some(WorkerType::Persistent),
        (false, true) => Some(WorkerType::Ephemeral),
        (false, false) => None,
    };
    let body = CreateWorker {
        name: create.name,
        worker_type,
        labels: super::operate::labels(create.labels),
        ignore_reported_labels: create.ignore_reported_labels,
        refuse_older_agents: create.refuse_older_agents,
        allowed_networks: create.networks,
        life: create.life.into(),
    };
    let created = client.post(&["admin", "workers"], &body).await?;
    secret(&created, screen)
}

/// The worker of this name or id.
async fn find(client: &Client, which: &Which) -> Result<Value, Exit> {
    let query = WorkersQuery { q: Some(quoted(&which.worker)), ..WorkersQuery::default() };
    let mut page = client.list(&["admin", "workers"], &query, "workers", None).await?;
    let found = page["workers"].as_array_mut().and_then(|workers| {
        let at = workers.iter().position(|worker| [name(worker), id(worker)].contains(&which.worker.as_str()))?;
        Some(workers.swap_remove(at))
    });
    found.ok_or_else(|| {
        Exit::failed(format!("there is no worker {:?}; `simpletuner workers list` shows them", which.worker))
    })
}

fn id(worker: &Value) -> &str {
    worker["id"].as_str().unwrap_or_default()
}

fn name(worker: &Value) -> &str {
    worker["name"].as_str().unwrap_or_default()
}

fn changed(worker: &Value, screen: &mut Screen<'_>) -> Result<(), Exit> {
    screen.answer(worker, [id(worker).to_owned()], |_| String::new())
}

/// The token to stdout, alone; the talk about it without it.
fn secret(document: &Value, screen: &mut Screen<'_>) -> Result<(), Exit> {
    let created: CreatedWorker = read(document)?;
    let command = created.connection_command.replace(&created.token, "wt_…");
    screen.say(format!("{} ({}) has this token, shown this once:", created.name, created.worker_id))?;
    if let Some(end) = created.token_unused_ends_at {
        screen.say(format!("It expires on {} if no agent registers with it by then.", terminal::moment(end)))?;
    }
    match screen.form {
        Form::Json => screen.line(format!("{document:#}"))?,
        Form::Words | Form::Ids => screen.line(&created.token)?,
    }
    screen.say(format!("On the GPU machine, with the token in place of wt_…:\n  {command}"))?;
    if names_own_host(&command) {
        screen.say("That is this machine's own address for the server; another machine needs one that it reaches.")?;
    }
    Ok(())
}

fn table(workers: &[WorkerView], now: Timestamp) -> Table {
    let mut table = Table::new(&["NAME", "STATUS!", "GPUS", "JOBS", "LABELS?", "SEEN?", "ID!"]);
    for worker in workers {
        let jobs: Vec<&str> = worker.jobs.iter().map(|job| job.config_name.as_str()).collect();
        table.row(vec![
            Cell::from(&worker.name),
            status(worker),
            models(worker).into(),
            jobs.join(", ").into(),
            labels(&worker.labels).into(),
            Cell::new(seen(worker, now), Paint::Dim),
            Cell::from(worker.id.as_str()),
        ]);
    }
    table
}

fn show(document: &Value, screen: &mut Screen<'_>) -> Result<(), Exit> {
    let worker: WorkerView = read(document)?;
    let now = screen.now();
    screen.answer(document, [worker.id.to_string()], |screen| {
        let none = || "–".to_owned();
        let withheld = match worker.gpus_withheld {
            0 => String::new(),
            number => format!(", {number} withheld"),
        };
        let jobs: Vec<String> = worker.jobs.iter().map(|job| format!("{} ({})", job.job_id, job.config_name)).collect();
        let kind = worker.worker_type.map_or("as its agent says", WorkerType::as_str);
        let facts = screen.facts(&[
            ("name", Cell::from(&worker.name)),
            ("id", Cell::from(worker.id.as_str())),
            ("status", status(&worker)),
            ("since", terminal::moment(worker.status_since).into()),
            ("unfit", worker.unfit.clone().unwrap_or_else(none).into()),
            ("drain reason", worker.drain_reason.clone().unwrap_or_else(none).into()),
            ("type", kind.into()),
            ("gpus", format!("{}{withheld}", models(&worker)).into()),
            ("labels", labels(&worker.labels).into()),
            ("jobs", jobs.join(", ").into()),
            ("seen", seen(&worker, now).into()),
            ("host", worker.hostname.clone().unwrap_or_else(none).into()),
            ("agent", worker.agent_version.clone().unwrap_or_else(none).into()),
            ("made", terminal::moment(worker.created_at).into()),
            ("token ends", token_end(&worker).into()),
        ]);
        if worker.gpus.is_empty() {
            return facts;
        }
        format!("{facts}\n{}", screen.table(&gpus::table(&worker.gpus, now)))
    })
}

/// When a worker's token expires.
fn token_end(worker: &WorkerView) -> String {
    match (worker.token_expires_at, worker.token_unused_ends_at) {
        (Some(at), _) => terminal::moment(at),
        (None, Some(at)) => format!("{}, unless an agent registers before", terminal::moment(at)),
        (None, None) => "never".to_owned(),
    }
}

fn status(worker: &WorkerView) -> Cell {
    let paint = match worker.status {
        WorkerStatus::Idle => Paint::Good,
        WorkerStatus::Busy => Paint::Busy,
        WorkerStatus::Connecting | WorkerStatus::Draining => Paint::Odd,
        WorkerStatus::Offline if worker.last_heartbeat.is_none() => Paint::Dim,
        WorkerStatus::Offline => Paint::Bad,
    };
    let word = worker.status.as_str();
    let draining = worker.draining && worker.status != WorkerStatus::Draining;
    Cell::new(if draining { format!("{word}, draining") } else { word.to_owned() }, paint)
}

fn models(worker: &WorkerView) -> String {
    let memory = worker.gpu_vram_gb.map(|gb| format!(" {gb:.0} GB")).unwrap_or_default();
    match (&worker.gpu_name, worker.gpu_count) {
        (_, 0) => worker.accelerator_type.clone().unwrap_or_default(),
        (Some(name), 1) => format!("{name}{memory}"),
        (Some(name), count) => format!("{count}× {name}{memory}"),
        (None, count) => format!("{count}"),
    }
}

fn labels(labels: &Labels) -> String {
    let pairs: Vec<String> = labels.0.iter().map(|(key, value)| format!("{key}={value}")).collect();
    pairs.join(" ")
}

fn seen(worker: &WorkerView, now: Timestamp) -> String {
    worker.last_heartbeat.map_or_else(|| "never".to_owned(), |at| terminal::ago(at, now))
}

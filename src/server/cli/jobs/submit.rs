//! `simpletuner jobs submit`

use app::domain::sandbox::SandboxLevel;
use app::protocol::dispatch::CheckpointPolicy;
use app::protocol::status::Target;
use app::protocol::submit::{Previewed, SubmitJob, Submitted};
use clap::Args;
use reqwest::Method;
use serde_json::Value;

use super::{logs, standing, submitted, views};
use crate::boot::exit::Exit;
use crate::cli::client::{Call, Client};
use crate::cli::operate::{label, labels, read, setting, words};
use crate::cli::screen::Screen;
use crate::random::{OsRandom, Random};
use crate::tokens::hex;

/// See the module.
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct Submit {
    /// The configuration to run.
    config: String,
    /// Where it may run.
    #[arg(long, default_value = "auto", value_parser = words(Target::ALL.iter().map(|target| target.as_str())))]
    target: String,
    /// A label that the worker must have (repeatable); the value may be a pattern.
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    labels: Vec<(String, String)>,
    /// How many GPUs [default: as the configuration says].
    #[arg(long, value_name = "N")]
    gpus: Option<u32>,
    /// Least memory of each GPU.
    #[arg(long, value_name = "GB")]
    min_vram: Option<f64>,
    /// The kind of accelerator.
    #[arg(long, value_name = "KIND", value_parser = ["cuda", "rocm", "mps", "xpu", "cpu"])]
    accelerator: Option<String>,
    /// How urgent it is: 0 to 50.
    #[arg(long, default_value_t = app::domain::queue::DEFAULT_PRIORITY, value_parser = clap::value_parser!(u8).range(0..=50))]
    priority: u8,
    /// How often a lost attempt may be started again.
    #[arg(long, value_name = "N", default_value_t = 3)]
    max_retries: u32,
    /// Try again too when the trainer itself fails.
    #[arg(long)]
    retry_on_failure: bool,
    /// After so many seconds of training an attempt is stopped, and the job has failed.
    #[arg(long, value_name = "SECONDS")]
    max_runtime: Option<u32>,
    /// Never run two trainers of it at once: an agent that loses contact stops its own.
    #[arg(long)]
    exclusive: bool,
    /// Confine the trainer at least this closely; a worker's own level, if it is higher, counts.
    #[arg(long, value_name = "LEVEL", default_value = "none", value_parser = words(SandboxLevel::ALL.iter().map(|level| level.as_str())))]
    sandbox: String,
    /// Which checkpoints are sent here, to go on from elsewhere.
    #[arg(long, value_name = "WHICH", default_value = "last", value_parser = words(CheckpointPolicy::ALL.iter().map(|policy| policy.as_str())))]
    checkpoints: String,
    /// Give the job this secret (repeatable) [default: none].
    #[arg(long = "secret", value_name = "NAME")]
    secrets: Vec<String>,
    /// Run this revision [default: the newest]. Required if somebody else has changed the configuration since your last run.
    #[arg(long, value_name = "N")]
    config_revision: Option<u32>,
    /// Override a value of the configuration for this job (repeatable); KEY= removes the key.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = setting)]
    set: Vec<(String, Value)>,
    /// Only say what would become of it.
    #[arg(long, conflicts_with = "follow")]
    dry_run: bool,
    /// Print its log until it ends; the exit code says how.
    #[arg(long, short)]
    follow: bool,
    /// Submits with the same key make one job [default: a new one for each command].
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
}

impl Submit {
    /// What it asks of the API.
    pub fn job(&self) -> SubmitJob {
        SubmitJob {
            target: Target::parse(&self.target).unwrap_or(Target::Auto),
            worker_labels: labels(self.labels.clone()),
            gpu_count: self.gpus,
            min_vram_gb: self.min_vram,
            accelerator_type: self.accelerator.clone(),
            priority: self.priority,
            max_retries: self.max_retries,
            retry_on_failure: self.retry_on_failure,
            max_runtime_seconds: self.max_runtime,
            secrets: Some(self.secrets.clone()).filter(|names| !names.is_empty()),
            config_revision: self.config_revision,
            overrides: self.set.iter().cloned().collect(),
            exclusive: self.exclusive,
            sandbox: SandboxLevel::parse(&self.sandbox).unwrap_or_default(),
            checkpoints: CheckpointPolicy::parse(&self.checkpoints).unwrap_or_default(),
            dry_run: self.dry_run,
            ..SubmitJob::of(&self.config)
        }
    }
}

/// Does it.
pub async fn run(submit: Submit, client: &Client, screen: &mut Screen<'_>) -> Result<(), Exit> {
    let job = submit.job();
    // A try whose answer was lost on the way is repeated, and must not make a second job.
    let key = submit.idempotency_key.unwrap_or_else(|| hex(&<dyn Random>::bytes::<16>(&OsRandom)));
    let document = client.json(Call::new(Method::POST, &["queue", "submit"]).body(&job).key(key)).await?;
    if submit.dry_run {
        let preview: Previewed = read(&document)?;
        let worker = preview.allocated_worker_id.iter().map(ToString::to_string).collect::<Vec<_>>();
        return screen.answer(&document, worker, |screen| views::explanation(&preview.explanation, screen));
    }
    if !submit.follow {
        return submitted(&document, screen);
    }
    let new: Submitted = read(&document)?;
    screen.say(format!("{} {}", new.job_id, standing(&new)))?;
    logs::follow(new.job_id.as_str(), None, client, screen).await
}

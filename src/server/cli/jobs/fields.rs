//! The fields of a job on the command line: the flags of a submit, and what `jobs show` prints of them.

use app::domain::sandbox::SandboxLevel;
use app::protocol::agents::dispatch::CheckpointPolicy;
use app::protocol::jobs::overrides;
use app::protocol::jobs::{JobView, SubmitJob};
use app::protocol::status::Target;
use clap::Args;
use serde_json::Value;

use crate::cli::run::{collect_labels, one_of, parse_label, parse_override};
use crate::cli::table::TableCell;

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
    /// Run this revision [default: the newest]. Required if another user has changed the configuration since your last run.
    #[arg(long, value_name = "N")]
    config_revision: Option<u32>,
    /// Override a value of the configuration for this job (repeatable); KEY= removes the key.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_override)]
    set: Vec<(String, Value)>,
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
        }
    }
}

/// Returns what a job was submitted with, for `jobs show`.
pub fn submitted_facts(job: &JobView) -> Vec<(&'static str, TableCell)> {
    let overrides = overrides::to_lines(&overrides::to_values(&job.overrides)).join(" ");
    let labels: Vec<String> = job.worker_labels.0.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let mut facts = Vec::new();
    facts.extend((!overrides.is_empty()).then(|| ("overrides", overrides.into())));
    facts.extend(job.resume_from.as_deref().map(|from| ("resume", from.into())));
    facts.extend([
        ("target", job.target.as_str().into()),
        ("labels", labels.join(" ").into()),
        ("exclusive", if job.exclusive { "yes" } else { "no" }.into()),
        ("sandbox", job.sandbox.as_str().into()),
    ]);
    facts
}

//! The fields of a job between the API and the domain: a submit becomes a spec, and a job a view.

use std::collections::BTreeMap;
use std::sync::Arc;

use app::domain::allowed_values::{AllowedValues, LimitedItems};
use app::domain::job::{CheckpointUploads, Demand, Job, JobDescription, JobSpec, JobTarget, StartPoint};
use app::domain::job_share::DEFAULT_TEAM;
use app::domain::secret::variable_name;
use app::domain::time::Millis;
use app::protocol::agents::dispatch::CheckpointPolicy;
use app::protocol::jobs::overrides::OverrideDiff;
use app::protocol::jobs::{JobView, SubmitJob};
use app::protocol::status::Target;

use super::overrides;
use crate::service::configs::{named_files, named_paths, num_processes};
use crate::service::error::{InvalidField, InvalidInput, ServiceError};
use crate::store::configs::StoredConfig;

/// The longest maximum run time of an attempt, in seconds: a year.
const MAX_RUNTIME_SECONDS: u32 = 31_536_000;
/// The maximum number of secrets of a job.
const MAX_SECRETS: usize = 64;

/// Returns the invalid fields of a submit, independent of configurations and workers.
pub fn invalid_fields(submit: &SubmitJob) -> Vec<InvalidField> {
    let check_range = |is_invalid: bool, field, allowed| is_invalid.then(|| InvalidField::out_of_range(field, allowed));
    let gpus = submit.gpu_count.is_some_and(|count| !SubmitJob::GPU_COUNTS.contains(count.into()));
    let memory = submit.min_vram_gb.is_some_and(|gb| !(gb > 0.0 && gb < 100_000.0));
    let runtime = submit.max_runtime_seconds.is_some_and(|seconds| !(1..=MAX_RUNTIME_SECONDS).contains(&seconds));
    let is_known = |name: &String| ["cuda", "rocm", "mps", "xpu", "cpu"].contains(&name.as_str());
    let accelerator = submit.accelerator_type.as_ref().is_some_and(|name| !is_known(name));
    [
        submit.worker_labels.validate().err().map(|error| InvalidField::new("worker_labels", error)),
        check_priority(submit.priority).err().map(|invalid| InvalidField::new("priority", invalid)),
        check_range(gpus, "gpu_count", SubmitJob::GPU_COUNTS),
        check_range(memory, "min_vram_gb", AllowedValues::Positive),
        check_range(runtime, "max_runtime_seconds", AllowedValues::Runtime),
        check_secret_count(submit.secrets.as_deref()).err().map(|invalid| InvalidField::new("secrets", invalid)),
        check_range(!SubmitJob::RETRIES.contains(submit.max_retries.into()), "max_retries", SubmitJob::RETRIES),
        check_range(accelerator, "accelerator_type", AllowedValues::Accelerator),
    ]
    .into_iter()
    .flatten()
    .chain(invalid_description_fields(submit))
    .collect()
}

/// Parses the description of a submit; an error is a field with what is allowed in it.
pub(super) fn description(submit: &SubmitJob) -> Result<JobDescription, InvalidInput> {
    let SubmitJob { name, tags, notes, .. } = submit;
    let parsed = JobDescription::parse(name.as_deref(), tags.iter().map(String::as_str), notes.as_deref());
    parsed.map_err(|(field, allowed)| InvalidInput::OutOfRange { field, allowed })
}

/// All invalid fields of a description: each is parsed without the others.
fn invalid_description_fields(submit: &SubmitJob) -> impl Iterator<Item = InvalidField> {
    let SubmitJob { name, tags, notes, .. } = submit;
    let parts = [
        JobDescription::parse(name.as_deref(), [], None),
        JobDescription::parse(None, tags.iter().map(String::as_str), None),
        JobDescription::parse(None, [], notes.as_deref()),
    ];
    parts.into_iter().filter_map(Result::err).map(|(field, allowed)| InvalidField::out_of_range(field, allowed))
}

pub(super) fn check_secret_count(secrets: Option<&[String]>) -> Result<(), InvalidInput> {
    if secrets.is_some_and(|names| names.len() > MAX_SECRETS) {
        return Err(InvalidInput::TooMuch { items: LimitedItems::Secrets, limit: MAX_SECRETS as u64 });
    }
    Ok(())
}

pub(super) fn check_priority(priority: u8) -> Result<(), InvalidInput> {
    let allowed = SubmitJob::PRIORITIES;
    let is_allowed = allowed.contains(priority.into());
    if is_allowed { Ok(()) } else { Err(InvalidInput::OutOfRange { field: "priority", allowed }) }
}

pub(super) fn secret_variables(names: &[String]) -> Vec<String> {
    names.iter().filter_map(|name| variable_name(name)).collect()
}

/// Builds the requirements of a job from its submit.
pub(super) fn build_spec(
    submit: &SubmitJob,
    config: &Arc<StoredConfig>,
    allow_code: bool,
) -> Result<JobSpec, ServiceError> {
    let (overrides, config) = overrides::apply(config, &submit.overrides, allow_code)?;
    let num_processes = num_processes(&config);
    Ok(JobSpec {
        config_name: config.name.clone(),
        config_revision: config.revision,
        target: match submit.target {
            Target::Auto => JobTarget::Auto,
            Target::Worker => JobTarget::Worker,
            Target::Local => JobTarget::Local,
        },
        demand: Demand {
            labels: submit.worker_labels.clone(),
            gpu_count: submit.gpu_count.or(num_processes.filter(|number| *number > 1)),
            min_vram_gb: submit.min_vram_gb,
            accelerator: submit.accelerator_type.clone(),
            sandbox: submit.sandbox,
        },
        num_processes,
        max_retries: submit.max_retries,
        retry_on_failure: submit.retry_on_failure,
        max_runtime: submit.max_runtime_seconds.map(|seconds| Millis::from_secs(seconds.into())),
        exclusive: submit.exclusive,
        checkpoints: match submit.checkpoints {
            CheckpointPolicy::None => CheckpointUploads::None,
            CheckpointPolicy::Last => CheckpointUploads::Last,
            CheckpointPolicy::All => CheckpointUploads::All,
        },
        secrets: Some(secret_variables(submit.secrets.as_deref().unwrap_or_default())),
        shared_secrets_only: false,
        files: named_files(&config),
        paths: named_paths(&config),
        overrides,
        start: StartPoint::NewestCheckpoint,
        // `shares::resolve_team` sets it.
        team: DEFAULT_TEAM.to_owned(),
        class: submit.class,
    })
}

/// Converts to the wire type.
pub const fn checkpoint_policy(checkpoints: CheckpointUploads) -> CheckpointPolicy {
    match checkpoints {
        CheckpointUploads::None => CheckpointPolicy::None,
        CheckpointUploads::Last => CheckpointPolicy::Last,
        CheckpointUploads::All => CheckpointPolicy::All,
    }
}

/// Describes a job by itself; its caller adds the queue, attempts and workers.
pub(super) fn submitted_view(job: &Job) -> JobView {
    let (spec, demand) = (&job.spec, &job.spec.demand);
    JobView {
        job_id: job.id.clone(),
        status: job.state.status(),
        status_since: job.state_since(),
        config_name: spec.config_name.clone(),
        config_revision: spec.config_revision,
        number: job.number,
        name: job.description.name.clone(),
        tags: job.description.tags.clone(),
        starred_by: job.starred_by.clone(),
        notes: None,
        target: match spec.target {
            JobTarget::Auto => Target::Auto,
            JobTarget::Worker => Target::Worker,
            JobTarget::Local => Target::Local,
        },
        worker_labels: demand.labels.clone(),
        gpu_count: demand.gpu_count,
        min_vram_gb: demand.min_vram_gb,
        accelerator_type: demand.accelerator.clone(),
        retry_on_failure: spec.retry_on_failure,
        max_runtime_seconds: spec.max_runtime.map(|allowed| allowed.0.unsigned_abs() / 1_000),
        secrets: spec.secrets.clone(),
        shared_secrets_only: spec.shared_secrets_only,
        exclusive: spec.exclusive,
        sandbox: demand.sandbox,
        checkpoints: checkpoint_policy(spec.checkpoints),
        priority: job.priority,
        team: spec.team.clone(),
        class: spec.class,
        retry_of: job.retry_of.clone(),
        resume_from: job.retry_of.as_ref().map(|_| match &spec.start {
            StartPoint::Checkpoint(saved) => saved.name.clone(),
            start => start.to_string(),
        }),
        overrides: OverrideDiff::new(),
        resumable: Vec::new(),
        last_completed: None,
        family: None,
        attempt: job.attempt,
        max_attempts: spec.max_retries + 1,
        worker_id: None,
        worker_name: None,
        older_agent: false,
        submitted_at: job.submitted_at,
        submitted_by: job.submitted_by.clone(),
        started_at: None,
        ended_at: job.has_ended().then(|| job.state_since()),
        retry_at: job.state.waiting().and_then(|waiting| waiting.not_before),
        cancelled_by: None,
        queue_position: None,
        fits_none: false,
        progress: None,
        values: BTreeMap::new(),
        error: None,
        loss_code: None,
        error_line: None,
        attempts: None,
    }
}

/// Returns values of a field with which a submit is rejected, for tests of this and of the API.
#[cfg(test)]
pub fn invalid_values(field: &str) -> Vec<serde_json::Value> {
    use serde_json::{Value, json};

    let outside = |allowed: AllowedValues| -> Vec<Value> {
        let (min, max) = allowed.limits().expect("limits");
        min.checked_sub(1).into_iter().chain([max + 1]).map(Value::from).collect()
    };
    match field {
        "worker_labels" => {
            let many = (0..33).map(|n| (format!("k{n}"), json!("v"))).collect();
            let long = "*".repeat(10_000);
            vec![json!({"a": 5}), json!({"": "x"}), json!({"a": "x\u{7}"}), json!({"a": long}), Value::Object(many)]
        }
        "gpu_count" => outside(SubmitJob::GPU_COUNTS),
        "min_vram_gb" => vec![json!(0), json!(-1), json!(1e9)],
        "accelerator_type" => vec![json!("abacus")],
        "max_retries" => outside(SubmitJob::RETRIES),
        "max_runtime_seconds" => vec![json!(0), json!(MAX_RUNTIME_SECONDS + 1)],
        "secrets" => vec![json!(vec!["A_KEY"; MAX_SECRETS + 1])],
        "name" => vec![json!("a\nb"), json!("a".repeat(10_000))],
        "tags" => vec![json!(["a,b"]), json!([""]), json!((0..100).map(|n| n.to_string()).collect::<Vec<_>>())],
        "notes" => vec![json!("a".repeat(10_001)), json!("\u{1b}[31m")],
        "priority" => [outside(SubmitJob::PRIORITIES), vec![json!(256)]].concat(),
        // `resolve_revision`, `resolve_team` and `overrides::apply` check these.
        "config_name" => vec![json!("nope"), json!("../etc")],
        "config_revision" => vec![json!(99)],
        "overrides" => vec![json!({"a b": 1})],
        // The first four have unknown words, the others no invalid value of their type.
        "target" | "sandbox" | "checkpoints" | "class" => vec![json!("some")],
        "team" => vec![json!("nope"), json!("a/b")],
        "retry_on_failure" | "exclusive" | "dry_run" => Vec::new(),
        _ => panic!("with which values of {field} is a submit rejected?"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;

    /// Fields that are valid whatever their value is, or that are checked against configurations.
    const NOT_CHECKED: [&str; 11] = [
        "team",
        "class",
        "target",
        "retry_on_failure",
        "exclusive",
        "sandbox",
        "checkpoints",
        "dry_run",
        "config_name",
        "config_revision",
        "overrides",
    ];

    #[test]
    fn each_field_of_a_submit_is_checked_or_listed_as_not_checked() {
        let example = json!(SubmitJob::example());
        let is_checked = |field: &&str| {
            let with_value = |value| {
                let mut submit = example.clone();
                submit[*field] = value;
                serde_json::from_value::<SubmitJob>(submit).ok()
            };
            let submits: Vec<SubmitJob> = invalid_values(field).into_iter().filter_map(with_value).collect();
            let is_found = |submit| invalid_fields(submit).iter().any(|invalid| invalid.field == *field);
            !submits.is_empty() && submits.iter().all(is_found)
        };
        let fields = example.as_object().expect("an object").keys().map(String::as_str);
        let unchecked: BTreeSet<&str> = fields.filter(|field| !is_checked(field)).collect();
        assert_eq!(unchecked, BTreeSet::from(NOT_CHECKED));
        assert_eq!(invalid_fields(&SubmitJob::example()), []);
    }
}

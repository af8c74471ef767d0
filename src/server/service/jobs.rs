//! What people do with jobs: submit, cancel, try again, and say how urgent they are.

use std::sync::Arc;

use app::domain::access::{Permission, Permissions};
use app::domain::audit::Action;
use app::domain::ids::JobId;
use app::domain::job::{Checkpoints, Demand, Job, Spec, Start, Target};
use app::domain::queue::{DEFAULT_PRIORITY, MAX_PRIORITY};
use app::domain::secret::variable;
use app::domain::time::{Millis, Timestamp};
use app::protocol::dispatch::CheckpointPolicy;
use app::protocol::status::Target as TargetWord;
use app::protocol::submit::SubmitJob;
use app::protocol::topic::Topic;
use serde_json::{Value, json};

use super::Core;
use super::refusal::{Invalid, Limit, Refusal};
use super::unit::{Caller, Unit};
use crate::store::configs::StoredConfig;
use crate::tokens;

const MAX_GPUS: u32 = 64;
const MAX_RETRIES: u32 = 100;
/// The longest time that an attempt may be given, in seconds: a year.
const LONGEST_RUNTIME: u32 = 31_536_000;
/// The most secrets that a job names.
const MAX_SECRETS: usize = 64;
/// The longest `Idempotency-Key`, in bytes.
const MAX_KEY: usize = 255;
/// How long a key is remembered.
const KEYS_KEPT: Millis = Millis::seconds(86_400);

impl Core {
    /// Takes a job. What can never run on today's fleet waits, and says so.
    ///
    /// With a `key` (the `Idempotency-Key` header) the same submit makes one job, however often it comes.
    pub async fn submit(
        self: &Arc<Self>,
        caller: Caller,
        submit: SubmitJob,
        key: Option<String>,
    ) -> Result<Job, Refusal> {
        check(&submit)?;
        check_key(key.as_deref())?;
        let id = self.next_job_id();
        let input = Arc::new((id, submit, key));
        self.change(caller, move |unit| {
            let input = Arc::clone(&input);
            Box::pin(async move {
                let (id, submit, key) = &*input;
                let asked = serde_json::to_string(submit).expect("plain fields");
                if let Some(job) = made_before(unit, key.as_deref(), &asked).await? {
                    return Ok(job);
                }
                let job = submit_in(unit, id, submit).await?;
                remember(unit, key.as_deref(), &asked, job).await
            })
        })
        .await
    }

    /// What would become of a submit: the job that it would make, which is not kept.
    pub async fn drafted(&self, by: String, submit: &SubmitJob) -> Result<Job, Refusal> {
        check(submit)?;
        let mut tx = self.read().await?;
        let config = super::configs::chosen(&mut *tx, &by, &submit.config_name, submit.config_revision).await?;
        super::secrets::check_named(&mut *tx, &by, submit.secrets.as_deref()).await?;
        let id = self.next_job_id();
        Ok(made(id, spec(submit, &config, self.policy.allow_code)?, submit.priority, self.now(), by))
    }

    /// Makes a job more or less urgent; tells how urgent it was.
    pub async fn set_priority(self: &Arc<Self>, caller: Caller, id: JobId, priority: u8) -> Result<u8, Refusal> {
        check_priority(priority)?;
        self.change(caller, move |unit| {
            let id = id.clone();
            Box::pin(async move {
                let before = unit.job(&id).await?;
                let after = before.clone().prioritised(priority)?;
                if after != before {
                    unit.tx.update_job(&before, &after).await?;
                    let detail = json!({"before": before.priority, "after": priority});
                    unit.record(Action::JobPrioritised, id.as_str(), &detail).await?;
                    unit.touch(Topic::Jobs);
                    unit.touch(Topic::Job(id));
                    unit.plan_after();
                }
                Ok(before.priority)
            })
        })
        .await
    }

    /// Forgets which keys made which jobs, a day after.
    pub async fn sweep_idempotency_keys(self: &Arc<Self>) -> Result<(), Refusal> {
        self.change(Caller::system(), |unit| {
            Box::pin(async move { Ok(unit.tx.sweep_idempotency_keys(Timestamp(unit.now.0 - KEYS_KEPT.0)).await?) })
        })
        .await
    }

    /// Cancels a job; tells whether nobody had before. What runs is stopped by its worker, which then confirms.
    pub async fn cancel(self: &Arc<Self>, caller: Caller, id: JobId) -> Result<bool, Refusal> {
        self.change(caller, move |unit| {
            let id = id.clone();
            Box::pin(async move {
                let before = unit.job(&id).await?;
                let after = before.clone().cancelled(unit.now)?;
                unit.save_job(&before, &after).await?;
                unit.plan_after();
                Ok(before != after)
            })
        })
        .await
    }
}

async fn submit_in(unit: &mut Unit<'_>, id: &JobId, submit: &SubmitJob) -> Result<Job, Refusal> {
    let owner = unit.owner().to_owned();
    let config = super::configs::chosen(unit.tx, &owner, &submit.config_name, submit.config_revision).await?;
    super::secrets::check_named(unit.tx, &owner, submit.secrets.as_deref()).await?;
    let spec = spec(submit, &config, unit.core.policy.allow_code)?;
    let job = made(id.clone(), spec, submit.priority, unit.now, owner);
    let job = Job { trace: Some(unit.trace()), ..job };
    let detail = json!({"config": config.name, "revision": config.revision, "target": submit.target});
    add(unit, &job, detail).await
}

/// The job that this key made before, if the same was asked for.
pub(super) async fn made_before(unit: &mut Unit<'_>, key: Option<&str>, asked: &str) -> Result<Option<Job>, Refusal> {
    let Some(key) = key else { return Ok(None) };
    let actor = unit.actor().to_owned();
    let Some((made, earlier)) = unit.tx.idempotency_key(&actor, key).await? else { return Ok(None) };
    if earlier == tokens::digest(asked) {
        unit.job(&made).await.map(Some)
    } else {
        Err(Refusal::KeyReused(key.to_owned()))
    }
}

/// Notes what a key has made.
pub(super) async fn remember(unit: &mut Unit<'_>, key: Option<&str>, asked: &str, job: Job) -> Result<Job, Refusal> {
    if let Some(key) = key {
        let actor = unit.actor().to_owned();
        unit.tx.insert_idempotency_key(&actor, key, &tokens::digest(asked), &job).await?;
    }
    Ok(job)
}

pub(super) fn check_key(key: Option<&str>) -> Result<(), Refusal> {
    let usable = key.is_none_or(|key| (1..=MAX_KEY).contains(&key.len()));
    if usable {
        Ok(())
    } else {
        Err(Invalid::Range { field: "Idempotency-Key", allowed: "1 to 255 characters" }.into())
    }
}

/// Writes a new job down, and looks whether somebody can take it.
pub(super) async fn add(unit: &mut Unit<'_>, job: &Job, mut detail: Value) -> Result<Job, Refusal> {
    unit.core.need_room()?;
    let most = unit.core.policy.bounds.waiting_jobs_per_user;
    let owner = job.submitted_by.clone();
    if unit.tx.see(|known| known.waiting_of(&owner)).await? >= most {
        return Err(Refusal::OverLimit(Limit::WaitingJobs { most }));
    }
    unit.tx.insert_job(job).await?;
    if !job.spec.overrides.is_empty() {
        detail["overrides"] = json!(super::overrides::told(&job.spec.overrides));
    }
    unit.record(Action::JobSubmitted, job.id.as_str(), &detail).await?;
    unit.touch(Topic::Jobs);
    unit.touch(Topic::Job(job.id.clone()));
    unit.plan_after();
    Ok(job.clone())
}

fn made(id: JobId, spec: Spec, priority: u8, now: Timestamp, by: String) -> Job {
    Job { priority, ..Job::submitted(id, spec, now, by) }
}

pub(super) fn check_number(secrets: Option<&[String]>) -> Result<(), Refusal> {
    if secrets.is_some_and(|names| names.len() > MAX_SECRETS) {
        return Err(Invalid::TooMuch { what: "secrets", limit: MAX_SECRETS as u64 }.into());
    }
    Ok(())
}

/// The highest priority that whoever asks may give a job.
pub(super) fn highest_priority(unit: &Unit<'_>) -> u8 {
    let may_raise = unit.covers(Permissions::from_iter([Permission::QueueManage])).is_ok();
    if may_raise { MAX_PRIORITY } else { DEFAULT_PRIORITY }
}

fn check_priority(priority: u8) -> Result<(), Refusal> {
    let usable = priority <= MAX_PRIORITY;
    if usable { Ok(()) } else { Err(Invalid::Range { field: "priority", allowed: "0 to 50" }.into()) }
}

fn check(submit: &SubmitJob) -> Result<(), Refusal> {
    submit.worker_labels.validate()?;
    check_priority(submit.priority)?;
    if submit.gpu_count.is_some_and(|count| !(1..=MAX_GPUS).contains(&count)) {
        return Err(Invalid::Range { field: "gpu_count", allowed: "1 to 64, or left out" }.into());
    }
    if submit.min_vram_gb.is_some_and(|gb| !(gb > 0.0 && gb < 100_000.0)) {
        return Err(Invalid::Range { field: "min_vram_gb", allowed: "more than 0, or left out" }.into());
    }
    if submit.max_runtime_seconds.is_some_and(|seconds| !(1..=LONGEST_RUNTIME).contains(&seconds)) {
        let allowed = "1 to 31536000 (a year), or left out";
        return Err(Invalid::Range { field: "max_runtime_seconds", allowed }.into());
    }
    check_number(submit.secrets.as_deref())?;
    if submit.max_retries > MAX_RETRIES {
        return Err(Invalid::Range { field: "max_retries", allowed: "0 to 100" }.into());
    }
    let known = |word: &String| ["cuda", "rocm", "mps", "xpu", "cpu"].contains(&word.as_str());
    if submit.accelerator_type.as_ref().is_some_and(|word| !known(word)) {
        return Err(Invalid::Range { field: "accelerator_type", allowed: "cuda, rocm, mps, xpu or cpu" }.into());
    }
    Ok(())
}

pub(super) fn variables(names: &[String]) -> Vec<String> {
    names.iter().filter_map(|name| variable(name)).collect()
}

fn spec(submit: &SubmitJob, config: &Arc<StoredConfig>, allow_code: bool) -> Result<Spec, Refusal> {
    let (overrides, config) = super::overrides::of(config, &submit.overrides, allow_code)?;
    let num_processes = super::configs::num_processes(&config);
    Ok(Spec {
        config_name: config.name.clone(),
        config_revision: config.revision,
        target: match submit.target {
            TargetWord::Auto => Target::Auto,
            TargetWord::Worker => Target::Worker,
            TargetWord::Local => Target::Local,
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
        max_runtime: submit.max_runtime_seconds.map(|seconds| Millis::seconds(seconds.into())),
        exclusive: submit.exclusive,
        checkpoints: match submit.checkpoints {
            CheckpointPolicy::None => Checkpoints::None,
            CheckpointPolicy::Last => Checkpoints::Last,
            CheckpointPolicy::All => Checkpoints::All,
        },
        secrets: Some(variables(submit.secrets.as_deref().unwrap_or_default())),
        shared_secrets_only: false,
        files: super::configs::named_files(&config),
        paths: super::configs::named_paths(&config),
        overrides,
        start: Start::Newest,
    })
}

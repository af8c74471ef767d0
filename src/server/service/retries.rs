//! Running again what has ended.

use std::sync::Arc;

use app::domain::ids::JobId;
use app::domain::job::{Job, SavedBy, Spec, Start, State};
use app::protocol::overrides::values;
use app::protocol::submit::RetryJob;
use serde_json::json;

use super::Core;
use super::jobs::{add, check_key, check_number, highest_priority, made_before, remember, variables};
use super::refusal::{Invalid, Refusal};
use super::unit::{Caller, Unit};
use super::{checkpoints, configs, overrides, secrets};

/// How many checkpoints are searched for a name.
const LOOKED_AT: usize = 1_000;

impl Core {
    /// Retries a job that has ended, as a new job: with the same demands and the same revision unless the retry names
    /// others. A `key` is as with a submit. A retry of somebody else's job uses its submitter's own secrets only if it
    /// names them.
    pub async fn retry(
        self: &Arc<Self>,
        caller: Caller,
        id: JobId,
        retry: RetryJob,
        key: Option<String>,
    ) -> Result<Job, Refusal> {
        check_key(key.as_deref())?;
        check_number(retry.secrets.as_deref())?;
        let input = Arc::new((id, self.next_job_id(), retry, key));
        self.change(caller, move |unit| {
            let input = Arc::clone(&input);
            Box::pin(async move {
                let (id, new, retry, key) = &*input;
                let asked = format!("retry {id} {}", json!(retry));
                if let Some(job) = made_before(unit, key.as_deref(), &asked).await? {
                    return Ok(job);
                }
                let ended = unit.job(id).await?;
                let again = ended.retried(new.clone(), unit.now, unit.owner().to_owned(), highest_priority(unit))?;
                let spec = with_secrets(unit, &ended, retry.secrets.as_deref()).await?;
                let spec = Spec { start: start(unit, &ended, retry.resume_from.as_deref()).await?, ..spec };
                let spec = changed(unit, spec, retry).await?;
                let job = Job { trace: Some(unit.trace()), spec, ..again };
                let start = job.spec.start.to_string();
                let detail = json!({"retry_of": id, "secrets": job.spec.secrets, "start": start});
                let job = add(unit, &job, detail).await?;
                remember(unit, key.as_deref(), &asked, job).await
            })
        })
        .await
    }
}

/// Where it begins. What has completed begins anew: from its last checkpoint there is nothing left to train.
async fn start(unit: &mut Unit<'_>, ended: &Job, asked: Option<&str>) -> Result<Start, Refusal> {
    let completed = matches!(ended.state, State::Completed { .. });
    let name = match asked {
        None if completed => return Ok(Start::Scratch),
        None | Some("newest") => return Ok(Start::Newest),
        Some("scratch") => return Ok(Start::Scratch),
        Some(name) => name,
    };
    let allowed = "`scratch`, `newest`, or the name of a whole checkpoint of a job of yours, such as checkpoint-500";
    let unknown = || Invalid::Range { field: "resume_from", allowed };
    if ended.submitted_by != unit.owner() {
        return Err(unknown().into());
    }
    let points = checkpoints::resumable(unit.tx, ended, LOOKED_AT).await?;
    let point = points.into_iter().find(|point| point.name == name).ok_or_else(unknown)?;
    Ok(Start::Checkpoint(SavedBy { job: point.job_id, attempt: point.attempt, name: point.name }))
}

/// With the revision and the values that are asked for.
async fn changed(unit: &mut Unit<'_>, spec: Spec, retry: &RetryJob) -> Result<Spec, Refusal> {
    if retry.config_revision.is_none() && retry.overrides.is_none() {
        return Ok(spec);
    }
    let revision = retry.config_revision.unwrap_or(spec.config_revision);
    let config = unit.tx.config_revision(&spec.config_name, revision).await?;
    let config = config.ok_or_else(|| Refusal::NoConfig(format!("{}, revision {revision}", spec.config_name)))?;
    let asked = retry.overrides.clone().unwrap_or_else(|| values(&overrides::told(&spec.overrides)));
    let (overrides, config) = overrides::of(&config, &asked, unit.core.policy.allow_code)?;
    let num_processes = configs::num_processes(&config);
    let mut demand = spec.demand;
    // What followed from the configuration follows from this one.
    if demand.gpu_count.is_none() || demand.gpu_count == spec.num_processes {
        demand.gpu_count = num_processes.filter(|number| *number > 1);
    }
    Ok(Spec {
        config_revision: revision,
        demand,
        num_processes,
        files: configs::named_files(&config),
        paths: configs::named_paths(&config),
        overrides,
        ..spec
    })
}

/// What a job that has ended asked for, with the secrets that it is given when it is submitted again.
async fn with_secrets(unit: &mut Unit<'_>, ended: &Job, named: Option<&[String]>) -> Result<Spec, Refusal> {
    let (owner, spec) = (unit.owner().to_owned(), ended.spec.clone());
    if let Some(named) = named {
        secrets::check_named(unit.tx, &owner, Some(named)).await?;
        return Ok(Spec { secrets: Some(variables(named)), shared_secrets_only: false, ..spec });
    }
    if ended.submitted_by == owner {
        return Ok(spec);
    }
    let secrets = secrets::shared_of(unit.tx, spec.secrets.as_deref()).await?;
    Ok(Spec { secrets: Some(secrets), shared_secrets_only: true, ..spec })
}

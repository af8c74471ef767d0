//! What people do with jobs: submit and cancel.

use std::sync::Arc;

use app::domain::audit::Action;
use app::domain::ids::JobId;
use app::domain::job::{Demand, Job, Spec, Target};
use app::protocol::queue::SubmitJob;
use app::protocol::status::Target as TargetWord;
use app::protocol::topic::Topic;
use serde_json::json;

use super::Core;
use super::dispatch::plan;
use super::refusal::{Invalid, Refusal};
use super::unit::{Caller, Unit};
use crate::store::configs::StoredConfig;

const MAX_GPUS: u32 = 64;
const MAX_RETRIES: u32 = 100;

impl Core {
    /// Takes a job. What can never run on today's fleet waits, and says so.
    pub async fn submit(self: &Arc<Self>, caller: Caller, submit: SubmitJob) -> Result<Job, Refusal> {
        check(&submit)?;
        let id = JobId::new(self.now(), self.entropy());
        let input = Arc::new((id, submit));
        self.change(caller, move |unit| {
            let input = Arc::clone(&input);
            Box::pin(async move { submit_in(unit, &input.0, &input.1).await })
        })
        .await
    }

    /// Cancels a job. What runs is stopped by its worker, which then confirms.
    pub async fn cancel(self: &Arc<Self>, caller: Caller, id: JobId) -> Result<Job, Refusal> {
        self.change(caller, move |unit| {
            let id = id.clone();
            Box::pin(async move {
                let before = unit.job(&id).await?;
                let after = before.clone().cancelled(unit.now)?;
                unit.save_job(&before, &after).await?;
                plan(unit).await?;
                Ok(after)
            })
        })
        .await
    }
}

async fn submit_in(unit: &mut Unit<'_>, id: &JobId, submit: &SubmitJob) -> Result<Job, Refusal> {
    let config = unit.tx.config(&submit.config_name).await?;
    let config = config.ok_or_else(|| Refusal::NoConfig(submit.config_name.clone()))?;
    let job = Job::submitted(id.clone(), spec(submit, &config), unit.now, unit.actor().to_owned());
    unit.tx.insert_job(&job).await?;
    let detail = json!({"config": config.name, "revision": config.revision, "target": submit.target});
    unit.record(Action::JobSubmitted, id.as_str(), &detail).await?;
    unit.touch(Topic::Jobs);
    unit.touch(Topic::Job(id.clone()));
    plan(unit).await?;
    unit.job(id).await
}

fn check(submit: &SubmitJob) -> Result<(), Refusal> {
    submit.worker_labels.validate()?;
    if submit.gpu_count.is_some_and(|count| !(1..=MAX_GPUS).contains(&count)) {
        return Err(Invalid::Range { field: "gpu_count", allowed: "1 to 64, or left out" }.into());
    }
    if submit.min_vram_gb.is_some_and(|gb| !(gb > 0.0 && gb < 100_000.0)) {
        return Err(Invalid::Range { field: "min_vram_gb", allowed: "more than 0, or left out" }.into());
    }
    if submit.max_retries > MAX_RETRIES {
        return Err(Invalid::Range { field: "max_retries", allowed: "0 to 100" }.into());
    }
    let known = |word: &String| ["cuda", "rocm", "mps", "xpu", "cpu"].contains(&word.as_str());
    if submit.accelerator_type.as_ref().is_some_and(|word| !known(word)) {
        return Err(Invalid::Range { field: "accelerator_type", allowed: "cuda, rocm, mps, xpu or cpu" }.into());
    }
    Ok(())
}

fn spec(submit: &SubmitJob, config: &StoredConfig) -> Spec {
    let num_processes = super::configs::num_processes(config);
    Spec {
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
        },
        num_processes,
        max_retries: submit.max_retries,
        retry_on_failure: submit.retry_on_failure,
    }
}

//! Explanations as clients see them: codes with parameters, and the same in words.

use app::domain::explain::{self, Answer, Explanation, Verdict};
use app::domain::gpu::{Withheld, WithheldReason};
use app::domain::ids::JobId;
use app::domain::job::{Job, Target};
use app::domain::matching::Blocker;
use app::domain::plan::Limited;
use app::domain::sandbox::SandboxLevel;
use app::protocol::explain::{
    BlockerCode, BlockerView, ExplanationView, JobLimit, VerdictCode, WithheldGpu, WorkerAnswer,
};
use app::protocol::gpu;
use app::protocol::submit::{Previewed, SubmitJob};

use super::summary;
use crate::service::Core;
use crate::service::refusal::Refusal;
use crate::store::known::Known;

impl Core {
    /// Why a job waits.
    pub async fn explain(&self, id: &JobId) -> Result<ExplanationView, Refusal> {
        let mut tx = self.read().await?;
        let job = tx.job(id).await?.ok_or_else(|| Refusal::NoJob(id.clone()))?;
        let explanation = tx.see(|known| self.explained(known, &job)).await?;
        Ok(view(&job, explanation))
    }

    /// What would become of a submit.
    pub async fn preview(&self, by: String, submit: &SubmitJob) -> Result<Previewed, Refusal> {
        let job = self.drafted(by, submit).await?;
        let mut tx = self.read().await?;
        let explanation = view(&job, tx.see(|known| self.explained(known, &job)).await?);
        let allocated_worker_id = explanation.worker_id.clone();
        let queue_position = if allocated_worker_id.is_none() { Some(tx.place(&job).await?) } else { None };
        Ok(Previewed { success: true, dry_run: true, allocated_worker_id, queue_position, explanation })
    }

    fn explained(&self, known: &Known, job: &Job) -> Explanation {
        explain::explain(job, known.waiting(), self.policy.fleet(known), self.now())
    }
}

fn view(job: &Job, explanation: Explanation) -> ExplanationView {
    let (text, summary) = (sentence(job, &explanation), explanation.summary.as_ref().map(summary::view));
    let limit = match &explanation.verdict {
        Verdict::Limited(Limited::InAll(jobs)) => Some(JobLimit { jobs: *jobs, per_user: false }),
        Verdict::Limited(Limited::PerUser(jobs)) => Some(JobLimit { jobs: *jobs, per_user: true }),
        _ => None,
    };
    let (verdict, worker_id, until) = match explanation.verdict {
        Verdict::NotWaiting => (VerdictCode::NotWaiting, None, None),
        Verdict::Fits { worker } => (VerdictCode::Fits, Some(worker), None),
        Verdict::BackOff { until } => (VerdictCode::BackOff, None, Some(until)),
        Verdict::KeptBack { until } => (VerdictCode::KeptBack, None, Some(until)),
        Verdict::Limited(_) => (VerdictCode::Limited, None, None),
        Verdict::Busy => (VerdictCode::Busy, None, None),
        Verdict::Away => (VerdictCode::Away, None, None),
        Verdict::Never => (VerdictCode::Never, None, None),
        Verdict::NoLocalWorker => (VerdictCode::NoLocalWorker, None, None),
        Verdict::NoWorkers => (VerdictCode::NoWorkers, None, None),
    };
    let workers = explanation.workers.into_iter().map(answer).collect();
    ExplanationView { verdict, text, worker_id, until, limit, summary, workers }
}

/// Why nobody takes a job with the target `local`.
pub(super) const NO_LOCAL_WORKER: &str = "This server runs no jobs itself: it needs a GPU and a trainer, or start it with \
                                          --local on; or submit with target auto.";

fn sentence(job: &Job, explanation: &Explanation) -> String {
    let nearest = explanation.workers.first();
    let name = nearest.map_or("", |answer| answer.name.as_str());
    let first = nearest.and_then(|answer| answer.blockers.first()).map(blocker);
    let (why, change) = first.map_or_else(Default::default, |view| (view.text, view.change));
    match &explanation.verdict {
        Verdict::NotWaiting => format!("The job does not wait: it is {}.", job.state.as_str()),
        Verdict::Fits { worker } => {
            let name = explanation.workers.iter().find(|answer| answer.worker == *worker);
            format!("{} takes it now.", name.map_or(worker.as_str(), |answer| answer.name.as_str()))
        }
        Verdict::BackOff { until } => format!("Its last attempt was lost; it is tried again at {until}."),
        Verdict::KeptBack { until } => format!(
            "It is exclusive, and its last trainer may run unheard of until {until}, when its agent must have stopped it; \
             it starts after that."
        ),
        Verdict::Limited(Limited::InAll(limit)) => {
            format!("{limit} jobs run, and no more may at once. It starts when one of them ends.")
        }
        Verdict::Limited(Limited::PerUser(limit)) => format!(
            "{limit} jobs of {} run, and no more of one person may at once. It starts when one of them ends.",
            job.submitted_by
        ),
        Verdict::Busy => {
            format!("No idle workers: one will take it when it has time. Nearest is {name}: {why} {change}")
        }
        Verdict::Away => {
            format!("No idle workers: none that is connected can take it. Nearest is {name}: {why} {change}")
        }
        Verdict::Never => {
            let what = match nearest.and_then(|answer| answer.blockers.first()) {
                Some(Blocker::Gpus { .. } | Blocker::Vram { .. } | Blocker::Accelerator { .. }) => {
                    "GPU requirements not met"
                }
                _ => "No idle workers that match",
            };
            format!("{what}: no worker can take it as it was submitted. Nearest is {name}: {why} {change}")
        }
        Verdict::NoLocalWorker => NO_LOCAL_WORKER.to_owned(),
        Verdict::NoWorkers => "No idle workers: there are none. Create one, and start its agent.".to_owned(),
    }
}

fn answer(answer: Answer) -> WorkerAnswer {
    WorkerAnswer {
        worker_id: answer.worker,
        name: answer.name,
        fits: answer.blockers.is_empty(),
        matches: !answer.blockers.iter().any(Blocker::is_mismatch),
        blockers: answer.blockers.iter().map(blocker).collect(),
    }
}

/// What does not fit, and the nearest change that would help; parameters are added by whoever has some.
fn says(code: BlockerCode, text: impl Into<String>, change: impl Into<String>) -> BlockerView {
    let (text, change, withheld) = (text.into(), change.into(), Vec::new());
    BlockerView { code, key: None, wanted: None, found: None, why: None, gpus: None, withheld, text, change }
}

fn sandbox(wanted: SandboxLevel, found: SandboxLevel, why: Option<&str>) -> BlockerView {
    let (wanted, found) = (wanted.as_str(), found.as_str());
    let because = why.map(|why| format!(": {}", why.trim_end_matches('.'))).unwrap_or_default();
    BlockerView {
        wanted: Some(wanted.to_owned()),
        found: Some(found.to_owned()),
        why: why.map(str::to_owned),
        ..says(
            BlockerCode::Sandbox,
            format!("The job asks for a sandbox of level {wanted}, and this worker has {found} at most{because}."),
            format!("Ask for {found}, or see why its host cannot do more: simpletuner-worker doctor says it."),
        )
    }
}

/// A blocker's code, its parameters, what does not fit, and the nearest change that would help.
fn blocker(blocker: &Blocker) -> BlockerView {
    let found = |found: String, view| BlockerView { found: Some(found), ..view };
    match blocker {
        Blocker::WrongTarget { wanted } => wrong_target(*wanted),
        Blocker::Label { key, wanted, found } => label(key, wanted, found.as_deref()),
        Blocker::Accelerator { wanted, found } => accelerator(wanted, found),
        Blocker::Gpus { wanted, found } => gpu_count(*wanted, *found),
        Blocker::Vram { wanted_gb, gpus, found_gb } => vram(*wanted_gb, *gpus, *found_gb),
        Blocker::GpusWithheld { wanted, left, why } => gpus_withheld(*wanted, *left, why),
        Blocker::Sandbox { wanted, found, why } => sandbox(*wanted, *found, why.as_deref()),
        Blocker::Spent => {
            says(BlockerCode::Spent, "It is an ephemeral worker and has run its job.", "Start another worker.")
        }
        Blocker::CannotStop => says(
            BlockerCode::CannotStop,
            "The job is exclusive, and its agent cannot stop by itself when it loses contact: it is an older one.",
            "Install the newest simpletuner-worker on its host, or submit without exclusive.",
        ),
        Blocker::LacksFiles { files } => lacks_files(files.join(", ")),
        Blocker::LacksPaths { names } => lacks_paths(braced(names)),
        Blocker::Draining => {
            says(BlockerCode::Draining, "It drains: a person wants it to take nothing new.", "Resume it.")
        }
        Blocker::Unfit { why } => found(
            why.clone(),
            says(
                BlockerCode::Unfit,
                format!("Its agent takes no new job: {}.", why.trim_end_matches('.')),
                "See to it on its host; its agent takes jobs again when that is mended.",
            ),
        ),
        Blocker::NeverConnected => says(
            BlockerCode::NeverConnected,
            "Its agent has never connected, so its GPUs are not known.",
            "Start the agent on its host.",
        ),
        Blocker::Offline => says(BlockerCode::Offline, "Its agent is not connected.", "Start the agent on its host."),
        Blocker::Connecting => says(
            BlockerCode::Connecting,
            "Its agent has registered and does not listen yet.",
            "It listens in a moment, or counts as offline after the heartbeat timeout.",
        ),
        Blocker::Astray { job } => found(
            job.to_string(),
            says(
                BlockerCode::Astray,
                format!("Its agent trains {job}, which it does not hold; it was told to stop."),
                "It is free when its agent says that it runs nothing; if it never does, restart the agent.",
            ),
        ),
        Blocker::Finishing => {
            says(BlockerCode::Finishing, "Its agent is finishing its last job.", "It is free in a few seconds.")
        }
        Blocker::Occupied { max_jobs } => found(max_jobs.to_string(), occupied(*max_jobs)),
        Blocker::GpusBusy { wanted, free } => gpus_busy(*wanted, *free),
        Blocker::Reserved { job } => found(
            job.to_string(),
            says(
                BlockerCode::Reserved,
                format!("It is kept free for {job}, which has waited too long."),
                "It is free when that job has run; a higher priority comes before it.",
            ),
        ),
    }
}

fn accelerator(wanted: &str, found: &str) -> BlockerView {
    BlockerView {
        wanted: Some(wanted.to_owned()),
        found: Some(found.to_owned()),
        ..says(
            BlockerCode::Accelerator,
            format!("The job asks for {wanted}, and this worker has {found}."),
            format!("Ask for {found}, or leave accelerator_type out."),
        )
    }
}

fn lacks_files(files: String) -> BlockerView {
    let text =
        format!("Its older agent gets only config.json and the data loader. This configuration also names {files}.");
    let change = "Install the newest simpletuner-worker on its host.";
    BlockerView { found: Some(files), ..says(BlockerCode::LacksFiles, text, change) }
}

fn lacks_paths(names: String) -> BlockerView {
    let text = format!("It gives jobs no directory for {names}, which the configuration needs.");
    let change = "Start its agent with --data-root DIR, or --path NAME=DIR.";
    BlockerView { found: Some(names), ..says(BlockerCode::LacksPaths, text, change) }
}

fn occupied(max_jobs: u32) -> BlockerView {
    let text = match max_jobs {
        1 => "It has a job.".to_owned(),
        _ => format!("It has {max_jobs} jobs, as many as it takes."),
    };
    says(BlockerCode::Occupied, text, "It is free when a job of its ends.")
}

fn gpus_busy(wanted: u32, free: u32) -> BlockerView {
    BlockerView {
        wanted: Some(wanted.to_string()),
        found: Some(free.to_string()),
        ..says(
            BlockerCode::GpusBusy,
            format!("The job takes {}, and {free} that would do are free.", gpus(wanted)),
            "They are free when jobs on it end.",
        )
    }
}

fn wrong_target(wanted: Target) -> BlockerView {
    let text = match wanted {
        Target::Local => "The job is for the orchestrator's own GPUs, and this is another machine.",
        Target::Worker | Target::Auto => "The job is for remote workers, and this is the orchestrator's own machine.",
    };
    let change = "Submit it with the target auto.".to_owned();
    BlockerView { wanted: Some(wanted.as_str().to_owned()), ..says(BlockerCode::WrongTarget, text.to_owned(), change) }
}

fn label(key: &str, wanted: &str, found: Option<&str>) -> BlockerView {
    let text = match found {
        Some(value) => format!("The job asks for {key}={wanted}, and this worker has {key}={value}."),
        None => format!("The job asks for {key}={wanted}, and this worker has no label {key}."),
    };
    let literal = !wanted.contains(['*', '?', '[']);
    let change = match (found, literal) {
        (Some(value), _) => format!("Ask for {key}={value}, or give the worker a label that matches."),
        (None, true) => format!("Give the worker the label {key}={wanted}, or do not ask for it."),
        (None, false) => format!("Give the worker a label {key} that matches, or do not ask for it."),
    };
    BlockerView {
        key: Some(key.to_owned()),
        wanted: Some(wanted.to_owned()),
        found: found.map(str::to_owned),
        ..says(BlockerCode::Label, text, change)
    }
}

fn gpu_count(wanted: u32, found: u32) -> BlockerView {
    let change = match found {
        0 => "Ask for no GPU, or submit to a worker that has some.".to_owned(),
        _ => format!("Ask for at most {}: set gpu_count, or --num_processes in the configuration.", gpus(found)),
    };
    let text = format!("The job asks for {}, and this worker has {found}.", gpus(wanted));
    BlockerView {
        wanted: Some(wanted.to_string()),
        found: Some(found.to_string()),
        ..says(BlockerCode::GpuCount, text, change)
    }
}

fn vram(wanted_gb: f64, count: u32, found_gb: Option<f64>) -> BlockerView {
    let (has, change) = match found_gb {
        Some(gb) => (format!("has {gb} GB on so many"), format!("Ask for at most {gb} GB with min_vram_gb.")),
        None => (
            "does not say how much its GPUs have".to_owned(),
            "Leave min_vram_gb out, or tell the agent with --gpu-vram-gb.".to_owned(),
        ),
    };
    let text = format!("The job asks for {} with {wanted_gb} GB each, and this worker {has}.", gpus(count));
    BlockerView {
        wanted: Some(wanted_gb.to_string()),
        found: found_gb.map(|gb| gb.to_string()),
        gpus: Some(count),
        ..says(BlockerCode::Vram, text, change)
    }
}

/// The most GPUs whose reasons are told.
const TOLD: usize = 4;

fn gpus_withheld(wanted: u32, left: u32, why: &[(u32, Withheld)]) -> BlockerView {
    let sentence = format!("The job takes {}, and {left} that would do may be given out.", gpus(wanted));
    let told = why.iter().take(TOLD).map(|(number, withheld)| format!("GPU {number} is {}.", withheld_words(withheld)));
    let more = why.len().saturating_sub(TOLD);
    let more = (more > 0).then(|| format!("So it is with {more} more."));
    let text = std::iter::once(sentence).chain(told).chain(more).collect::<Vec<_>>().join(" ");
    let is_in_use = |(_, withheld): &(u32, Withheld)| withheld.reason == WithheldReason::InUse;
    let change = match (why.iter().any(is_in_use), why.iter().all(is_in_use)) {
        (_, true) => "End what uses it on its host, and its agent gives it back.",
        (true, false) => "End what uses one, see to the one with an error, and their agent gives them back.",
        (false, _) => "See to it on its host; its agent gives it back when it is well.",
    };
    BlockerView {
        wanted: Some(wanted.to_string()),
        found: Some(left.to_string()),
        withheld: why.iter().map(withheld_gpu).collect(),
        ..says(BlockerCode::GpusWithheld, text, change.to_owned())
    }
}

fn withheld_gpu((index, withheld): &(u32, Withheld)) -> WithheldGpu {
    let reason = match withheld.reason {
        WithheldReason::Quarantined => gpu::WithheldReason::Quarantined,
        WithheldReason::InUse => gpu::WithheldReason::InUse,
    };
    WithheldGpu { index: *index, why: gpu::Withheld { reason, detail: withheld.detail.clone() } }
}

fn withheld_words(withheld: &Withheld) -> String {
    let detail = withheld.detail.trim().trim_end_matches('.');
    // Agents say `used by process 7`, or only whose it is.
    let detail = detail.strip_prefix("used by ").unwrap_or(detail);
    match (withheld.reason, detail) {
        (WithheldReason::InUse, "") => "in use by a process that belongs to no job".to_owned(),
        (WithheldReason::InUse, process) => format!("in use by {process}"),
        (WithheldReason::Quarantined, "") => "quarantined".to_owned(),
        (WithheldReason::Quarantined, error) => format!("quarantined: {error}"),
    }
}

/// Names of directories, as configurations write them.
pub(super) fn braced(names: &[String]) -> String {
    names.iter().map(|name| format!("{{{name}}}")).collect::<Vec<_>>().join(", ")
}

pub(super) fn gpus(count: u32) -> String {
    if count == 1 { "1 GPU".to_owned() } else { format!("{count} GPUs") }
}

//! What a job requests: in its row of the list, and on its page.

use leptos::prelude::*;
use serde_json::Value;

use super::labels::{LabelChips, MAX_IN_ROW, label_chips};
use super::status::target_label;
use crate::domain::job_share::{DEFAULT_TEAM, JobClass};
use crate::domain::sandbox::SandboxLevel;
use crate::domain::time::Millis;
use crate::protocol::agents::dispatch::CheckpointPolicy;
use crate::protocol::jobs::JobView;
use crate::protocol::jobs::overrides::OverrideChange;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;

/// The GPUs, memory, and labels that a job requests.
#[component]
pub(crate) fn ResourceRequest(job: JobView) -> impl IntoView {
    let words = t();
    let gpus = job.gpu_count.map(|count| words.blockers.gpus.of(count.into()));
    let memory = job.min_vram_gb.map(|gb| words.work.memory_each.of(gb));
    let parts: Vec<_> = gpus.into_iter().chain(memory).chain(job.accelerator_type).collect();
    let is_unrestricted = parts.is_empty() && job.worker_labels.0.is_empty();
    let text = if is_unrestricted { words.work.anything.to_owned() } else { parts.join(" · ") };
    view! {
        <span class="block truncate" title=text.clone()>{text.clone()}</span>
        {label_chips(job.worker_labels, "/jobs", MAX_IN_ROW)}
    }
    .into_erased()
}

/// Where a job that comes from another one starts.
pub(crate) fn start_text(resume_from: &str) -> String {
    let words = &t().work;
    match resume_from {
        "scratch" => words.from_scratch.to_owned(),
        "newest" => words.from_newest.to_owned(),
        name => words.resume_from.of(name),
    }
}

/// What a job was submitted with.
pub(crate) fn request_facts(job: &JobView) -> impl IntoView + use<> {
    let words = t();
    let gpus = job.gpu_count.map_or_else(|| words.job.one_slot.to_owned(), |count| count.to_string());
    let memory = job.min_vram_gb.map(|gb| words.work.memory_each.of(gb));
    let attempts = words.common.of.with(&[&job.attempt, &job.max_attempts]);
    let start = job.resume_from.as_deref().map(start_text);
    let max_runtime = job.max_runtime_seconds.and_then(|seconds| i64::try_from(seconds).ok()).map(Millis::from_secs);
    let checkpoints = match job.checkpoints {
        CheckpointPolicy::None => Some(words.work.upload_none),
        CheckpointPolicy::Last => None,
        CheckpointPolicy::All => Some(words.work.upload_all),
    };
    let class = match job.class {
        JobClass::Urgent => Some(words.work.class_urgent),
        JobClass::Normal => None,
        JobClass::Idle => Some(words.work.class_idle),
    };
    let secrets = job.secrets.as_ref().filter(|names| !names.is_empty()).map(|names| names.join(", "));
    let overrides = (!job.overrides.is_empty()).then(|| {
        let lines = job.overrides.iter().map(|(key, OverrideChange { from, to })| {
            let value_or_dash = |value: &Option<Value>| value.as_ref().map_or_else(|| "–".to_owned(), value_text);
            view! { <span class="block font-mono wrap-anywhere">{key.clone()}": "{value_or_dash(from)}" → "{value_or_dash(to)}</span> }
        });
        view! { <div><dt>{words.work.changed}</dt><dd>{lines.collect_view()}</dd></div> }
    });
    view! {
        <div><dt>{words.job.configuration}</dt><dd>{job.numbered_config()}<span class="text-muted">", "{words.job.revision.of(job.config_revision)}</span></dd></div>
        {overrides}
        <div><dt>{words.job.target}</dt><dd>{target_label(&words.status, job.target)}</dd></div>
        <div><dt>{words.job.gpus}</dt><dd>{gpus}{memory.map(|memory| view! { <span class="text-muted">", "{memory}</span> })}</dd></div>
        {job.accelerator_type.clone().map(|kind| view! { <div><dt>{words.work.accelerator}</dt><dd>{kind}</dd></div> })}
        <div><dt>{words.job.labels}</dt><dd><LabelChips labels=job.worker_labels.clone() list="/jobs" none=words.job.any_label/></dd></div>
        <div><dt>{words.work.priority}</dt><dd>{job.priority}</dd></div>
        {(job.team != DEFAULT_TEAM).then(|| view! { <div><dt>{words.work.team}</dt><dd>{job.team.clone()}</dd></div> })}
        {class.map(|class| view! { <div><dt>{words.work.class}</dt><dd>{class}</dd></div> })}
        <div><dt>{words.job.retries}</dt><dd>{attempts}
            {job.retry_on_failure.then(|| view! { <span class="block text-muted">{words.work.retry_on_failure}</span> })}
        </dd></div>
        {max_runtime.map(|span| view! { <div><dt>{words.work.longest}</dt><dd>{words.format_duration(span)}</dd></div> })}
        {job.exclusive.then(|| view! { <div><dt>{words.work.exclusive}</dt><dd>{words.work.exclusive_text}</dd></div> })}
        {(job.sandbox > SandboxLevel::None).then(|| view! { <div><dt>{words.worker.sandbox}</dt><dd>{job.sandbox.as_str()}</dd></div> })}
        {checkpoints.map(|policy| view! { <div><dt>{words.work.checkpoints_to_upload}</dt><dd>{policy}</dd></div> })}
        {secrets.map(|names| view! { <div><dt>{words.nav.secrets}</dt><dd class="wrap-anywhere">{names}</dd></div> })}
        {start.map(|start| view! { <div><dt>{words.work.begins}</dt><dd>{start}</dd></div> })}
    }
    .into_erased()
}

/// The text of a value; strings are without quotes.
fn value_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::protocol::shown_fields::fields_not_shown;

    const NOT_AMONG_FACTS: [&str; 29] = [
        // The header of the page does.
        "retry_at",
        "cancelled_by",
        "name",
        "tags",
        "starred_by",
        "notes",
        // Other parts of the page show what becomes of the job.
        "job_id",
        "status",
        "status_since",
        "submitted_at",
        "submitted_by",
        "retry_of",
        "worker_id",
        "worker_name",
        "started_at",
        "ended_at",
        "queue_position",
        "fits_none",
        "progress",
        "error",
        "error_line",
        "attempts",
        "older_agent",
        "loss_code",
        // Only a list has them.
        "values",
        // The form of a retry does.
        "resumable",
        "family",
        "last_completed",
        // The user who retried it chose it by naming no secrets.
        "shared_secrets_only",
    ];

    #[test]
    fn each_field_is_a_fact_or_listed() {
        let html = |job: &JobView| Owner::new().with(|| request_facts(job).to_html());
        let not_shown = fields_not_shown(&[JobView::example()], html);
        assert_eq!(not_shown, BTreeSet::from(NOT_AMONG_FACTS.map(str::to_owned)));
    }
}

//! The main properties of a worker.

use leptos::prelude::*;

use crate::domain::sandbox::{JobLimits, Sandbox, SandboxLevel};
use crate::protocol::workers::WorkerView;
use crate::ui::components::labels::LabelChips;
use crate::ui::components::last_seen::LastSeen;
use crate::ui::components::status::worker_type_label;
use crate::ui::components::time::RelativeTime;
use crate::ui::components::worker_table::describe_gpus;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::locales::sentence::Text;

#[component]
pub(super) fn WorkerFacts(worker: RwSignal<WorkerView>) -> impl IntoView {
    view! {
        <section class="panel self-start" aria-labelledby="facts">
            <h2 id="facts" class="panel-head">{t().worker.facts}</h2>
            <dl class="facts">{move || fact_rows(worker.get())}</dl>
        </section>
    }
    .into_erased()
}

fn fact_rows(worker: WorkerView) -> impl IntoView {
    let words = t();
    let fact_row =
        |name, value: Option<String>| value.map(|value| view! { <div><dt>{name}</dt><dd>{value}</dd></div> });
    let memory = worker.gpu_vram_gb.map(|gb| format!("{gb:.0} GB"));
    let driver = worker.gpu_info.as_ref().and_then(|info| info.driver.clone());
    let runtime = worker.gpu_info.as_ref().and_then(|info| info.runtime.clone());
    view! {
        <div><dt>{words.worker.seen}</dt><dd><LastSeen worker=worker.clone()/></dd></div>
        <div><dt>{words.worker.gpus}</dt><dd>{describe_gpus(&words.workers, &worker)}</dd></div>
        {fact_row(words.worker.memory_each, memory)}
        {fact_row(words.worker.accelerator, worker.accelerator_type.clone())}
        {fact_row(words.worker.driver, driver)}
        {fact_row(words.worker.runtime, runtime)}
        <div><dt>{words.worker.max_jobs}</dt><dd>{worker.max_jobs}</dd></div>
        <div><dt>{words.worker.kind}</dt><dd>{worker_type_label(&words.status, worker.worker_type)}</dd></div>
        <div><dt>{words.worker.labels}</dt><dd><LabelChips labels=worker.labels.clone() list="/admin/workers" none=words.worker.no_labels/></dd></div>
        {fact_row(words.worker.host, worker.hostname.clone())}
        {fact_row(words.worker.agent, worker.agent_version.clone())}
        {fact_row(words.worker.certificate, worker.tls_verify.map(|verifies| certificate_text(verifies).to_owned()))}
        {worker.registered_at.map(|_| view! { <div><dt>{words.worker.sandbox}</dt><dd>{sandbox_text(worker.sandbox.as_ref())}</dd></div> })}
        {fact_row(words.worker.job_limits, worker.sandbox.as_ref().and_then(|sandbox| sandbox.limits.as_ref()).map(limits_text))}
        <div><dt>{words.worker.status_since}</dt><dd><RelativeTime at=worker.status_since/></dd></div>
        {worker.registered_at.map(|at| view! { <div><dt>{words.worker.registered}</dt><dd><RelativeTime at=at/></dd></div> })}
        <div><dt>{words.worker.created}</dt><dd><RelativeTime at=worker.created_at/></dd></div>
    }
    .into_erased()
}

/// The minimum sandbox level of jobs on this worker, and why a higher level is not supported.
fn sandbox_text(sandbox: Option<&Sandbox>) -> String {
    let words = &t().worker;
    let Some(sandbox) = sandbox else { return words.sandbox_older.to_owned() };
    let level = match sandbox.least {
        SandboxLevel::None => words.sandbox_none,
        SandboxLevel::Files => words.sandbox_files,
        SandboxLevel::Full => words.sandbox_full,
    };
    with_reason(level.to_owned(), sandbox.why_not_more.as_deref())
}

/// The resource limits of jobs on this worker, and why some are missing.
fn limits_text(limits: &JobLimits) -> String {
    let words = &t().worker;
    let memory = limits.memory_bytes.map(|bytes| words.job_limits_memory.of(t().format_bytes(bytes)));
    let processes = limits.processes.map(|number| words.job_limits_processes.of(t().format_integer(number)));
    let limit_texts: Vec<String> = memory.into_iter().chain(processes).collect();
    let limits_or_none = if limit_texts.is_empty() { words.job_limits_none.to_owned() } else { limit_texts.join(", ") };
    with_reason(limits_or_none, limits.why_not.as_deref())
}

fn with_reason(text: String, reason: Option<&str>) -> String {
    reason.map_or_else(|| text.clone(), |reason| format!("{text} ({reason})"))
}

/// Whether the agent verifies the server's certificate.
fn certificate_text(verifies: bool) -> Text {
    let words = &t().worker;
    if verifies { words.verified } else { words.unverified }
}

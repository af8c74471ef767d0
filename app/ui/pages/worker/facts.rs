//! What a worker is, in short.

use leptos::prelude::*;

use crate::domain::sandbox::{JobLimits, Sandbox, SandboxLevel};
use crate::protocol::workers::WorkerView;
use crate::ui::components::labels::LabelChips;
use crate::ui::components::status::type_word;
use crate::ui::components::time::Moment;
use crate::ui::components::worker_table::{Seen, gpus};
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::locales::sentence::Text;

/// See the module.
#[component]
pub(super) fn Facts(worker: RwSignal<WorkerView>) -> impl IntoView {
    view! {
        <section class="panel self-start" aria-labelledby="facts">
            <h2 id="facts" class="panel-head">{t().worker.facts}</h2>
            <dl class="facts">{move || facts(worker.get())}</dl>
        </section>
    }
    .erased()
}

fn facts(worker: WorkerView) -> impl IntoView {
    let words = t();
    let of = |name, value: Option<String>| value.map(|value| view! { <div><dt>{name}</dt><dd>{value}</dd></div> });
    let memory = worker.gpu_vram_gb.map(|gb| format!("{gb:.0} GB"));
    let driver = worker.gpu_info.as_ref().and_then(|info| info.driver.clone());
    let runtime = worker.gpu_info.as_ref().and_then(|info| info.runtime.clone());
    view! {
        <div><dt>{words.worker.seen}</dt><dd><Seen worker=worker.clone()/></dd></div>
        <div><dt>{words.worker.gpus}</dt><dd>{gpus(&words.workers, &worker)}</dd></div>
        {of(words.worker.memory_each, memory)}
        {of(words.worker.accelerator, worker.accelerator_type.clone())}
        {of(words.worker.driver, driver)}
        {of(words.worker.runtime, runtime)}
        <div><dt>{words.worker.max_jobs}</dt><dd>{worker.max_jobs}</dd></div>
        <div><dt>{words.worker.kind}</dt><dd>{type_word(&words.status, worker.worker_type)}</dd></div>
        <div><dt>{words.worker.labels}</dt><dd><LabelChips labels=worker.labels.clone() list="/admin/workers" none=words.worker.no_labels/></dd></div>
        {of(words.worker.host, worker.hostname.clone())}
        {of(words.worker.agent, worker.agent_version.clone())}
        {of(words.worker.certificate, worker.tls_verify.map(|verifies| certificate(verifies).to_owned()))}
        {worker.registered_at.map(|_| view! { <div><dt>{words.worker.sandbox}</dt><dd>{sandbox(worker.sandbox.as_ref())}</dd></div> })}
        {of(words.worker.job_limits, worker.sandbox.as_ref().and_then(|sandbox| sandbox.limits.as_ref()).map(limits))}
        <div><dt>{words.worker.status_since}</dt><dd><Moment at=worker.status_since/></dd></div>
        {worker.registered_at.map(|at| view! { <div><dt>{words.worker.registered}</dt><dd><Moment at=at/></dd></div> })}
        <div><dt>{words.worker.created}</dt><dd><Moment at=worker.created_at/></dd></div>
    }
    .erased()
}

/// How jobs are confined there, and why not more.
fn sandbox(sandbox: Option<&Sandbox>) -> String {
    let words = &t().worker;
    let Some(sandbox) = sandbox else { return words.sandbox_older.to_owned() };
    let level = match sandbox.least {
        SandboxLevel::None => words.sandbox_none,
        SandboxLevel::Files => words.sandbox_files,
        SandboxLevel::Full => words.sandbox_full,
    };
    because(level.to_owned(), sandbox.why_not_more.as_deref())
}

/// What each job may take, and why there is not a limit of everything.
fn limits(limits: &JobLimits) -> String {
    let words = &t().worker;
    let memory = limits.memory_bytes.map(|bytes| words.job_limits_memory.of(t().bytes(bytes)));
    let processes = limits.processes.map(|number| words.job_limits_processes.of(t().whole(number)));
    let said: Vec<String> = memory.into_iter().chain(processes).collect();
    let said = if said.is_empty() { words.job_limits_none.to_owned() } else { said.join(", ") };
    because(said, limits.why_not.as_deref())
}

fn because(what: String, why: Option<&str>) -> String {
    why.map_or_else(|| what.clone(), |why| format!("{what} ({why})"))
}

/// What its agent makes of the server's certificate.
fn certificate(verifies: bool) -> Text {
    let words = &t().worker;
    if verifies { words.verified } else { words.unverified }
}

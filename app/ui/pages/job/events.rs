//! The events of a job, as sentences.

use std::collections::BTreeMap;

use leptos::prelude::*;
use serde_json::Value;

use super::header::{JobHeader, job_error};
use super::tabs::JobTab;
use crate::domain::ids::JobId;
use crate::domain::text::split_headline;
use crate::domain::time::Timestamp;
use crate::protocol::audit::{AuditLogEvent, JobEvents};
use crate::protocol::jobs::JobView;
use crate::ui::backend::{use_backend, use_page_backend};
use crate::ui::clock::use_clock;
use crate::ui::components::empty_panel::EmptyPanel;
use crate::ui::components::event_entry::{EventDescription, EventEntry, describe_actor};
use crate::ui::erase::Erase;
use crate::ui::format::short_id;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::pages::server_rendered_page::server_rendered_page;

#[component]
pub(crate) fn JobEventsPage() -> impl IntoView {
    let (backend, page_backend) = (use_backend(), use_page_backend());
    server_rendered_page(
        move |id: JobId| {
            let (backend, page_backend) = (backend.clone(), page_backend.clone());
            async move { Ok((backend.job(id.clone()).await?, page_backend.job_events(id).await?)) }
        },
        |(job, events)| view! { <JobEventList job=job events=events/> }.into_erased(),
        job_error,
    )
}

/// The names of a job's workers, by their id.
type WorkerNames = BTreeMap<String, String>;

fn worker_label(names: &WorkerNames, id: &str) -> String {
    names.get(id).cloned().unwrap_or_else(|| short_id(id))
}

#[component]
fn JobEventList(job: JobView, events: JobEvents) -> impl IntoView {
    let words = &t().server_pages().job;
    let met = job.attempts.iter().flatten();
    let names: WorkerNames =
        met.filter_map(|attempt| Some((attempt.worker_id.to_string(), attempt.worker_name.clone()?))).collect();
    let mut before = None;
    let entries = events.events.into_iter().map(|event| {
        let since = before.replace(event.at).map(|before| t().format_duration(event.at - before));
        let (class, glyph) = event_style(&event.event);
        let sentence = event_sentence(&event, &names);
        let actor = describe_actor(&event.actor, |id| worker_label(&names, id));
        view! { <EventEntry description=EventDescription { class, glyph, sentence, note: String::new(), since, actor } event=event/> }
    });
    let entries: Vec<_> = entries.collect();
    let list = if entries.is_empty() {
        view! { <EmptyPanel glyph=Glyph::Search title=t().server_pages().worker.no_events text=words.no_events_hint/> }
            .into_erased()
    } else {
        view! { <ol class="events">{entries}</ol> }.into_erased()
    };
    view! {
        <div data-part="page">
            <JobHeader job=Signal::stored(job) tab=Signal::stored(JobTab::Events)/>
            <section class="panel" aria-labelledby="events">
                <h2 id="events" class="panel-head">{t().work.events}<span class="panel-note">{words.events_hint}</span></h2>
                {list}
            </section>
        </div>
    }
    .into_erased()
}

fn event_style(event: &str) -> (&'static str, Glyph) {
    match event {
        "job.completed" => ("status status-good", Glyph::CheckCircle),
        "job.failed" => ("status status-bad", Glyph::CrossCircle),
        "job.requeued" | "job.held" => ("status status-warn", Glyph::Warning),
        "job.cancelling" | "job.cancelled" => ("status status-off", Glyph::StopCircle),
        "job.running" | "job.starting" => ("status status-active", Glyph::Play),
        "job.offered" | "job.offer_expired" => ("status status-wait", Glyph::HalfCircle),
        _ => ("status status-wait", Glyph::Ring),
    }
}

/// Describes an event. An unknown one is shown by its code.
fn event_sentence(event: &AuditLogEvent, names: &WorkerNames) -> String {
    let words = &t().server_pages().job;
    let detail = |key: &str| match &event.detail[key] {
        Value::String(text) => text.clone(),
        Value::Null => "–".to_owned(),
        other => other.to_string(),
    };
    // The full text is in the details of the entry.
    let reason = || split_headline(&detail("reason")).0.to_owned();
    let attempt = detail("attempt");
    let worker = worker_label(names, &detail("worker_id"));
    let both: &[&dyn std::fmt::Display] = &[&attempt, &worker];
    match event.event.as_str() {
        "job.submitted" if event.detail["retry_of"].is_string() => words.resubmitted.of(detail("retry_of")),
        "job.submitted" => words.submitted.with(&[&detail("config"), &detail("revision")]),
        "job.priority_changed" => words.priority_changed.with(&[&detail("before"), &detail("after")]),
        "job.offered" => words.offered.with(both),
        "job.offer_expired" => words.offer_expired.with(both),
        "job.starting" => words.starting.with(both),
        "job.running" => words.running.with(both),
        "job.held" => {
            let until = Timestamp::parse_rfc3339(&detail("until")).map(|at| use_clock().format_timestamp(at));
            words.held.of(until.unwrap_or_else(|| detail("until")))
        }
        "job.requeued" => words.requeued.with(&[&attempt, &reason()]),
        "job.cancelling" => words.cancelling.of(worker),
        "job.cancelled" => words.cancelled.to_owned(),
        "job.completed" => words.completed.with(both),
        "job.failed" => words.failed.of(reason()),
        "secret.delivered" => words.secrets_delivered.with(&[&attempt, &join_names(&event.detail["names"])]),
        other => other.to_owned(),
    }
}

fn join_names(names: &Value) -> String {
    let names = names.as_array().into_iter().flatten().filter_map(Value::as_str);
    names.collect::<Vec<_>>().join(", ")
}

//! Everything that happened to a job, in sentences.

use std::collections::BTreeMap;

use leptos::prelude::*;
use serde_json::Value;

use super::frame::{JobFrame, unknown};
use super::tabs::Tab;
use crate::domain::ids::JobId;
use crate::domain::text::headline;
use crate::domain::time::Timestamp;
use crate::protocol::audit::{JobEvents, TrailEvent};
use crate::protocol::queue::JobView;
use crate::ui::components::empty::Empty;
use crate::ui::components::event_entry::{EventEntry, Told, by};
use crate::ui::components::icon::Glyph;
use crate::ui::erase::Erase;
use crate::ui::format::short_id;
use crate::ui::i18n::t;
use crate::ui::pages::plain_page::plain_page;
use crate::ui::pages::{use_desk, use_port};

/// See the module.
#[component]
pub(crate) fn JobEventsPage() -> impl IntoView {
    let (port, desk) = (use_port(), use_desk());
    plain_page(
        move |id: JobId| {
            let (port, desk) = (port.clone(), desk.clone());
            async move { Ok((port.job(id.clone()).await?, desk.job_events(id).await?)) }
        },
        |(job, events)| view! { <Shown job=job events=events/> }.erased(),
        unknown,
    )
}

/// The names of the workers that a job met.
type Names = BTreeMap<String, String>;

fn named(names: &Names, id: &str) -> String {
    names.get(id).cloned().unwrap_or_else(|| short_id(id))
}

#[component]
fn Shown(job: JobView, events: JobEvents) -> impl IntoView {
    let words = &t().plain().job;
    let met = job.attempts.iter().flatten();
    let names: Names =
        met.filter_map(|attempt| Some((attempt.worker_id.to_string(), attempt.worker_name.clone()?))).collect();
    let mut before = None;
    let entries = events.events.into_iter().map(|event| {
        let since = before.replace(event.at).map(|before| t().span(event.at - before));
        let (class, glyph) = look(&event.event);
        let sentence = sentence(&event, &names);
        let actor = by(&event.actor, |id| named(&names, id));
        view! { <EventEntry told=Told { class, glyph, sentence, note: String::new(), since, actor } event=event/> }
    });
    let entries: Vec<_> = entries.collect();
    let list = if entries.is_empty() {
        view! { <Empty glyph=Glyph::Search title=t().plain().worker.no_events text=words.no_events_hint/> }.erased()
    } else {
        view! { <ol class="events">{entries}</ol> }.erased()
    };
    view! {
        <div data-part="page">
            <JobFrame job=Signal::stored(job) tab=Signal::stored(Tab::Events)/>
            <section class="panel" aria-labelledby="events">
                <h2 id="events" class="panel-head">{t().work.events}<span class="panel-note">{words.events_hint}</span></h2>
                {list}
            </section>
        </div>
    }
    .erased()
}

fn look(event: &str) -> (&'static str, Glyph) {
    match event {
        "job.completed" => ("status status-good", Glyph::CheckCircle),
        "job.failed" => ("status status-bad", Glyph::CrossCircle),
        "job.requeued" | "job.kept_back" => ("status status-warn", Glyph::Warning),
        "job.cancelling" | "job.cancelled" => ("status status-off", Glyph::StopCircle),
        "job.running" | "job.starting" => ("status status-active", Glyph::Play),
        "job.offered" | "job.offer_expired" => ("status status-wait", Glyph::HalfCircle),
        _ => ("status status-wait", Glyph::Ring),
    }
}

/// What happened. A word that is not known here is told as it is.
fn sentence(event: &TrailEvent, names: &Names) -> String {
    let words = &t().plain().job;
    let detail = |key: &str| match &event.detail[key] {
        Value::String(text) => text.clone(),
        Value::Null => "–".to_owned(),
        other => other.to_string(),
    };
    // The rest of it is in the record, a fold away.
    let reason = || headline(&detail("reason")).0.to_owned();
    let attempt = detail("attempt");
    let worker = named(names, &detail("worker_id"));
    let both: &[&dyn std::fmt::Display] = &[&attempt, &worker];
    match event.event.as_str() {
        "job.submitted" if event.detail["retry_of"].is_string() => words.resubmitted.of(detail("retry_of")),
        "job.submitted" => words.submitted.with(&[&detail("config"), &detail("revision")]),
        "job.prioritised" => words.prioritised.with(&[&detail("before"), &detail("after")]),
        "job.offered" => words.offered.with(both),
        "job.offer_expired" => words.offer_expired.with(both),
        "job.starting" => words.starting.with(both),
        "job.running" => words.running.with(both),
        "job.kept_back" => {
            let until = Timestamp::parse_rfc3339(&detail("until")).map(|at| t().moment(at));
            words.kept_back.of(until.unwrap_or_else(|| detail("until")))
        }
        "job.requeued" => words.requeued.with(&[&attempt, &reason()]),
        "job.cancelling" => words.cancelling.of(worker),
        "job.cancelled" => words.cancelled.to_owned(),
        "job.completed" => words.completed.with(both),
        "job.failed" => words.failed.of(reason()),
        "secret.given" => words.secrets_given.with(&[&attempt, &list(&event.detail["names"])]),
        other => other.to_owned(),
    }
}

fn list(names: &Value) -> String {
    let names = names.as_array().into_iter().flatten().filter_map(Value::as_str);
    names.collect::<Vec<_>>().join(", ")
}

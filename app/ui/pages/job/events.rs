//! The timeline of a job, and its events as sentences.

use std::collections::BTreeMap;

use leptos::prelude::*;
use serde_json::Value;

use super::header::{JobHeader, job_problem_page};
use super::tabs::JobTab;
use super::{JobSnapshot, fetch_snapshot};
use crate::domain::audit_action::AuditAction;
use crate::domain::causes::LossCode;
use crate::domain::ids::JobId;
use crate::domain::text::split_headline;
use crate::domain::time::Timestamp;
use crate::protocol::audit::{AuditLogEvent, JobEvents};
use crate::ui::backend::{use_backend, use_page_backend};
use crate::ui::checkpoints::group_checkpoints;
use crate::ui::clock::use_clock;
use crate::ui::components::attempts::Attempts;
use crate::ui::components::empty_panel::EmptyPanel;
use crate::ui::components::event_entry::{EventDescription, EventEntry, PLAIN_EVENT, describe_actor};
use crate::ui::erase::Erase;
use crate::ui::format::short_id;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::losses::{failure_sentence, loss_sentence};
use crate::ui::pages::server_rendered_page::server_rendered_page;

#[component]
pub(crate) fn JobEventsPage() -> impl IntoView {
    let (backend, page_backend) = (use_backend(), use_page_backend());
    server_rendered_page(
        move |id: JobId| {
            let (backend, page_backend) = (backend.clone(), page_backend.clone());
            async move {
                let snapshot = fetch_snapshot(&backend, &id).await?;
                Ok((snapshot, page_backend.job_events(id).await?))
            }
        },
        |(snapshot, events)| view! { <JobEventList snapshot=snapshot events=events/> }.into_erased(),
        job_problem_page,
    )
}

/// The names of a job's workers, by their id.
type WorkerNames = BTreeMap<String, String>;

fn worker_label(names: &WorkerNames, id: &str) -> String {
    names.get(id).cloned().unwrap_or_else(|| short_id(id))
}

#[component]
fn JobEventList(snapshot: JobSnapshot, events: JobEvents) -> impl IntoView {
    let words = &t().server_pages().job;
    let (job, artifacts) = snapshot;
    let attempts = job.attempts.iter().flatten();
    let names: WorkerNames =
        attempts.filter_map(|attempt| Some((attempt.worker_id.to_string(), attempt.worker_name.clone()?))).collect();
    let mut previous_at = None;
    let entries = events.events.into_iter().map(|event| {
        let since = previous_at.replace(event.at).map(|previous_at| t().format_duration(event.at - previous_at));
        // The code of an action of a newer server is shown as it is.
        let action = AuditAction::parse(&event.event);
        let (class, glyph) = action.and_then(event_style).unwrap_or(PLAIN_EVENT);
        let sentence = action.and_then(|action| event_sentence(action, &event, &names));
        let sentence = sentence.unwrap_or_else(|| event.event.clone());
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
    let timeline = job.attempts.as_ref().is_some_and(|attempts| !attempts.is_empty()).then(|| {
        let (job, checkpoints) = (job.clone(), group_checkpoints(&artifacts.artifacts));
        let (job, checkpoints) = (Memo::new(move |_| job.clone()), Memo::new(move |_| checkpoints.clone()));
        view! { <div class="mb-6"><Attempts job=job checkpoints=checkpoints/></div> }
    });
    view! {
        <div data-part="page">
            <JobHeader job=Signal::stored(job) files=Signal::stored(artifacts) tab=Signal::stored(JobTab::Events)/>
            {timeline}
            <section class="panel" aria-labelledby="events">
                <h2 id="events" class="panel-head">{t().work.events}<span class="panel-note">{words.events_hint}</span></h2>
                {list}
            </section>
        </div>
    }
    .into_erased()
}

/// Returns the style of an action of a job.
fn event_style(action: AuditAction) -> Option<(&'static str, Glyph)> {
    Some(match action {
        AuditAction::JobCompleted => ("status status-good", Glyph::CheckCircle),
        AuditAction::JobFailed => ("status status-bad", Glyph::CrossCircle),
        AuditAction::JobRequeued | AuditAction::JobHeld | AuditAction::JobPreempting => {
            ("status status-warn", Glyph::Warning)
        }
        AuditAction::JobCancelling | AuditAction::JobCancelled => ("status status-off", Glyph::StopCircle),
        AuditAction::JobRunning | AuditAction::JobStarting => ("status status-active", Glyph::Play),
        AuditAction::JobOffered | AuditAction::JobOfferExpired => ("status status-wait", Glyph::HalfCircle),
        AuditAction::JobSubmitted
        | AuditAction::JobDescribed
        | AuditAction::JobPrioritized
        | AuditAction::SecretsDelivered => PLAIN_EVENT,
        _ => return None,
    })
}

/// Describes an action of a job.
fn event_sentence(action: AuditAction, event: &AuditLogEvent, names: &WorkerNames) -> Option<String> {
    let words = &t().server_pages().job;
    let detail = |key: &str| match &event.detail[key] {
        Value::String(text) => text.clone(),
        Value::Null => "–".to_owned(),
        other => other.to_string(),
    };
    // The full text is in the details of the entry.
    let reason = || split_headline(&detail("reason")).0.to_owned();
    let loss = event.detail["loss_code"].as_str().and_then(LossCode::parse);
    let attempt = detail("attempt");
    let worker = worker_label(names, &detail("worker_id"));
    let attempt_and_worker: &[&dyn std::fmt::Display] = &[&attempt, &worker];
    Some(match action {
        AuditAction::JobSubmitted if event.detail["retry_of"].is_string() => words.resubmitted.of(detail("retry_of")),
        AuditAction::JobSubmitted => words.submitted.with(&[&detail("config"), &detail("revision")]),
        AuditAction::JobDescribed => words.described.to_owned(),
        AuditAction::JobPrioritized => words.priority_changed.with(&[&detail("before"), &detail("after")]),
        AuditAction::JobOffered => words.offered.with(attempt_and_worker),
        AuditAction::JobOfferExpired => words.offer_expired.with(attempt_and_worker),
        AuditAction::JobStarting => words.starting.with(attempt_and_worker),
        AuditAction::JobRunning => words.running.with(attempt_and_worker),
        AuditAction::JobHeld => {
            let until = Timestamp::parse_rfc3339(&detail("until")).map(|at| use_clock().format_timestamp(at));
            words.held.of(until.unwrap_or_else(|| detail("until")))
        }
        AuditAction::JobPreempting => words.preempting.with(&[&attempt, &detail("for")]),
        AuditAction::JobRequeued => words.requeued.with(&[&attempt, &loss_sentence(loss, &reason())]),
        AuditAction::JobCancelling => words.cancelling.of(worker),
        AuditAction::JobCancelled => words.cancelled.to_owned(),
        AuditAction::JobCompleted => words.completed.with(attempt_and_worker),
        AuditAction::JobFailed => words.failed.of(failure_sentence(loss, &reason())),
        AuditAction::SecretsDelivered => words.secrets_delivered.with(&[&attempt, &join_names(&event.detail["names"])]),
        _ => return None,
    })
}

fn join_names(names: &Value) -> String {
    let names = names.as_array().into_iter().flatten().filter_map(Value::as_str);
    names.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::audit_action::AuditSubject;

    #[test]
    fn each_action_of_a_job_is_described() {
        for action in AuditAction::ALL {
            let (event, actor) = (action.as_str().to_owned(), "system".to_owned());
            let event = AuditLogEvent { at: Timestamp(0), event, actor, detail: Value::Null };
            let sentence = Owner::new().with(|| event_sentence(action, &event, &WorkerNames::new()));
            let is_of_job = action.subject() == AuditSubject::Job;
            assert_eq!((event_style(action).is_some(), sentence.is_some()), (is_of_job, is_of_job), "{action:?}");
        }
    }
}

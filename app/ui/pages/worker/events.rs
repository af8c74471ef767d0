//! The events of a worker, as sentences, newest first.

use std::collections::BTreeMap;

use leptos::prelude::*;
use serde_json::Value;

use super::header::{WorkerHeader, worker_problem_page};
use super::jobs::{page_links, page_query_from_url};
use super::tabs::WorkerTab;
use crate::domain::access::Permission;
use crate::domain::audit_action::AuditAction;
use crate::domain::causes::{OfflineCause, StreamEndCause};
use crate::domain::ids::WorkerId;
use crate::domain::text::escape;
use crate::domain::time::Timestamp;
use crate::protocol::audit::AuditLogEvent;
use crate::protocol::workers::WorkerView;
use crate::protocol::workers::history::{PageQuery, WorkerEvents};
use crate::ui::audit_actions::action_sentence;
use crate::ui::backend::{use_backend, use_page_backend};
use crate::ui::clock::use_clock;
use crate::ui::components::empty_panel::EmptyPanel;
use crate::ui::components::event_entry::{EventDescription, EventEntry, PLAIN_EVENT, describe_actor};
use crate::ui::components::pager::Pager;
use crate::ui::erase::Erase;
use crate::ui::format::short_id;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::losses::offline_sentence;
use crate::ui::pages::server_rendered_page::server_rendered_page;
use crate::ui::prefs::Prefs;

#[component]
pub(crate) fn WorkerEventsPage() -> impl IntoView {
    let (backend, page_backend, query) = (use_backend(), use_page_backend(), page_query_from_url());
    server_rendered_page(
        move |id: WorkerId| {
            let (backend, page_backend, query) = (backend.clone(), page_backend.clone(), query.clone());
            async move {
                Ok((backend.worker(id.clone()).await?, page_backend.worker_events(id, query.clone()).await?, query))
            }
        },
        |(worker, page, query)| view! { <WorkerEventList worker=worker page=page query=query/> }.into_erased(),
        worker_problem_page,
    )
}

#[component]
fn WorkerEventList(worker: WorkerView, page: WorkerEvents, query: PageQuery) -> impl IntoView {
    let (language, words) = (t(), &t().server_pages().worker);
    let [newest, older] = page_links(&worker.id, WorkerTab::Events, &query, page.next_cursor);
    let sees_audit_log = use_context::<Prefs>().is_some_and(|prefs| prefs.has_permission(Permission::AdminAudit));
    let audit_log = sees_audit_log.then(|| {
        let href = format!("/admin/audit?target={}", worker.id);
        view! { <a class="more-link" href=href>{language.nav.audit}</a> }
    });
    let list = if page.events.is_empty() {
        view! { <EmptyPanel glyph=Glyph::Search title=words.no_events text=words.no_events_hint/> }.into_erased()
    } else {
        let name = worker.name.clone();
        let entry = |event: AuditLogEvent| {
            let (class, glyph) = AuditAction::parse(&event.event).and_then(event_style).unwrap_or(PLAIN_EVENT);
            let description = EventDescription {
                class,
                glyph,
                sentence: action_sentence(&event.event)
                    .map_or_else(|| escape(&event.event).into_owned(), str::to_owned),
                note: event_details(&event).join(" · "),
                since: None,
                actor: describe_actor(&event.actor, |_| name.clone()),
            };
            view! { <EventEntry event=event description=description/> }
        };
        view! { <ol class="events">{page.events.into_iter().map(entry).collect_view()}</ol> }.into_erased()
    };
    view! {
        <div data-part="page">
            <WorkerHeader worker=RwSignal::new(worker) tab=Signal::stored(WorkerTab::Events)/>
            <section class="panel" aria-labelledby="events">
                <h2 id="events" class="panel-head">
                    {language.work.events}
                    <span class="panel-note">{words.newest_first}</span>
                    {audit_log}
                </h2>
                {list}
            </section>
            <Pager label=language.work.events first=newest next=older/>
        </div>
    }
    .into_erased()
}

/// Returns the style of an action on a worker.
fn event_style(action: AuditAction) -> Option<(&'static str, Glyph)> {
    Some(match action {
        AuditAction::WorkerOnline => ("status status-good", Glyph::CheckCircle),
        AuditAction::WorkerRegistered | AuditAction::WorkerResumed => ("status status-active", Glyph::Play),
        AuditAction::WorkerOffline => ("status status-bad", Glyph::CrossCircle),
        AuditAction::WorkerTokenInUse => ("status status-bad", Glyph::Warning),
        AuditAction::WorkerGpus | AuditAction::WorkerHostHealth | AuditAction::WorkerUnassignedRun => {
            ("status status-warn", Glyph::Warning)
        }
        AuditAction::WorkerDrained => ("status status-warn", Glyph::Drain),
        AuditAction::WorkerTokenRotated => ("status status-wait", Glyph::Key),
        AuditAction::WorkerConnecting => ("status status-wait", Glyph::HalfCircle),
        AuditAction::WorkerCreated
        | AuditAction::WorkerRetired
        | AuditAction::WorkerEdited
        | AuditAction::WorkerRegistrationRejected
        | AuditAction::WorkerRemoved
        | AuditAction::WorkerDeleted => PLAIN_EVENT,
        _ => return None,
    })
}

/// Selected details of an event; all others are in its record.
fn event_details(event: &AuditLogEvent) -> Vec<String> {
    let (language, words, clock) = (t(), &t().server_pages().worker, use_clock());
    let detail = &event.detail;
    let text = |key: &str| detail[key].as_str().map(|text| escape(text).into_owned());
    let timestamp_text =
        |key: &str| detail[key].as_str().and_then(Timestamp::parse_rfc3339).map(|at| clock.format_timestamp(at));
    let ends = |key| timestamp_text(key).map(|at| format!("{} {at}", language.token.token_ends_at));
    let unused = || timestamp_text("token_unused_ends_at").map(|at| language.token.token_ends_unused.of(at));
    let Some(action) = AuditAction::parse(&event.event) else { return Vec::new() };
    let details = match action {
        AuditAction::WorkerCreated => vec![ends("token_expires_at"), unused()],
        AuditAction::WorkerRegistered => {
            let agent = text("agent_version").map(|version| language.worker.contact_agent.of(version));
            vec![gpu_models_text(&detail["gpus"]), text("hostname"), agent, text("unhealthy_reason")]
        }
        AuditAction::WorkerConnecting => vec![text("cause").map(|cause| match StreamEndCause::parse(&cause) {
            Some(StreamEndCause::ServerStopped) => words.stream_ends.server_stopped.to_owned(),
            None => cause,
        })],
        AuditAction::WorkerOffline => vec![text("cause").map(|cause| match OfflineCause::parse(&cause) {
            Some(known) => offline_sentence(known).to_owned(),
            // Earlier entries have a text.
            None => cause,
        })],
        AuditAction::WorkerDrained => vec![text("reason"), timestamp_text("deadline").map(|at| words.until.of(at))],
        AuditAction::WorkerGpus => vec![
            gpu_list_text(&detail["unavailable"]).map(|gpus| words.unavailable.of(gpus)),
            gpu_list_text(&detail["available"]).map(|gpus| words.available_again.of(gpus)),
        ],
        AuditAction::WorkerHostHealth => {
            vec![text("unhealthy_reason").or_else(|| Some(words.healthy_again.to_owned()))]
        }
        AuditAction::WorkerTokenRotated => {
            let old = timestamp_text("old_token_ends_at").map(|at| format!("{} {at}", language.token.old_token_ends));
            vec![ends("expires_at"), unused(), old]
        }
        AuditAction::WorkerTokenInUse => vec![text("host").map(|host| words.from_host.of(host))],
        AuditAction::WorkerUnassignedRun => vec![text("job_id").map(|job| short_id(&job))],
        _ => Vec::new(),
    };
    details.into_iter().flatten().collect()
}

/// The number of GPUs of each model.
fn gpu_models_text(names: &Value) -> Option<String> {
    let mut counts = BTreeMap::<&str, u64>::new();
    for name in names.as_array()?.iter().filter_map(Value::as_str) {
        *counts.entry(name).or_default() += 1;
    }
    let model_counts = counts.into_iter().map(|(name, count)| format!("{count}\u{a0}×\u{a0}{}", escape(name)));
    Some(model_counts.collect::<Vec<_>>().join(", ")).filter(|text| !text.is_empty())
}

/// GPUs by their index, each with its detail.
fn gpu_list_text(gpus: &Value) -> Option<String> {
    let gpu = |gpu: &Value| {
        let index = u32::try_from(gpu["index"].as_u64()?).ok()?;
        let detail = gpu["detail"].as_str().filter(|detail| !detail.is_empty());
        let detail = detail.map(|detail| format!(" ({})", escape(detail))).unwrap_or_default();
        Some(format!("{}{detail}", t().charts.gpu.of(index)))
    };
    let texts: Vec<_> = gpus.as_array()?.iter().filter_map(gpu).collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::audit_action::AuditSubject;

    fn describe(event: &str, detail: Value) -> Vec<String> {
        let (event, actor) = (event.to_owned(), "system".to_owned());
        Owner::new().with(|| event_details(&AuditLogEvent { at: Timestamp(0), event, actor, detail }))
    }

    #[test]
    fn each_action_on_a_worker_has_a_style() {
        for action in AuditAction::ALL {
            assert_eq!(event_style(action).is_some(), action.subject() == AuditSubject::Worker, "{action:?}");
        }
    }

    #[test]
    fn event_details_are_described() {
        let gpus = json!(["A100", "A100", "H100"]);
        let registration =
            json!({"gpus": gpus, "hostname": "rack\u{202e}1", "agent_version": "0.1.0", "old_token_ended": true});
        assert_eq!(
            describe("worker.registered", registration),
            ["2\u{a0}×\u{a0}A100, 1\u{a0}×\u{a0}H100", "rack\\u{202e}1", "agent 0.1.0"]
        );
        for (event, cause, sentence) in [
            ("worker.offline", "disconnected", "Agent shut down."),
            ("worker.offline", "heartbeat_timeout", "Heartbeat timeout."),
            ("worker.offline", "token_rotated", "Its token was rotated."),
            ("worker.offline", "heartbeat timeout", "heartbeat timeout"),
            ("worker.connecting", "server_stopped", "The connected server stopped."),
            ("worker.connecting", "odd", "odd"),
        ] {
            assert_eq!(describe(event, json!({"cause": cause})), [sentence], "{event} {cause}");
        }
        let broken = json!({"unavailable": [{"index": 3, "detail": "XID 79"}], "available": []});
        assert_eq!(describe("worker.gpus_changed", broken), ["Unavailable: GPU 3 (XID 79)"]);
        assert_eq!(describe("worker.health_changed", json!({"unhealthy_reason": null})), ["Accepts jobs again."]);
        assert_eq!(describe("worker.drained", json!({"reason": null, "deadline": "1970-01-01T00:00:05Z"})).len(), 1);
        for odd in [Value::Null, json!([]), json!("text"), json!({"gpus": 5, "unavailable": [1], "reason": {}})] {
            assert!(
                describe("worker.registered", odd.clone()).is_empty()
                    && describe("worker.gpus_changed", odd).is_empty()
            );
        }
    }
}

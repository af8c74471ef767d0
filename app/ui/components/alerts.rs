//! The alerts of the overview page, each with a link to the page that resolves it.

use leptos::prelude::*;

use super::icon::Icon;
use super::match_summary::summary_text;
use super::time::RelativeTime;
use crate::protocol::jobs::JobsQuery;
use crate::protocol::jobs::explain::JobRequirementCode;
use crate::protocol::overview::{AlertCode, AlertView, OverviewView, Severity};
use crate::protocol::status::JobPhase;
use crate::ui::clock::{PageClock, use_clock};
use crate::ui::erase::Erase;
use crate::ui::format::short_id;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::locales::words::OverviewAlerts;
use crate::ui::page_query::jobs_url;

/// The list of alerts, or a message that there are none.
#[component]
pub(crate) fn Alerts(now: Memo<Option<OverviewView>>) -> impl IntoView {
    let words = &t().overview;
    let list = Memo::new(move |_| {
        now.with(|now| now.as_ref().map(|now| (now.attention.clone(), now.more_attention)).unwrap_or_default())
    });
    let content = move || {
        let (entries, more) = list.get();
        if entries.is_empty() {
            return view! {
                <p class="panel-empty"><span class="status status-good"><Icon glyph=Glyph::CheckCircle/></span>{words.all_well}</p>
            }
            .into_erased();
        }
        let entries = entries.into_iter().map(|entry| view! { <AlertRow entry=entry/> }).collect_view();
        let more = (more > 0).then(|| view! { <li class="text-muted">{words.more_attention.of(more)}</li> });
        view! { <ul class="rows">{entries}{more}</ul> }.into_erased()
    };
    view! {
        <section class="panel mb-6" aria-labelledby="attention">
            <h2 id="attention" class="panel-head">{words.attention}</h2>
            {content}
        </section>
    }
    .into_erased()
}

#[component]
fn AlertRow(entry: AlertView) -> impl IntoView {
    let words = &t().overview;
    let (class, glyph, severity) = match entry.severity {
        Severity::Critical => ("status status-bad", Glyph::CrossCircle, words.severities.critical),
        Severity::Warning => ("status status-warn", Glyph::Warning, words.severities.warning),
        Severity::Info => ("status status-off", Glyph::Ring, words.severities.info),
    };
    let (href, is_server_rendered) = alert_link(&entry);
    let sentence = alert_text(&words.alerts, &entry);
    let (clock, subject, since, jobs) = (use_clock(), subject_name(&entry), entry.since, lost_job_links(&entry));
    view! {
        <li class="alert-entry">
            <span class=class><Icon glyph=glyph/><span class="sr-only">{severity}</span></span>
            <span class="min-w-0">
                <a class="row-link" href=href rel=is_server_rendered.then_some("external")>{subject}</a>
                <span class="row-sub whitespace-normal">{sentence}{jobs}{move || alert_details(&entry, clock)}</span>
            </span>
            {since.map(|since| view! { <span class="text-muted"><RelativeTime at=since/></span> })}
        </li>
    }
    .into_erased()
}

fn alert_text(words: &OverviewAlerts, entry: &AlertView) -> String {
    let text = match entry.kind {
        AlertCode::OfflineWithJob => return words.offline_with_job.of(entry.count.unwrap_or(1)),
        AlertCode::Offline => return words.offline.of(entry.count.unwrap_or(1)),
        AlertCode::DiskFull => words.disk_full,
        AlertCode::TokenShared => words.token_shared,
        AlertCode::TokenExpired => words.token_expired,
        AlertCode::FastFailures => words.fast_failures,
        AlertCode::Stuck => words.stuck,
        AlertCode::GpusUnavailable => words.gpus_unavailable,
        AlertCode::HostUnhealthy => words.host_unhealthy,
        AlertCode::RegistrationRejected => words.registration_rejected,
        AlertCode::DrainOverdue => words.drain_overdue,
        AlertCode::TokenExpiring => words.token_expiring,
        AlertCode::TlsUnverified => words.tls_unverified,
        AlertCode::DrainLong => words.drain_long,
        AlertCode::AgentOutdated => words.agent_outdated,
        AlertCode::TokenOld => words.token_old,
        AlertCode::AuditNotShipped => words.audit_not_shipped,
        AlertCode::MoreStuck => words.more_stuck,
    };
    text.to_owned()
}

/// Returns links to the jobs that a worker lost, and the number of those that the alert does not name.
fn lost_job_links(entry: &AlertView) -> Option<AnyView> {
    let named = entry.job_ids.len() as u64;
    let more = entry.count.and_then(|count| count.checked_sub(named)).filter(|more| *more > 0);
    let more = more.map(|more| format!(" {}", t().overview.more_attention.of(more)));
    let links = entry.job_ids.iter().enumerate().map(|(index, id)| {
        let separator = if index == 0 { " · " } else { ", " };
        let (page, id) = (format!("/jobs/{id}"), id.to_string());
        view! { {separator}<a class="quiet-link" href=page title=id.clone()>{short_id(&id)}</a> }
    });
    let links = links.collect_view();
    (named > 0).then(|| view! { {links}{more} }.into_erased())
}

fn subject_name(entry: &AlertView) -> String {
    let words = &t().overview;
    let count = entry.count.unwrap_or_default();
    match entry.kind {
        AlertCode::Stuck if count > 1 => return words.jobs_wait.of(count),
        AlertCode::MoreStuck => return words.more_jobs_wait.of(count),
        _ => {}
    }
    let workers_text = || entry.count.map(|count| words.several_workers.of(count));
    entry.name.clone().or_else(workers_text).unwrap_or_else(|| words.this_server.to_owned())
}

/// Returns the values that follow the sentence: a count, the requirements summary, a time, and the detail.
fn alert_details(entry: &AlertView, clock: PageClock) -> String {
    let is_in_sentence = matches!(entry.kind, AlertCode::Stuck | AlertCode::OfflineWithJob | AlertCode::Offline);
    let has_count = entry.name.is_some() && !is_in_sentence;
    let count = entry.count.filter(|_| has_count).map(|count| format!("{count}×"));
    let parts = [
        count,
        entry.summary.as_ref().map(|summary| summary_text(t(), summary)),
        entry.at.map(|at| clock.format_timestamp(at)),
        entry.detail.as_deref().map(|detail| match entry.kind {
            AlertCode::RegistrationRejected => rejection_advice(detail),
            _ => detail.to_owned(),
        }),
    ];
    parts.into_iter().flatten().fold(String::new(), |text, part| text + " · " + &part)
}

/// Returns why a registration was rejected, and what to do, by the problem's code.
fn rejection_advice(code: &str) -> String {
    let words = &t().overview.rejections;
    let advice = match code {
        "worker_token_invalid" => words.token,
        "worker_token_expired" => words.expired,
        "network_not_allowed" => words.network,
        "worker_retired" => words.retired,
        "older_agent_rejected" => words.older_agent,
        _ => return words.other.of(code),
    };
    advice.to_owned()
}

/// Returns the URL of the page that resolves an alert, and whether that page is rendered on the server only.
fn alert_link(entry: &AlertView) -> (String, bool) {
    match (&entry.worker_id, &entry.job_id, entry.kind) {
        // The panel from which the token is rotated.
        (
            Some(id),
            _,
            AlertCode::TokenExpired | AlertCode::TokenExpiring | AlertCode::TokenOld | AlertCode::RegistrationRejected,
        ) => (format!("/admin/workers/{id}#access"), false),
        (Some(id), _, AlertCode::FastFailures) => (format!("/admin/workers/{id}/jobs"), true),
        (Some(id), _, AlertCode::GpusUnavailable) => (format!("/admin/workers/{id}?show=gpus"), false),
        (Some(id), _, _) => (format!("/admin/workers/{id}"), false),
        (None, Some(_), AlertCode::Stuck) if entry.count > Some(1) => (jobs_url(&waiting_jobs_query(entry)), false),
        (None, None, AlertCode::MoreStuck) => (jobs_url(&waiting_jobs_query(entry)), false),
        (None, Some(id), _) => (format!("/jobs/{id}#why"), false),
        (None, None, AlertCode::DiskFull | AlertCode::AuditNotShipped) => ("/admin/system".to_owned(), true),
        (None, None, _) => ("/admin/workers".to_owned(), false),
    }
}

/// Returns the query for the jobs of an alert: all pending jobs, or, if no worker has a required label, the pending
/// jobs that require this label.
fn waiting_jobs_query(entry: &AlertView) -> JobsQuery {
    let last = entry.summary.as_ref().and_then(|summary| summary.steps.last());
    let label = last.filter(|step| step.requirement == JobRequirementCode::Label);
    let label = label.and_then(|step| Some(format!("{}={}", step.key.as_ref()?, step.wanted.as_ref()?)));
    JobsQuery { phase: Some(JobPhase::Waiting), label, ..JobsQuery::default() }
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;
    use crate::domain::time::Timestamp;

    #[test]
    fn moments_follow_the_readers_zone() {
        let entry = serde_json::json!({"kind": "token_expiring", "severity": "warning", "at": Timestamp(1_704_450_600_000).to_string()});
        let entry: AlertView = serde_json::from_value(entry).expect("an entry");
        Owner::new().with(|| {
            provide_context(PageClock::in_tokyo());
            let html = view! { <AlertRow entry=entry/> }.to_html();
            assert!(html.contains("5 Jan 2024, 19:30:00 UTC+09:00"), "{html}");
        });
    }

    /// Returns the HTML of an alert with this `kind` and `severity`.
    fn alert_html(kind: &str, severity: &str) -> String {
        let entry = serde_json::json!({"kind": kind, "severity": severity});
        let entry: AlertView = serde_json::from_value(entry).expect("an entry");
        Owner::new().with(|| {
            provide_context(PageClock::in_tokyo());
            view! { <AlertRow entry=entry/> }.to_html()
        })
    }

    #[test]
    fn lost_jobs_are_counted_and_linked() {
        let ids = ["j_01HN8Z0000000000000000000X", "j_01HN8Z0000000000000000000Y"];
        let html = |count: u64| {
            let entry = serde_json::json!({
                "kind": "offline_with_job", "severity": "critical", "worker_id": "w_1", "name": "gpu-1",
                "job_id": ids[0], "job_ids": ids, "count": count,
            });
            let entry: AlertView = serde_json::from_value(entry).expect("an entry");
            Owner::new().with(|| {
                provide_context(PageClock::in_tokyo());
                view! { <AlertRow entry=entry/> }.to_html()
            })
        };
        let both = html(2);
        assert!(both.contains("Offline: 2 jobs were lost and are not running again yet"), "{both}");
        for id in ids {
            assert!(both.contains(&format!("href=\"/jobs/{id}\"")), "{both}");
        }
        assert!(!both.contains("more"), "all are named: {both}");
        assert!(!both.contains('×'), "the sentence has the number: {both}");
        assert!(html(25).contains("and 23 more"));
    }

    #[test]
    fn rejected_registration_says_what_to_do() {
        for (code, text) in [
            ("worker_token_invalid", "its token is invalid; check it, or rotate it"),
            ("network_not_allowed", "its address is not in the allowed networks; edit the worker to allow it"),
            ("something_new", "reason: something_new"),
        ] {
            let entry = serde_json::json!({"kind": "registration_rejected", "severity": "warning", "detail": code});
            let entry: AlertView = serde_json::from_value(entry).expect("an entry");
            let details = Owner::new().with(|| alert_details(&entry, PageClock::in_tokyo()));
            assert_eq!(details, format!(" · {text}"));
        }
    }

    #[test]
    fn each_kind_and_severity_has_its_own_sentence() {
        let kinds = [
            ("disk_full", "Disk almost full: new jobs are rejected"),
            ("token_shared", "Token used by a second agent"),
            ("token_expired", "Token expired"),
            ("offline_with_job", "Offline: 1 job was lost and is not running again yet"),
            ("offline", "Offline: 1 job was lost; it runs elsewhere or has ended"),
            ("fast_failures", "Jobs fail right after starting"),
            ("stuck", "No matching worker is available"),
            ("gpus_unavailable", "GPUs quarantined after an error"),
            ("host_unhealthy", "Unhealthy: accepts no new jobs"),
            ("registration_rejected", "Agent registration rejected"),
            ("drain_overdue", "Drain deadline passed, job still running"),
            ("token_expiring", "Token expires soon"),
            ("tls_unverified", "TLS verification disabled"),
            ("drain_long", "Draining for over an hour"),
            ("agent_outdated", "Agent version outdated"),
            ("token_old", "Token older than 90 days"),
            ("audit_not_shipped", "Audit checkpoints cannot be shipped"),
            ("more_stuck", "Other requirements; no matching worker is available"),
        ];
        for (kind, sentence) in kinds {
            let html = alert_html(kind, "info");
            assert!(html.contains(sentence), "{kind}: {html}");
        }
        for (severity, label) in [("critical", "Critical"), ("warning", "Warning"), ("info", "Info")] {
            let html = alert_html("host_unhealthy", severity);
            assert!(html.contains(&format!(">{label}<")), "{severity}: {html}");
        }
    }
}

//! The badges of a worker: its status, and what needs attention.

use leptos::prelude::*;

use super::gpu_table::UnavailableBadge;
use super::icon::Icon;
use super::status::{StatusBadge, worker_style};
use super::worker_token::TokenBadges;
use crate::protocol::status::WorkerStatus;
use crate::protocol::workers::WorkerView;
use crate::ui::erase::Erase;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::losses::offline_sentence;

/// A worker's status, with badges for a drain that the status does not show, an agent that does not verify the server's certificate, an
/// unhealthy host, unavailable GPUs, and problems of the token.
#[component]
pub(crate) fn WorkerBadge(worker: WorkerView) -> impl IntoView {
    let unverified = worker.tls_verify == Some(false);
    let shows_drain = worker.status == WorkerStatus::Draining && !worker.connection_lost;
    let hidden_drain = !shows_drain && (worker.draining || worker.status == WorkerStatus::Draining);
    let why_offline = worker.offline_cause.map(offline_sentence);
    view! {
        <StatusBadge style=worker_style(&t().status, &worker) title=why_offline/>
        {hidden_drain.then(|| view! { <span class="chip">{t().worker.draining}</span> })}
        {unverified.then(|| view! {
            <span class="status status-warn" title=t().worker.unverified_hint>
                <Icon glyph=Glyph::Warning/>
                <span>{t().worker.unverified}</span>
            </span>
        })}
        <HostHealthBadge worker=worker.clone()/>
        <UnavailableBadge worker=worker.clone()/>
        <TokenBadges worker=worker/>
    }
    .into_erased()
}

/// A badge for an unhealthy host of a worker that is not offline.
#[component]
fn HostHealthBadge(worker: WorkerView) -> impl IntoView {
    let reason = worker.unhealthy_reason.filter(|_| worker.status != WorkerStatus::Offline);
    let badge = reason.map(|reason| {
        view! {
            <span class="status status-warn" title=t().worker.unhealthy_because.of(&reason)>
                <Icon glyph=Glyph::Warning/>
                <span>{t().worker.unhealthy}</span>
            </span>
        }
    });
    badge.into_erased()
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::protocol::workers::fixtures::worker;
    use crate::ui::clock::PageClock;

    fn badges(status: &str, more: Value) -> String {
        let worker = worker(status, more);
        Owner::new().with(|| {
            provide_context(PageClock::in_tokyo());
            view! { <WorkerBadge worker=worker/> }.to_html()
        })
    }

    #[test]
    fn drain_and_connection_are_both_shown() {
        let lost = json!({"draining": true, "connection_lost": true});
        let offline = json!({"draining": true, "last_heartbeat": "2026-11-22T00:00:00Z"});
        for (html, expected) in [
            (badges("draining", json!({"draining": true})), ["Draining", ""]),
            (badges("draining", lost), ["Draining", "Connection lost"]),
            // A retired worker.
            (badges("draining", json!({"connection_lost": true})), ["Draining", "Connection lost"]),
            (badges("busy", json!({"connection_lost": true})), ["", "Connection lost"]),
            (badges("offline", offline), ["Draining", "Offline"]),
            (badges("idle", json!({})), ["", "Idle"]),
        ] {
            assert!(expected.iter().all(|label| html.contains(label)), "{expected:?}: {html}");
            assert_eq!(html.matches("Draining").count(), usize::from(!expected[0].is_empty()), "{html}");
            assert_eq!(html.contains("Connection lost"), expected[1] == "Connection lost", "{html}");
        }
    }

    #[test]
    fn offline_worker_says_why() {
        let offline = json!({"offline_cause": "disconnected", "last_heartbeat": "2026-11-22T00:00:00Z"});
        assert!(badges("offline", offline).contains("title=\"Agent shut down.\""));
        assert!(!badges("offline", json!({})).contains("title="), "it never connected");
    }
}

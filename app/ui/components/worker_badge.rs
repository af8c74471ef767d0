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

/// A worker's status, with badges for a requested drain, an agent that does not verify the server's certificate, an
/// unhealthy host, unavailable GPUs, and problems of the token.
#[component]
pub(crate) fn WorkerBadge(worker: WorkerView) -> impl IntoView {
    let unverified = worker.tls_verify == Some(false);
    let hidden_drain = worker.draining && worker.status != WorkerStatus::Draining;
    view! {
        <StatusBadge style=worker_style(&t().status, &worker)/>
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

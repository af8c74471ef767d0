//! The header of every view of a worker: name, status, the last 24 hours, actions, and links to the other views.

use leptos::prelude::*;

use super::last_day::LastDay;
use super::tabs::{WorkerTab, WorkerTabs};
use crate::domain::access::Permission;
use crate::protocol::problem::Problem;
use crate::protocol::workers::WorkerView;
use crate::protocol::workers::deletion::DeletionStatus;
use crate::ui::clock::use_clock;
use crate::ui::components::action::ButtonLink;
use crate::ui::components::copy::IdText;
use crate::ui::components::drain::{DrainButton, describe_drain};
use crate::ui::components::icon::Icon;
use crate::ui::components::page_header::PageHeader;
use crate::ui::components::problem_panel::ProblemPanel;
use crate::ui::components::worker_badge::WorkerBadge;
use crate::ui::erase::Erase;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::losses::offline_sentence;
use crate::ui::page_query::FLEET;
use crate::ui::permissions::has_permission;

#[component]
pub(super) fn WorkerHeader(worker: RwSignal<WorkerView>, #[prop(into)] tab: Signal<WorkerTab>) -> impl IntoView {
    let (words, clock) = (t(), use_clock());
    let (id, name) = worker.with_untracked(|worker| (worker.id.clone(), worker.name.clone()));
    let blocker = move || worker.with(deletion_blocker);
    let drain_text = Memo::new(move |_| worker.with(|worker| describe_drain(worker, clock)));
    let badge = move || view! { <WorkerBadge worker=worker.get()/> };
    let why_offline = move || worker.with(|worker| worker.offline_cause).map(offline_sentence);
    let page_url = |page_name: &str| format!("/admin/workers/{id}/{page_name}");
    let (edit, delete, json) = (page_url("edit"), page_url("delete"), format!("/api/admin/workers/{id}"));
    view! {
        <PageHeader title=name above=list_of_workers()>
            {has_permission(Permission::AdminWorkers).then(|| view! {
                <DrainButton worker=worker/>
                <ButtonLink href=edit label=words.worker.edit glyph=Glyph::Sliders class="btn btn-sm btn-ghost"/>
                <a class="btn btn-sm btn-ghost text-bad" rel="external" href=delete title=blocker>
                    <Icon glyph=Glyph::Trash/>{words.worker.delete}
                </a>
            })}
        </PageHeader>
        <p class="byline">
            {badge}
            {move || why_offline().map(|sentence| view! { <span>{sentence}</span> })}
            <IdText id=id.to_string()/>
            <a class="quiet-link" href=json rel="external">"JSON"</a>
        </p>
        {move || drain_text.with(|text| (!text.is_empty()).then(|| view! { <p class="drained">{text.clone()}</p> }))}
        <LastDay worker=worker/>
        {move || view! { <WorkerTabs id=id.clone() tab=tab.get()/> }}
    }
    .into_erased()
}

/// The list that the user came from: administrators manage workers, the others see the fleet.
fn list_of_workers() -> (&'static str, &'static str) {
    if has_permission(Permission::AdminWorkers) {
        ("/admin/workers", t().workers.title)
    } else {
        (FLEET, t().fleet.title)
    }
}

/// Why a worker cannot be deleted now; none if it can.
pub(in crate::ui::pages) fn deletion_blocker(worker: &WorkerView) -> Option<String> {
    let words = &t().worker;
    match worker.deletion_status() {
        DeletionStatus::Allowed => None,
        DeletionStatus::AgentConnected => Some(words.delete_offline.to_owned()),
        DeletionStatus::AllowedAfter(at) => Some(words.delete_lost.of(use_clock().format_timestamp(at))),
    }
}

/// Shown if a worker cannot be loaded.
pub(in crate::ui::pages) fn worker_problem_page(problem: Problem) -> AnyView {
    view! {
        <PageHeader title=t().workers.worker above=list_of_workers()/>
        <ProblemPanel problem=problem/>
    }
    .into_erased()
}

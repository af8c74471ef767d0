//! What stands above every view of a worker: its name, how it stands and did of late, what can be done, and the way to the other views.

use leptos::prelude::*;

use super::last_day::LastDay;
use super::tabs::{Tab, Tabs};
use crate::protocol::problem::Problem;
use crate::protocol::status::WorkerStatus;
use crate::protocol::workers::WorkerView;
use crate::ui::components::action::ButtonLink;
use crate::ui::components::copy::IdText;
use crate::ui::components::drain::{DrainSwitch, drained};
use crate::ui::components::failure::Failure;
use crate::ui::components::icon::{Glyph, Icon};
use crate::ui::components::page_head::PageHead;
use crate::ui::components::status::WorkerBadge;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;

/// See the module.
#[component]
pub(super) fn WorkerFrame(worker: RwSignal<WorkerView>, #[prop(into)] tab: Signal<Tab>) -> impl IntoView {
    let words = t();
    let (id, name) = worker.with_untracked(|worker| (worker.id.clone(), worker.name.clone()));
    let connected = move || worker.with(|worker| worker.status != WorkerStatus::Offline);
    let drained = Memo::new(move |_| worker.with(drained));
    let badge = move || view! { <WorkerBadge worker=worker.get()/> };
    let page = |what: &str| format!("/admin/workers/{id}/{what}");
    let (edit, delete, json) = (page("edit"), page("delete"), format!("/api/admin/workers/{id}"));
    view! {
        <PageHead title=name above=("/admin/workers", words.workers.title)>
            <DrainSwitch worker=worker/>
            <ButtonLink href=edit label=words.worker.edit glyph=Glyph::Sliders class="btn btn-sm btn-ghost"/>
            <a class="btn btn-sm btn-ghost text-bad" rel="external" href=delete title=move || connected().then_some(words.worker.delete_offline)>
                <Icon glyph=Glyph::Trash/>{words.worker.delete}
            </a>
        </PageHead>
        <p class="byline">
            {badge}
            <IdText id=id.to_string()/>
            <a class="quiet-link" href=json rel="external">"JSON"</a>
        </p>
        {move || drained.with(|how| (!how.is_empty()).then(|| view! { <p class="drained">{how.clone()}</p> }))}
        <LastDay worker=worker/>
        {move || view! { <Tabs id=id.clone() tab=tab.get()/> }}
    }
    .erased()
}

/// What is shown if a worker cannot be.
pub(in crate::ui::pages) fn unknown(problem: Problem) -> AnyView {
    view! {
        <PageHead title=t().workers.worker above=("/admin/workers", t().workers.title)/>
        <Failure problem=problem/>
    }
    .erased()
}

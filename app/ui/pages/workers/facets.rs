//! Filters of the worker list, each with the number of matching workers: links, so that they work without JavaScript.

use leptos::prelude::*;

use super::query::ListPlace;
use crate::protocol::status::FacetKind;
use crate::protocol::workers::{WorkerFacet, WorkersPage, WorkersQuery};
use crate::ui::components::filters::FilterLink;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::locales::sentence::Text;

/// Examples of search terms.
const EXAMPLES: [&str; 7] =
    ["status:idle", "type:ephemeral", "gpu:a100*", "label.team=nlp", "host:rack-7", "version:0.1*", "tls:off"];

/// The address of the list with another search.
fn facet_url(place: ListPlace, query: &WorkersQuery, q: &str) -> String {
    place.url(&WorkersQuery { q: Some(q.to_owned()), status: None, label: None, cursor: None, ..query.clone() })
}

/// The filters by status.
pub(super) fn status_filters(place: ListPlace, query: &WorkersQuery, page: &WorkersPage) -> Vec<FilterLink> {
    let words = t();
    let states = || page.facets.iter().filter(|facet| facet.about == FacetKind::Status);
    let label = |name: &str| match name {
        "connecting" => words.status.connecting,
        "idle" => words.status.idle,
        "busy" => words.status.busy,
        "draining" => words.status.draining,
        "offline" => words.status.offline,
        _ => words.status.never_connected,
    };
    let selected = states().find(|facet| facet.chosen);
    // Workers that have never connected also count as offline.
    let sum = states().filter(|facet| facet.value != "never").map(|facet| facet.count).sum();
    let all = FilterLink {
        href: facet_url(place, query, selected.map_or(&page.q, |facet| &facet.q)),
        label: words.common.all,
        count: Some(sum),
        current: selected.is_none(),
    };
    // Workers are connecting only for a moment, so this filter is hidden while there are none.
    let visible = states().filter(|facet| facet.count > 0 || facet.chosen || facet.value != "connecting");
    let each = visible.map(|facet| FilterLink {
        href: facet_url(place, query, &facet.q),
        label: label(&facet.value),
        count: Some(facet.count),
        current: facet.chosen,
    });
    std::iter::once(all).chain(each).collect()
}

/// All other filters, in a disclosure that stays open or closed while its counts are updated.
#[component]
pub(super) fn FacetPanel(place: ListPlace, page: RwSignal<WorkersPage>, query: WorkersQuery) -> impl IntoView {
    let words = &t().workers;
    let facets = Memo::new(move |_| page.with(|page| page.facets.clone()));
    let open = facets.with_untracked(|all| all.iter().any(|facet| facet.chosen && facet.about != FacetKind::Status));
    let groups = move || facets.with(|all| facet_groups(place, all, &query));
    view! {
        <details class="narrowing" open=open>
            <summary class="btn btn-sm">{words.narrow}</summary>
            <div class="facets">{groups}</div>
            <p class="facet-help">{words.help}" "{EXAMPLES.map(|example| view! { <code>{example}</code>" " })}</p>
        </details>
    }
    .into_erased()
}

fn facet_groups(place: ListPlace, all: &[WorkerFacet], query: &WorkersQuery) -> Vec<AnyView> {
    let words = t();
    let group = |title: Text, about: FacetKind| {
        let visible = all.iter().filter(|facet| facet.about == about && (facet.count > 0 || facet.chosen));
        let links: Vec<AnyView> = visible.map(|facet| facet_link(place, facet, query)).collect();
        (!links.is_empty()).then(|| {
            view! { <nav class="facet" aria-label=title><p class="facet-name">{title}</p><ul class="filters">{links}</ul></nav> }.into_erased()
        })
    };
    let groups = [
        group(words.workers.kind, FacetKind::Type),
        group(words.workers.model, FacetKind::Gpu),
        group(words.workers.labels, FacetKind::Label),
        group(words.workers.version, FacetKind::Version),
        group(words.worker.unverified, FacetKind::Tls),
    ];
    groups.into_iter().flatten().collect()
}

fn facet_link(place: ListPlace, facet: &WorkerFacet, query: &WorkersQuery) -> AnyView {
    let words = &t().status;
    let label = match (facet.about, facet.value.as_str()) {
        (FacetKind::Type, "ephemeral") => words.ephemeral.to_owned(),
        (FacetKind::Type, _) => words.persistent.to_owned(),
        (FacetKind::Tls, _) => "--ssl-no-verify".to_owned(),
        (_, value) => value.to_owned(),
    };
    view! {
        <li>
            <a class="filter" href=facet_url(place, query, &facet.q) aria-current=facet.chosen.then_some("true")>
                <span class="wrap-anywhere">{label}</span>
                <span class="filter-count">{facet.count}</span>
            </a>
        </li>
    }
    .into_erased()
}

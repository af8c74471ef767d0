//! The choice of the metric of the last axis.

use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::{use_navigate, use_query_map};

use super::super::address::{COMPARE_URL, METRIC_FIELD, fields_without, url_with_metric};
use super::super::shown_text;
use super::plot::ParallelPlot;
use crate::ui::components::metric_charts::metric_title;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;

/// Chooses the metric of the last axis. Without scripts, the form asks for the same page with it.
#[component]
pub(super) fn MetricChoice(plot: Memo<ParallelPlot>) -> impl IntoView {
    let (params, navigate) = (use_query_map(), use_navigate());
    let chosen = Memo::new(move |_| plot.with(|plot| plot.metric.clone()));
    let metrics = Memo::new(move |_| plot.with(|plot| plot.metrics.clone()));
    let better = move || plot.with(ParallelPlot::better_values);
    let fields = move || {
        let fields = params.with(|params| fields_without(params, &[METRIC_FIELD])).into_iter();
        fields.map(|(name, value)| view! { <input type="hidden" name=name value=value/> }).collect_view()
    };
    let options = move || {
        let option = |name: String| {
            let title = shown_text(&metric_title(&name));
            let is_chosen = {
                let name = name.clone();
                move || chosen.with(|chosen| *chosen == name)
            };
            view! { <option value=name selected=untrack(is_chosen.clone()) prop:selected=is_chosen>{title}</option> }
        };
        metrics.get().into_iter().map(option).collect_view()
    };
    let choose = move |event| {
        let url = params.with_untracked(|params| url_with_metric(event_target_value(&event), params));
        navigate(&url, NavigateOptions { replace: true, scroll: false, ..NavigateOptions::default() });
    };
    view! {
        <form class="chart-tools" method="get" action=format!("{COMPARE_URL}#parallel") on:submit=move |event| event.prevent_default()>
            {fields}
            <label for="parallel-metric">{t().compare.metric}</label>
            <select id="parallel-metric" name=METRIC_FIELD class="select select-sm" on:change=choose>{options}</select>
            <span class="no-js-only"><button class="btn btn-sm">{t().charts.apply}</button></span>
            <span class="panel-note">{better}</span>
        </form>
    }
    .into_erased()
}

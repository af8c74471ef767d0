//! Parallel coordinates: which values of the configuration lead to a good metric.

mod draw;
mod geometry;
mod metric_choice;
mod plot;
mod reading;

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;

use self::draw::draw_plot;
use self::metric_choice::MetricChoice;
use self::plot::{ParallelPlot, PlotLine};
use self::reading::Reading;
use super::Compared;
use super::address::METRIC_FIELD;
use crate::ui::components::chart::legend_key;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;

#[component]
pub(super) fn ParallelCoordinates(compared: Compared) -> impl IntoView {
    let params = use_query_map();
    let wanted = Memo::new(move |_| params.with(|params| params.get(METRIC_FIELD)));
    let plot = Memo::new(move |_| {
        let wanted = wanted.get();
        compared.names.with(|names| {
            compared.comparison.with(|comparison| ParallelPlot::new(comparison, names, wanted.as_deref()))
        })
    });
    let is_drawn = Memo::new(move |_| plot.with(|plot| !plot.axes.is_empty()));
    let reading = Reading::new(plot);
    let panel = move || is_drawn.get().then(|| panel(reading));
    view! { {panel} }.into_erased()
}

fn panel(reading: Reading) -> AnyView {
    let words = &t().compare;
    let plot = reading.plot;
    let left_out = move || {
        let count = plot.with(|plot| plot.left_out);
        (count > 0).then(|| view! { <p class="chart-note">{words.more_differ.of(count as u64)}</p> })
    };
    view! {
        <section class="panel" aria-labelledby="parallel">
            <h2 id="parallel" class="panel-head">{words.parallel}</h2>
            <MetricChoice plot=plot/>
            <div class="charts">
                <div class="chart-box">
                    <div class="compare-scroll" tabindex="0" role="group" aria-label=words.parallel>{draw_plot(reading)}</div>
                    {left_out}
                    <Legend reading=reading/>
                    <Readout reading=reading/>
                </div>
            </div>
        </section>
    }
    .into_erased()
}

/// The jobs with their metric.
#[component]
fn Legend(reading: Reading) -> impl IntoView {
    let words = &t().compare;
    let item = move |(number, line): (usize, PlotLine)| {
        let value = line.values.last().map(|(_, text)| text.clone());
        let best = line.is_best.then(|| view! { <span class="best-mark">{words.best}</span> });
        view! {
            <li
                class:is-read=move || reading.line.get() == Some(number)
                on:pointerenter=move |_| reading.line.set(Some(number))
                on:pointerleave=move |_| reading.leave()
            >
                {legend_key(number)}
                <bdi>{line.name}</bdi>
                <span class="chart-value">{value}</span>
                {best}
            </li>
        }
    };
    let items = move || reading.plot.with(|plot| plot.lines.clone()).into_iter().enumerate().map(item).collect_view();
    view! { <ul class="chart-legend parallel-legend" aria-label=words.parallel on:pointerleave=move |_| reading.leave()>{items}</ul> }.into_erased()
}

/// The values of the job that is read; what to do for it, while none is.
#[component]
fn Readout(reading: Reading) -> impl IntoView {
    let text = move || {
        reading.line.get().map_or_else(
            || t().compare.parallel_hint.to_owned(),
            |number| reading.plot.with(|plot| plot.describe_line(number)),
        )
    };
    view! { <p class="parallel-readout js-only" aria-live="polite"><bdi>{text}</bdi></p> }.into_erased()
}

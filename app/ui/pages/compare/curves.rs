//! The metrics of jobs, one chart per metric with one line per job.

use std::collections::BTreeSet;

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;

use super::Compared;
use crate::domain::ids::JobId;
use crate::protocol::jobs::compare::{ComparedJob, JobComparison};
use crate::ui::components::chart::data::Chart;
use crate::ui::components::chart::menu::{ChartMenu, EnlargedChart};
use crate::ui::components::chart::options::ChartOptions;
use crate::ui::components::chart::state::ChartState;
use crate::ui::components::chart::tools::{ChartSwitches, ChartTools};
use crate::ui::components::chart::{ChartGroup, ChartView, HALF, chart_ids, legend_key, nth_chart};
use crate::ui::components::metric_charts::{has_epochs, overlaid_charts};
use crate::ui::erase::Erase;
use crate::ui::i18n::t;

/// The number of charts that are drawn unless the user wants all.
const MAX_CHARTS: usize = 12;

#[component]
pub(super) fn Curves(compared: Compared) -> impl IntoView {
    let words = &t().compare;
    let query = use_query_map();
    let state = ChartState::of_page();
    // A pinned position changes no line.
    let options = Memo::new(move |_| state.with(|options| ChartOptions { pinned: None, ..options.clone() }));
    let shows_all = Memo::new(move |_| query.with(|query| query.get("charts")).as_deref() == Some("all"));
    let hidden = RwSignal::new(BTreeSet::<JobId>::new());
    let group = ChartGroup::zoomable(state);
    let menu = ChartMenu::new(state, Signal::derive(|| None));
    let metrics = Memo::new(move |_| compared.comparison.with(JobComparison::metric_names));
    let charts = Memo::new(move |_| {
        let max = if shows_all.get() { usize::MAX } else { MAX_CHARTS };
        let metrics: Vec<String> = metrics.with(|metrics| metrics.iter().take(max).cloned().collect());
        compared.names.with(|names| {
            hidden.with(|hidden| {
                compared.comparison.with(|comparison| {
                    options.with(|options| comparison_charts(&metrics, &comparison.jobs, names, hidden, options))
                })
            })
        })
    });
    let ids = chart_ids(charts);
    let drawn = move || {
        let count = ids.with(Vec::len);
        if count == 0 {
            return view! { <p class="panel-empty">{t().charts.no_points}</p> }.into_erased();
        }
        let charts = (0..count)
            .map(|index| view! { <ChartView chart=nth_chart(charts, index) group=group sizes=HALF menu=menu/> });
        view! {
            <Legend compared=compared hidden=hidden/>
            <div class="charts chart-halves">{charts.collect_view()}</div>
        }
        .into_erased()
    };
    let more = move || {
        let total = metrics.with(Vec::len);
        if total <= MAX_CHARTS {
            return None;
        }
        let mut params = query.get();
        params.remove("charts");
        let label = if shows_all.get() {
            words.fewer_charts.to_owned()
        } else {
            params.insert("charts", "all".to_owned());
            words.all_charts.of(t().format_integer(total as u64))
        };
        let url = format!("{}#metrics", params.to_query_string());
        Some(view! { <p class="compare-more"><a class="btn btn-sm" href=url data-noscroll="">{label}</a></p> })
    };
    let by_epoch = Memo::new(move |_| {
        compared.comparison.with(|comparison| comparison.jobs.iter().any(|job| has_epochs(&job.metrics)))
    });
    view! {
        <section class="panel" aria-labelledby="metrics">
            <div class="panel-head">
                <h2 id="metrics">{t().charts.metrics}</h2>
                <ChartSwitches has_epochs=by_epoch/>
            </div>
            <ChartTools state=state/>
            {drawn}
            <EnlargedChart charts=charts group=group menu=menu/>
            {more}
        </section>
    }
    .into_erased()
}

/// The lines of all charts. With scripts, each can be hidden.
#[component]
fn Legend(compared: Compared, hidden: RwSignal<BTreeSet<JobId>>) -> impl IntoView {
    let items = move || {
        let lines = compared.ids().into_iter().zip(compared.names.get()).enumerate();
        let item = |(number, (id, name)): (usize, (JobId, String))| {
            let toggled = id.clone();
            let toggle = move |_| {
                hidden.update(|hidden| {
                    if !hidden.remove(&toggled) {
                        hidden.insert(toggled.clone());
                    }
                });
            };
            let is_shown = move || if hidden.with(|hidden| hidden.contains(&id)) { "false" } else { "true" };
            view! {
                <li>
                    <button type="button" class="line-toggle js-only" aria-pressed=is_shown on:click=toggle>{legend_key(number)}<bdi>{name.clone()}</bdi></button>
                    <span class="no-js-only">{legend_key(number)}<bdi>{name}</bdi></span>
                </li>
            }
        };
        lines.map(item).collect_view()
    };
    view! { <ul class="compare-lines" aria-label=t().compare.lines>{items}</ul> }.into_erased()
}

/// One chart per metric. The lines of hidden jobs have no points, so that all keep their colors.
fn comparison_charts(
    metrics: &[String],
    jobs: &[ComparedJob],
    names: &[String],
    hidden: &BTreeSet<JobId>,
    options: &ChartOptions,
) -> Vec<Chart> {
    let runs: Vec<_> = jobs
        .iter()
        .zip(names)
        .map(|(job, name)| (name.clone(), Some(&job.metrics).filter(|_| !hidden.contains(&job.job.job_id))))
        .collect();
    overlaid_charts(metrics, &runs, options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::gpus::history::{JobMetrics, MetricSeries};
    use crate::protocol::jobs::JobView;

    fn job(id: &str, metrics: &[&str]) -> ComparedJob {
        let series = |name: &&str| MetricSeries {
            name: (*name).to_owned(),
            steps: vec![1, 2],
            seconds: vec![0.0, 1.0],
            values: vec![2.0, 1.0],
            ..MetricSeries::default()
        };
        ComparedJob {
            job: JobView { job_id: JobId::parse(id).expect("an ID"), ..JobView::example() },
            final_metrics: metrics.iter().map(|name| ((*name).to_owned(), Some(1.0))).collect(),
            metrics: JobMetrics { metrics: metrics.iter().map(series).collect(), ..JobMetrics::default() },
        }
    }

    #[test]
    fn each_metric_has_a_chart_with_a_line_for_each_job() {
        let jobs = [job("j_1", &["loss", "fid"]), job("j_2", &["loss"]), job("j_3", &["fid"])];
        let names = ["a", "b", "c"].map(str::to_owned);
        let drawn = |hidden: &[&str]| {
            let hidden = hidden.iter().map(|id| JobId::parse(id).expect("an ID")).collect();
            let charts = comparison_charts(
                &["loss", "fid"].map(str::to_owned),
                &jobs,
                &names,
                &hidden,
                &ChartOptions::default(),
            );
            let lengths = |chart: &Chart| chart.series.iter().map(|line| line.points.len()).collect::<Vec<_>>();
            charts.iter().map(|chart| (chart.title.clone(), lengths(chart))).collect::<Vec<_>>()
        };
        let titled = |loss: [usize; 3], fid: [usize; 3]| {
            vec![("Loss".to_owned(), loss.to_vec()), ("fid".to_owned(), fid.to_vec())]
        };
        assert_eq!(drawn(&[]), titled([2, 2, 0], [2, 0, 2]));
        assert_eq!(drawn(&["j_1"]), titled([0, 2, 0], [0, 0, 2]), "the other lines keep their places");
    }
}

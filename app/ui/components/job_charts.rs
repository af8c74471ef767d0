//! Charts of a job's metrics: four on its overview, and all of them, grouped by the prefixes of their names.

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;

use super::action::MoreLink;
use super::chart::data::{Chart, METRIC_PREFIX};
use super::chart::menu::{ChartMenu, EnlargedChart};
use super::chart::options::ChartOptions;
use super::chart::state::ChartState;
use super::chart::tools::{ChartSwitches, ChartTools};
use super::chart::{ChartGroup, ChartView, QUARTER, SMALL, WIDE, chart_ids, nth_chart};
use super::job_metrics::{LoadedMetrics, ShownMetrics};
use super::metric_charts::has_epochs;
use super::problem_panel::ProblemPanel;
use crate::domain::ids::{AttemptNumber, JobId};
use crate::ui::backend::use_backend;
use crate::ui::components::skeleton::Skeleton;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::job_feed::use_job_feed;
use crate::ui::view_scope::ViewScope;

/// The maximum number of charts on the overview.
const MAX_ON_OVERVIEW: usize = 4;

/// Which charts are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChartScope {
    /// The main metrics, if there are any.
    Overview,
    /// All metrics; the text is shown if there are none.
    All { empty: Signal<&'static str>, newest_attempt: Memo<u32> },
}

impl ChartScope {
    /// Returns the attempts that are drawn, if not only one.
    fn all_attempts(self, state: ChartState) -> Option<u32> {
        match self {
            Self::All { newest_attempt, .. } if state.with(|options| options.has_all_attempts) => {
                Some(newest_attempt.get()).filter(|newest| *newest > 1)
            }
            Self::All { .. } | Self::Overview => None,
        }
    }

    /// Whether GPU readings are drawn: the server has those of the newest attempt.
    fn has_gpus(self, attempt: Option<AttemptNumber>, all_attempts: Option<u32>) -> bool {
        match self {
            Self::All { newest_attempt, .. } => {
                all_attempts.is_none() && attempt.is_none_or(|shown| shown.0 == newest_attempt.get_untracked())
            }
            Self::Overview => false,
        }
    }
}

/// The charts of the attempt in the URL (`?attempt=`), or of the newest one.
#[component]
pub(crate) fn JobCharts(id: JobId, scope: ChartScope) -> impl IntoView {
    let (backend, feed) = (use_backend(), use_job_feed());
    let query = use_query_map();
    let state = ChartState::of_page();
    let attempt =
        Memo::new(move |_| query.with(|query| query.get("attempt")).and_then(|n| n.parse().ok()).map(AttemptNumber));
    let all_attempts = Memo::new(move |_| scope.all_attempts(state));
    let group = match scope {
        ChartScope::Overview => ChartGroup::new(),
        ChartScope::All { .. } => ChartGroup::zoomable(state),
    };
    let metrics = Resource::new(move || (attempt.get(), all_attempts.get()), {
        let (backend, id) = (backend.clone(), id.clone());
        move |(attempt, all_attempts)| {
            let options = state.with_untracked(ChartOptions::clone);
            let with_gpus = scope.has_gpus(attempt, all_attempts);
            LoadedMetrics::load(backend.clone(), id.clone(), (attempt, all_attempts), options, with_gpus)
        }
    });
    let view_scope = ViewScope::current();
    let content = move || {
        let (view_scope, id, backend) = (view_scope.clone(), id.clone(), backend.clone());
        Suspend::new(async move {
            match metrics.await {
                Ok(first) => view_scope.render(|| {
                    let shown = ShownMetrics::new(first, all_attempts.get_untracked().is_some());
                    feed.attempt.set_value(attempt.get_untracked());
                    feed.metrics.set_value(Some(shown.now));
                    feed.gpus.set_value(shown.gpus);
                    match scope {
                        ChartScope::Overview => {
                            view! { <MainCharts id=id shown=shown state=state group=group/> }.into_erased()
                        }
                        ChartScope::All { empty, .. } => {
                            shown.follow_zoom(id.clone(), backend, state);
                            view! { <AllCharts id=id shown=shown state=state group=group empty=empty/> }.into_erased()
                        }
                    }
                }),
                Err(problem) => view! { <ProblemPanel problem=problem/> }.into_erased(),
            }
        })
    };
    view! { <Transition fallback=Skeleton>{content}</Transition> }.into_erased()
}

fn nan_note(shown: ShownMetrics) -> impl Fn() -> Option<AnyView> {
    let nan_since = Memo::new(move |_| shown.now.with(|now| now.loss_nan_since));
    move || {
        nan_since.get().map(|step| view! { <p class="panel-note" data-test="nan">{nan_text(step)}</p> }.into_erased())
    }
}

/// The charts of the main metrics, two in a row; nothing if there are none.
#[component]
fn MainCharts(id: JobId, shown: ShownMetrics, state: ChartState, group: ChartGroup) -> impl IntoView {
    let words = &t().charts;
    let all = shown.charts(state);
    let charts = Memo::new(move |_| all.with(|all| main_charts(all)));
    let ids = chart_ids(charts);
    move || {
        let count = ids.with(Vec::len);
        if count == 0 {
            return ().into_erased();
        }
        let views =
            (0..count).map(|index| view! { <ChartView chart=nth_chart(charts, index) group=group sizes=QUARTER/> });
        view! {
            <section class="panel" aria-labelledby="metrics">
                <div class="panel-head">
                    <h2 id="metrics">{words.metrics}</h2>
                    <MoreLink href=format!("/jobs/{id}?show=charts") label=words.all/>
                </div>
                <div class="charts">
                    {nan_note(shown)}
                    <div class="chart-quarters">{views.collect_view()}</div>
                </div>
            </section>
        }
        .into_erased()
    }
}

#[component]
fn AllCharts(
    id: JobId,
    shown: ShownMetrics,
    state: ChartState,
    group: ChartGroup,
    empty: Signal<&'static str>,
) -> impl IntoView {
    let words = &t().charts;
    let charts = shown.charts(state);
    let ids = chart_ids(charts);
    let attempt = Memo::new(move |_| shown.now.with(|now| now.attempt.0));
    let csv = Signal::derive(move || Some(format!("/api/queue/{id}/metrics.csv?attempt={}&metric=", attempt.get())));
    let menu = ChartMenu::new(state, csv);
    let kept_every = Memo::new(move |_| shown.now.with(|now| now.kept_every));
    let thinning_note = move || {
        let interval = kept_every.get()?;
        Some(view! { <p class="panel-note" data-test="thinned">{words.kept_every.of(interval)}</p> })
    };
    let small = move |indices: &[usize]| {
        let views = indices
            .iter()
            .map(|index| view! { <ChartView chart=nth_chart(charts, *index) group=group sizes=SMALL menu=menu/> });
        view! { <div class="chart-grid">{views.collect_view()}</div> }.into_erased()
    };
    let charts_view = move || {
        let groups = ids.with(|ids| group_by_prefix(ids));
        if groups.is_empty() {
            return view! { <p class="panel-empty">{empty}</p> }.into_erased();
        }
        let groups = groups.into_iter().map(|(prefix, indices)| match (prefix, indices.as_slice()) {
            (None, [first, others @ ..]) => view! {
                <ChartView chart=nth_chart(charts, *first) group=group sizes=WIDE menu=menu/>
                {nan_note(shown)}
                {small(others)}
            }
            .into_erased(),
            (prefix, indices) => view! {
                <h3 class="chart-prefix"><bdi>{prefix}</bdi></h3>
                {small(indices)}
            }
            .into_erased(),
        });
        view! { {groups.collect_view()} {thinning_note} }.into_erased()
    };
    let by_epoch = Memo::new(move |_| shown.now.with(has_epochs));
    view! {
        <section class="panel" aria-labelledby="metrics">
            <div class="panel-head">
                <h2 id="metrics">{words.metrics}</h2>
                <ChartSwitches has_epochs=by_epoch/>
            </div>
            <ChartTools state=state/>
            <div class="charts">{charts_view}</div>
            <EnlargedChart charts=charts group=group menu=menu/>
        </section>
        <SystemCharts charts=shown.system_charts(charts, state) state=state group=group/>
    }
    .into_erased()
}

/// GPU readings, on the x axis of the metrics; nothing if there are none.
#[component]
fn SystemCharts(charts: Memo<Vec<Chart>>, state: ChartState, group: ChartGroup) -> impl IntoView {
    let ids = chart_ids(charts);
    let menu = ChartMenu::new(state, Signal::derive(|| None));
    move || {
        let count = ids.with(Vec::len);
        if count == 0 {
            return ().into_erased();
        }
        let views = (0..count)
            .map(|index| view! { <ChartView chart=nth_chart(charts, index) group=group sizes=SMALL menu=menu/> });
        view! {
            <section class="panel mt-6" aria-labelledby="gpus">
                <div class="panel-head"><h2 id="gpus">{t().charts.gpus_of_job}</h2></div>
                <div class="charts"><div class="chart-grid">{views.collect_view()}</div></div>
                <EnlargedChart charts=charts group=group menu=menu/>
            </section>
        }
        .into_erased()
    }
}

/// Returns the charts of the overview. The epoch and the throughput come last, because they say little about a training.
fn main_charts(all: &[Chart]) -> Vec<Chart> {
    let is_minor = |chart: &&Chart| ["metric-epoch", "metric-steps_per_second"].contains(&chart.id.as_str());
    let (minor, major): (Vec<_>, Vec<_>) = all.iter().partition(is_minor);
    major.into_iter().chain(minor).take(MAX_ON_OVERVIEW).cloned().collect()
}

/// Returns the charts in groups by the prefixes of their metrics, such as `val` of `val/loss`, in the order of their first
/// metrics; those without a prefix come first.
fn group_by_prefix(ids: &[String]) -> Vec<(Option<String>, Vec<usize>)> {
    let mut groups: Vec<(Option<String>, Vec<usize>)> = Vec::new();
    for (index, id) in ids.iter().enumerate() {
        let name = id.strip_prefix(METRIC_PREFIX).unwrap_or(id);
        let prefix = name.rsplit_once('/').map(|(prefix, _)| prefix.to_owned());
        match groups.iter_mut().find(|(known, _)| *known == prefix) {
            Some((_, indices)) => indices.push(index),
            None => groups.push((prefix, vec![index])),
        }
    }
    groups.sort_by_key(|(prefix, _)| prefix.is_some());
    groups
}

/// Returns the sentence that the loss has been NaN since a step.
pub(crate) fn nan_text(step: u64) -> String {
    t().charts.nan_since.of(t().format_integer(step))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overview_has_four_charts_and_the_loss_first() {
        let charts = |names: &[&str]| -> Vec<Chart> {
            names.iter().map(|name| Chart { id: format!("{METRIC_PREFIX}{name}"), ..Chart::default() }).collect()
        };
        let ids =
            |names: &[&str]| -> Vec<String> { main_charts(&charts(names)).into_iter().map(|chart| chart.id).collect() };
        let all = ["loss", "learning_rate", "epoch", "steps_per_second", "grad_norm", "val/loss", "x"];
        assert_eq!(ids(&all), ["metric-loss", "metric-learning_rate", "metric-grad_norm", "metric-val/loss"]);
        assert_eq!(ids(&all[..4]), ["metric-loss", "metric-learning_rate", "metric-epoch", "metric-steps_per_second"]);
        assert_eq!(ids(&[]), [""; 0]);
    }

    #[test]
    fn charts_are_grouped_by_prefix() {
        let group =
            |names: &[&str]| group_by_prefix(&names.iter().map(|name| format!("metric-{name}")).collect::<Vec<_>>());
        let val = Some("val".to_owned());
        assert_eq!(
            group(&["loss", "val/a", "train/x/a", "grad_norm", "val/b"]),
            [(None, vec![0, 3]), (val.clone(), vec![1, 4]), (Some("train/x".to_owned()), vec![2])]
        );
        assert_eq!(group(&["val/a", "loss"]), [(None, vec![1]), (val, vec![0])]);
        assert_eq!(group(&[]), []);
    }
}

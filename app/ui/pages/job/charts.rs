//! All metrics of a job as charts, by attempt.

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;
use leptos_router::params::ParamsMap;

use crate::domain::ids::JobId;
use crate::protocol::jobs::JobView;
use crate::ui::components::chart::options::{ChartOptions, query_of};
use crate::ui::components::job_charts::{ChartScope, JobCharts};
use crate::ui::empty_state::{JobPanel, JobStage, empty_text_signal};
use crate::ui::erase::Erase;
use crate::ui::i18n::t;

#[component]
pub(super) fn ChartsTab(id: JobId, job: Memo<JobView>, stage: Memo<JobStage>) -> impl IntoView {
    let newest = Memo::new(move |_| job.with(|job| job.attempt.0));
    view! {
        {move || view! { <AttemptLinks newest=newest.get()/> }}
        <JobCharts id=id scope=ChartScope::All { empty: empty_text_signal(JobPanel::Metrics, stage), newest_attempt: newest }/>
    }
    .into_erased()
}

/// Links to the charts of each attempt, and to those of all, if there are several. How they are drawn stays as it is.
#[component]
fn AttemptLinks(newest: u32) -> impl IntoView {
    let words = t();
    let params = use_query_map();
    let shown = Memo::new(move |_| params.with(|params| shown_attempt(params, newest)));
    let item = move |attempt: Option<u32>| {
        let href = move || params.with(|params| attempt_address(params, attempt));
        let current = move || (shown.get() == attempt).then_some("true");
        let text = attempt.map_or_else(|| words.charts.all_attempts.to_owned(), |number| words.log.attempt.of(number));
        view! { <li><a class="filter" href=href aria-current=current>{text}</a></li> }
    };
    let items = (1..=newest).map(Some).chain([None]).map(item);
    (newest > 1)
        .then(|| view! { <nav aria-label=words.logs.attempts><ul class="filters">{items.collect_view()}</ul></nav> })
        .into_erased()
}

/// Returns the attempt of an address; none for all of them.
fn shown_attempt(params: &ParamsMap, newest: u32) -> Option<u32> {
    let chosen = || params.get("attempt").and_then(|number| number.parse().ok()).unwrap_or(newest);
    (!ChartOptions::from_params(params).has_all_attempts).then(chosen)
}

/// Returns the address of an attempt's charts, or of those of all attempts.
fn attempt_address(params: &ParamsMap, attempt: Option<u32>) -> String {
    let options = ChartOptions { has_all_attempts: attempt.is_none(), ..ChartOptions::from_params(params) };
    let mut params = options.in_params(params);
    params.remove("attempt");
    if let Some(number) = attempt {
        params.insert("attempt", number.to_string());
    }
    query_of(&params)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_attempts_keep_how_charts_are_drawn() {
        let params = |pairs: &[(&'static str, &str)]| {
            pairs.iter().fold(ParamsMap::new(), |mut params, (key, value)| {
                params.insert(*key, (*value).to_owned());
                params
            })
        };
        let drawn = params(&[("show", "charts"), ("smooth", "0.5"), ("attempts", "all")]);
        assert_eq!(shown_attempt(&drawn, 3), None);
        assert_eq!(attempt_address(&drawn, Some(2)), "?show=charts&smooth=0.5&attempt=2");
        assert_eq!(attempt_address(&params(&[("attempt", "2")]), None), "?attempts=all");
        let shown = |text| shown_attempt(&params(&[("attempt", text)]), 3);
        assert_eq!(["2", "x"].map(shown), [Some(2), Some(3)]);
    }
}

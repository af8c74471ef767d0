//! All metrics of a job as charts, by attempt.

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;

use super::tabs::JobTab;
use crate::domain::ids::JobId;
use crate::protocol::jobs::JobView;
use crate::ui::components::job_charts::{ChartScope, JobCharts};
use crate::ui::empty_state::{JobPanel, JobStage, empty_text_signal};
use crate::ui::erase::Erase;
use crate::ui::i18n::t;

#[component]
pub(super) fn ChartsTab(id: JobId, job: Memo<JobView>, stage: Memo<JobStage>) -> impl IntoView {
    let newest = Memo::new(move |_| job.with(|job| job.attempt.0));
    let links_id = id.clone();
    view! {
        {move || view! { <AttemptLinks id=links_id.clone() newest=newest.get()/> }}
        <JobCharts id=id scope=ChartScope::All(empty_text_signal(JobPanel::Metrics, stage))/>
    }
    .into_erased()
}

/// Links to the charts of each attempt, if there are several.
#[component]
fn AttemptLinks(id: JobId, newest: u32) -> impl IntoView {
    let words = t();
    let query = use_query_map();
    let shown = Memo::new(move |_| query.with(|query| query.get("attempt")).and_then(|number| number.parse().ok()));
    let link = move |number: u32| {
        let href = format!("{}&attempt={number}", JobTab::Charts.href(&id));
        let current = move || (number == shown.get().unwrap_or(newest)).then_some("true");
        view! { <li><a class="filter" href=href aria-current=current>{words.log.attempt.of(number)}</a></li> }
    };
    (newest > 1)
        .then(|| view! { <nav aria-label=words.logs.attempts><ul class="filters">{(1..=newest).map(link).collect_view()}</ul></nav> })
        .into_erased()
}

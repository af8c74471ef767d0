//! Compares jobs: what differs between their configurations, also as parallel coordinates, their metrics, their final
//! values, and their samples.

mod address;
mod curves;
mod differences;
mod final_metrics;
mod parallel;
mod samples;
#[cfg(feature = "ssr")]
pub(in crate::ui) mod vote;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;
use serde_json::Value;

pub(crate) use self::address::COMPARED_JOBS;
use self::address::ComparedIds;
use self::curves::Curves;
use self::differences::Differences;
use self::final_metrics::FinalMetrics;
use self::parallel::ParallelCoordinates;
use self::samples::LastSamples;
use crate::domain::ids::JobId;
use crate::domain::text::escape;
use crate::protocol::jobs::JobView;
use crate::protocol::jobs::compare::{CompareJobsQuery, JobComparison};
use crate::protocol::topic::Topic;
use crate::ui::backend::{SharedBackend, use_backend};
use crate::ui::components::chart::legend_key;
use crate::ui::components::empty_panel::EmptyPanel;
use crate::ui::components::icon::Icon;
use crate::ui::components::page_header::PageHeader;
use crate::ui::components::problem_panel::ProblemPanel;
use crate::ui::components::skeleton::Skeleton;
use crate::ui::components::status::JobBadge;
use crate::ui::erase::Erase;
use crate::ui::format::short_id;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::live::{RefreshFuture, on_change};
use crate::ui::view_scope::ViewScope;

/// Trainers report metrics every second or two; refreshing that often would only load the server and the page.
const MIN_INTERVAL: Duration = Duration::from_secs(5);
/// The number of characters of a long text that are shown.
const MAX_CHARS: usize = 200;

/// What the parts of the page show.
#[derive(Clone, Copy)]
struct Compared {
    comparison: RwSignal<JobComparison>,
    /// Without their progress, so that they do not change at every step.
    jobs: Memo<Vec<JobView>>,
    /// What the jobs are called here.
    names: Memo<Vec<String>>,
}

impl Compared {
    fn new(comparison: RwSignal<JobComparison>) -> Self {
        let without_progress = |job: &JobView| JobView { progress: None, ..job.clone() };
        let jobs = Memo::new(move |_| {
            comparison.with(|comparison| comparison.jobs.iter().map(|job| without_progress(&job.job)).collect())
        });
        Self { comparison, jobs, names: Memo::new(move |_| jobs.with(|jobs| distinct_names(jobs))) }
    }

    fn ids(self) -> Vec<JobId> {
        self.jobs.with(|jobs| jobs.iter().map(|job| job.job_id.clone()).collect())
    }
}

/// The titles of jobs, with the ID if several have the same.
fn distinct_names(jobs: &[JobView]) -> Vec<String> {
    let mut count: BTreeMap<String, u32> = BTreeMap::new();
    for job in jobs {
        *count.entry(job.title()).or_default() += 1;
    }
    let name = |job: &JobView| {
        let title = job.title();
        if count.get(&title) == Some(&1) { title } else { format!("{title} ({})", short_id(job.job_id.as_str())) }
    };
    jobs.iter().map(name).collect()
}

/// Returns a value of a configuration as text: texts without quotes.
fn value_text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        value => Cow::Owned(value.to_string()),
    }
}

/// Escapes a text from outside, and cuts it if it is long.
fn shown_text(text: &str) -> String {
    let mut shown: String = text.chars().take(MAX_CHARS).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    escape(&shown).into_owned()
}

#[component]
pub(crate) fn ComparePage() -> impl IntoView {
    let words = &t().compare;
    let (backend, params) = (use_backend(), use_query_map());
    let ids = Memo::new(move |_| params.with(ComparedIds::from_params));
    let comparison = Resource::new(move || ids.get().query(), {
        let backend = backend.clone();
        move |query: Option<CompareJobsQuery>| {
            let response = query.map(|query| backend.compare_jobs(query));
            async move {
                match response {
                    Some(response) => response.await.map(Some),
                    None => Ok(None),
                }
            }
        }
    });
    let scope = ViewScope::current();
    let shown = move || {
        let (scope, backend, query) = (scope.clone(), backend.clone(), ids.get().query());
        Suspend::new(async move {
            match (comparison.await, query) {
                (Ok(Some(first)), Some(query)) => scope
                    .render(|| view! { <Comparison first=first query=query ids=ids backend=backend/> }.into_erased()),
                (Err(problem), _) => view! { <ProblemPanel problem=problem/> }.into_erased(),
                _ => view! { <div class="panel"><ChooseJobs/></div> }.into_erased(),
            }
        })
    };
    view! {
        <PageHeader title=words.title above=("/jobs", t().jobs.title)/>
        <Transition fallback=Skeleton>{shown}</Transition>
    }
    .into_erased()
}

/// Shown if there is nothing to compare.
#[component]
fn ChooseJobs() -> impl IntoView {
    let words = &t().compare;
    view! {
        <EmptyPanel glyph=Glyph::Jobs title=words.choose_title text=words.choose_hint>
            <a class="btn btn-sm" href="/jobs">{words.choose}</a>
        </EmptyPanel>
    }
    .into_erased()
}

#[component]
fn Comparison(
    first: JobComparison,
    query: CompareJobsQuery,
    ids: Memo<ComparedIds>,
    backend: SharedBackend,
) -> impl IntoView {
    let changing = first.jobs.iter().filter(|job| !job.job.status.is_terminal());
    let topics: Vec<Topic> = changing
        .flat_map(|job| [Topic::Job(job.job.job_id.clone()), Topic::Progress(job.job.job_id.clone())])
        .collect();
    let comparison = RwSignal::new(first);
    let fetch = move || -> RefreshFuture {
        let response = backend.compare_jobs(query.clone());
        Box::pin(async move {
            comparison.try_set(response.await?);
            Ok(())
        })
    };
    on_change(&topics, MIN_INTERVAL, Box::new(fetch));
    let compared = Compared::new(comparison);
    let has_jobs = Memo::new(move |_| comparison.with(|comparison| !comparison.jobs.is_empty()));
    let parts = move || {
        if !has_jobs.get() {
            return view! { <div class="panel"><ChooseJobs/></div> }.into_erased();
        }
        view! {
            <ComparedJobs compared=compared ids=ids/>
            <Differences compared=compared/>
            <ParallelCoordinates compared=compared/>
            <Curves compared=compared/>
            <FinalMetrics compared=compared/>
            <LastSamples compared=compared/>
        }
        .into_erased()
    };
    view! { <div class="space-y-6"><Missing comparison=comparison ids=ids/>{parts}</div> }.into_erased()
}

/// Names the jobs that are not compared.
#[component]
fn Missing(comparison: RwSignal<JobComparison>, ids: Memo<ComparedIds>) -> impl IntoView {
    let words = &t().compare;
    let params = use_query_map();
    let missing = Memo::new(move |_| comparison.with(|comparison| comparison.missing.clone()));
    move || {
        let missing = missing.get();
        if missing.is_empty() {
            return ().into_erased();
        }
        let names = missing.iter().map(|id| shown_text(id)).collect::<Vec<_>>().join(", ");
        let url = params.with(|params| ids.with(|ids| ids.url_without(&missing, params)));
        view! {
            <p class="notice notice-warn">
                <Icon glyph=Glyph::Warning/>
                <span class="wrap-anywhere">{words.missing.of(names)}</span>
                <a class="btn btn-sm ml-auto" href=url>{words.without_missing}</a>
            </p>
        }
        .into_erased()
    }
}

/// The jobs, each with its line in the charts and a link that removes it.
#[component]
fn ComparedJobs(compared: Compared, ids: Memo<ComparedIds>) -> impl IntoView {
    let params = use_query_map();
    let items = move || {
        let jobs = compared.jobs.get().into_iter().zip(compared.names.get()).enumerate();
        let item = |(number, (job, name)): (usize, (JobView, String))| {
            let id = job.job_id.to_string();
            let remove = {
                let id = id.clone();
                move || params.with(|params| ids.with(|ids| ids.url_without(std::slice::from_ref(&id), params)))
            };
            let label = t().compare.remove.of(&name);
            view! {
                <li>
                    {legend_key(number)}
                    <div class="min-w-0 grow">
                        <a class="row-link" href=format!("/jobs/{id}")><bdi>{name}</bdi></a>
                        <span class="compared-about"><JobBadge status=job.status/>" "<bdi>{job.numbered_config()}</bdi>" "{t().job.submitted_by.of(&job.submitted_by)}</span>
                    </div>
                    <a class="icon-button" href=remove aria-label=label.clone() title=label><Icon glyph=Glyph::Cross/></a>
                </li>
            }
        };
        jobs.map(item).collect_view()
    };
    view! { <ul class="panel compared-jobs" aria-label=t().jobs.title>{items}</ul> }.into_erased()
}

/// The cells above the columns of jobs.
fn job_headings(compared: Compared) -> AnyView {
    let heading = |(number, name): (usize, String)| {
        view! { <th scope="col"><span class="compared-name">{legend_key(number)}<bdi>{name}</bdi></span></th> }
    };
    view! { {move || compared.names.get().into_iter().enumerate().map(heading).collect_view()} }.into_erased()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_names_have_the_id() {
        let job = |id: &str, name: Option<&str>| JobView {
            job_id: JobId::parse(id).expect("an ID"),
            name: name.map(str::to_owned),
            ..JobView::example()
        };
        let jobs = [job("j_1", Some("a")), job("j_2", Some("b")), job("j_3", Some("a")), job("j_4", None)];
        assert_eq!(distinct_names(&jobs), ["a (j_1)", "b", "a (j_3)", "digits #42"]);
    }

    #[test]
    fn long_texts_are_cut_and_deceptive_characters_are_escaped() {
        assert_eq!(shown_text("<b>\u{202e}x"), "<b>\\u{202e}x");
        assert_eq!(shown_text(&"ä".repeat(MAX_CHARS)).chars().count(), MAX_CHARS);
        assert_eq!(shown_text(&"ä".repeat(MAX_CHARS + 1)).chars().count(), MAX_CHARS + 1);
    }
}

//! The blind vote: two samples of the same prompt at the same step, without the names of their jobs, until the user has voted
//! on all pairs.

use std::collections::{BTreeMap, BTreeSet};

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;
use serde::{Deserialize, Serialize};

use super::address::{COMPARE_URL, ComparedIds, VOTE_URL};
use super::{ChooseJobs, distinct_names, shown_text};
use crate::domain::ids::JobId;
use crate::domain::sample_votes::{SamplePair, VoteTally, next_pair, sample_pairs};
use crate::protocol::artifacts::ArtifactView;
use crate::protocol::jobs::JobView;
use crate::protocol::jobs::votes::{SampleVote, SampleVotes};
use crate::protocol::problem::Problem;
use crate::ui::backend::{use_backend, use_page_backend};
use crate::ui::components::empty_panel::EmptyPanel;
use crate::ui::components::page_header::PageHeader;
use crate::ui::components::problem_panel::ProblemPanel;
use crate::ui::components::skeleton::Skeleton;
use crate::ui::erase::Erase;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::prefs::Prefs;
use crate::ui::safe_url::SafeUrl;
use crate::ui::samples::{SampleImage, samples};

/// What the page needs of the jobs.
#[derive(Clone, Serialize, Deserialize)]
struct VoteData {
    jobs: Vec<JobView>,
    files: Vec<(JobId, Vec<ArtifactView>)>,
    votes: SampleVotes,
}

#[component]
pub(crate) fn VotePage() -> impl IntoView {
    let ids = use_query_map().with_untracked(ComparedIds::from_params);
    let (backend, page_backend) = (use_backend(), use_page_backend());
    let data = Resource::new(|| (), {
        let ids = ids.clone();
        move |()| {
            let (ids, backend, page_backend) = (ids.clone(), backend.clone(), page_backend.clone());
            async move {
                let Some(query) = ids.query() else { return Ok(None) };
                let jobs =
                    page_backend.jobs_by_ids(ids.0.iter().filter_map(|id| JobId::parse(id).ok()).collect()).await?;
                let mut files = Vec::with_capacity(jobs.len());
                for job in &jobs {
                    files.push((job.job_id.clone(), backend.job_artifacts(job.job_id.clone()).await?.artifacts));
                }
                let votes = page_backend.sample_votes(query.ids).await?;
                Ok::<_, Problem>(Some(VoteData { jobs, files, votes }))
            }
        }
    });
    let comparison = ids.url(COMPARE_URL);
    let shown = move || {
        let ids = ids.clone();
        Suspend::new(async move {
            match data.await {
                Ok(Some(data)) => view! { <Vote data=data ids=ids/> }.into_erased(),
                Ok(None) => view! { <div class="panel"><ChooseJobs/></div> }.into_erased(),
                Err(problem) => view! { <ProblemPanel problem=problem/> }.into_erased(),
            }
        })
    };
    view! {
        <PageHeader title=t().compare.vote above=(comparison, t().compare.title)/>
        <Suspense fallback=Skeleton>{shown}</Suspense>
    }
    .into_erased()
}

#[component]
fn Vote(data: VoteData, ids: ComparedIds) -> impl IntoView {
    let words = &t().server_pages().votes;
    let images: BTreeMap<JobId, Vec<SampleImage>> =
        data.files.iter().map(|(job, files)| (job.clone(), samples(files))).collect();
    let keys = |images: &Vec<SampleImage>| -> BTreeSet<(u64, String)> {
        images.iter().filter_map(|image| Some((image.step?, image.key.clone()))).collect()
    };
    let pairs = sample_pairs(&images.iter().map(|(job, images)| (job.clone(), keys(images))).collect());
    let voted: BTreeSet<SamplePair> = data.votes.own.iter().filter_map(pair_of).collect();
    let done = pairs.iter().filter(|pair| voted.contains(pair)).count();
    let voter = use_context::<Prefs>().map(|prefs| prefs.reader_name().to_owned()).unwrap_or_default();
    if pairs.is_empty() {
        return view! {
            <div class="panel">
                <EmptyPanel glyph=Glyph::Image title=words.no_pairs text=words.no_pairs_hint>
                    <a class="btn btn-sm" href=ids.url(COMPARE_URL)>{words.back}</a>
                </EmptyPanel>
            </div>
        }
        .into_erased();
    }
    match next_pair(&pairs, &voted, &voter) {
        Some((pair, is_swapped)) => {
            let progress = words.progress.with(&[
                &shown_text(&pair.sample),
                &t().format_integer(pair.step),
                &t().format_integer(done as u64 + 1),
                &t().format_integer(pairs.len() as u64),
            ]);
            view! { <VoteForm pair=pair.clone() is_swapped=is_swapped images=images progress=progress ids=ids/> }
                .into_erased()
        }
        None => view! { <VoteResult data=data ids=ids/> }.into_erased(),
    }
}

fn pair_of(vote: &SampleVote) -> Option<SamplePair> {
    let [one, other] = vote.jobs.clone();
    SamplePair::new(one, other, vote.step, vote.sample.clone())
}

#[component]
fn VoteForm(
    pair: SamplePair,
    is_swapped: bool,
    images: BTreeMap<JobId, Vec<SampleImage>>,
    progress: String,
    ids: ComparedIds,
) -> impl IntoView {
    let words = &t().server_pages().votes;
    let [first, second] = pair.jobs.clone();
    let (left, right) = if is_swapped { (second, first) } else { (first, second) };
    let image_url = |job: &JobId| {
        let image = images.get(job)?.iter().find(|image| image.step == Some(pair.step) && image.key == pair.sample)?;
        Some(SafeUrl::from_data(&image.file.url).into_string())
    };
    let sample = |job: &JobId, label: &'static str| {
        view! { <figure class="vote-sample"><img src=image_url(job) alt=label/><figcaption>{label}</figcaption></figure> }
    };
    let hidden = ids.0.iter().map(|id| view! { <input type="hidden" name="id" value=id.clone()/> }).collect_view();
    view! {
        <form method="post" action=format!("/ui{VOTE_URL}") class="panel vote">
            <p>{words.text}</p>
            <p class="panel-note wrap-anywhere">{progress}</p>
            <div class="vote-pair">{sample(&left, words.sample_a)}{sample(&right, words.sample_b)}</div>
            {hidden}
            <input type="hidden" name="one" value=left.to_string()/>
            <input type="hidden" name="other" value=right.to_string()/>
            <input type="hidden" name="step" value=pair.step.to_string()/>
            <input type="hidden" name="sample" value=pair.sample/>
            <div class="vote-buttons">
                <button class="btn btn-primary" name="better" value="one">{words.a_better}</button>
                <button class="btn" name="better" value="none">{words.no_difference}</button>
                <button class="btn btn-primary" name="better" value="other">{words.b_better}</button>
            </div>
        </form>
    }
    .into_erased()
}

/// The jobs by their share of all votes, the best first.
#[component]
fn VoteResult(data: VoteData, ids: ComparedIds) -> impl IntoView {
    let words = &t().server_pages().votes;
    let VoteData { jobs, votes, .. } = data;
    let mut rows: Vec<_> = distinct_names(&jobs)
        .into_iter()
        .zip(jobs)
        .map(|(name, job)| {
            let tally: VoteTally = votes.tallies.get(&job.job_id).copied().unwrap_or_default().into();
            (tally, name, job.job_id)
        })
        .collect();
    rows.sort_by(|left, right| right.0.share().unwrap_or(-1.0).total_cmp(&left.0.share().unwrap_or(-1.0)));
    let rows = rows.into_iter().map(|(tally, name, id)| {
        let share = tally.share().map_or_else(|| "–".to_owned(), |share| t().format_percent(share * 100.0));
        view! {
            <tr>
                <th scope="row"><a class="row-link" href=format!("/jobs/{id}")><bdi>{name}</bdi></a></th>
                <td class="num">{share}</td>
                <td class="num">{t().format_integer(tally.total().into())}</td>
            </tr>
        }
    });
    view! {
        <section class="panel" aria-labelledby="votes">
            <h2 id="votes" class="panel-head">
                {words.all_voted}
                <a class="more-link" href=ids.url(COMPARE_URL)>{words.back}</a>
            </h2>
            <table class="data">
                <caption class="sr-only">{words.votes}</caption>
                <thead>
                    <tr>
                        <th scope="col">{t().jobs.job}</th>
                        <th scope="col" class="num">{words.share}</th>
                        <th scope="col" class="num">{words.votes}</th>
                    </tr>
                </thead>
                <tbody>{rows.collect_view()}</tbody>
            </table>
        </section>
    }
    .into_erased()
}

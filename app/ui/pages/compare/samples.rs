//! The samples of jobs at their last steps, one row per prompt.

use std::collections::BTreeSet;

use futures_util::future::try_join_all;
use leptos::prelude::*;

use super::address::{ComparedIds, VOTE_URL};
use super::{Compared, shown_text};
use crate::ui::backend::use_backend;
use crate::ui::components::chart::legend_key;
use crate::ui::components::problem_panel::ProblemPanel;
use crate::ui::components::sample_tile::SampleTile;
use crate::ui::components::skeleton::Skeleton;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::samples::{SampleImage, samples};
use crate::ui::view_scope::ViewScope;

/// The number of steps that are shown.
const MAX_STEPS: usize = 3;
/// The number of samples of a step that are shown.
const MAX_KEYS: usize = 8;

/// The samples of one step: by prompt, one of each job.
#[derive(Debug, Clone, PartialEq)]
struct StepSamples {
    step: u64,
    rows: Vec<(String, Vec<Option<SampleImage>>)>,
}

/// The last steps of these jobs, newest first.
fn last_steps(jobs: &[Vec<SampleImage>]) -> Vec<StepSamples> {
    let steps: BTreeSet<u64> = jobs.iter().flatten().filter_map(|sample| sample.step).collect();
    let of_step = |step: u64| {
        let mut keys: Vec<&String> = Vec::new();
        for sample in jobs.iter().flatten().filter(|sample| sample.step == Some(step)) {
            if !keys.contains(&&sample.key) {
                keys.push(&sample.key);
            }
        }
        let row = |key: &String| {
            let find = |samples: &Vec<SampleImage>| {
                samples.iter().find(|sample| sample.step == Some(step) && sample.key == *key).cloned()
            };
            (key.clone(), jobs.iter().map(find).collect())
        };
        StepSamples { step, rows: keys.into_iter().take(MAX_KEYS).map(row).collect() }
    };
    steps.into_iter().rev().take(MAX_STEPS).map(of_step).collect()
}

#[component]
pub(super) fn LastSamples(compared: Compared) -> impl IntoView {
    let backend = use_backend();
    let ids = Memo::new(move |_| compared.ids());
    let pages = Resource::new(
        move || ids.get(),
        move |ids| {
            let backend = backend.clone();
            try_join_all(ids.into_iter().map(move |id| backend.job_artifacts(id)))
        },
    );
    let scope = ViewScope::current();
    let shown = move || {
        let scope = scope.clone();
        Suspend::new(async move {
            match pages.await {
                Ok(pages) => {
                    let steps = last_steps(&pages.iter().map(|page| samples(&page.artifacts)).collect::<Vec<_>>());
                    scope.render(|| sample_panel(steps, compared))
                }
                Err(problem) => view! { <ProblemPanel problem=problem/> }.into_erased(),
            }
        })
    };
    view! { <Transition fallback=Skeleton>{shown}</Transition> }.into_erased()
}

fn sample_panel(steps: Vec<StepSamples>, compared: Compared) -> AnyView {
    let words = &t().compare;
    if steps.is_empty() {
        return ().into_erased();
    }
    let ids = ComparedIds(compared.ids().iter().map(ToString::to_string).collect());
    let vote_url = ids.url(VOTE_URL);
    let jobs: Vec<_> = compared.ids().into_iter().zip(compared.names.get_untracked()).collect();
    let columns = (jobs.len() + 1).to_string();
    let headings = jobs.into_iter().enumerate().map(|(number, (id, name))| {
        let label = format!("{}: {name}", t().gallery.all);
        view! {
            <th scope="col">
                <span class="compared-name">{legend_key(number)}<bdi>{name}</bdi></span>
                <a class="quiet-link" href=format!("/jobs/{id}?show=samples") aria-label=label>{t().gallery.all}</a>
            </th>
        }
    });
    let headings = headings.collect_view();
    let groups = steps.into_iter().map(|StepSamples { step, rows }| {
        let rows = rows.into_iter().map(|(key, samples)| {
            let cells = samples.into_iter().map(|sample| match sample {
                Some(sample) => view! { <td><SampleTile sample=sample/></td> }.into_erased(),
                None => view! { <td class="text-muted">"–"</td> }.into_erased(),
            });
            let cells = cells.collect_view();
            view! { <tr><th scope="row"><bdi class="wrap-anywhere">{shown_text(&key)}</bdi></th>{cells}</tr> }
        });
        let rows = rows.collect_view();
        view! {
            <tbody>
                <tr><th scope="rowgroup" colspan=columns.clone() class="compare-step">{t().job.samples_step.of(t().format_integer(step))}</th></tr>
                {rows}
            </tbody>
        }
    });
    let groups = groups.collect_view();
    view! {
        <section class="panel" aria-labelledby="samples">
            <h2 id="samples" class="panel-head">
                {t().job.samples}
                <span class="panel-note">{words.last_samples}</span>
                <a class="more-link" rel="external" href=vote_url>{words.vote}</a>
            </h2>
            <div class="compare-scroll" tabindex="0" role="group" aria-label=words.last_samples>
                <table class="data compare-table compare-samples">
                    <caption class="sr-only">{words.last_samples}</caption>
                    <thead><tr><th scope="col">{words.sample}</th>{headings}</tr></thead>
                    {groups}
                </table>
            </div>
        </section>
    }
    .into_erased()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::status::ArtifactKind;
    use crate::ui::checkpoints::file;

    #[test]
    fn last_steps_have_one_row_per_prompt() {
        let of_job = |paths: &[&str]| {
            samples(&paths.iter().map(|path| file(path, ArtifactKind::Sample, 1, 0)).collect::<Vec<_>>())
        };
        let jobs = [
            of_job(&["step_1_0.png", "step_2_0.png", "step_3_0.png", "step_4_cat.png", "unnumbered.png"]),
            of_job(&["step_4_cat.png", "step_4_dog.png"]),
            of_job(&[]),
        ];
        let shown: Vec<_> = last_steps(&jobs)
            .into_iter()
            .map(|StepSamples { step, rows }| {
                let row = |(key, samples): (String, Vec<Option<SampleImage>>)| {
                    (key, samples.iter().map(Option::is_some).collect::<Vec<_>>())
                };
                (step, rows.into_iter().map(row).collect::<Vec<_>>())
            })
            .collect();
        let row = |key: &str, has_sample: [bool; 3]| (key.to_owned(), has_sample.to_vec());
        assert_eq!(
            shown,
            [
                (4, vec![row("cat", [true, true, false]), row("dog", [false, true, false])]),
                (3, vec![row("0", [true, false, false])]),
                (2, vec![row("0", [true, false, false])]),
            ]
        );
        assert_eq!(last_steps(&[Vec::new(), Vec::new()]), []);
    }
}

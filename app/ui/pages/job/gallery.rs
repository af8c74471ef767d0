//! The samples of a job: one step, two steps side by side, or one sample over all steps. The address holds the
//! selection.

use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::{use_navigate, use_query_map};
use leptos_router::params::ParamsMap;

use crate::domain::ids::JobId;
use crate::protocol::artifacts::ArtifactsPage;
use crate::ui::browser;
use crate::ui::components::icon::Icon;
use crate::ui::components::sample_viewer::{SampleViewer, sample_tile};
use crate::ui::erase::Erase;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::page_query::query_string;
use crate::ui::samples::{SampleImage, samples, steps};

/// The selection, as stored in the address.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct GalleryFilters {
    step: Option<u64>,
    /// The step to compare with.
    against: Option<u64>,
    /// The key of a sample that is shown over all steps.
    sample: Option<String>,
}

impl GalleryFilters {
    fn from_params(params: &ParamsMap) -> Self {
        let number = |name| params.get(name).and_then(|text| text.parse().ok());
        let sample = params.get("sample").filter(|key| !key.is_empty());
        Self { step: number("step"), against: number("against"), sample }
    }

    fn href(&self, id: &JobId) -> String {
        let number = |number: Option<u64>| number.map(|number| number.to_string());
        let query = query_string(&[
            ("show", Some("samples".to_owned())),
            ("step", number(self.step)),
            ("against", number(self.against)),
            ("sample", self.sample.clone()),
        ]);
        format!("/jobs/{id}{query}")
    }

    /// The selected step; the newest one if none or an unknown one is selected.
    fn shown_step(&self, steps: &[u64]) -> Option<u64> {
        self.step.filter(|step| steps.contains(step)).or(steps.last().copied())
    }
}

#[component]
pub(super) fn Gallery(id: JobId, files: Memo<ArtifactsPage>, empty: Signal<&'static str>) -> impl IntoView {
    let words = t();
    let all = Memo::new(move |_| files.with(|page| samples(&page.artifacts)));
    let steps = Memo::new(move |_| all.with(|all| steps(all)));
    let params = use_query_map();
    let filters = Memo::new(move |_| params.with(GalleryFilters::from_params));
    let open = RwSignal::new(None::<usize>);
    let id = StoredValue::new(id);
    let tile = move |sample: &SampleImage| sample_tile(all, open, sample);
    let shown = move || {
        let filters = filters.get();
        let steps = steps.get();
        all.with(|all| {
            if let Some(key) = &filters.sample {
                let of_key = all.iter().filter(|sample| sample.key == *key);
                let tiles = of_key.map(|sample| view! { <li>{tile(sample)}</li> });
                view! { <ul class="gallery is-large">{tiles.collect_view()}</ul> }.into_erased()
            } else {
                let step = filters.shown_step(&steps);
                // Images without a step in their name are shown with the newest step.
                let shown_samples = all
                    .iter()
                    .filter(|sample| sample.step == step || (sample.step.is_none() && step == steps.last().copied()));
                let figures = shown_samples.map(|sample| {
                    let before = filters.against.map(|against| {
                        let before = all.iter().find(|other| other.step == Some(against) && other.key == sample.key);
                        before.map_or_else(
                            || view! { <p class="gallery-none">{words.gallery.no_sample_at_step}</p> }.into_erased(),
                            tile,
                        )
                    });
                    let class = if before.is_some() { "pair" } else { "" };
                    let over_steps_url =
                        GalleryFilters { sample: Some(sample.key.clone()), ..GalleryFilters::default() }
                            .href(&id.get_value());
                    view! {
                        <li>
                            <div class=class>{before}{tile(sample)}</div>
                            <a class="gallery-more" href=over_steps_url>{words.gallery.over_steps}</a>
                        </li>
                    }
                });
                let class = if filters.against.is_some() { "gallery is-paired" } else { "gallery is-large" };
                view! { <ul class=class>{figures.collect_view()}</ul> }.into_erased()
            }
        })
    };
    let bar = move || {
        let (filters, steps, id) = (filters.get(), steps.get(), id.get_value());
        match &filters.sample {
            Some(key) => view! {
                <div class="gallery-bar">
                    <p class="font-medium wrap-anywhere">{words.gallery.sample.of(key)}</p>
                    <a class="btn btn-sm" href=GalleryFilters::default().href(&id)>{words.gallery.all}</a>
                </div>
            }
            .into_erased(),
            None if steps.is_empty() => ().into_erased(),
            None => view! { <StepNavigation id=id filters=filters steps=steps/> }.into_erased(),
        }
    };
    let is_empty = Memo::new(move |_| all.with(Vec::is_empty));
    view! {
        <section class="panel" aria-labelledby="samples">
            <h2 id="samples" class="panel-head">{words.job.samples}<span class="panel-note">{words.gallery.hint}</span></h2>
            {move || if is_empty.get() {
                view! { <p class="panel-empty"><Icon glyph=Glyph::Image/>{empty}</p> }.into_erased()
            } else {
                view! { {bar} {shown} }.into_erased()
            }}
        </section>
        <SampleViewer all=all open=open/>
    }
    .into_erased()
}

/// Links to other steps, and a form to select a step to compare with.
#[component]
fn StepNavigation(id: JobId, filters: GalleryFilters, steps: Vec<u64>) -> impl IntoView {
    let words = t();
    let step = filters.shown_step(&steps).unwrap_or_default();
    let index = steps.iter().position(|other| *other == step).unwrap_or_default();
    let at = |index: Option<usize>| index.and_then(|index| steps.get(index).copied());
    let to = |step: u64| GalleryFilters { step: Some(step), ..filters.clone() }.href(&id);
    let link = |step: Option<u64>, name: &'static str, class: &'static str| {
        step.map(
            |step| view! { <a class=class href=to(step) aria-label=name title=name><Icon glyph=Glyph::Arrow/></a> },
        )
    };
    let earlier = link(at(index.checked_sub(1)), words.gallery.earlier, "icon-button is-back");
    let later = link(at(Some(index + 1)), words.gallery.later, "icon-button");
    let step_label = |step| words.job.samples_step.of(words.format_integer(step));
    let options = steps.iter().filter(|other| **other != step).map(|other| {
        let chosen = filters.against == Some(*other);
        view! { <option value=other.to_string() selected=chosen>{step_label(*other)}</option> }
    });
    let options = options.collect_view();
    let navigate = use_navigate();
    let slide = {
        let (steps, filters, id) = (steps.clone(), filters.clone(), id.clone());
        move |event| {
            let chosen = event_target_value(&event).parse::<usize>().ok().and_then(|index| steps.get(index).copied());
            if let Some(step) = chosen {
                let options = NavigateOptions { replace: true, scroll: false, ..NavigateOptions::default() };
                navigate(&GalleryFilters { step: Some(step), ..filters.clone() }.href(&id), options);
            }
        }
    };
    let has_several_steps = steps.len() > 1;
    let slider = has_several_steps.then(|| {
        view! {
            <input
                type="range"
                class="js-only slider"
                min="0"
                max=(steps.len() - 1).to_string()
                prop:value=index.to_string()
                aria-label=words.job.step
                aria-valuetext=step_label(step)
                on:input=slide
            />
        }
    });
    view! {
        <div class="gallery-bar">
            {earlier}
            {slider}
            {later}
            <p class="font-medium tabular-nums">{step_label(step)}</p>
            {has_several_steps.then(|| view! {
                <form method="get" action=format!("/jobs/{id}") class="gallery-compare">
                    <input type="hidden" name="show" value="samples"/>
                    <input type="hidden" name="step" value=step.to_string()/>
                    <label for="against">{words.gallery.compare}</label>
                    <select id="against" name="against" class="select select-sm" on:change=move |event| browser::submit_enclosing_form(&event)>
                        <option value="">{words.gallery.nothing}</option>
                        {options}
                    </select>
                    <button class="no-js-only btn btn-sm">{words.gallery.show}</button>
                </form>
            })}
        </div>
    }
    .into_erased()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_filters_are_inverse() {
        let mut params = ParamsMap::new();
        params.insert("step", "200".to_owned());
        params.insert("against", "x".to_owned());
        params.insert("sample", "a/b&c".to_owned());
        let filters = GalleryFilters::from_params(&params);
        assert_eq!(filters, GalleryFilters { step: Some(200), against: None, sample: Some("a/b&c".to_owned()) });
        let id = JobId::parse("j_1").expect("an id");
        assert_eq!(filters.href(&id), "/jobs/j_1?show=samples&step=200&sample=a%2Fb%26c");
        assert_eq!(filters.shown_step(&[100, 200, 300]), Some(200));
        assert_eq!(filters.shown_step(&[100, 300]), Some(300), "an unknown step selects the newest");
    }
}

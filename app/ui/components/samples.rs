//! The newest samples of a job.

use leptos::prelude::*;

use super::action::MoreLink;
use super::sample_viewer::{SampleViewer, sample_tile};
use crate::domain::ids::JobId;
use crate::protocol::artifacts::ArtifactsPage;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::samples::{SampleImage, samples};

/// The maximum number of samples of the newest step that are shown.
const MAX_SHOWN: usize = 8;

/// A panel with the samples of the newest step in one row, and a link to all samples.
#[component]
pub(crate) fn NewestSamples(id: JobId, files: Memo<ArtifactsPage>) -> impl IntoView {
    let words = &t().job;
    let images = Memo::new(move |_| files.with(|page| samples(&page.artifacts)));
    let open = RwSignal::new(None::<usize>);
    let newest = Memo::new(move |_| images.with(|images| newest_step_samples(images)));
    let href = format!("/jobs/{id}?show=samples");
    let content = move || {
        let newest = newest.get();
        let tiles = newest.iter().map(|sample| view! { <li>{sample_tile(images, open, sample)}</li> });
        view! { <ul class="gallery is-strip">{tiles.collect_view()}</ul> }.into_erased()
    };
    view! {
        <section class="panel" aria-labelledby="newest">
            <h2 id="newest" class="panel-head">
                {words.samples}
                <MoreLink href=href label=t().gallery.all/>
            </h2>
            {content}
        </section>
        <SampleViewer all=images open=open/>
    }
    .into_erased()
}

fn newest_step_samples(all: &[SampleImage]) -> Vec<SampleImage> {
    let step = all.last().and_then(|sample| sample.step);
    all.iter().filter(|sample| sample.step == step).take(MAX_SHOWN).cloned().collect()
}

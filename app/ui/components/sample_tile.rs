//! A sample as a tile.

use leptos::prelude::*;

use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::safe_url::SafeUrl;
use crate::ui::samples::SampleImage;

/// A sample with its step. A click opens the file, unless `open` prevents the default action.
#[component]
pub(crate) fn SampleTile(
    sample: SampleImage,
    #[prop(optional)] open: Option<Callback<leptos::ev::MouseEvent>>,
) -> impl IntoView {
    let url = SafeUrl::from_data(&sample.file.url).into_string();
    let source = url.clone();
    let alt = t().job.sample_alt.of(&sample.file.path);
    let on_click = move |event| {
        if let Some(open) = open {
            open.run(event);
        }
    };
    view! {
        <a href=url rel="external" target="_blank" on:click=on_click>
            <img src=source alt=alt loading="lazy" width="256" height="256"/>
            <span class="gallery-caption">{caption(&sample)}</span>
        </a>
    }
    .into_erased()
}

/// Returns a short caption: the step and the key of the sample.
pub(crate) fn caption(sample: &SampleImage) -> String {
    match sample.step {
        Some(step) => format!("{} · {}", t().job.samples_step.of(t().format_integer(step)), sample.key),
        None => sample.key.clone(),
    }
}

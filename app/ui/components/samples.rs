//! Validation images, the newest step first.

use leptos::prelude::*;

use super::icon::{Glyph, Icon};
use crate::protocol::queue::ArtifactView;
use crate::protocol::status::ArtifactKind;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::safe_url::SafeUrl;

/// How many thumbnails are shown; all of them are among the files.
const SHOWN: usize = 24;

/// The gallery. Only what a browser shows as an image; anything else stays among the files.
#[component]
pub(crate) fn Samples(#[prop(into)] artifacts: Signal<Vec<ArtifactView>>) -> impl IntoView {
    let words = &t().job;
    let images = Memo::new(move |_| artifacts.with(|files| newest_first(files)));
    view! {
        <section class="panel" aria-labelledby="samples">
            <h2 id="samples" class="panel-head">{words.samples}</h2>
            {move || {
                let images = images.get();
                if images.is_empty() {
                    view! { <p class="panel-empty"><Icon glyph=Glyph::Image/>{words.no_samples}</p> }.erased()
                } else {
                    view! { <ul class="gallery">{images.into_iter().map(|image| view! { <Sample image=image/> }).collect_view()}</ul> }.erased()
                }
            }}
        </section>
    }
    .erased()
}

fn newest_first(files: &[ArtifactView]) -> Vec<ArtifactView> {
    let is_image = |file: &&ArtifactView| {
        let extension = file.path.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
        file.kind == ArtifactKind::Sample
            && matches!(extension.as_str(), "png" | "jpg" | "jpeg" | "webp" | "gif" | "avif")
    };
    let mut images: Vec<_> = files.iter().filter(is_image).cloned().collect();
    images.sort_by(|a, b| (step_of(&b.path), b.created_at, &a.path).cmp(&(step_of(&a.path), a.created_at, &b.path)));
    images.truncate(SHOWN);
    images
}

/// The number after `step` in a path (`step_400_0.png`, `step-000400/a.png`), if there is one.
fn step_of(path: &str) -> Option<u64> {
    let after = path.rsplit_once("step")?.1.trim_start_matches(['_', '-']);
    let digits = after.len() - after.trim_start_matches(|next: char| next.is_ascii_digit()).len();
    after[..digits].parse().ok()
}

#[component]
fn Sample(image: ArtifactView) -> impl IntoView {
    let words = &t().job;
    let url = SafeUrl::from_data(&image.url).into_string();
    let source = url.clone();
    let caption = match step_of(&image.path) {
        Some(step) => words.samples_step.of(t().whole(step)),
        None => image.path.rsplit('/').next().unwrap_or_default().to_owned(),
    };
    view! {
        <li>
            <a href=url rel="external" target="_blank">
                <img src=source alt=words.sample_alt.of(&image.path) loading="lazy" width="256" height="256"/>
                <span class="gallery-caption">{caption}</span>
            </a>
        </li>
    }
    .erased()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ids::Attempt;
    use crate::domain::time::Timestamp;

    fn file(path: &str, kind: ArtifactKind) -> ArtifactView {
        ArtifactView {
            path: path.to_owned(),
            attempt: Attempt(1),
            kind,
            size_bytes: 1,
            sha256: String::new(),
            created_at: Timestamp(0),
            url: String::new(),
        }
    }

    #[test]
    fn steps_are_read_from_paths() {
        assert_eq!(step_of("samples/step_400_0.png"), Some(400));
        assert_eq!(step_of("samples/step-000050/a.png"), Some(50));
        assert_eq!(step_of("samples/a.png"), None);
        assert_eq!(step_of("step"), None);
    }

    #[test]
    fn the_newest_step_is_first_and_only_images_are_shown() {
        let files = [
            file("s/step_9_0.png", ArtifactKind::Sample),
            file("s/step_100_1.png", ArtifactKind::Sample),
            file("s/step_100_0.png", ArtifactKind::Sample),
            file("s/step_200.svg", ArtifactKind::Sample),
            file("step_300.png", ArtifactKind::Other),
        ];
        let paths: Vec<_> = newest_first(&files).into_iter().map(|file| file.path).collect();
        assert_eq!(paths, ["s/step_100_0.png", "s/step_100_1.png", "s/step_9_0.png"]);
    }
}

//! Moments and spans. With JavaScript a page shows an age that ticks, without it the full moment: the style sheet
//! shows one of the two, so neither hydration nor layout moves.

use leptos::prelude::*;

use crate::domain::time::Timestamp;
use crate::ui::clock::use_clock;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;

/// When something happened.
///
/// The moment in full is there for a pointer and a finger, and in a table with the row's link. It is no stop of the Tab
/// key: a page has dozens, and assistive programs read `datetime`.
#[component]
pub(crate) fn RelativeTime(at: Timestamp) -> impl IntoView {
    let clock = use_clock();
    let words = t();
    view! {
        <time class="whitespace-nowrap" datetime=at.to_string()>
            <span class="js-only moment" tabindex="-1" title=move || clock.format_timestamp(at)>
                {move || words.format_ago(at, clock.now())}
            </span>
            <span class="no-js-only">{move || clock.format_timestamp(at)}</span>
        </time>
    }
    .into_erased()
}

/// How long something takes or took; it grows while there is no end.
#[component]
pub(crate) fn Elapsed(from: Timestamp, #[prop(optional_no_strip)] until: Option<Timestamp>) -> impl IntoView {
    let clock = use_clock();
    let words = t();
    view! {
        <span class="whitespace-nowrap tabular-nums">
            {move || words.format_duration(until.unwrap_or_else(|| clock.now()) - from)}
        </span>
    }
    .into_erased()
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_no_stop_of_the_tab_key() {
        let html = Owner::new().with(|| view! { <RelativeTime at=Timestamp(0)/> }.to_html());
        assert!(html.contains(r#"datetime="1970-"#), "{html}");
        assert!(!html.contains(r#"tabindex="0""#), "{html}");
    }
}

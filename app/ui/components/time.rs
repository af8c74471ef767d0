//! Times and durations. With JavaScript, a page shows how long ago a time was, and updates it; without JavaScript, the
//! date and time. Both are in the HTML and the style sheet shows one of them, so that hydration shifts no layout.

use leptos::prelude::*;

use crate::domain::time::Timestamp;
use crate::ui::clock::use_clock;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;

/// The time that has passed since `at`.
///
/// The date and time are shown on hover and tap, and in a table while the link of the row has the focus. The element is
/// not a Tab stop, because a page has dozens of them and assistive technology reads `datetime`.
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

/// The duration from `from` to `until`, or to the current time.
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
    fn time_is_not_a_tab_stop() {
        let html = Owner::new().with(|| view! { <RelativeTime at=Timestamp(0)/> }.to_html());
        assert!(html.contains(r#"datetime="1970-"#), "{html}");
        assert!(!html.contains(r#"tabindex="0""#), "{html}");
    }
}

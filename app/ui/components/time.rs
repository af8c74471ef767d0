//! Moments and spans. Whoever has JavaScript reads a ticking age, everyone else the moment in UTC: the style sheet
//! shows one of the two, so neither hydration nor layout moves.

use leptos::prelude::*;

use crate::domain::time::Timestamp;
use crate::ui::clock::use_clock;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;

/// When something happened.
#[component]
pub(crate) fn Moment(at: Timestamp) -> impl IntoView {
    let clock = use_clock();
    let words = t();
    let full = t().moment(at);
    let title = full.clone();
    view! {
        <time class="whitespace-nowrap" datetime=at.to_string() title=title>
            <span class="js-only">{move || words.ago(at, clock.now())}</span>
            <span class="no-js-only">{full}</span>
        </time>
    }
    .erased()
}

/// How long something takes or took; it grows while there is no end.
#[component]
pub(crate) fn Elapsed(from: Timestamp, #[prop(optional_no_strip)] until: Option<Timestamp>) -> impl IntoView {
    let clock = use_clock();
    let words = t();
    view! {
        <span class="whitespace-nowrap tabular-nums">
            {move || words.span(until.unwrap_or_else(|| clock.now()) - from)}
        </span>
    }
    .erased()
}

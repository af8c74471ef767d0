//! Moments and spans. Whoever has JavaScript reads a ticking age, everyone else the moment in UTC: the style sheet
//! shows one of the two, so neither hydration nor layout moves.

use leptos::prelude::*;

use crate::domain::time::Timestamp;
use crate::ui::clock::use_clock;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;

/// When something happened.
///
/// The moment in full is there for a pointer, a finger and the keyboard. In a table it comes with the row's link, which
/// would else be two steps away from the next one.
#[component]
pub(crate) fn Moment(at: Timestamp, #[prop(optional)] in_row: bool) -> impl IntoView {
    let clock = use_clock();
    let words = t();
    view! {
        <time class="whitespace-nowrap" datetime=at.to_string()>
            <span class="js-only moment" tabindex=if in_row { "-1" } else { "0" } title=move || clock.moment(at)>
                {move || words.ago(at, clock.now())}
            </span>
            <span class="no-js-only">{t().moment(at)}</span>
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

//! Whether what you see is current.

use leptos::prelude::*;

use crate::ui::clock::use_clock;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::live::{Link, use_live};

/// The state of the stream of news; without JavaScript there is none.
#[component]
pub(crate) fn Connection() -> impl IntoView {
    let live = use_live();
    let clock = use_clock();
    let words = &t().nav;
    let class = move || match live.link() {
        Link::Connecting => "link-state",
        Link::Live => "link-state is-live",
        Link::Reconnecting => "link-state is-wait",
        Link::Offline(_) => "link-state is-off",
    };
    let word = move || match live.link() {
        Link::Connecting => words.connecting.to_owned(),
        Link::Live => words.live.to_owned(),
        Link::Reconnecting => words.reconnecting.to_owned(),
        Link::Offline(since) => words.offline_since.of(clock.hour_and_minute(since)),
    };
    let hint = move || match live.link() {
        Link::Connecting | Link::Live => words.live_hint,
        Link::Reconnecting | Link::Offline(_) => words.offline_hint,
    };
    view! {
        <span class="js-only">
            <span class=class title=hint role="status"><span class="link-dot" aria-hidden="true"></span>{word}</span>
        </span>
    }
    .erased()
}

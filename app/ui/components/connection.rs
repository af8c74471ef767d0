//! Whether what you see is current.

use leptos::prelude::*;

use super::failure::use_login;
use super::icon::{Glyph, Icon};
use crate::domain::time::Millis;
use crate::ui::browser;
use crate::ui::clock::use_clock;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::live::{Link, Old, use_live};

/// The state of the stream of news, and of what it brings; without JavaScript there is none.
#[component]
pub(crate) fn Connection() -> impl IntoView {
    let live = use_live();
    let clock = use_clock();
    let words = &t().nav;
    let class = move || match (live.link(), live.old()) {
        (Link::Connecting, _) => "link-state",
        (Link::Live, None) => "link-state is-live",
        (Link::Reconnecting(_), _) => "link-state is-wait",
        (Link::Live | Link::Offline(_) | Link::SignedOut, _) => "link-state is-off",
    };
    let word = move || match (live.link(), live.old()) {
        (Link::Connecting, _) => words.connecting.to_owned(),
        (Link::Live, None) => words.live.to_owned(),
        (Link::Live, Some(Old::Stale(since))) => words.stale_since.of(clock.hour_and_minute(since)),
        (Link::Live, Some(Old::Gone)) => words.gone.to_owned(),
        (Link::Reconnecting(_), _) => words.reconnecting.to_owned(),
        (Link::Offline(since), _) => words.offline_since.of(clock.hour_and_minute(since)),
        (Link::SignedOut, _) => words.signed_out.to_owned(),
    };
    // It is not read out each second.
    let wait = move || match live.link() {
        Link::Reconnecting(at) => {
            let _ticks = clock.now();
            let left = Some(at - browser::now()).filter(|left| *left >= Millis::seconds(1));
            left.map(|left| view! { <span aria-hidden="true">{t().span(left)}</span> })
        }
        _ => None,
    };
    let hint = move || match (live.link(), live.old()) {
        (Link::Connecting, _) | (Link::Live, None) => words.live_hint,
        (Link::Live, Some(Old::Stale(_))) => words.stale_hint,
        (Link::Live, Some(Old::Gone)) => t().problem.not_found_text,
        (Link::Reconnecting(_) | Link::Offline(_), _) => words.offline_hint,
        (Link::SignedOut, _) => t().problem.signed_out_text,
    };
    view! {
        <span class="js-only">
            <span class=class title=hint role="status"><span class="link-dot" aria-hidden="true"></span>{word}{wait}</span>
        </span>
    }
    .erased()
}

/// What a page says under which its reader's session has ended, and the way back to it.
#[component]
pub(crate) fn SessionOver() -> impl IntoView {
    let live = use_live();
    let words = &t().problem;
    let login = use_login();
    (move || {
        (live.link() == Link::SignedOut).then(|| {
            view! {
                <div class="notice notice-bad" role="alert">
                    <Icon glyph=Glyph::Warning/>
                    <p class="grow"><strong>{words.signed_out}</strong>" "{words.signed_out_text}</p>
                    <a class="btn btn-sm" rel="external" href=login>{words.sign_in}</a>
                </div>
            }
        })
    })
    .erased()
}

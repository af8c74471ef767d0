//! An indicator of whether the page shows current data.

use leptos::prelude::*;

use super::icon::Icon;
use super::problem_panel::use_login_url;
use crate::domain::time::Millis;
use crate::ui::browser;
use crate::ui::clock::use_clock;
use crate::ui::erase::Erase;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::live::{Staleness, StreamStatus, use_live};

/// The state of the stream and of the data that it updates. Hidden without JavaScript.
#[component]
pub(crate) fn Connection() -> impl IntoView {
    let live = use_live();
    let clock = use_clock();
    let words = &t().nav;
    let class = move || match (live.status(), live.staleness()) {
        (StreamStatus::Connecting, _) => "link-state",
        (StreamStatus::Live, None) => "link-state is-live",
        (StreamStatus::Reconnecting(_), _) => "link-state is-wait",
        (StreamStatus::Live | StreamStatus::Offline(_) | StreamStatus::SignedOut, _) => "link-state is-off",
    };
    let label = move || match (live.status(), live.staleness()) {
        (StreamStatus::Connecting, _) => words.connecting.to_owned(),
        (StreamStatus::Live, None) => words.live.to_owned(),
        (StreamStatus::Live, Some(Staleness::Stale(since))) => {
            words.stale_since.of(clock.format_time_with_offset(since))
        }
        (StreamStatus::Live, Some(Staleness::NotFound)) => words.not_found.to_owned(),
        (StreamStatus::Reconnecting(_), _) => words.reconnecting.to_owned(),
        (StreamStatus::Offline(since), _) => words.offline_since.of(clock.format_time_with_offset(since)),
        (StreamStatus::SignedOut, _) => words.signed_out.to_owned(),
    };
    // Hidden from screen readers, which would announce it every second.
    let countdown = move || match live.status() {
        StreamStatus::Reconnecting(at) => {
            let _ticks = clock.now();
            let remaining = Some(at - browser::now()).filter(|remaining| *remaining >= Millis::from_secs(1));
            remaining.map(|remaining| view! { <span aria-hidden="true">{t().format_duration(remaining)}</span> })
        }
        _ => None,
    };
    let hint = move || match (live.status(), live.staleness()) {
        (StreamStatus::Connecting, _) | (StreamStatus::Live, None) => words.live_hint,
        (StreamStatus::Live, Some(Staleness::Stale(_))) => words.stale_hint,
        (StreamStatus::Live, Some(Staleness::NotFound)) => t().problem.not_found_text,
        (StreamStatus::Reconnecting(_) | StreamStatus::Offline(_), _) => words.offline_hint,
        (StreamStatus::SignedOut, _) => t().problem.signed_out_text,
    };
    view! {
        <span class="js-only">
            <span class=class title=hint role="status"><span class="link-dot" aria-hidden="true"></span><span class="link-word">{label}</span>{countdown}</span>
        </span>
    }
    .into_erased()
}

/// A notice with a sign-in link, shown when the user's session has ended.
#[component]
pub(crate) fn SignedOutNotice() -> impl IntoView {
    let live = use_live();
    let words = &t().problem;
    let login = use_login_url();
    (move || {
        (live.status() == StreamStatus::SignedOut).then(|| {
            view! {
                <div class="notice notice-bad" role="alert">
                    <Icon glyph=Glyph::Warning/>
                    <p class="grow"><strong>{words.signed_out}</strong>" "{words.signed_out_text}</p>
                    <a class="btn btn-sm" rel="external" href=login>{words.sign_in}</a>
                </div>
            }
        })
    })
    .into_erased()
}

//! Progress bars that look like the dial of a tuner. They use SVG attributes, because the Content Security Policy
//! allows no inline styles.

use leptos::prelude::*;

use crate::ui::erase::Erase;
use crate::ui::i18n::t;

/// A thin progress bar.
#[component]
pub(crate) fn ProgressBar(
    #[prop(into)] percent: Signal<Option<f64>>,
    #[prop(into)] label: String,
    /// Whether nothing is in progress; the bar then only shows a value.
    #[prop(optional)]
    over: bool,
) -> impl IntoView {
    let width = move || percent.get().unwrap_or_default().clamp(0.0, 100.0);
    let value_now = move || percent.get().map(|percent| format!("{:.0}", percent.floor()));
    let class = move || match percent.get() {
        _ if over => "scale is-over",
        Some(_) => "scale",
        None => "scale is-unknown",
    };
    view! {
        <span class=class role="progressbar" aria-label=label aria-valuemin="0" aria-valuemax="100" aria-valuenow=value_now>
            <svg viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
                <rect class="scale-track" width="100" height="6"></rect>
                <rect class="scale-fill" width=move || format!("{:.2}", width()) height="6"></rect>
            </svg>
        </span>
    }
    .into_erased()
}

/// The large progress bar of a job page, with tick marks.
#[component]
pub(crate) fn LargeProgressBar(
    #[prop(into)] percent: Signal<Option<f64>>,
    #[prop(into)] label: String,
    ended: Signal<bool>,
) -> impl IntoView {
    let width = move || percent.get().unwrap_or_default().clamp(0.0, 100.0);
    let value_now = move || percent.get().map(|percent| format!("{:.0}", percent.floor()));
    let text = move || percent.get().map(|percent| t().format_percent(percent));
    let ticks = (0..=50).map(|tick| {
        let x = format!("{:.1}", 1.0 + f64::from(tick) * 11.96);
        let is_long = tick % 5 == 0;
        view! { <line class=if is_long { "mark mark-long" } else { "mark" } x1=x.clone() x2=x y1=if is_long { "16" } else { "20" } y2="26"></line> }
    });
    view! {
        <div
            class="big-scale"
            class:is-ended=ended
            role="progressbar"
            aria-label=label
            aria-valuemin="0"
            aria-valuemax="100"
            aria-valuenow=value_now
            aria-valuetext=text
        >
            <svg viewBox="0 0 600 28" preserveAspectRatio="none" aria-hidden="true">
                <rect class="scale-track" y="4" width="600" height="6" rx="1"></rect>
                <rect class="scale-fill" y="4" width=move || format!("{:.2}", width() * 6.0) height="6" rx="1"></rect>
                {ticks.collect_view()}
                <rect class="needle" y="0" width="2" height="28" x=move || format!("{:.2}", (width() * 6.0 - 1.0).clamp(0.0, 598.0))></rect>
            </svg>
        </div>
    }
    .into_erased()
}

//! The controls of the charts of a page: smoothing, and what of the x axis is visible.

use leptos::prelude::*;

use super::data::Axis;
use super::draw::describe_x;
use super::options::{ChartOptions, Horizontal, POSITIONS, Smoothing};
use super::state::ChartState;
use super::switch::Switch;
use crate::ui::axis::AxisRange;
use crate::ui::clock::use_clock;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;

impl Horizontal {
    pub const fn axis(self) -> Axis {
        match self {
            Self::Steps => Axis::Steps,
            Self::Epochs => Axis::Epochs,
            Self::Time => Axis::Elapsed,
        }
    }
}

/// Links that choose the axes of the charts of the panel `metrics`.
#[component]
pub(crate) fn ChartSwitches(has_epochs: Memo<bool>) -> impl IntoView {
    let words = &t().charts;
    let horizontal = move || {
        let known = [
            (Horizontal::Steps, words.by_step),
            (Horizontal::Epochs, words.by_epoch),
            (Horizontal::Time, words.by_time),
        ];
        let possible = known.into_iter().filter(|(known, _)| *known != Horizontal::Epochs || has_epochs.get());
        let choices = possible.map(|(known, text)| (known.word(), text)).collect::<Vec<_>>();
        view! { <Switch label=words.over key=Horizontal::KEY panel="metrics" choices=choices clears=POSITIONS/> }
    };
    let scales = || vec![(None, words.linear), (Some("log"), words.log)];
    view! {
        {horizontal}
        <Switch label=words.scale has_label=true key="scale" panel="metrics" choices=scales()/>
        <Switch label=words.x_scale has_label=true key="xscale" panel="metrics" choices=scales()/>
    }
    .into_erased()
}

/// The row of controls above the charts. Without scripts, the form asks for the same page with the chosen smoothing.
#[component]
pub(crate) fn ChartTools(state: ChartState) -> impl IntoView {
    let words = &t().charts;
    let fields = move || {
        let others = state.fields().into_iter().filter(|(key, _)| key != "smooth");
        others.map(|(key, value)| view! { <input type="hidden" name=key value=value/> }).collect_view()
    };
    view! {
        <form class="chart-tools" method="get" action=move || format!("{}#metrics", state.path()) on:submit=move |event| event.prevent_default()>
            {fields}
            <SmoothingSlider state=state/>
            <span class="no-js-only"><button class="btn btn-sm">{words.apply}</button></span>
            <ZoomStatus state=state/>
        </form>
        <p class="chart-hint js-only">{words.zoom_hint}</p>
    }
    .into_erased()
}

#[component]
fn SmoothingSlider(state: ChartState) -> impl IntoView {
    let words = &t().charts;
    let smoothing = Memo::new(move |_| state.with(|options| options.smoothing));
    let text = move || {
        let smoothing = smoothing.get();
        if smoothing.is_on() { t().locale.fixed(smoothing.weight(), 2) } else { words.unsmoothed.to_owned() }
    };
    let value = move || smoothing.get().weight().to_string();
    let chosen = |value: String| value.parse().map(Smoothing::new).unwrap_or_default();
    view! {
        <label class="chart-smoothing">
            <span>{words.smoothing}</span>
            <input
                type="range"
                class="slider"
                name="smooth"
                min="0"
                max=Smoothing::MAX.to_string()
                step="0.01"
                value=untrack(value)
                prop:value=value
                aria-valuetext=text
                on:input=move |event| state.preview(|options| options.smoothing = chosen(event_target_value(&event)))
                on:change=move |event| state.update(|options| options.smoothing = chosen(event_target_value(&event)))
            />
            <output>{text}</output>
        </label>
    }
    .into_erased()
}

/// What is visible of the x axis, and a link that shows all of it.
#[component]
fn ZoomStatus(state: ChartState) -> impl IntoView {
    let words = &t().charts;
    let clock = use_clock();
    let zoom = Memo::new(move |_| state.with(|options| options.zoom.map(|zoom| (options.horizontal, zoom))));
    let status = move || {
        let (horizontal, AxisRange { low, high }) = zoom.get()?;
        let axis = horizontal.axis();
        let range = words.span.with(&[&describe_x(axis, low, clock), &describe_x(axis, high, clock)]);
        let name = match horizontal {
            Horizontal::Steps => words.by_step,
            Horizontal::Epochs => words.by_epoch,
            Horizontal::Time => words.by_time,
        };
        let all = move || format!("{}#metrics", state.address_with(|options: &mut ChartOptions| options.zoom = None));
        Some(view! {
            <span class="chart-zoom">{name}" "{range}</span>
            <a class="btn btn-sm" href=all data-noscroll="">{words.reset_zoom}</a>
        })
    };
    view! { <span class="chart-zoom-status">{status}</span> }.into_erased()
}

//! A scrollable view of a log of any length: only the visible lines, and a few around them, are in the document.

use leptos::ev::{KeyboardEvent, MouseEvent, WheelEvent, resize};
use leptos::html::Div;
use leptos::prelude::*;

use super::icon::Icon;
use super::log_line::LogLineText;
use super::log_reader::{LogReader, RenderedLine, pixels};
use super::problem_panel::RequestIdText;
use crate::ui::browser;
use crate::ui::erase::Erase;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::logs::viewport::LogViewport;
use crate::ui::schedule::on_next_frame;

/// The fraction of the view that Page Up and Page Down scroll, so that some lines stay visible.
const PAGE_FRACTION: f64 = 0.9;

/// The lines of a log, with a button that scrolls to the newest. `empty` is shown while there are no lines.
#[component]
pub(crate) fn LogViewer(reader: LogReader, empty: Signal<&'static str>) -> impl IntoView {
    let words = t();
    let layer = NodeRef::<Div>::new();
    let rows = Memo::new(move |_| reader.rendered_lines());
    let spacer_height =
        move || reader.viewport.get().map_or(0, |viewport| pixels(viewport.max_scroll(reader.total()).ceil()));
    bind_layout(reader, layer, rows);
    let speed = move || {
        reader
            .viewport
            .get_untracked()
            .map_or(1.0, |viewport| viewport.scroll_factor(reader.cache.with_untracked(|cache| cache.total)))
    };
    let scroll_by = move |delta: f64| {
        if let Some(element) = reader.scroll_area.get_untracked() {
            let delta = delta / speed();
            element.set_scroll_top(element.scroll_top() + pixels(delta.abs().max(1.0).copysign(delta)));
        }
    };
    // A very long log scrolls faster than its scroll area, so that uncorrected keys and wheel events would skip lines.
    let on_key = move |event: KeyboardEvent| {
        let page = reader.viewport.get_untracked().map_or(0.0, |viewport| viewport.height * PAGE_FRACTION);
        let delta = match event.key().as_str() {
            "PageDown" => page,
            "PageUp" => -page,
            "e" | "E" if !(event.ctrl_key() || event.meta_key() || event.alt_key()) => {
                event.prevent_default();
                return reader.go_to_error(event.key() == "E");
            }
            _ => return,
        };
        event.prevent_default();
        scroll_by(delta);
    };
    let on_wheel = move |event: WheelEvent| {
        if speed() > 1.0 && event.delta_mode() == 0 && event.delta_y() != 0.0 {
            event.prevent_default();
            scroll_by(event.delta_y());
        }
    };
    let on_scroll = move |_| {
        let (Some(element), Some(viewport)) = (reader.scroll_area.get_untracked(), reader.viewport.get_untracked())
        else {
            return;
        };
        let scrolled = f64::from(element.scroll_top());
        let total = reader.cache.with_untracked(|cache| cache.total);
        reader.scroll_top.set(scrolled);
        // Scrolling up stops following, and scrolling back to the end resumes it.
        let at_end = scrolled >= viewport.max_scroll(total) - 4.0;
        if reader.is_following.get_untracked() != at_end {
            reader.is_following.set(at_end);
        }
    };
    let is_empty = Memo::new(move |_| reader.total() == 0);
    // Until the lines are measured, the style sheet positions them where they will be, so that nothing moves.
    let starts_at_end = reader.requested_line().is_none();
    let layer_class = if starts_at_end { "log-layer at-end" } else { "log-layer" };
    view! {
        <div class="log-frame">
            <div
                class="log-sheet"
                class:is-wrapped=move || reader.view_state.with(|view_state| view_state.wrap)
                node_ref=reader.scroll_area
                on:scroll=on_scroll
                on:keydown=on_key
                on:wheel=on_wheel
                tabindex="0"
                role="log"
                aria-live="off"
                aria-label=words.log.region
            >
                <div class=layer_class node_ref=layer dir="ltr">
                    <For each=move || rows.get() key=RenderedLine::key children=move |row| view! { <LogRow row=row reader=reader/> }/>
                </div>
                {move || is_empty.get().then(|| view! {
                    <p class="log-note">{empty}</p>
                })}
                <svg class="log-rest" width="1" height=spacer_height aria-hidden="true"></svg>
            </div>
            <FetchErrorNotice reader=reader/>
            <NewLinesButton reader=reader/>
        </div>
    }
    .into_erased()
}

/// Measures the view, and positions the lines in it according to the scroll position.
fn bind_layout(reader: LogReader, layer: NodeRef<Div>, rows: Memo<Vec<RenderedLine>>) {
    let measure = move || {
        let (Some(element), Some(layer)) = (reader.scroll_area.get_untracked(), layer.get_untracked()) else { return };
        let mut row_height = None::<f64>;
        let mut line = layer.first_element_child();
        while let Some(row) = line {
            let height = browser::top_and_height(&row).1;
            row_height = Some(row_height.map_or(height, |min| min.min(height)));
            line = row.next_element_sibling();
        }
        let previous = reader.viewport.get_untracked();
        let row_height = row_height
            .or(previous.map(|viewport| viewport.row_height))
            .filter(|row_height| *row_height > 0.0)
            .unwrap_or(20.0);
        let viewport = LogViewport { height: f64::from(layer.client_height()), row_height };
        if previous == Some(viewport) || viewport.height <= 0.0 {
            return;
        }
        if previous.is_none() {
            let scrolled = untrack(move || initial_scroll(reader, viewport));
            reader.scroll_top.set(scrolled);
            // The content has its full height only in the next frame.
            on_next_frame(reader.scroll_area, move || element.set_scroll_top(pixels(scrolled)));
        }
        reader.viewport.set(Some(viewport));
    };
    Effect::new(move |_| {
        if reader.scroll_area.get().is_some() {
            on_next_frame(layer, measure);
        }
    });
    let resized = window_event_listener(resize, move |_| measure());
    on_cleanup(move || resized.remove());

    let update_layout = move || {
        let (Some(layer), true) = (layer.get_untracked(), reader.viewport.get_untracked().is_some()) else { return };
        let visible = untrack(move || reader.visible_lines());
        let Some(first) = layer.first_element_child() else { return };
        _ = layer.class_list().remove_1("at-end");
        let mut anchor = first.clone();
        for _ in visible.first..visible.anchor {
            let Some(next) = anchor.next_element_sibling() else { break };
            anchor = next;
        }
        let (first, anchor) = (browser::top_and_height(&first), browser::top_and_height(&anchor));
        layer.set_scroll_top(pixels(anchor.0 - first.0 + visible.anchor_fraction * anchor.1 - visible.anchor_offset));
        if reader.viewport.get_untracked().is_some_and(|viewport| pixels(viewport.height) != layer.client_height()) {
            measure();
        }
    };
    Effect::new(move |_| {
        rows.with(|_| ());
        reader.scroll_top.track();
        reader.view_state.track();
        if reader.viewport.get().is_some() {
            on_next_frame(layer, update_layout);
        }
    });
    // The selection has changed by navigation, a jump to a line, or a search.
    let selected = Memo::new(move |_| reader.view_state.with(|view_state| view_state.selected_lines));
    Effect::new(move |last: Option<()>| {
        if let (Some((line, _)), Some(())) = (selected.get(), last) {
            reader.scroll_to_line(line);
        }
    });
    // The end moves as the log grows.
    let total = Memo::new(move |_| reader.total());
    Effect::new(move |_| {
        let _total = total.get();
        if reader.viewport.get().is_some() && reader.is_following.get_untracked() {
            on_next_frame(reader.viewport, move || reader.scroll_to_end());
        }
    });
}

/// Returns the initial scroll position: the requested line in the middle of the view, or the end of the log.
fn initial_scroll(reader: LogReader, viewport: LogViewport) -> f64 {
    let total = reader.total();
    match reader.requested_line() {
        Some(line) => viewport.scroll_for_line(total, line.saturating_sub(1)),
        None => viewport.max_scroll(total),
    }
}

#[component]
fn LogRow(row: RenderedLine, reader: LogReader) -> impl IntoView {
    let number = row.number;
    let is_selected = move || reader.selected_lines().is_some_and(|(first, last)| (first..=last).contains(&number));
    let href = move || {
        reader.log.with_value(|log| reader.view_state.with(|view_state| view_state.with_line(number).href(&log.job)))
    };
    let on_click = move |event: MouseEvent| {
        if event.shift_key() {
            event.prevent_default();
            reader.navigate_to(&reader.view_state.get_untracked().with_lines_up_to(number), false);
        }
    };
    let text = row.line().map(|line| view! { <LogLineText line=line/> });
    let is_error = Memo::new(move |_| reader.error_line.get() == Some(number));
    let error_note = move || is_error.get().then(|| view! { <span class="sr-only">{t().log.error_line}" "</span> });
    view! {
        <div class="log-row" class:is-chosen=is_selected class:is-error=is_error id=format!("L{number}")>
            <a class="log-number" href=href data-noscroll="" tabindex="-1" on:click=on_click>{number}</a>
            {error_note}
            {text}
        </div>
    }
    .into_erased()
}

/// An error notice with a retry button, if lines could not be fetched.
#[component]
fn FetchErrorNotice(reader: LogReader) -> impl IntoView {
    let words = t();
    (move || {
        reader.problem.get().map(|problem| {
            view! {
                <div class="notice notice-bad log-missing" role="alert">
                    <Icon glyph=Glyph::Warning/>
                    <div class="toast-text grow">
                        <p>{words.logs.missing}</p>
                        {problem.request_id.map(|id| view! { <p class="toast-id"><RequestIdText id=id/></p> })}
                    </div>
                    <button type="button" class="btn btn-sm" on:click=move |_| reader.retry()>{words.problem.retry}</button>
                </div>
            }
        })
    })
    .into_erased()
}

/// A button that scrolls to the end, and shows the number of new lines since the end was last visible.
#[component]
fn NewLinesButton(reader: LogReader) -> impl IntoView {
    let words = &t().logs;
    let seen_total = RwSignal::new(reader.cache.with_untracked(|cache| cache.total));
    Effect::new(move |_| {
        if reader.is_following.get() {
            seen_total.set(reader.total());
        }
    });
    let new_lines = Memo::new(move |_| reader.total().saturating_sub(seen_total.get()));
    let is_shown = Memo::new(move |_| reader.viewport.get().is_some() && !reader.is_following.get());
    (move || {
        is_shown.get().then(|| {
            view! {
                <button type="button" class="btn btn-sm log-newer" on:click=move |_| reader.scroll_to_end()>
                    {move || match new_lines.get() {
                        0 => words.last.to_owned(),
                        count => words.newer.of(count),
                    }}
                    <Icon glyph=Glyph::Down/>
                </button>
            }
        })
    })
    .into_erased()
}

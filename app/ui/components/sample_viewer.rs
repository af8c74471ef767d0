//! A viewer for one sample, as large as the window. The arrow keys move between the samples of a step and between the
//! steps of a sample.

use leptos::prelude::*;

use super::icon::Icon;
use super::modal::use_modal;
use super::sample_tile::{SampleTile, caption};
use crate::ui::erase::Erase;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::safe_url::SafeUrl;
use crate::ui::samples::{Direction, SampleImage, neighbor};

/// Returns whether this is a left click without modifier keys, and then prevents its default action. With a modifier
/// key, the browser opens the link in a tab or window as usual.
fn handle_plain_click(event: &leptos::ev::MouseEvent) -> bool {
    let is_plain =
        event.button() == 0 && !(event.ctrl_key() || event.meta_key() || event.shift_key() || event.alt_key());
    if is_plain {
        event.prevent_default();
    }
    is_plain
}

/// Renders a sample as a tile that opens the viewer.
pub(crate) fn sample_tile(all: Memo<Vec<SampleImage>>, open: RwSignal<Option<usize>>, sample: &SampleImage) -> AnyView {
    let index = all.with_untracked(|all| all.iter().position(|other| other == sample));
    let show = Callback::new(move |event| {
        if handle_plain_click(&event) {
            open.set(index);
        }
    });
    view! { <SampleTile sample=sample.clone() open=show/> }.into_erased()
}

/// The dialog; `open` is the index in `all` of the sample that it shows.
#[component]
pub(crate) fn SampleViewer(all: Memo<Vec<SampleImage>>, open: RwSignal<Option<usize>>) -> impl IntoView {
    let words = &t().gallery;
    let (dialog, on_close) = use_modal(move || open.get().is_some(), move || open.set(None));
    let navigate = move |direction| {
        let next = open.get_untracked().and_then(|current| all.with_untracked(|all| neighbor(all, current, direction)));
        if next.is_some() {
            open.set(next);
        }
    };
    let on_key = move |event: leptos::ev::KeyboardEvent| {
        let direction = match event.key().as_str() {
            "ArrowLeft" => Direction::Left,
            "ArrowRight" => Direction::Right,
            "ArrowUp" => Direction::Up,
            "ArrowDown" => Direction::Down,
            _ => return,
        };
        event.prevent_default();
        navigate(direction);
    };
    let current_sample = Memo::new(move |_| all.with(|all| open.get().and_then(|index| all.get(index).cloned())));
    let image = move || {
        current_sample.get().map(|sample| {
            let url = SafeUrl::from_data(&sample.file.url).into_string();
            view! {
                <figure>
                    <img src=url alt=t().job.sample_alt.of(&sample.file.path) width="1024" height="1024"/>
                    <figcaption aria-live="polite">{caption(&sample)}</figcaption>
                </figure>
            }
        })
    };
    let button = move |direction, name: &'static str, class: &'static str| {
        view! { <button type="button" class=class aria-label=name title=name on:click=move |_| navigate(direction)><Icon glyph=Glyph::Arrow/></button> }
    };
    view! {
        <dialog class="viewer" node_ref=dialog aria-label=words.full on:keydown=on_key on:close=on_close>
            {image}
            <div class="viewer-bar">
                {button(Direction::Left, words.before, "icon-button is-back")}
                {button(Direction::Right, words.after, "icon-button")}
                {button(Direction::Down, words.earlier, "icon-button is-down")}
                {button(Direction::Up, words.later, "icon-button is-up")}
                <button type="button" class="btn btn-sm ml-auto" on:click=move |_| open.set(None)>{words.close}</button>
            </div>
        </dialog>
    }
    .into_erased()
}

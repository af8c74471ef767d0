//! Table rows that do not move while the table has the pointer or the focus, so that a click hits the intended row.

use leptos::ev;
use leptos::prelude::*;

use crate::ui::erase::Erase;
use crate::ui::i18n::t;

/// Returns the body of a table, and a button for below the table that updates the rows. The rows, which `row` renders,
/// follow `current` except while the body has the pointer or the focus.
pub(crate) fn stable_rows<K>(
    current: Memo<Vec<K>>,
    row: impl Fn(K) -> AnyView + Clone + Send + 'static,
) -> (AnyView, AnyView)
where
    K: Clone + Eq + std::hash::Hash + Send + Sync + 'static,
{
    let displayed = RwSignal::new(current.get_untracked());
    let (is_hovered, has_focus) = (RwSignal::new(false), RwSignal::new(false));
    let is_outdated = Memo::new(move |_| displayed.with(|displayed| current.with(|current| displayed != current)));
    let update = move || displayed.set(current.get_untracked());
    Effect::new(move |_| {
        if is_outdated.get() && !is_hovered.get() && !has_focus.get() {
            update();
        }
    });
    let set_hovered = move |is_inside| move |_: ev::PointerEvent| is_hovered.set(is_inside);
    let set_focus = move |is_inside| move |_: ev::FocusEvent| has_focus.set(is_inside);
    let body = view! {
        <tbody role="rowgroup" on:pointerenter=set_hovered(true) on:pointerleave=set_hovered(false) on:focusin=set_focus(true) on:focusout=set_focus(false)>
            <For each=move || displayed.get() key=Clone::clone children=row/>
        </tbody>
    };
    let hint = move || {
        is_outdated.get().then(|| {
            view! { <button type="button" class="btn btn-sm behind" on:click=move |_| update()>{t().common.behind}</button> }
        })
    };
    (body.into_erased(), hint.into_erased())
}

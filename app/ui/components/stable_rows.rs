//! Rows that stay where they are while somebody points at one or stands in one: who is about to press something presses it.

use leptos::ev;
use leptos::prelude::*;

use crate::ui::erase::Erase;
use crate::ui::i18n::t;

/// The body of a table, and the way to the newest order, for below the table. Its rows follow `now`, but not while they are
/// pointed at or stood in; `row` makes the row of each.
pub(crate) fn stable_rows<K>(
    now: Memo<Vec<K>>,
    row: impl Fn(K) -> AnyView + Clone + Send + 'static,
) -> (AnyView, AnyView)
where
    K: Clone + Eq + std::hash::Hash + Send + Sync + 'static,
{
    let shown = RwSignal::new(now.get_untracked());
    let (pointed, stood_in) = (RwSignal::new(false), RwSignal::new(false));
    let behind = Memo::new(move |_| shown.with(|shown| now.with(|now| shown != now)));
    let catch_up = move || shown.set(now.get_untracked());
    Effect::new(move |_| {
        if behind.get() && !pointed.get() && !stood_in.get() {
            catch_up();
        }
    });
    let point = move |here| move |_: ev::PointerEvent| pointed.set(here);
    let stand = move |here| move |_: ev::FocusEvent| stood_in.set(here);
    let body = view! {
        <tbody role="rowgroup" on:pointerenter=point(true) on:pointerleave=point(false) on:focusin=stand(true) on:focusout=stand(false)>
            <For each=move || shown.get() key=Clone::clone children=row/>
        </tbody>
    };
    let hint = move || {
        behind.get().then(|| {
            view! { <button type="button" class="btn btn-sm behind" on:click=move |_| catch_up()>{t().common.behind}</button> }
        })
    };
    (body.into_erased(), hint.into_erased())
}

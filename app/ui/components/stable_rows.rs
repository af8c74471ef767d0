//! Table rows that do not move while the table has the pointer or the focus, so that a click hits the intended row.

use leptos::ev;
use leptos::prelude::*;

use crate::ui::erase::Erase;
use crate::ui::i18n::t;

/// Returns the body of a table, and a button for below the table that updates the rows. The rows, which `row` renders,
/// follow `now` except while the body has the pointer or the focus.
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

//! Rows of a list that are picked, and what can be done to all of them: a form that leads to a page which asks
//! ([`crate::ui::bulk`]). Its fields are boxes in the rows, so the page itself remembers what is picked; a program only
//! counts them, and ticks all.

use leptos::html;
use leptos::prelude::*;

use super::icon::{Glyph, Icon};
use crate::protocol::status::BulkAction;
use crate::ui::browser;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::locales::sentence::Text;
use crate::ui::schedule::on_next_frame;

/// The form's id, by which boxes in the rows belong to it.
const FORM_ID: &str = "picked";

/// What can be done.
#[derive(Debug, Clone)]
pub(crate) struct BulkActionButton {
    pub action: BulkAction,
    pub label: Text,
    pub glyph: Glyph,
    /// The key that goes to it.
    pub key: Option<&'static str>,
}

/// A list whose rows begin with [`pick_cell`], and below it what can be done once any is picked.
#[component]
pub(crate) fn RowSelection(
    /// Where the page is that asks.
    to: &'static str,
    /// The list, as it is asked for.
    back: String,
    offers: Vec<BulkActionButton>,
    /// What is told anew whenever rows come or go.
    #[prop(into)]
    rows: Signal<()>,
    children: Children,
) -> impl IntoView {
    let words = &t().picking;
    let list = NodeRef::<html::Div>::new();
    let picked = RwSignal::new(0_u32);
    let count = move || {
        if let Some(list) = list.get_untracked() {
            picked.set(browser::count_selected(&list));
        }
    };
    // A browser may remember what was picked before the page was loaded.
    Effect::new(move |_| {
        rows.track();
        on_next_frame(list, count);
    });
    let pick = move |event: leptos::ev::Event| {
        if let Some(list) = list.get_untracked() {
            browser::apply_select_all(&event, &list);
            count();
        }
    };
    // The boxes are cleared after it was said that they will be, and their button goes with them.
    let clear = move |_| {
        on_next_frame(list, move || {
            count();
            browser::focus_first(&[".pick-all", ".pick"]);
        });
    };
    let offer = |BulkActionButton { action, label, glyph, key }| {
        view! { <button class="btn btn-sm" name="action" value=action.as_str() data-key=key><Icon glyph=glyph/>{label}</button> }
    };
    view! {
        <div class="picking" node_ref=list on:change=pick>
            {children()}
            <form class="pick-bar" id=FORM_ID method="get" action=to on:reset=clear>
                <p class="pick-count" role="status">{move || (picked.get() > 0).then(|| words.picked.of(picked.get().into()))}</p>
                <input type="hidden" name="back" value=back/>
                <div class="pick-offers">
                    {offers.into_iter().map(offer).collect_view()}
                    <button type="reset" class="btn btn-sm btn-ghost">{words.none}</button>
                </div>
            </form>
        </div>
    }
    .into_erased()
}

/// The box of a row.
pub(crate) fn row_checkbox(id: String, name: &str) -> AnyView {
    view! { <input class="pick" type="checkbox" name="id" value=id form=FORM_ID aria-label=t().picking.one.of(name)/> }
        .into_erased()
}

/// The box above them, which picks all.
pub(crate) fn select_all_checkbox() -> AnyView {
    view! { <input class="pick-all js-only" type="checkbox" autocomplete="off" aria-label=t().picking.all/> }
        .into_erased()
}

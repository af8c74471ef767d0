//! Selection of rows in a list, with bulk actions. The buttons of the actions submit a form that leads to a
//! confirmation page ([`crate::ui::bulk`]). Its fields are the checkboxes in the rows, so that it needs no JavaScript;
//! scripts only count the selected rows and select all rows.

use std::ops::RangeInclusive;

use leptos::html;
use leptos::prelude::*;

use super::icon::Icon;
use crate::protocol::status::BulkAction;
use crate::ui::browser;
use crate::ui::bulk_action::{BulkActionRow, bulk_action_row};
use crate::ui::erase::Erase;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::schedule::on_next_frame;

/// The id of the form, to which the checkboxes in the rows refer.
const FORM_ID: &str = "picked";

/// A list whose rows begin with a [`row_checkbox`], and below it the bulk actions for the selected rows.
#[component]
pub(crate) fn RowSelection(
    /// The URL of the confirmation page.
    to: &'static str,
    /// The URL of the list with its filters, to which the user returns.
    back: String,
    /// The actions that are offered.
    actions: Vec<BulkAction>,
    /// The URL of a page that compares the selected rows, if there is one, and how many it can compare.
    #[prop(optional)]
    compare: Option<(&'static str, RangeInclusive<usize>)>,
    /// Changes whenever rows are added or removed.
    #[prop(into)]
    rows: Signal<()>,
    children: Children,
) -> impl IntoView {
    let words = &t().selection;
    let list = NodeRef::<html::Div>::new();
    let selected = RwSignal::new(0_u32);
    let update_count = move || {
        if let Some(list) = list.get_untracked() {
            selected.set(browser::count_selected(&list));
        }
    };
    // A browser may restore the selection from before the page was loaded.
    Effect::new(move |_| {
        rows.track();
        on_next_frame(list, update_count);
    });
    let on_change = move |event: leptos::ev::Event| {
        if let Some(list) = list.get_untracked() {
            browser::apply_select_all(&event, &list);
            update_count();
        }
    };
    // The event fires before the checkboxes are cleared; then the reset button, which has the focus, disappears.
    let on_reset = move |_| {
        on_next_frame(list, move || {
            update_count();
            browser::focus_first(&[".pick-all", ".pick"]);
        });
    };
    let button = |action: BulkAction| {
        let BulkActionRow { label, glyph, key, .. } = bulk_action_row(action);
        view! { <button class="btn btn-sm" name="action" value=action.as_str() data-key=key><Icon glyph=glyph/>{label(t())}</button> }
    };
    let compare = compare.map(|(url, allowed)| {
        // Without scripts the number is unknown, and the page says how many it needs.
        let is_disabled = move || selected.get() > 0 && !allowed.contains(&(selected.get() as usize));
        view! { <button class="btn btn-sm" formaction=url disabled=is_disabled><Icon glyph=Glyph::Compare/>{words.compare}</button> }
    });
    view! {
        <div class="picking" node_ref=list on:change=on_change>
            {children()}
            <form class="pick-bar" id=FORM_ID method="get" action=to on:reset=on_reset>
                <p class="pick-count" role="status">{move || (selected.get() > 0).then(|| words.picked.of(selected.get().into()))}</p>
                <input type="hidden" name="back" value=back/>
                <div class="pick-offers">
                    {compare}
                    {actions.into_iter().map(button).collect_view()}
                    <button type="reset" class="btn btn-sm btn-ghost">{words.none}</button>
                </div>
            </form>
        </div>
    }
    .into_erased()
}

pub(crate) fn row_checkbox(id: String, name: &str) -> AnyView {
    view! { <input class="pick" type="checkbox" name="id" value=id form=FORM_ID aria-label=t().selection.one.of(name)/> }
        .into_erased()
}

pub(crate) fn select_all_checkbox() -> AnyView {
    view! { <input class="pick-all js-only" type="checkbox" autocomplete="off" aria-label=t().selection.all/> }
        .into_erased()
}

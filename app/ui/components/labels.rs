//! Labels as chips.

use leptos::prelude::*;

use crate::domain::labels::Labels;
use crate::ui::erase::Erase;

/// The labels, or a word where there are none.
#[component]
pub(crate) fn LabelChips(labels: Labels, none: &'static str) -> impl IntoView {
    if labels.0.is_empty() {
        return view! { <span class="text-muted">{none}</span> }.erased();
    }
    let chips = labels.0.into_iter().map(|(key, value)| {
        view! { <li class="chip"><span class="text-muted">{key}"="</span><span>{value}</span></li> }
    });
    view! { <ul class="flex flex-wrap gap-1">{chips.collect_view()}</ul> }.erased()
}

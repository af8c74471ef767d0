//! A tile with a value, its name and a note.

use leptos::prelude::*;

use crate::ui::erase::Erase;

/// An item of a list with the classes `tiles tiles-figures`.
#[component]
pub(crate) fn StatTile(
    name: &'static str,
    #[prop(into)] value: String,
    #[prop(optional, into)] note: String,
    #[prop(optional)] hint: Option<&'static str>,
) -> impl IntoView {
    view! {
        <li>
            <div class="tile" title=hint>
                <span class="tile-name">{name}</span>
                <span class="tile-value">{value}</span>
                <span class="tile-note" title=note.clone()>{note.clone()}</span>
                {hint.map(|hint| view! { <span class="sr-only">{hint}</span> })}
            </div>
        </li>
    }
    .into_erased()
}

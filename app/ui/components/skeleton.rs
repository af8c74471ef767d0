//! A placeholder while data is loading; never part of a response, because the server waits for the data.

use leptos::prelude::*;

use crate::ui::erase::Erase;

#[component]
pub(crate) fn Skeleton() -> impl IntoView {
    view! { <div class="skeleton-panel" aria-hidden="true"></div> }.into_erased()
}

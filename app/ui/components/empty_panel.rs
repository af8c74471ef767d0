//! A placeholder for an empty list or panel.

use leptos::prelude::*;

use super::icon::Icon;
use crate::ui::erase::Erase;
use crate::ui::glyph::Glyph;

/// An icon, a title and a text, with links to the next step as `children`.
#[component]
pub(crate) fn EmptyPanel(
    glyph: Glyph,
    title: &'static str,
    #[prop(into)] text: String,
    #[prop(optional)] children: Option<Children>,
) -> impl IntoView {
    view! {
        <div class="empty">
            <span class="empty-icon"><Icon glyph=glyph class="icon-lg"/></span>
            <p class="empty-title">{title}</p>
            <p class="empty-text">{text}</p>
            {children.map(|children| view! { <div class="mt-4 flex flex-wrap justify-center gap-2">{children()}</div> })}
        </div>
    }
    .into_erased()
}

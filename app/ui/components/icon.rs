//! An icon beside a text.

use leptos::prelude::*;

use crate::ui::glyph::Glyph;

/// Hidden from screen readers, because the text has the same meaning.
#[component]
pub(crate) fn Icon(glyph: Glyph, #[prop(default = "icon")] class: &'static str) -> impl IntoView {
    view! {
        <svg class=class viewBox="0 0 16 16" aria-hidden="true">
            <path d=glyph.path()></path>
        </svg>
    }
}

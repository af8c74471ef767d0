//! Buttons that copy text. Without JavaScript they are hidden, and the text beside them can be selected. On a page that
//! is rendered on the server only, a button copies the text of the element before it ([`crate::ui::browser`]).

use std::time::Duration;

use leptos::prelude::*;

use super::icon::Icon;
use crate::ui::browser;
use crate::ui::erase::Erase;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::schedule::after;

#[component]
pub(crate) fn CopyButton(
    #[prop(into)] text: String,
    /// What is copied, for the accessible name.
    #[prop(into)]
    label: String,
    /// Whether the button has a visible text beside its icon.
    #[prop(optional)]
    has_text: bool,
) -> impl IntoView {
    let copied = RwSignal::new(false);
    let common = &t().common;
    let copy = move |_| {
        if browser::copy_to_clipboard(&text) {
            copied.set(true);
            after(Duration::from_secs(2), copied, move || copied.set(false));
        }
    };
    let glyph = move || if copied.get() { Glyph::Check } else { Glyph::Copy };
    view! {
        <button type="button" class="js-only copy-button" class:is-copied=copied aria-label=format!("{}: {label}", common.copy) on:click=copy>
            {move || view! { <Icon glyph=glyph()/> }}
            <span class=if has_text { "" } else { "sr-only" } aria-live="polite">
                {move || if copied.get() { common.copied } else if has_text { common.copy } else { "" }}
            </span>
        </button>
    }
    .into_erased()
}

/// A text with a button that copies all of it: a command or a token.
#[component]
pub(crate) fn CopyBlock(#[prop(into)] text: String, #[prop(into)] label: String) -> impl IntoView {
    view! {
        <div class="copy-block">
            <pre tabindex="0" aria-label=label.clone()><code>{text.clone()}</code></pre>
            <CopyButton text=text label=label has_text=true/>
        </div>
    }
    .into_erased()
}

/// A command with a caption.
#[cfg(feature = "ssr")]
#[component]
pub(crate) fn Command(text: String, label: &'static str) -> impl IntoView {
    view! {
        <figure>
            <figcaption class="block-name">{label}</figcaption>
            <CopyBlock text=text label=label/>
        </figure>
    }
    .into_erased()
}

/// An ID or a digest in full, with a button that copies it.
#[component]
pub(crate) fn IdText(id: String) -> impl IntoView {
    view! {
        <span class="inline-flex items-center gap-1 font-mono text-xs">
            <span class="break-all">{id.clone()}</span>
            <CopyButton text=id label=t().job.id/>
        </span>
    }
    .into_erased()
}

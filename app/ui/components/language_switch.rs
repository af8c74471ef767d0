//! The reader's language: a list and a button; with JavaScript the choice itself sends the form.

use leptos::prelude::*;
use leptos_router::hooks::use_location;

use super::icon::{Glyph, Icon};
use crate::ui::browser;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::prefs::Locale;

/// Every language by its own name. The page is loaded anew in the chosen one.
#[component]
pub(crate) fn LanguageSwitch() -> impl IntoView {
    let words = &t().nav;
    let current = t().locale;
    let path = use_location().pathname;
    let options = Locale::ALL.map(|locale| {
        view! { <option value=locale.tag() lang=locale.tag() selected={locale == current}>{locale.name()}</option> }
    });
    view! {
        <form method="post" action="/ui/language" class="language-switch">
            <input type="hidden" name="next" value=move || path.get()/>
            <Icon glyph=Glyph::Language/>
            <select name="language" aria-label=words.language on:change=|event| browser::submit_form_of(&event)>{options.collect_view()}</select>
            <span class="no-js-only"><button class="btn btn-sm">{words.choose}</button></span>
        </form>
    }
    .erased()
}

//! The theme switch: light, dark, or the theme of the system.

use leptos::prelude::*;
use leptos_router::hooks::use_location;

use super::icon::Icon;
use crate::ui::browser;
use crate::ui::erase::Erase;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::prefs::{Prefs, Theme};

/// A form with one button for each theme.
#[component]
pub(crate) fn ThemeSwitch() -> impl IntoView {
    let words = &t().nav;
    let selected = RwSignal::new(use_context::<Prefs>().map(|prefs| prefs.theme).unwrap_or_default());
    let path = use_location().pathname;
    let buttons = Theme::ALL.into_iter().map(|theme| {
        let (glyph, label) = match theme {
            Theme::Light => (Glyph::Sun, words.theme_light),
            Theme::System => (Glyph::System, words.theme_system),
            Theme::Dark => (Glyph::Moon, words.theme_dark),
        };
        let on_click = move |event: leptos::ev::MouseEvent| {
            event.prevent_default();
            selected.set(theme);
            browser::set_theme(theme);
        };
        view! {
            <button
                name="theme"
                value=theme.as_str()
                aria-label=label
                title=label
                aria-pressed=move || if selected.get() == theme { "true" } else { "false" }
                on:click=on_click
            >
                <Icon glyph=glyph/>
            </button>
        }
    });
    view! {
        <form method="post" action="/ui/preferences">
            <input type="hidden" name="next" value=move || path.get()/>
            <div class="theme-switch" role="group" aria-label=words.theme>{buttons.collect_view()}</div>
        </form>
    }
    .into_erased()
}

//! The user's language, which provides every sentence of the dashboard.

use super::locales::Language;

/// Returns the user's language. Call it before the first `await` of a future, because it reads the context.
#[cfg(feature = "ssr")]
pub(crate) fn t() -> &'static Language {
    use leptos::prelude::use_context;
    let prefs = use_context::<super::prefs::Prefs>();
    Language::of(prefs.map(|prefs| prefs.locale).unwrap_or_default())
}

/// Returns the language that is embedded in the page.
#[cfg(feature = "hydrate")]
pub(crate) fn t() -> &'static Language {
    static LANGUAGE: std::sync::OnceLock<Language> = std::sync::OnceLock::new();
    LANGUAGE.get_or_init(|| Language::read(embedded_strings().leak()))
}

#[cfg(feature = "hydrate")]
fn embedded_strings() -> String {
    let element = leptos::prelude::document().get_element_by_id("words");
    element.and_then(|element| element.get_attribute("data-words")).unwrap_or_default()
}

//! The reader's language. Every sentence of the dashboard comes from here.

use super::locales::Language;

/// The language. Take it before the first `await` of a future.
#[cfg(feature = "ssr")]
pub(crate) fn t() -> &'static Language {
    use leptos::prelude::use_context;
    let prefs = use_context::<super::prefs::Prefs>();
    Language::of(prefs.map(|prefs| prefs.locale).unwrap_or_default())
}

/// The language that came with the page.
#[cfg(feature = "hydrate")]
pub(crate) fn t() -> &'static Language {
    static LANGUAGE: std::sync::OnceLock<Language> = std::sync::OnceLock::new();
    LANGUAGE.get_or_init(|| Language::read(super::browser::embedded_strings().leak()))
}

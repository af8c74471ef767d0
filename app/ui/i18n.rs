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
    LANGUAGE.get_or_init(|| {
        let carried = super::browser::carried_words();
        let Carried { locale, texts } = serde_json::from_str(&carried).unwrap_or_default();
        Language::read(locale, texts)
    })
}

/// A language on its way into a page.
#[derive(Default, serde::Serialize, serde::Deserialize)]
struct Carried<T> {
    locale: super::prefs::Locale,
    texts: Vec<T>,
}

/// The language as JSON, for the page to carry.
#[cfg(feature = "ssr")]
pub(crate) fn carried(language: &Language) -> String {
    let carried = Carried { locale: language.locale, texts: language.list() };
    // As it stands in a script element, nothing in it may end that.
    serde_json::to_string(&carried).expect("plain text").replace('<', "\\u003c")
}

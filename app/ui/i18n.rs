//! The reader's language. Every sentence of the dashboard comes from here.

use leptos::prelude::*;

use super::locales::{EN, Messages};
use super::prefs::{Locale, Prefs};

/// The sentences in the reader's language. Take it before the first `await` of a future.
pub(crate) fn t() -> &'static Messages {
    match use_context::<Prefs>().map(|prefs| prefs.locale).unwrap_or_default() {
        Locale::En => &EN,
    }
}

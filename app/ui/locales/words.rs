//! The sentences by page: structs that the build generates from `app/locales/en.json` (`build/generate.rs`), with its keys.
//! Sentences that only the server renders (`server_pages`) are not in the browser part.

#![expect(clippy::struct_field_names, reason = "keys of a page may begin with its name")]

#[cfg(feature = "ssr")]
use std::sync::LazyLock;

#[cfg(feature = "ssr")]
use super::LoadedLanguage;
use super::sentence::{Count, List, Phrase, Text};
#[cfg(feature = "ssr")]
use crate::ui::prefs::Locale;

include!(concat!(env!("OUT_DIR"), "/words.rs"));

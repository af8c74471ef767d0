//! Every sentence that the dashboard shows, by language and page. A sentence that a language lacks does not compile.
//!
//! The server holds all languages. A page carries the sentences of its own as a list in its document
//! ([`Language::list`], [`Language::read`]), so that the browser's half holds none.
//!
//! Machine words (status words of the API, ids, commands) are not translated; their display words are.

#[cfg(feature = "ssr")]
mod en;
mod numbers;
pub(crate) mod sentence;
pub(crate) mod words;

use std::ops::Deref;

#[cfg(feature = "hydrate")]
use sentence::List;
use sentence::Sentences;
use words::Pages;
#[cfg(feature = "ssr")]
use words::plain::Plain;

use super::prefs::Locale;

/// A language: its sentences, and how it writes numbers and moments ([`super::format`]).
#[derive(Debug)]
pub(crate) struct Language {
    pub locale: Locale,
    pages: Pages,
}

impl Deref for Language {
    type Target = Pages;

    fn deref(&self) -> &Pages {
        &self.pages
    }
}

#[cfg(feature = "ssr")]
static ENGLISH: Language = Language { locale: Locale::En, pages: en::PAGES };

#[cfg(feature = "ssr")]
impl Language {
    /// The language of a locale.
    pub fn of(locale: Locale) -> &'static Self {
        match locale {
            Locale::En | Locale::Es | Locale::Hi | Locale::Ja | Locale::Pt | Locale::Zh => &ENGLISH,
        }
    }

    /// The sentences of the pages that only the server renders.
    pub fn plain(&self) -> &'static Plain {
        match self.locale {
            Locale::En | Locale::Es | Locale::Hi | Locale::Ja | Locale::Pt | Locale::Zh => &en::PLAIN,
        }
    }

    /// Its sentences in a fixed order, for [`Self::read`].
    pub fn list(&self) -> Vec<&'static str> {
        let mut list = Vec::new();
        self.pages.write(&mut list);
        list
    }
}

#[cfg(feature = "hydrate")]
impl Language {
    /// The language of a page, of the list that came with it.
    pub fn read(locale: Locale, texts: Vec<String>) -> Self {
        let mut list = List { locale, texts: texts.into_iter() };
        Self { locale, pages: Pages::read(&mut list) }
    }
}

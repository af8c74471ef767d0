//! Every sentence that the dashboard shows, by language and page. A sentence that a language lacks does not compile.
//!
//! The server holds all languages. A page carries the sentences of its own in its document
//! ([`Language::carried`], [`Language::read`]), so that the browser's half holds none.
//!
//! Machine words (status words of the API, ids, commands) are not translated; their display words are.

/// Puts the modules of a language together: each has the same, and none may lack one.
#[cfg(feature = "ssr")]
macro_rules! language {
    ($locale:expr) => {
        pub(super) use plain::PLAIN;

        pub(super) const PAGES: super::words::Pages = super::words::Pages {
            common: frame::COMMON,
            nav: frame::NAV,
            time: frame::TIME,
            status: frame::STATUS,
            overview: overview::OVERVIEW,
            jobs: jobs::JOBS,
            job: jobs::JOB,
            log: jobs::LOG,
            logs: logs::LOGS,
            work: work::WORK,
            why: why::WHY,
            lanes: work::LANES,
            gallery: work::GALLERY,
            workers: workers::WORKERS,
            worker: workers::WORKER,
            token: token::TOKEN,
            gpus: gpus::GPUS,
            habits: habits::HABITS,
            charts: charts::CHARTS,
            picking: bulk::PICKING,
            flash: frame::FLASH,
            problem: frame::PROBLEM,
        };

        /// A sentence about a number: of one, and of others.
        const fn count(one: super::sentence::Text, other: super::sentence::Text) -> super::sentence::Count {
            super::sentence::Count::new($locale, one, other)
        }
    };
}

#[cfg(feature = "ssr")]
mod en;
#[cfg(feature = "ssr")]
mod es;
#[cfg(feature = "ssr")]
mod hi;
#[cfg(feature = "ssr")]
mod ja;
mod numbers;
#[cfg(feature = "ssr")]
mod pt;
pub(crate) mod sentence;
pub(crate) mod words;
#[cfg(feature = "ssr")]
mod zh;

use std::ops::Deref;

#[cfg(any(feature = "hydrate", test))]
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
impl Language {
    /// The language of a locale.
    pub fn of(locale: Locale) -> &'static Self {
        const fn new(locale: Locale, pages: Pages) -> Language {
            Language { locale, pages }
        }
        static EN: Language = new(Locale::En, en::PAGES);
        static ES: Language = new(Locale::Es, es::PAGES);
        static HI: Language = new(Locale::Hi, hi::PAGES);
        static JA: Language = new(Locale::Ja, ja::PAGES);
        static PT: Language = new(Locale::Pt, pt::PAGES);
        static ZH: Language = new(Locale::Zh, zh::PAGES);
        match locale {
            Locale::En => &EN,
            Locale::Es => &ES,
            Locale::Hi => &HI,
            Locale::Ja => &JA,
            Locale::Pt => &PT,
            Locale::Zh => &ZH,
        }
    }

    /// The sentences of the pages that only the server renders.
    pub fn plain(&self) -> &'static Plain {
        match self.locale {
            Locale::En => &en::PLAIN,
            Locale::Es => &es::PLAIN,
            Locale::Hi => &hi::PLAIN,
            Locale::Ja => &ja::PLAIN,
            Locale::Pt => &pt::PLAIN,
            Locale::Zh => &zh::PLAIN,
        }
    }

    /// Its sentences in a fixed order.
    fn list(&self) -> Vec<&'static str> {
        let mut list = Vec::new();
        self.pages.write(&mut list);
        list
    }

    /// What a page carries for [`Self::read`]: the tag and the sentences, one a line.
    pub fn carried(&self) -> String {
        format!("{}\n{}", self.locale.tag(), self.list().join("\n"))
    }
}

#[cfg(any(feature = "hydrate", test))]
impl Language {
    /// The language of a page, of what it carries.
    pub fn read(carried: &str) -> Self {
        let mut lines = carried.split('\n');
        let locale = lines.next().and_then(Locale::parse).unwrap_or_default();
        Self { locale, pages: Pages::read(&mut List { locale, lines }) }
    }
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// All sentences of a language, those of plain pages too.
    fn all(locale: Locale) -> Vec<&'static str> {
        let language = Language::of(locale);
        let mut list = language.list();
        language.plain().write(&mut list);
        list
    }

    fn places(sentence: &str) -> BTreeSet<&str> {
        sentence.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(place, _)| place).collect()
    }

    #[test]
    fn a_page_reads_what_the_server_wrote() {
        for locale in Locale::ALL {
            let written = Language::of(locale);
            let read = Language::read(&written.carried());
            assert_eq!((read.locale, read.list()), (locale, written.list()));
        }
    }

    #[test]
    fn every_language_has_the_places_of_every_sentence() {
        let english = all(Locale::En);
        for locale in Locale::ALL {
            for (index, sentence) in all(locale).into_iter().enumerate() {
                let (has, needs) = (places(sentence), places(english[index]));
                // The form for one may leave the number out, and is empty in a language without it.
                let follows = english.get(index + 1).is_some_and(|next| places(next).contains("0"));
                let is_first_form =
                    follows && (sentence.is_empty() || has.iter().all(|place| *place == "0" || needs.contains(place)));
                assert!(has == needs || is_first_form, "{locale:?}: {sentence:?} for {:?}", english[index]);
            }
        }
    }

    #[test]
    fn no_language_leaves_a_sentence_in_english() {
        let english = all(Locale::En);
        for locale in Locale::ALL.into_iter().skip(1) {
            for (sentence, english) in all(locale).into_iter().zip(&english) {
                let is_sentence = english.split(' ').filter(|word| word.chars().all(char::is_alphabetic)).count() > 2;
                assert!(!is_sentence || sentence != *english, "{locale:?}: {sentence:?}");
            }
        }
    }
}

//! Every sentence that the dashboard shows, by language and page.
//!
//! They are in `app/locales/*.json`; a language that lacks one does not compile. The server contains all languages. A
//! document contains the sentences of its own language ([`Language::embedded`], [`Language::read`]), so that the
//! browser part contains none.
//!
//! Words of the API, ids and commands are not translated; the labels that are shown for them are.

mod numbers;
#[cfg(feature = "ssr")]
mod plural_category;
mod plurals;
pub(crate) mod sentence;
pub(crate) mod words;

use std::ops::Deref;

use sentence::List;
use words::Pages;
#[cfg(feature = "ssr")]
use words::ServerPages;

use super::prefs::Locale;

/// A language: its sentences, and how it writes numbers and times ([`super::format`]).
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

impl Language {
    fn new(locale: Locale, lines: &'static str) -> Self {
        Self { locale, pages: Pages::read(&mut List::new(locale, lines)) }
    }

    /// Reads the language from the text in a document.
    #[cfg(any(feature = "hydrate", test))]
    pub fn read(embedded: &'static str) -> Self {
        let (tag, lines) = embedded.split_once('\n').unwrap_or_default();
        Self::new(Locale::parse(tag).unwrap_or_default(), lines)
    }
}

/// All sentences of a language, in the server.
#[cfg(feature = "ssr")]
pub(crate) struct LoadedLanguage {
    language: Language,
    server_pages: ServerPages,
    /// The sentences of the language, one a line.
    live_lines: &'static str,
    #[cfg(test)]
    server_page_lines: &'static str,
}

#[cfg(feature = "ssr")]
impl LoadedLanguage {
    fn new(locale: Locale, live_lines: &'static str, server_page_lines: &'static str) -> Self {
        Self {
            language: Language::new(locale, live_lines),
            server_pages: ServerPages::read(&mut List::new(locale, server_page_lines)),
            live_lines,
            #[cfg(test)]
            server_page_lines,
        }
    }
}

#[cfg(feature = "ssr")]
impl Language {
    /// The language of a locale.
    pub fn of(locale: Locale) -> &'static Self {
        &words::loaded(locale).language
    }

    /// The sentences of the pages that only the server renders.
    pub fn server_pages(&self) -> &'static ServerPages {
        &words::loaded(self.locale).server_pages
    }

    /// Returns the text that a document contains for [`Self::read`]: the tag, and one sentence per line.
    pub fn embedded(&self) -> String {
        format!("{}\n{}", self.locale.tag(), words::loaded(self.locale).live_lines)
    }
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;

    /// All sentences of a language, those of server-rendered pages too, with the plural forms of each.
    fn all(locale: Locale) -> Vec<&'static str> {
        let loaded = words::loaded(locale);
        loaded.live_lines.split('\n').chain(loaded.server_page_lines.split('\n')).collect()
    }

    #[test]
    fn page_reads_the_sentences_that_the_server_embeds() {
        for locale in Locale::ALL {
            let written = Language::of(locale);
            let read = Language::read(written.embedded().leak());
            assert_eq!(format!("{read:?}"), format!("{written:?}"));
            assert_eq!(read.problem.request_id.of("r"), written.problem.request_id.of("r"), "no sentence is left");
        }
    }

    #[test]
    fn chinese_stands_apart_from_latin_letters_and_numbers() {
        let is_chinese = |letter: char| ('\u{3400}'..='\u{9fff}').contains(&letter);
        let is_latin = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        for sentence in all(Locale::Zh) {
            let letters: Vec<char> = sentence.chars().collect();
            // The name of a month goes into a date, which has no blanks.
            if letters.len() <= 3 && letters.ends_with(&['月']) {
                continue;
            }
            for pair in letters.windows(2) {
                let lacks_blank = is_latin(pair[0]) && is_chinese(pair[1]) || is_chinese(pair[0]) && is_latin(pair[1]);
                let counts = pair[0] == '}' && "个次行项条步位处天".contains(pair[1]);
                assert!(!lacks_blank && !counts, "{sentence}: a blank is missing in {pair:?}");
            }
        }
    }

    #[test]
    fn no_language_leaves_a_sentence_in_english() {
        let english = all(Locale::En);
        for locale in Locale::ALL.into_iter().skip(1) {
            for (sentence, english) in all(locale).into_iter().zip(&english) {
                let is_sentence = english.split(' ').filter(|word| word.chars().all(char::is_alphabetic)).count() > 2;
                let is_english = sentence.split('\t').any(|form| english.split('\t').any(|english| english == form));
                assert!(!is_sentence || !is_english, "{locale:?}: {sentence:?}");
            }
        }
    }
}

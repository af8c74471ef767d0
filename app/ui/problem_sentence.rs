//! The sentences of problems, in each language. The build generates a variant for each key of `server_pages.problems`,
//! with a field for each placeholder.

use super::locales::Language;
pub use super::locales::words::ProblemSentence;
use super::prefs::Locale;

impl ProblemSentence {
    /// Returns the problem's code: the key of the sentence, or of its group.
    pub fn code(&self) -> &'static str {
        Self::KEYS.get(self.parts().0).map_or("", |key| code_of(key))
    }

    /// Returns the sentence in this language.
    pub fn text(&self, locale: Locale) -> String {
        Language::of(locale).server_pages().problems.of(self)
    }

    /// Returns the codes that have a sentence, in the order of the file; a code with several is repeated.
    pub fn codes() -> impl Iterator<Item = &'static str> {
        Self::KEYS.into_iter().map(code_of)
    }
}

fn code_of(key: &'static str) -> &'static str {
    key.split_once('.').map_or(key, |(code, _)| code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_has_its_values_in_every_language() {
        let changed = ProblemSentence::ConfigChangedByUser {
            user: "lea".to_owned(),
            name: "digits".to_owned(),
            seen: "17".to_owned(),
            newest: "23".to_owned(),
        };
        assert_eq!(changed.code(), "config_changed");
        for locale in Locale::ALL {
            let text = changed.text(locale);
            assert!(["lea", "digits", "17", "23"].into_iter().all(|value| text.contains(value)), "{locale:?}: {text}");
            assert!(!text.contains(['{', '}']), "{locale:?}: {text}");
        }
    }

    #[test]
    fn named_places_are_filled_in_the_order_of_each_language() {
        let sentence = ProblemSentence::InvalidJsonWord {
            path: "target".to_owned(),
            found: "`moon`".to_owned(),
            allowed: "`auto`".to_owned(),
        };
        assert_eq!(sentence.text(Locale::En), "`target` cannot be `moon`. Allowed: `auto`.");
        let japanese = sentence.text(Locale::Ja);
        assert!(japanese.contains("`target`") && japanese.contains("`moon`"), "{japanese}");
    }
}

//! Why a question for workers is not understood.

use app::domain::roster::query::{KEYS, LONGEST, Misread};

/// As a sentence.
pub fn in_words(misread: &Misread) -> String {
    match misread {
        Misread::Key(word) => {
            format!(
                "{word:?} asks for nothing that is known. What can be asked for: {KEYS}. In quotes it is looked for as it is."
            )
        }
        Misread::Value { word, allowed } => format!("{word:?} is not understood. It takes one of these: {allowed}."),
        Misread::Empty(word) => format!("After {word:?} something is missing."),
        Misread::Quote(word) => format!("A quotation mark is open before {word:?}."),
        Misread::Long => format!("The question has more than {LONGEST} characters."),
    }
}

/// The same for who says it in another language.
pub fn parts(misread: &Misread) -> impl Iterator<Item = (&'static str, &str)> {
    let (why, word, allowed) = match misread {
        Misread::Key(word) => ("key", word.as_str(), KEYS),
        Misread::Value { word, allowed } => ("value", word.as_str(), allowed.as_str()),
        Misread::Empty(word) => ("empty", word.as_str(), ""),
        Misread::Quote(word) => ("quote", word.as_str(), ""),
        Misread::Long => ("long", "", ""),
    };
    [("why", why), ("word", word), ("allowed", allowed)].into_iter()
}

//! The keys' suffixes of plural forms. Used by the server and by the build script.

use icu_plurals::PluralCategory;

/// Returns the name of a category by CLDR.
pub fn category_name(category: PluralCategory) -> &'static str {
    match category {
        PluralCategory::Zero => "zero",
        PluralCategory::One => "one",
        PluralCategory::Two => "two",
        PluralCategory::Few => "few",
        PluralCategory::Many => "many",
        PluralCategory::Other => "other",
    }
}

//! The plural form of a number by the Unicode Common Locale Data Repository (CLDR).

use super::words::FORMS;
use crate::ui::prefs::Locale;

/// Returns the index of the form in [`FORMS`].
#[cfg(feature = "ssr")]
pub(super) fn form(locale: Locale, count: u64) -> usize {
    use icu_locale_core::LanguageIdentifier;
    use icu_plurals::{PluralRules, PluralRulesOptions};

    use super::plural_category::category_name;

    let language = locale.tag().parse::<LanguageIdentifier>().expect("tags are well formed");
    // Creating the rules allocates nothing.
    let rules = PluralRules::try_new((&language).into(), PluralRulesOptions::default()).expect("compiled data");
    form_index(category_name(rules.category_for(count)))
}

/// Returns the index of the form in [`FORMS`]. Browsers implement CLDR's rules.
#[cfg(not(feature = "ssr"))]
pub(super) fn form(locale: Locale, count: u64) -> usize {
    use std::cell::OnceCell;

    use js_sys::Intl::PluralRules;
    use js_sys::{Array, Object};

    thread_local!(static RULES: OnceCell<PluralRules> = const { OnceCell::new() });
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    let count = count as f64;
    // A page has one language.
    RULES.with(|rules| {
        let rules = rules.get_or_init(|| PluralRules::new(&Array::of1(&locale.tag().into()), &Object::new()));
        form_index(&String::from(rules.select(count)))
    })
}

fn form_index(form: &str) -> usize {
    FORMS.iter().position(|known| *known == form).unwrap_or_default()
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Numbers with another form than `other`, by language and form. A page test compares browsers with it, too.
    const EXPECTED: &str = include_str!("../../../end2end/plural-forms.json");

    #[test]
    fn plural_rules_match_cldr() {
        let expected: BTreeMap<&str, BTreeMap<&str, Vec<u64>>> = serde_json::from_str(EXPECTED).expect("forms");
        assert_eq!(expected.len(), Locale::ALL.len());
        for locale in Locale::ALL {
            let numbers = &expected[locale.tag()];
            for count in (0..=1_000).chain([1_000_000, 1_000_001, 1_500_000, 2_000_000]) {
                let special = numbers.iter().find(|(_, numbers)| numbers.contains(&count)).map(|(form, _)| *form);
                assert_eq!(FORMS[form(locale, count)], special.unwrap_or("other"), "{locale:?} {count}");
            }
        }
    }
}

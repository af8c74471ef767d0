//! Generates `words.rs` (the structs) and two text files per language (one sentence per line) from
//! `app/locales/*.json`.

mod catalog;
mod check;
mod generate;
#[cfg(feature = "ssr")]
#[path = "../app/ui/locales/plural_category.rs"]
mod plural_category;
mod variants;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use catalog::Catalog;

const FOLDER: &str = "app/locales";

/// The build step. Prints all problems as Cargo errors.
pub fn build() {
    let problems = languages().and_then(|languages| write(&languages, &out_dir()));
    let Err(problems) = problems else { return };
    for problem in problems {
        println!("cargo::error={problem}");
    }
    // Cargo requires an exit code besides the error.
    std::process::exit(1);
}

fn out_dir() -> PathBuf {
    env::var_os("OUT_DIR").expect("Cargo sets it").into()
}

/// Reads English, and for the server all languages: the browser part only needs the structs.
fn languages() -> Result<Vec<Catalog>, Vec<String>> {
    let english = Catalog::read(Path::new(FOLDER), "en").map_err(|problem| vec![problem])?;
    if !cfg!(feature = "ssr") {
        return Ok(vec![english]);
    }
    let mut names: Vec<String> = fs::read_dir(FOLDER)
        .map_err(|error| vec![format!("{FOLDER}: {error}")])?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.strip_suffix(".json").map(str::to_owned))
        .collect();
    names.sort();
    let (mut languages, mut problems) = (Vec::new(), Vec::new());
    for name in names {
        match Catalog::read(Path::new(FOLDER), &name) {
            Ok(language) => {
                problems.extend(check::problems(&english, &language, &plural_forms(&name)));
                languages.push(language);
            }
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() { Ok(languages) } else { Err(problems) }
}

/// Returns the plural categories of a language by CLDR.
#[cfg(feature = "ssr")]
fn plural_forms(language: &str) -> Vec<&'static str> {
    use icu_plurals::{PluralRules, PluralRulesOptions};

    let locale: icu_locale_core::LanguageIdentifier =
        language.parse().unwrap_or_else(|_| panic!("{FOLDER}/{language}.json is not named by a language tag"));
    let rules =
        PluralRules::try_new((&locale).into(), PluralRulesOptions::default()).expect("rules for every language");
    rules.categories().map(plural_category::category_name).collect()
}

#[cfg(not(feature = "ssr"))]
fn plural_forms(_: &str) -> Vec<&'static str> {
    Vec::new()
}

fn write(languages: &[Catalog], folder: &Path) -> Result<(), Vec<String>> {
    let english = languages.iter().find(|language| language.name == "en").expect("English was read first");
    let put = |name: &str, text: String| {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|error| vec![format!("{}: {error}", path.display())])
    };
    put("words.rs", generate::structs(english, languages))?;
    for language in languages {
        let (live, server_pages) = generate::lines(english, language);
        put(&format!("{}.live.txt", language.name), live)?;
        put(&format!("{}.server_pages.txt", language.name), server_pages)?;
    }
    Ok(())
}

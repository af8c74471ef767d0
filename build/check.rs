//! Compares a language with English.

use std::collections::{BTreeMap, BTreeSet};

use super::catalog::{Catalog, Sentence};

/// The placeholder of a plural's number.
const COUNT: &str = "count";
/// Forms that may omit the number: "one job".
const MAY_OMIT_COUNT: [&str; 3] = ["zero", "one", "two"];

/// Returns all problems of a language with file and key. `forms` are its plural categories by CLDR.
pub fn problems(english: &Catalog, language: &Catalog, forms: &[&str]) -> Vec<String> {
    let file = format!("app/locales/{}.json", language.name);
    let actual: BTreeMap<String, &Sentence> = language.sentences().into_iter().collect();
    let required: BTreeMap<String, &Sentence> = english.sentences().into_iter().collect();
    let mut problems = Vec::new();
    for (key, expected) in &required {
        match actual.get(key) {
            None => problems.push(format!("{file}: {key} is missing")),
            Some(sentence) => {
                let invalid = sentence_problems(expected, sentence, forms);
                problems.extend(invalid.into_iter().map(|(form, problem)| match form {
                    "" => format!("{file}: {key} {problem}"),
                    form => format!("{file}: {key}_{form} {problem}"),
                }));
            }
        }
    }
    let unknown = actual.keys().filter(|key| !required.contains_key(*key));
    problems.extend(unknown.map(|key| format!("{file}: {key} is not in en.json")));
    problems
}

/// Returns the problems of a sentence by plural form.
fn sentence_problems<'a>(expected: &Sentence, sentence: &'a Sentence, forms: &[&'a str]) -> Vec<(&'a str, String)> {
    match (expected, sentence) {
        (Sentence::Text(expected), Sentence::Text(text)) => {
            placeholder_problem(&placeholders(expected).unwrap_or_default(), text)
                .map(|problem| ("", problem))
                .into_iter()
                .collect()
        }
        (Sentence::Plural(expected), Sentence::Plural(actual)) => {
            let required = expected.iter().flat_map(|(_, text)| placeholders(text).unwrap_or_default());
            let mut required: BTreeSet<&str> = required.collect();
            required.insert(COUNT);
            let missing = forms.iter().filter(|form| actual.iter().all(|(other, _)| other != *form));
            let missing =
                missing.map(|form| (*form, "is missing: CLDR has this plural form for the language".to_owned()));
            let invalid = actual.iter().filter_map(|(form, text)| {
                if !forms.contains(form) {
                    return Some((*form, "is a plural form that CLDR does not have for the language".to_owned()));
                }
                let mut required = required.clone();
                if MAY_OMIT_COUNT.contains(form) && !text.contains("{{count}}") {
                    required.remove(COUNT);
                }
                placeholder_problem(&required, text).map(|problem| (*form, problem))
            });
            missing.chain(invalid).collect()
        }
        (Sentence::Text(_), Sentence::Plural(_)) => {
            vec![("", "has plural forms, and in en.json it has none".to_owned())]
        }
        (Sentence::Plural(_), Sentence::Text(_)) => vec![("", "has no plural forms, and in en.json it has".to_owned())],
    }
}

fn placeholder_problem(required: &BTreeSet<&str>, text: &str) -> Option<String> {
    if text.is_empty() || text.contains(['\n', '\t']) {
        return Some("is empty, or has a line break or a tab".to_owned());
    }
    let Some(actual) = placeholders(text) else {
        return Some("has a brace outside of the placeholders {{0}}, {{1}}, …, {{count}} or {{a_name}}".to_owned());
    };
    let listed = |placeholders: Vec<&&str>| {
        placeholders.iter().map(|placeholder| format!("{{{{{placeholder}}}}}")).collect::<Vec<_>>().join(", ")
    };
    let missing: Vec<_> = required.difference(&actual).collect();
    let unknown: Vec<_> = actual.difference(required).collect();
    match (missing.is_empty(), unknown.is_empty()) {
        (false, _) => Some(format!("lacks {}", listed(missing))),
        (true, false) => Some(format!("has {}, which en.json does not have", listed(unknown))),
        (true, true) => None,
    }
}

/// Returns the placeholders of a sentence, or `None` if it has other braces.
pub fn placeholders(text: &str) -> Option<BTreeSet<&str>> {
    Some(placeholders_in_order(text)?.into_iter().collect())
}

/// Returns the placeholders of a sentence as they first occur, or `None` if it has other braces.
pub fn placeholders_in_order(text: &str) -> Option<Vec<&str>> {
    let (mut found, mut rest) = (Vec::new(), text);
    while let Some((before, after)) = rest.split_once("{{") {
        let (placeholder, after_placeholder) = after.split_once("}}")?;
        if !(is_number(placeholder) || is_name(placeholder)) || before.contains(['{', '}']) {
            return None;
        }
        if !found.contains(&placeholder) {
            found.push(placeholder);
        }
        rest = after_placeholder;
    }
    (!rest.contains(['{', '}'])).then_some(found)
}

fn is_number(placeholder: &str) -> bool {
    placeholder.len() == 1 && placeholder.as_bytes()[0].is_ascii_digit()
}

fn is_name(placeholder: &str) -> bool {
    placeholder.starts_with(|c: char| c.is_ascii_lowercase())
        && placeholder.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

//! The tests and files that docs/asvs.md names exist, and each requirement is listed once.

use std::collections::BTreeSet;
use std::fs;

use super::{everything, root};

const RESULTS: [&str; 4] = ["met", "partly", "not met", "n.a."];
/// How many requirements of levels 1 and 2 each chapter has that applies.
const CHAPTERS: [(&str, usize); 15] = [
    ("1", 27),
    ("2", 11),
    ("3", 19),
    ("4", 10),
    ("5", 9),
    ("6", 35),
    ("7", 18),
    ("8", 7),
    ("9", 7),
    ("11", 14),
    ("12", 9),
    ("13", 13),
    ("14", 9),
    ("15", 13),
    ("16", 16),
];

/// The cells of every row that is about a requirement.
fn rows(text: &str) -> Vec<Vec<&str>> {
    let rows = text.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    let cells = rows.map(|row| row.split(" | ").collect::<Vec<_>>());
    cells
        .filter(|cells| cells[0].split('.').count() == 3 && cells[0].starts_with(|c: char| c.is_ascii_digit()))
        .collect()
}

/// What is wrong with a row.
fn fault(cells: &[&str], tests: &[String]) -> Option<String> {
    let [number, _, result, evidence] = cells else { return Some("has not four cells".to_owned()) };
    if !RESULTS.contains(result) {
        return Some(format!("{number}: {result:?} is not a result"));
    }
    if evidence.trim().is_empty() {
        return Some(format!("{number} gives neither a test nor a reason"));
    }
    let names = evidence.split('`').skip(1).step_by(2);
    // Words without an underscore are flags, headers and types.
    let is_name = |name: &str| name.contains('_') && name.bytes().all(|c| c == b'_' || c.is_ascii_alphanumeric());
    let is_path = |name: &str| name.contains(['/', '.']) && !name.contains(' ');
    let missing = names.filter(|name| {
        (is_path(name) && !root().join(name).exists())
            || (is_name(name) && !tests.iter().any(|text| is_test(text, name)))
    });
    let missing: Vec<_> = missing.collect();
    (!missing.is_empty()).then(|| format!("{number} names what does not exist: {missing:?}"))
}

/// Whether it is declared as a test there: right below its attribute, as the formatter leaves it.
fn is_test(text: &str, name: &str) -> bool {
    let found = text.match_indices(&format!("fn {name}(")).any(|(at, _)| {
        let before = &text[..at];
        let declared = before.rfind("#[test]").into_iter().chain(before.rfind("#[tokio::test")).max();
        declared.is_some_and(|start| !before[start..].contains('}'))
    });
    found || text.contains(&format!("fn {name}<"))
}

#[test]
fn every_requirement_names_what_exists() {
    let text = fs::read_to_string(root().join("docs/asvs.md")).expect("docs/asvs.md");
    let tests: Vec<String> = everything().into_iter().map(|(_, text)| text).collect();
    let rows = rows(&text);
    let broken: Vec<_> = rows.iter().filter_map(|cells| fault(cells, &tests)).collect();
    super::report(&broken);
    let numbers: BTreeSet<&str> = rows.iter().map(|cells| cells[0]).collect();
    assert_eq!(numbers.len(), rows.len(), "each is listed once");
    for (chapter, count) in CHAPTERS {
        let of_chapter = numbers.iter().filter(|number| number.split('.').next() == Some(chapter)).count();
        assert_eq!(of_chapter, count, "chapter V{chapter}");
    }
}

#[test]
fn rows_without_an_existing_test_are_found() {
    let tests = ["#[test]\nfn this_is_a_test() {}\nfn this_is_not_one() {}".to_owned()];
    let fault = |result, evidence| fault(&["1.1.1", "x", result, evidence], &tests);
    assert_eq!(fault("met", "`this_is_a_test` in `docs/asvs.md`, with `--flag` and `name`"), None);
    for (result, evidence) in [
        ("met", " "),
        ("fine", "x"),
        ("met", "`this_is_not_one`"),
        ("met", "`there_is_no_such_test`"),
        ("met", "`docs/none.md`"),
    ] {
        assert!(fault(result, evidence).is_some(), "{result} {evidence}");
    }
}

//! What the build reports about an incomplete language, and the Rust code that it generates.

#[path = "../../build/catalog.rs"]
mod catalog;
#[path = "../../build/check.rs"]
mod check;
#[path = "../../build/generate.rs"]
mod generate;
#[path = "../../build/variants.rs"]
mod variants;

use std::path::Path;

use catalog::{Catalog, Sentence};

const ENGLISH: &str = r#"{
    "jobs": { "title": "Jobs", "of": "{{0}} of {{1}}", "total_one": "1 job of {{0}}", "total_other": "{{count}} jobs of {{0}}" },
    "server_pages": { "login": { "title": "Sign in" }, "problems": { "taken": { "job": "Job {{id}} of {{user}}" } } }
}"#;

fn read(name: &str, text: &str) -> Catalog {
    Catalog::parse(name, text).expect("an object of sentences")
}

/// The problems of a German catalog: the English one with this text replaced.
fn problems_after(line: &str, instead: &str) -> Vec<String> {
    assert!(ENGLISH.contains(line), "{line}");
    check::problems(&read("en", ENGLISH), &read("de", &ENGLISH.replace(line, instead)), &["one", "other"])
}

#[test]
fn incomplete_language_is_an_error_with_file_and_key() {
    assert!(problems_after("Jobs", "Aufträge").is_empty());
    let problems = |line, instead| problems_after(line, instead).join("\n");
    assert_eq!(problems(r#""title": "Jobs", "#, ""), "app/locales/de.json: jobs.title is missing");
    assert_eq!(
        problems(r#""title": "Jobs""#, r#""title": "Jobs", "more": "x""#),
        "app/locales/de.json: jobs.more is not in en.json"
    );
    assert_eq!(problems("{{0}} of {{1}}", "{{1}}"), "app/locales/de.json: jobs.of lacks {{0}}");
    assert_eq!(
        problems("Jobs", "Jobs {{0}}"),
        "app/locales/de.json: jobs.title has {{0}}, which en.json does not have"
    );
    assert_eq!(
        problems("{{count}} jobs of {{0}}", "jobs of {{0}}"),
        "app/locales/de.json: jobs.total_other lacks {{count}}"
    );
    assert_eq!(problems("{{id}} of", "of"), "app/locales/de.json: server_pages.problems.taken.job lacks {{id}}");
    assert_eq!(problems("Jobs", ""), "app/locales/de.json: jobs.title is empty, or has a line break or a tab");
    for broken in ["{0} of {{1}}", "{{0}} of {{1}", "{{0}} of {{1}}}", "{{A}}"] {
        assert!(problems("{{0}} of {{1}}", broken).contains("de.json: jobs.of has a brace"), "{broken}");
    }
}

#[test]
fn plural_forms_are_those_of_the_language() {
    let english = read("en", ENGLISH);
    let forms = |forms: &[&str]| check::problems(&english, &read("en", ENGLISH), forms).join("\n");
    assert_eq!(
        forms(&["other"]),
        "app/locales/en.json: jobs.total_one is a plural form that CLDR does not have for the language"
    );
    assert!(forms(&["one", "few", "other"]).contains("jobs.total_few is missing"));
    let without = read("de", &ENGLISH.replace(r#""total_one": "1 job of {{0}}", "total_other""#, r#""total""#));
    let problems = check::problems(&english, &without, &["one", "other"]);
    assert_eq!(problems, ["app/locales/de.json: jobs.total has no plural forms, and in en.json it has"]);
}

#[test]
fn keys_are_unique_and_lowercase() {
    for (text, expected) in [
        (r#"{"a": "x", "a": "y"}"#, "two of the key a"),
        (r#"{"a": "x", "a_other": "y"}"#, "a: this key occurs twice"),
        (r#"{"a": {"B": "x"}}"#, "a.B: a key has only lower-case letters"),
        (r#"{"a": 1}"#, "a sentence or an object"),
    ] {
        let problem = Catalog::parse("en", text).err().unwrap_or_default();
        assert!(problem.contains(expected), "{problem}");
    }
}

#[test]
fn sentences_travel_in_the_order_of_english() {
    let (english, spanish) = (
        read("en", ENGLISH),
        read(
            "es",
            r#"{
                "server_pages": { "problems": { "taken": { "job": "{{user}}: {{id}}" } }, "login": { "title": "T" } },
                "jobs": {
                    "total_many": "{{count}} de x de {{0}}", "total_one": "{{count}} x de {{0}}",
                    "total_other": "{{count}} x de {{0}}", "of": "{{1}}, {{0}}", "title": "J"
                }
            }"#,
        ),
    );
    let expected = ("J\n{1}, {0}\n{0} x de {1}\t\t{0} de x de {1}".to_owned(), "T\n{1}: {0}".to_owned());
    assert_eq!(generate::lines(&english, &spanish), expected);
    assert_eq!(generate::lines(&english, &english).0, "Jobs\n{0} of {1}\n{0} jobs of {1}\t1 job of {1}");
}

#[test]
fn a_problem_has_a_variant_with_its_placeholders() {
    let code = generate::structs(&read("en", ENGLISH), &[]);
    for line in ["    TakenJob { id: String, user: String },", "KEYS: [&'static str; 1] = [\"taken.job\"];"] {
        assert!(code.contains(line), "{line}: {code}");
    }
}

#[test]
fn structs_have_the_keys_of_english() {
    let english = Catalog::read(Path::new("app/locales"), "en").expect("it is there");
    let code = generate::structs(&english, &[]);
    for line in [
        "pub(crate) struct Pages {",
        "    pub jobs: Jobs,",
        "pub(crate) struct ServerPagesLogin {",
        "    pub total: Count,",
    ] {
        assert!(code.contains(line), "{line}");
    }
}

/// The labels of the dashboard that the documents name, by their keys.
const NAMED_LABELS: [&str; 5] =
    ["nav.administration", "nav.workers", "workers.create", "nav.train", "status.target_worker"];

fn label(catalog: &Catalog, key: &str) -> String {
    let found = catalog.sentences().into_iter().find_map(|(sentence_key, sentence)| match sentence {
        Sentence::Text(text) if sentence_key == key => Some(text.clone()),
        _ => None,
    });
    found.expect("a label")
}

#[test]
fn labels_that_the_documents_name_are_those_of_each_language() {
    let languages = ["en", "es", "hi", "ja", "pt", "zh"]
        .map(|name| Catalog::read(Path::new("app/locales"), name).expect("a language"));
    let row = |key: &&str| {
        format!("| {} |\n", languages.iter().map(|language| label(language, key)).collect::<Vec<_>>().join(" | "))
    };
    let rows: String = NAMED_LABELS.iter().map(row).collect();
    let document = std::fs::read_to_string("docs/WORKER.md").expect("the document");
    assert!(document.contains(&rows), "docs/WORKER.md lacks these rows:\n{rows}");
}

#[test]
fn chinese_calls_a_worker_as_its_product_documents_do() {
    let chinese = std::fs::read_to_string("app/locales/zh.json").expect("the language");
    assert!(chinese.contains("Worker") && !chinese.contains("节点"), "app/locales/zh.json: a worker is 'Worker'");
}

//! The documents: their length, the words that they avoid, and the records of decisions.

use std::fs;
use std::path::{Path, PathBuf};

use super::{report, root, sources};

const MAX_WORDS: [(&str, usize); 2] = [("README.md", 1_000), ("ARCHITECTURE.md", 2_500)];
const GLOSSARY: &str = "docs/GLOSSARY.md";

/// The Markdown files of a directory, without those below it.
pub fn in_directory(path: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(path)).expect("a directory");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "md"));
    files.sort();
    files
}

fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(root().join(path)).expect("a document")
}

/// The text outside of code blocks and inline code.
fn prose(text: &str) -> String {
    let blocks: Vec<&str> = text.split("```").step_by(2).collect();
    let inline: Vec<String> =
        blocks.iter().map(|block| block.split('`').step_by(2).collect::<Vec<_>>().join(" ` ")).collect();
    inline.join(" ` ")
}

/// Words in lower case. What stands for code separates them.
fn words(prose: &str) -> Vec<String> {
    let is_word = |c: char| c.is_alphanumeric() || "-_'`".contains(c);
    prose.split(|c| !is_word(c)).filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

/// The left column of the glossary's last table.
fn forbidden(glossary: &str) -> Vec<Vec<String>> {
    let (_, list) = glossary.split_once("## Do not use").expect("the list");
    let cells = list.lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
    cells.flat_map(|cell| cell.split('`').step_by(2)).map(words).filter(|phrase| !phrase.is_empty()).collect()
}

fn forbidden_in(text: &str, forbidden: &[Vec<String>]) -> Vec<String> {
    let words = words(&prose(text));
    let contains = |phrase: &&Vec<String>| words.windows(phrase.len()).any(|window| window == phrase.as_slice());
    forbidden.iter().filter(contains).map(|phrase| phrase.join(" ")).collect()
}

#[test]
fn documents_use_no_word_that_the_glossary_forbids() {
    let forbidden = forbidden(&read(GLOSSARY));
    assert!(forbidden.len() > 30, "{forbidden:?}");
    let top = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"]
        .map(|name| root().join(name));
    let below = ["docs", "docs/decisions", "docs/screens"].into_iter().flat_map(in_directory);
    let mut broken = Vec::new();
    for document in top.into_iter().chain(below) {
        let name = document.strip_prefix(root()).expect("below the root").display().to_string();
        let found = forbidden_in(&read(&document), &forbidden);
        broken.extend(found.iter().map(|word| format!("{name}: {word:?}: see \"Do not use\" in {GLOSSARY}")));
    }
    report(&broken);
}

fn all_sources() -> impl Iterator<Item = (String, String)> {
    ["app", "benches", "build", "prove/crash_points", "prove/model", "src", "tests"].into_iter().flat_map(sources)
}

/// Words of the glossary's list that comments may use: the code's own name for a sign-in, `log in` as in "the log in
/// bytes", and receivers that are gone.
const ALLOWED_IN_COMMENTS: [&str; 6] = ["login", "logins", "log in", "logs in", "is gone", "are gone"];

#[test]
fn comments_use_no_word_that_the_glossary_forbids() {
    let mut forbidden = forbidden(&read(GLOSSARY));
    forbidden.retain(|phrase| !ALLOWED_IN_COMMENTS.contains(&phrase.join(" ").as_str()));
    let mut broken = Vec::new();
    for (path, text) in all_sources() {
        for (number, line) in (1..).zip(text.lines()) {
            let comment =
                line.trim_start().strip_prefix("//").or_else(|| line.split_once(" // ").map(|(_, text)| text));
            let found = comment.map(|comment| forbidden_in(comment, &forbidden)).unwrap_or_default();
            broken.extend(
                found.iter().map(|word| format!("{path}:{number}: {word:?}: see \"Do not use\" in {GLOSSARY}")),
            );
        }
    }
    report(&broken);
}

/// The names of types and traits in the glossary's table of names in code.
#[test]
fn names_of_the_glossary_exist() {
    let glossary = read(GLOSSARY);
    let (_, rest) = glossary.split_once("## Names in code").expect("the table");
    let table = rest.split("\n## ").next().unwrap_or_default();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
    let names: Vec<String> = rows.flat_map(|cell| cell.split('`').step_by(2)).map(str::to_owned).collect();
    assert!(names.len() > 10, "{names:?}");
    let mut text: String = all_sources().map(|(_, text)| text).collect();
    for script in ["end2end/demo-fleet.ts", "end2end/host.ts"] {
        text += &read(script);
    }
    let is_declared = |name: &str| {
        ["struct", "enum", "trait", "interface"].iter().any(|kind| {
            text.match_indices(&format!("{kind} {name}")).any(|(at, found)| {
                text[at + found.len()..].chars().next().is_some_and(|next| !next.is_alphanumeric() && next != '_')
            })
        })
    };
    let missing: Vec<String> =
        names.into_iter().filter(|name| !is_declared(name)).map(|name| format!("{name} is not declared")).collect();
    report(&missing);
}

#[test]
fn forbidden_words_are_found_outside_of_code_only() {
    let list =
        forbidden("## Do not use\n\n| do not use | use instead |\n|---|---|\n| `kept back`, `Bell` | delayed |\n");
    assert_eq!(list, [vec!["kept".to_owned(), "back".to_owned()], vec!["bell".to_owned()]]);
    let found = |text| forbidden_in(text, &list);
    assert_eq!(found("It is Kept\nback, by a bell."), ["kept back", "bell"]);
    assert_eq!(found("`kept back`, kept `x` back, bells, bell-like\n```\nbell\n```\n"), Vec::<String>::new());
}

#[test]
fn readme_and_architecture_stay_short() {
    let long = MAX_WORDS.into_iter().filter_map(|(name, max_words)| {
        let count = read(name).split_whitespace().count();
        (count > max_words).then(|| format!("{name} has {count} words; at most {max_words}: move details to docs/"))
    });
    report(&long.collect::<Vec<_>>());
}

#[test]
fn decisions_are_numbered_dated_and_indexed() {
    let index = read("docs/decisions/README.md");
    let mut broken = Vec::new();
    let mut number = 0;
    for record in in_directory("docs/decisions").iter().filter(|path| !path.ends_with("README.md")) {
        number += 1;
        let name = record.file_name().expect("a name").to_string_lossy().into_owned();
        let text = read(record);
        let title = text.lines().next().and_then(|line| line.strip_prefix(&format!("# {number:04}: ")));
        if !name.starts_with(&format!("{number:04}-")) {
            broken.push(format!("{name}: the next number is {number:04}"));
        }
        if !title.is_some_and(|title| index.contains(&format!("| [{number:04}]({name}) | {title} | "))) {
            broken.push(format!("{name}: the index has no row with its number and title"));
        }
        let date = text.lines().nth(2).and_then(|line| line.strip_prefix("Date: "));
        if !date.is_some_and(|date| {
            date.len() == 10 && index.contains(&format!("({name}) | {} | {date} |", title.unwrap_or_default()))
        }) {
            broken.push(format!("{name}: the third line is no date, or not that of the index"));
        }
        for part in ["**Context.** ", "**Decision.** "] {
            if !text.contains(part) {
                broken.push(format!("{name} has no {part}"));
            }
        }
    }
    assert!(number > 40, "{number}");
    report(&broken);
}

/// Paths of sources in inline code: `app/domain/job`, with or without `.rs`.
fn source_paths(text: &str) -> impl Iterator<Item = &str> {
    let blocks = text.split("```").step_by(2);
    let code = blocks.flat_map(|block| block.split('`').skip(1).step_by(2));
    let is_path = |code: &&str| {
        let starts = ["app/", "browser/", "build/", "end2end/", "fuzz/", "prove/", "scripts/", "src/", "tests/"];
        starts.iter().any(|start| code.starts_with(start))
            && code.chars().all(|c| c.is_alphanumeric() || "/_-.".contains(c))
    };
    code.filter(is_path)
}

#[test]
fn source_paths_in_documents_exist() {
    let top = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"]
        .map(|name| root().join(name));
    let below = ["docs", "docs/decisions"].into_iter().flat_map(in_directory);
    let mut broken = Vec::new();
    for document in top.into_iter().chain(below) {
        let text = read(&document);
        for path in source_paths(&text) {
            if !root().join(path).exists() && !root().join(format!("{path}.rs")).exists() {
                broken.push(format!("{}: there is no {path}", document.display()));
            }
        }
    }
    report(&broken);
}

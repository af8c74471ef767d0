//! `docs/PROOF.md`: each invariant has a row, and each name in it exists.

use std::fs;

use super::{everything, report, root, sources};

const PAGE: &str = "docs/PROOF.md";

/// The texts with which sources define a name.
type Definitions = fn(&str) -> Vec<String>;

/// How the names of each column appear in the sources below a folder.
const COLUMNS: [(&str, Definitions); 6] = [
    ("app and src", |name| vec![format!("pub struct {name} {{"), format!("pub struct {name}<")]),
    ("app/domain", |name| vec![format!("fn {name}(")]),
    ("prove/model", |name| vec![format!("\"{name}\"")]),
    ("src/simulation", |name| vec![format!("\"{name}\"")]),
    ("prove/crash_points", |name| vec![format!("\"{name}\"")]),
    ("tests/fleet", |name| vec![format!("fn {name}(")]),
];

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).expect("a document")
}

/// The names in a row that are not below the folder of their column, and how many names it has.
fn check_row(row: &str, exists: impl Fn(usize, &str) -> bool) -> (Vec<String>, usize) {
    let cells: Vec<&str> = row.trim_matches('|').split('|').skip(1).collect();
    assert_eq!(cells.len(), COLUMNS.len(), "{row}");
    let (mut missing, mut count) = (Vec::new(), 0);
    for (column, cell) in cells.iter().enumerate() {
        for name in cell.split('`').skip(1).step_by(2) {
            count += 1;
            if !exists(column, name) {
                missing.push(format!("{PAGE}: there is no {name} in {}", COLUMNS[column].0));
            }
        }
    }
    (missing, count)
}

#[test]
fn names_of_the_proof_exist() {
    let texts: Vec<String> = COLUMNS
        .iter()
        .map(|(folder, _)| if *folder == "app and src" { everything() } else { sources(folder) })
        .map(|files| files.into_iter().map(|(_, text)| text).collect())
        .collect();
    let exists = |column: usize, name: &str| COLUMNS[column].1(name).iter().any(|form| texts[column].contains(form));
    let (page, architecture) = (read(PAGE), read("ARCHITECTURE.md"));
    let (_, list) = architecture.split_once("## Invariants").expect("the invariants");
    let invariants = list.lines().filter_map(|line| line.strip_prefix("* **")?.split("**").next());
    let mut broken = Vec::new();
    for invariant in invariants {
        let Some(row) = page.lines().find(|line| line.starts_with(&format!("| {invariant} |"))) else {
            broken.push(format!("{PAGE}: {invariant} has no row"));
            continue;
        };
        let (missing, count) = check_row(row, exists);
        broken.extend(missing);
        if count == 0 {
            broken.push(format!("{PAGE}: nothing checks {invariant}"));
        }
    }
    // The properties of the model and of the simulation are all listed.
    for file in ["prove/model/src/properties.rs", "src/simulation/property.rs"] {
        let text = read(file);
        let names = text.split('"').skip(1).step_by(2).filter(|name| name.starts_with('I'));
        broken.extend(
            names
                .filter(|name| !page.contains(&format!("`{name}`")))
                .map(|name| format!("{PAGE} does not list {name} of {file}")),
        );
    }
    report(&broken);
}

#[test]
fn missing_name_is_found() {
    let row = "| I1 | `Lease`: one | – | `a`, `b` | – | – | `c` |";
    let (missing, count) = check_row(row, |_, name| name != "b");
    assert_eq!((missing, count), (vec![format!("{PAGE}: there is no b in prove/model")], 4));
}

#[test]
fn removed_guards_are_listed() {
    let config = read("prove/model/src/config.rs");
    let (_, guards) = config.split_once("pub enum Mutation {").expect("the removed guards");
    let (guards, _) = guards.split_once("\n}").expect("its end");
    let names: Vec<_> = guards.lines().filter_map(|line| line.trim().strip_suffix(',')).collect();
    let page = read(PAGE);
    let missing: Vec<_> = names.iter().filter(|name| !page.contains(&format!("| `{name}` |"))).collect();
    assert!(names.len() > 20 && missing.is_empty(), "{PAGE} lacks {missing:?}");
}

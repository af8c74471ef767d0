//! No cycle of imports crosses the folders and files of a part: so each can be understood from itself and its
//! imports.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{paths, report, sources};

/// The parts, each with its path in its crate.
const PARTS: [(&str, &str); 11] = [
    ("src/server", "crate"),
    ("src/server/cli", "crate::cli"),
    ("src/server/http", "crate::http"),
    ("src/server/service", "crate::service"),
    ("src/server/store", "crate::store"),
    ("src/worker", "crate::worker"),
    ("app/domain", "crate::domain"),
    ("app/protocol", "crate::protocol"),
    ("app/ui", "crate::ui"),
    ("app/ui/components", "crate::ui::components"),
    ("app/ui/pages", "crate::ui::pages"),
];

/// By module, the modules that it imports, each with a file that does so. A module is a folder or file at the top of a
/// part.
type Imports = BTreeMap<String, BTreeMap<String, String>>;

/// The path of a file's module in its part: `http/access/mod.rs` is `["http", "access"]`, and the part's own file is
/// empty.
fn module_path(file: &str) -> Vec<&str> {
    let mut path: Vec<&str> = file.trim_end_matches(".rs").split('/').collect();
    if matches!(path.last(), Some(&("mod" | "main"))) {
        path.pop();
    }
    path
}

fn is_test(file: &str) -> bool {
    file.split('/').any(|name| matches!(name, "tests" | "tests.rs"))
}

/// The names that a path or a line of code imports from the top of the part.
fn imported_names<'a>(code: &'a str, part: &str, depth: usize) -> Vec<&'a str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let parents = "super::".repeat(depth);
    let mut names = Vec::new();
    for prefix in [format!("{part}::"), parents] {
        for (at, _) in code.match_indices(&prefix) {
            let is_inside = code[..at].chars().next_back().is_some_and(|c| is_word(c) || matches!(c, ':' | '$'));
            let name = code[at + prefix.len()..].split(|c| !is_word(c)).next().unwrap_or_default();
            if !is_inside {
                names.push(name);
            }
        }
    }
    names
}

/// By name, the module of what the part's own file imports from its modules: `context` for a `ServiceContext` that the
/// others import as `crate::service::ServiceContext`.
fn reexports(files: &[(String, String)], part: &str, modules: &BTreeSet<&str>) -> BTreeMap<String, String> {
    let part_files = files.iter().filter(|(file, _)| module_path(file).is_empty());
    let named = part_files.flat_map(|(_, text)| paths(text)).filter_map(|(_, path)| {
        let path = path.trim_start_matches(&format!("{part}::")).trim_start_matches("self::");
        let (module, name) = (path.split("::").next()?, path.rsplit("::").next()?);
        (module != name && modules.contains(module)).then(|| (name.to_owned(), module.to_owned()))
    });
    named.collect()
}

/// The imports between the modules of these files, whose names are relative to the part.
fn imports(files: &[(String, String)], part: &str) -> Imports {
    let code = files.iter().filter(|(file, _)| !is_test(file) && !module_path(file).is_empty());
    let code: Vec<(&String, &String)> = code.map(|(file, text)| (file, text)).collect();
    let modules: BTreeSet<&str> = code.iter().map(|(file, _)| module_path(file)[0]).collect();
    let reexports = reexports(files, part, &modules);
    let mut imports = Imports::new();
    for (file, text) in code {
        let path = module_path(file);
        let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for (_, line) in paths(text) {
            let names = imported_names(&line, part, path.len());
            let names = names.into_iter().map(|name| reexports.get(name).map_or(name, String::as_str));
            for name in names.filter(|name| *name != path[0] && modules.contains(name)) {
                let of_module = imports.entry(path[0].to_owned()).or_default();
                of_module.entry(name.to_owned()).or_insert_with(|| file.clone());
            }
        }
    }
    imports
}

/// The shortest path from a module to itself.
fn shortest_cycle<'a>(imports: &'a Imports, start: &'a str) -> Option<Vec<&'a str>> {
    let (mut pending, mut visited) = (VecDeque::from([vec![start]]), BTreeSet::new());
    while let Some(path) = pending.pop_front() {
        for next in imports.get(*path.last()?).into_iter().flat_map(BTreeMap::keys) {
            let path: Vec<&str> = path.iter().copied().chain([next.as_str()]).collect();
            if next == start {
                return Some(path);
            }
            if visited.insert(next) {
                pending.push_back(path);
            }
        }
    }
    None
}

/// For each module in a cycle, its shortest one; each once. It is written as `a → b (a/file.rs) → a (b.rs)`.
fn cycles(imports: &Imports) -> Vec<String> {
    let (mut found, mut known) = (Vec::new(), BTreeSet::new());
    for cycle in imports.keys().filter_map(|start| shortest_cycle(imports, start)) {
        if known.insert(cycle.iter().copied().collect::<BTreeSet<_>>()) {
            let steps = cycle.windows(2).map(|step| format!(" → {} ({})", step[1], imports[step[0]][step[1]]));
            found.push(format!("{}{}", cycle[0], steps.collect::<String>()));
        }
    }
    found
}

#[test]
fn no_cycle_of_imports_crosses_modules() {
    let mut broken = Vec::new();
    for (folder, part) in PARTS {
        let files: Vec<(String, String)> = sources(folder)
            .into_iter()
            .map(|(name, text)| (name.trim_start_matches(folder).trim_start_matches('/').to_owned(), text))
            .collect();
        let imports = imports(&files, part);
        assert!(!imports.is_empty(), "{folder}: no imports are found; has it moved?");
        broken.extend(cycles(&imports).into_iter().map(|cycle| format!("{folder}: {cycle}")));
    }
    report(&broken);
}

#[test]
fn cycles_are_found_and_show_their_files() {
    let cycles_of = |files: &[(&str, &str)], part: &str| {
        let files: Vec<_> = files.iter().map(|(file, text)| ((*file).to_owned(), (*text).to_owned())).collect();
        cycles(&imports(&files, part))
    };
    let grouped = "use crate::{\n    b::{c, Deep},\n    exit,\n};";
    let back = "fn run() {\n    crate::a::start();\n}";
    assert_eq!(
        cycles_of(&[("a/mod.rs", grouped), ("b/deep/mod.rs", back), ("exit.rs", "")], "crate"),
        ["a → b (a/mod.rs) → a (b/deep/mod.rs)"]
    );
    let around = [("a.rs", "use crate::b::B;"), ("b.rs", "use crate::c;"), ("c/x.rs", "use super::super::a;")];
    assert_eq!(cycles_of(&around, "crate"), ["a → b (a.rs) → c (b.rs) → a (c/x.rs)"]);
    let below = [("a.rs", "use crate::b::B;"), ("b/x.rs", "use super::a;\n// crate::a\nuse app::domain::a;")];
    assert_eq!(cycles_of(&below, "crate"), Vec::<String>::new());
    let domain = [("a.rs", "use crate::domain::b;"), ("b.rs", "use super::a;")];
    assert_eq!(cycles_of(&domain, "crate::domain"), ["a → b (a.rs) → a (b.rs)"]);
    let reexported = [
        ("mod.rs", "mod a;\nmod b;\npub use self::b::B;"),
        ("a.rs", "use crate::part::B;"),
        ("b.rs", "use super::a::A;"),
    ];
    assert_eq!(cycles_of(&reexported, "crate::part"), ["a → b (a.rs) → a (b.rs)"]);
    let tests = [
        ("a.rs", "use crate::b;"),
        ("b/tests/mod.rs", "use crate::a;"),
        ("b/mod.rs", "#[cfg(test)]\nmod tests {\n    use crate::a;\n}"),
        ("main.rs", "use crate::a;"),
    ];
    assert_eq!(cycles_of(&tests, "crate"), Vec::<String>::new());
}

//! The architecture as a test: which module may use which, how long a file may be, and which files must agree.
//!
//! It reads the sources as text. `use` lines and paths are enough, because every dependency is named by one.

use std::fs;
use std::path::{Path, PathBuf};

#[path = "tidy/asvs.rs"]
mod asvs;
#[path = "tidy/bindings.rs"]
mod bindings;
#[path = "tidy/browser.rs"]
mod browser;
#[path = "tidy/cycles.rs"]
mod cycles;
#[path = "tidy/documents.rs"]
mod documents;
#[path = "tidy/links.rs"]
mod links;
#[path = "tidy/locales.rs"]
mod locales;
#[path = "tidy/proof.rs"]
mod proof;
#[path = "tidy/supply.rs"]
mod supply;

/// No file is longer, so that each stays one idea.
const MAX_LINES: usize = 450;
/// `main.rs` only starts the parts.
const MAX_MAIN_LINES: usize = 60;

/// Below this path, none of these words may be named.
struct Wall {
    under: &'static str,
    except: &'static [&'static str],
    never: &'static [&'static str],
}

const WALLS: &[Wall] = &[
    Wall {
        under: "app/domain",
        except: &[],
        never: &[
            "tokio",
            "axum",
            "sqlx",
            "leptos",
            "serde_json",
            "reqwest",
            "rand::",
            "getrandom",
            "std::time",
            "std::fs",
            "std::env",
            "std::net",
            "crate::protocol",
            "crate::ui",
        ],
    },
    // Ids, labels and plain enums travel as they are; state never does.
    Wall {
        under: "app/domain",
        except: &[
            "app/domain/access.rs",
            "app/domain/ids.rs",
            "app/domain/labels.rs",
            "app/domain/sandbox.rs",
            "app/domain/shares/settings.rs",
        ],
        never: &["serde"],
    },
    Wall {
        under: "app/protocol",
        except: &[],
        never: &[
            "tokio",
            "axum",
            "sqlx",
            "leptos",
            "domain::job",
            "domain::worker",
            "domain::plan",
            "domain::matching",
            "domain::reconcile",
            "domain::audit",
            "domain::capability",
            "crate::ui",
        ],
    },
    Wall {
        under: "app/ui",
        except: &[],
        never: &[
            "tokio",
            "sqlx",
            "reqwest",
            "domain::job",
            "domain::worker",
            "domain::plan",
            "domain::matching",
            "domain::reconcile",
            "domain::audit",
            "domain::capability",
        ],
    },
    Wall {
        under: "src/server/store",
        except: &[],
        never: &[
            "axum",
            "leptos",
            "app::protocol",
            "app::ui",
            "crate::service",
            "crate::http",
            "crate::change_notifier",
        ],
    },
    Wall {
        under: "src/server/service",
        except: &[],
        never: &["axum", "sqlx", "leptos", "app::ui", "store::sqlite", "crate::http", "std::time::SystemTime"],
    },
    Wall {
        under: "src/server/http",
        except: &[],
        never: &[
            "sqlx",
            "crate::store::sqlite",
            "crate::loops",
            "domain::plan",
            "domain::reconcile",
            "domain::matching",
        ],
    },
    Wall {
        under: "src/server/change_notifier",
        except: &[],
        never: &["axum", "sqlx", "crate::store", "crate::service", "crate::http"],
    },
    Wall {
        under: "src/server/files",
        except: &[],
        never: &["axum", "sqlx", "crate::store", "crate::service", "crate::http"],
    },
    // Commands change nothing but by the API.
    Wall {
        under: "src/server/cli/client",
        except: &[],
        never: &["sqlx", "leptos", "crate::store", "crate::service", "crate::change_notifier", "crate::http::state"],
    },
    Wall { under: "src/server/loops", except: &[], never: &["axum", "sqlx", "crate::store", "crate::http"] },
    Wall {
        under: "src/worker",
        except: &[],
        never: &["axum", "sqlx", "leptos", "app::ui", "domain::job", "domain::worker", "domain::plan"],
    },
];

/// Words that code must not contain, or in one file only. The message names the alternative.
const BANNED: &[(&str, &str)] = &[
    ("#[allow(", "say `#[expect(…, reason = \"…\")]`, which complains when it is no longer needed"),
    (
        "AssertSqlSafe",
        "SQL is a constant; values are bound; only store/sql/statement.rs repeats a constant for many rows",
    ),
    ("todo!(", "main holds nothing unfinished"),
    ("dbg!(", "log with `tracing`"),
    ("inner_html", "text from outside becomes text nodes"),
];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn sources(under: &str) -> Vec<(String, String)> {
    let mut pending = vec![root().join(under)];
    let mut found = Vec::new();
    while let Some(path) = pending.pop() {
        if path.is_dir() {
            pending.extend(fs::read_dir(&path).expect("a readable directory").flatten().map(|entry| entry.path()));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.strip_prefix(root()).expect("below the root").to_string_lossy().into_owned();
            found.push((name, fs::read_to_string(&path).expect("readable text")));
        }
    }
    assert!(!found.is_empty(), "{under} has no sources; has it moved?");
    found
}

fn everything() -> Vec<(String, String)> {
    ["app", "browser", "build", "src", "tests"].iter().flat_map(|folder| sources(folder)).collect()
}

/// A line without its comment; prose may name what code may not.
fn code(line: &str) -> &str {
    let line = line.trim_start();
    if line.starts_with("//") { "" } else { line.split(" // ").next().unwrap_or_default() }
}

/// Every path that is named, with its line: `use` trees are spread out, so `a::{b, c}` names `a::b` and `a::c`.
fn paths(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut statement: Option<(usize, String)> = None;
    for (number, line) in (1..).zip(text.lines()) {
        let line = code(line).trim();
        let begins = line.trim_start_matches("pub(crate) ").trim_start_matches("pub ").starts_with("use ");
        match &mut statement {
            None if begins => statement = Some((number, line.to_owned())),
            None => found.push((number, line.to_owned())),
            Some((_, so_far)) => so_far.push_str(line),
        }
        if let Some((start, joined)) = statement.take_if(|(_, joined)| joined.ends_with(';')) {
            let tree = joined.split_once("use ").map_or("", |(_, tree)| tree).trim_end_matches(';');
            found.extend(expand(tree).into_iter().map(|path| (start, path)));
        }
    }
    found
}

fn expand(tree: &str) -> Vec<String> {
    let Some((stem, rest)) = tree.split_once('{') else { return vec![tree.trim().to_owned()] };
    let inner = rest.rsplit_once('}').map_or(rest, |(inner, _)| inner);
    let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
    for (at, c) in inner.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&inner[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&inner[start..]);
    let parts = parts.into_iter().filter(|part| !part.trim().is_empty());
    parts.flat_map(|part| expand(&format!("{}{}", stem.trim(), part.trim()))).collect()
}

/// Whether `line` contains `word` as complete segments of a path.
fn contains_path(line: &str, word: &str) -> bool {
    let is_segment_char = |c: char| c.is_alphanumeric() || c == '_';
    let path_like = word.contains("::");
    line.match_indices(word).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + word.len()..]);
        let inside = before.chars().next_back().is_some_and(is_segment_char);
        let longer = !word.ends_with("::") && after.chars().next().is_some_and(is_segment_char);
        // A crate's name counts where a path starts with it.
        let is_at_start = path_like || (!before.ends_with("::") && (after.starts_with("::") || before.is_empty()));
        !inside && !longer && is_at_start
    })
}

fn report(broken: &[String]) {
    assert!(broken.is_empty(), "\n{}\n", broken.join("\n"));
}

#[test]
fn imports_respect_the_walls() {
    let mut broken = Vec::new();
    for wall in WALLS {
        let inside = sources(wall.under).into_iter().filter(|(name, _)| !wall.except.contains(&name.as_str()));
        for (name, text) in inside {
            for (number, path) in paths(&text) {
                for word in wall.never.iter().filter(|word| contains_path(&path, word)) {
                    broken.push(format!("{name}:{number}: {} may not use {word}: {path}", wall.under));
                }
            }
        }
    }
    report(&broken);
}

#[test]
fn files_stay_short() {
    let limit =
        |name: &str| if name.ends_with("main.rs") && name.starts_with("src") { MAX_MAIN_LINES } else { MAX_LINES };
    let long = everything().into_iter().filter_map(|(name, text)| {
        let lines = text.lines().count();
        (lines > limit(&name)).then(|| format!("{name} has {lines} lines; at most {} are one idea", limit(&name)))
    });
    report(&long.collect::<Vec<_>>());
}

#[test]
fn banned_words_are_absent() {
    let mut broken = Vec::new();
    for (name, text) in everything().into_iter().filter(|(name, _)| name != "tests/tidy.rs") {
        let is_permitted = |word: &str| word == "AssertSqlSafe" && name == "src/server/store/sql/statement.rs";
        for (number, line) in text.lines().enumerate() {
            for (word, instead) in BANNED.iter().filter(|(word, _)| code(line).contains(word) && !is_permitted(word)) {
                broken.push(format!("{name}:{}: {word}…: {instead}", number + 1));
            }
        }
    }
    report(&broken);
}

/// Every row of the threat model names a test that exists, or the work that adds it.
#[test]
fn the_threat_model_names_tests_that_exist() {
    let model = fs::read_to_string(root().join("docs/threat-model.md")).expect("the threat model");
    let tests: Vec<String> = everything().into_iter().map(|(_, text)| text).collect();
    let exists = |test: &str| {
        let (plain, of_engines) = (format!("fn {test}("), format!("fn {test}<"));
        tests.iter().any(|text| text.contains(&plain) || text.contains(&of_engines))
    };
    let mut broken = Vec::new();
    for row in 1..=24 {
        let Some(line) = model.lines().find(|line| line.starts_with(&format!("| T{row} |"))) else {
            broken.push(format!("T{row} has no row"));
            continue;
        };
        let evidence = line.trim_end_matches(" |").rsplit_once(" | ").map_or("", |(_, last)| last);
        let test_names: Vec<&str> = evidence.split('`').skip(1).step_by(2).collect();
        broken.extend(
            test_names.iter().filter(|test| !exists(test)).map(|test| format!("T{row}: there is no test {test}")),
        );
        if test_names.is_empty() && !evidence.contains("*comes with") {
            broken.push(format!("T{row} names no test"));
        }
    }
    report(&broken);
}

fn is_our_script(child: &str, text: &str) -> bool {
    let name = child.trim_matches(['{', '}']);
    name.ends_with("SCRIPT") && text.contains(&format!("const {name}: &str = include_str!("))
}

#[test]
fn raw_text_elements_have_no_children() {
    // Leptos 0.8 does not escape the children of these when it renders on the server: they must be escaped already.
    let mut broken = Vec::new();
    for (name, text) in sources("app/ui") {
        let text = text.split("#[cfg(test)]").next().unwrap_or_default();
        for element in ["textarea", "style", "script", "noscript"] {
            for (at, _) in text.match_indices(&format!("<{element}")) {
                let inside = text[at..].split_once('>').map_or("", |(_, inside)| inside);
                let opening = text[at..].split('>').next().unwrap_or_default();
                let child = inside.split('<').next().unwrap_or_default().trim();
                // A file of ours that is compiled in has nothing from outside.
                let is_ours = is_our_script(child, text);
                if !opening.ends_with('/') && !child.is_empty() && !child.starts_with("{escape_html(") && !is_ours {
                    broken.push(format!("{name}: <{element}> has a child: {child}"));
                }
            }
        }
    }
    report(&broken);
}

#[test]
fn leptos_toml_agrees_with_cargo_toml() {
    let cargo = leptos_keys(&root().join("Cargo.toml"));
    let deployed = leptos_keys(&root().join("Leptos.toml"));
    assert!(!deployed.is_empty() && !cargo.is_empty());
    // The build has no environment; all other keys have the same value in both.
    for (key, value) in deployed.iter().filter(|(key, _)| key != "env") {
        let other = cargo.iter().find(|(other, _)| other == key).map(|(_, value)| value);
        assert_eq!(Some(value), other, "`{key}` differs between Leptos.toml and Cargo.toml");
    }
}

fn leptos_keys(path: &Path) -> Vec<(String, String)> {
    let text = fs::read_to_string(path).expect("readable text");
    let section = text.split(".metadata.leptos]").nth(1).unwrap_or_default();
    let lines = section.lines().skip(1).take_while(|line| !line.starts_with('['));
    let pair = |line: &str| {
        let (key, value) = line.split_once(" = ")?;
        (!key.starts_with('#')).then(|| (key.trim().to_owned(), value.trim().to_owned()))
    };
    lines.filter_map(pair).collect()
}

#[test]
fn paths_are_found_wherever_they_are_named() {
    let text =
        "use app::domain::{\n    job::{Job, State},\n    time,\n};\npub use axum::Router;\nlet x = sqlx::query(q);";
    let found: Vec<_> = paths(text).into_iter().map(|(line, path)| format!("{line} {path}")).collect();
    let expected = [
        "1 app::domain::job::Job",
        "1 app::domain::job::State",
        "1 app::domain::time",
        "5 axum::Router",
        "6 let x = sqlx::query(q);",
    ];
    assert_eq!(found, expected);
    assert!(contains_path("app::domain::job::Job", "domain::job") && contains_path("axum::Router", "axum"));
    assert!(contains_path("let x = sqlx::query(q);", "sqlx") && contains_path("inner_html", "inner_html"));
    assert!(
        !contains_path("leptos_axum::ResponseOptions", "axum")
            && !contains_path("crate::storefront::x", "crate::store")
    );
    assert!(!contains_path("let axum = 1;", "axum") && !contains_path("crate::axum::x", "axum"));
}

//! Generates structs that read their sentences in the order of the English file, and the sentences in that order.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::catalog::{Catalog, FORMS, Node, Sentence, join};
use super::check::{placeholders, placeholders_in_order};
use super::variants;

/// Sentences of pages that only the server renders; the browser part does not contain them.
const SERVER_PAGES: &str = "server_pages";
/// Groups whose keys are codes; a sentence is looked up by its code.
const BY_WORD: [&str; 4] =
    ["overview.actions", "server_pages.audit.faults", "server_pages.configs.check", "server_pages.configs.keys"];
/// The group whose keys are the variants of an enum, with the placeholders as fields.
const BY_VARIANT: &str = "server_pages.problems";
/// Numbered placeholders.
const NUMBERED: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];
/// Keys that are Rust keywords.
const KEYWORDS: [&str; 12] =
    ["as", "do", "else", "final", "for", "if", "in", "move", "override", "type", "use", "where"];

/// Generates `words.rs`.
pub fn structs(english: &Catalog, languages: &[Catalog]) -> String {
    let is_server_pages = |(name, _): &&(String, Node)| name == SERVER_PAGES;
    let mut code = format!(
        "/// The plural forms, in the order in which a sentence has them.\npub(crate) const FORMS: [&str; 6] = {FORMS:?};\n"
    );
    let live = english.root.iter().filter(|entry| !is_server_pages(entry));
    group(&mut code, "", "Pages", &live.collect::<Vec<_>>());
    for (name, node) in english.root.iter().filter(is_server_pages) {
        if let Node::Group(entries) = node {
            group(&mut code, name, "ServerPages", &entries.iter().collect::<Vec<_>>());
        }
    }
    if cfg!(feature = "ssr") {
        by_locale(&mut code, languages);
    }
    code
}

fn group(code: &mut String, path: &str, name: &str, entries: &[&(String, Node)]) {
    let cfg = if path.split('.').next() == Some(SERVER_PAGES) { "#[cfg(feature = \"ssr\")]\n" } else { "" };
    if BY_WORD.contains(&path) {
        return by_word(code, cfg, name, entries);
    }
    if path == BY_VARIANT {
        return code.push_str(&variants::by_variant(cfg, name, entries));
    }
    let (mut fields, mut read) = (String::new(), String::new());
    for (key, node) in entries {
        let path = join(path, key);
        let field = if KEYWORDS.contains(&key.as_str()) { format!("r#{key}") } else { key.clone() };
        let (kind, reader) = match node {
            Node::Group(_) => (type_name(&path), format!("{}::read(list)", type_name(&path))),
            Node::Sentence(Sentence::Plural(_)) => ("Count".to_owned(), "list.count()".to_owned()),
            Node::Sentence(Sentence::Text(text))
                if placeholders(text).is_some_and(|placeholders| placeholders.is_empty()) =>
            {
                ("Text".to_owned(), "list.text()".to_owned())
            }
            Node::Sentence(Sentence::Text(_)) => ("Phrase".to_owned(), "list.phrase()".to_owned()),
        };
        put(&mut fields, format_args!("    pub {field}: {kind},\n"));
        put(&mut read, format_args!("            {field}: {reader},\n"));
    }
    put(
        code,
        format_args!(
            "\n{cfg}#[derive(Debug)]\npub(crate) struct {name} {{\n{fields}}}\n\n{cfg}impl {name} {{\n    \
             #[inline(never)] // otherwise their text would be copied on the stack\n    \
             pub(super) fn read(list: &mut List) -> Self {{\n        Self {{\n{read}        }}\n    }}\n}}\n"
        ),
    );
    for (key, node) in entries {
        if let Node::Group(entries) = node {
            let path = join(path, key);
            group(code, &path, &type_name(&path), &entries.iter().collect::<Vec<_>>());
        }
    }
}

/// Generates a list of sentences with a list of their codes.
fn by_word(code: &mut String, cfg: &str, name: &str, entries: &[&(String, Node)]) {
    let mut words = Vec::new();
    for (key, node) in entries {
        match node {
            Node::Sentence(_) => words.push(key.clone()),
            Node::Group(entries) => words.extend(entries.iter().map(|(inner, _)| join(key, inner))),
        }
    }
    let number = words.len();
    put(
        code,
        format_args!(
            "\n{cfg}#[derive(Debug)]\npub(crate) struct {name}(pub [Text; {number}]);\n\n{cfg}impl {name} {{\n    \
             /// The words, in the order of the sentences.\n    \
             pub const WORDS: [&'static str; {number}] = {words:?};\n\n    \
             /// The sentence of a word.\n    \
             pub fn of(&self, word: &str) -> Option<Text> {{\n        \
             let index = Self::WORDS.iter().position(|known| *known == word)?;\n        self.0.get(index).copied()\n    }}\n\n    \
             pub(super) fn read(list: &mut List) -> Self {{\n        \
             Self(std::array::from_fn(|_| list.text()))\n    }}\n}}\n"
        ),
    );
}

/// Generates the lookup by `Locale`. A file without a variant does not compile, nor a variant without a file.
fn by_locale(code: &mut String, languages: &[Catalog]) {
    code.push_str("\npub(crate) fn loaded(locale: Locale) -> &'static LoadedLanguage {\n    match locale {\n");
    for Catalog { name, .. } in languages {
        let variant = type_name(name);
        put(
            code,
            format_args!(
                "        Locale::{variant} => {{\n            \
                 static LOADED: LazyLock<LoadedLanguage> = LazyLock::new(|| {{\n                \
                 LoadedLanguage::new(\n                    Locale::{variant},\n                    \
                 include_str!(concat!(env!(\"OUT_DIR\"), \"/{name}.live.txt\")),\n                    \
                 include_str!(concat!(env!(\"OUT_DIR\"), \"/{name}.server_pages.txt\")),\n                )\n            \
                 }});\n            &LOADED\n        }}\n"
            ),
        );
    }
    code.push_str("    }\n}\n");
}

/// Returns the sentences of a language in the order of the English file, one per line: of live pages, and of the
/// others.
pub fn lines(english: &Catalog, language: &Catalog) -> (String, String) {
    let has: BTreeMap<String, &Sentence> = language.sentences().into_iter().collect();
    let (mut live, mut server_pages) = (Vec::new(), Vec::new());
    for (key, sentence) in english.sentences() {
        let list = if key.split('.').next() == Some(SERVER_PAGES) { &mut server_pages } else { &mut live };
        list.push(line(sentence, has[&key]));
    }
    (live.join("\n"), server_pages.join("\n"))
}

/// Returns a sentence as a line. Plural forms follow the order of [`FORMS`], separated by tabs; one that equals the
/// first is empty.
fn line(english: &Sentence, sentence: &Sentence) -> String {
    match sentence {
        Sentence::Text(text) => runtime_format(text, &values(english)),
        Sentence::Plural(forms) => {
            let text = |form| forms.iter().find(|(other, _)| *other == form).map_or("", |(_, text)| text.as_str());
            let other = text("other");
            let texts = FORMS.map(|form| if form != "other" && text(form) == other { "" } else { text(form) });
            let texts = texts.map(|text| runtime_format(text, &values(english)));
            texts.join("\t").trim_end_matches('\t').to_owned()
        }
    }
}

/// Returns the placeholders in the order in which the program passes their values: the number of a plural first;
/// numbered ones by their number; named ones as the English sentence has them.
fn values(english: &Sentence) -> Vec<&str> {
    match english {
        Sentence::Plural(_) => [&["count"], &NUMBERED[..]].concat(),
        Sentence::Text(text) => {
            let named = placeholders_in_order(text).unwrap_or_default();
            if named.iter().any(|name| NUMBERED.contains(name)) { NUMBERED.to_vec() } else { named }
        }
    }
}

/// Numbers the placeholders for the program: the first of `values` is `{0}`.
fn runtime_format(text: &str, values: &[&str]) -> String {
    let numbered = values.iter().enumerate();
    numbered
        .fold(text.to_owned(), |text, (index, name)| text.replace(&format!("{{{{{name}}}}}"), &format!("{{{index}}}")))
}

pub fn type_name(path: &str) -> String {
    path.split(['.', '_', '-']).map(capitalized).collect()
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_ascii_uppercase().to_string() + letters.as_str())
}

fn put(code: &mut String, text: std::fmt::Arguments) {
    code.write_fmt(text).expect("writing to a string");
}

//! The sentences of a language as its file has them: i18next JSON v4.

use std::fmt;
use std::fs;
use std::path::Path;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};

/// The suffixes of keys: the plural forms of CLDR. Every language has the first one.
pub const FORMS: [&str; 6] = ["other", "one", "many", "few", "two", "zero"];

/// The sentences of one file.
pub struct Catalog {
    /// The name of the file without its extension: `en` for `en.json`.
    pub name: String,
    pub root: Vec<(String, Node)>,
}

/// The value of a key.
pub enum Node {
    Group(Vec<(String, Node)>),
    Sentence(Sentence),
}

/// A sentence: one text, or one for each plural form, in the order of the file.
pub enum Sentence {
    Text(String),
    Plural(Vec<(&'static str, String)>),
}

/// A JSON value, in the order of the file.
enum Json {
    Text(String),
    Object(Vec<(String, Json)>),
}

impl Catalog {
    /// Reads `FOLDER/NAME.json`.
    pub fn read(folder: &Path, name: &str) -> Result<Self, String> {
        let path = folder.join(format!("{name}.json"));
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Self::parse(name, &text).map_err(|problem| format!("{}: {problem}", path.display()))
    }

    /// Reads the text of a file.
    pub fn parse(name: &str, text: &str) -> Result<Self, String> {
        match serde_json::from_str(text).map_err(|error| error.to_string())? {
            Json::Text(_) => Err("an object is expected".to_owned()),
            Json::Object(entries) => Ok(Self { name: name.to_owned(), root: group("", entries)? }),
        }
    }

    /// Every sentence with its key, in the order of the file.
    pub fn sentences(&self) -> Vec<(String, &Sentence)> {
        let mut all = Vec::new();
        collect("", &self.root, &mut all);
        all
    }
}

/// Returns the key of an entry: its names joined by dots, the outermost first.
pub fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn collect<'a>(path: &str, entries: &'a [(String, Node)], all: &mut Vec<(String, &'a Sentence)>) {
    for (name, node) in entries {
        let path = join(path, name);
        match node {
            Node::Group(entries) => collect(&path, entries, all),
            Node::Sentence(sentence) => all.push((path, sentence)),
        }
    }
}

/// Groups the forms of a plural: `jobs_one` and `jobs_other` are `jobs`.
fn group(path: &str, entries: Vec<(String, Json)>) -> Result<Vec<(String, Node)>, String> {
    let mut nodes: Vec<(String, Node)> = Vec::new();
    for (name, json) in entries {
        let key = join(path, &name);
        let is_name = name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        if !is_name {
            return Err(format!("{key}: a key has only lower-case letters, digits and _"));
        }
        let (name, node) = match (json, form_of(&name)) {
            (Json::Object(entries), _) => (name, Node::Group(group(&key, entries)?)),
            (Json::Text(text), None) => (name, Node::Sentence(Sentence::Text(text))),
            (Json::Text(text), Some((stem, form))) => {
                let existing = nodes.iter_mut().find(|(name, _)| name == stem);
                if let Some((_, Node::Sentence(Sentence::Plural(forms)))) = existing {
                    forms.push((form, text));
                    continue;
                }
                (stem.to_owned(), Node::Sentence(Sentence::Plural(vec![(form, text)])))
            }
        };
        if nodes.iter().any(|(other, _)| *other == name) {
            return Err(format!("{}: this key occurs twice", join(path, &name)));
        }
        nodes.push((name, node));
    }
    Ok(nodes)
}

fn form_of(name: &str) -> Option<(&str, &'static str)> {
    let (stem, suffix) = name.rsplit_once('_')?;
    FORMS.into_iter().find(|form| *form == suffix).map(|form| (stem, form))
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;

        impl<'de> Visitor<'de> for Entries {
            type Value = Json;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a sentence or an object of sentences")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Json, E> {
                Ok(Json::Text(text.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
                let mut entries: Vec<(String, Json)> = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, Json>()? {
                    if entries.iter().any(|(other, _)| *other == name) {
                        return Err(A::Error::custom(format!("there are two of the key {name}")));
                    }
                    entries.push((name, value));
                }
                Ok(Json::Object(entries))
            }
        }

        deserializer.deserialize_any(Entries)
    }
}

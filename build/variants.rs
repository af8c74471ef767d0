//! Generates an enum of sentences: a variant for each key, with a field for each placeholder. Code that names a
//! sentence has to give its values.

use super::catalog::{Node, Sentence, join};
use super::check::placeholders_in_order;
use super::generate::type_name;

/// Generates the enum `ProblemSentence`, and the list of the sentences, in the order of the keys.
pub fn by_variant(cfg: &str, list: &str, entries: &[&(String, Node)]) -> String {
    let sentences: Vec<(String, Vec<&str>)> = entries.iter().flat_map(|(key, node)| sentences(key, node)).collect();
    let number = sentences.len();
    let keys: Vec<&str> = sentences.iter().map(|(key, _)| key.as_str()).collect();
    let variants: String = sentences.iter().map(|(key, fields)| variant(key, fields)).collect();
    let arms: String = sentences.iter().enumerate().map(|(index, (key, fields))| arm(index, key, fields)).collect();
    format!(
        "\n{cfg}/// The sentence of a problem, with the values of its placeholders.\n\
         #[expect(missing_docs, reason = \"the sentences are in app/locales/en.json\")]\n\
         #[derive(Debug, Clone, PartialEq, Eq)]\npub enum ProblemSentence {{\n{variants}}}\n\n\
         {cfg}impl ProblemSentence {{\n    \
         /// The keys of all sentences, in their order.\n    \
         pub(crate) const KEYS: [&'static str; {number}] = {keys:?};\n\n    \
         /// Returns the index of the sentence, and the values of its placeholders.\n    \
         pub(crate) fn parts(&self) -> (usize, Vec<&dyn std::fmt::Display>) {{\n        \
         match self {{ {arms} }}\n    }}\n}}\n\n\
         {cfg}#[derive(Debug)]\npub(crate) struct {list}([Phrase; {number}]);\n\n{cfg}impl {list} {{\n    \
         /// The sentence in this language.\n    \
         pub fn of(&self, sentence: &ProblemSentence) -> String {{\n        \
         let (index, values) = sentence.parts();\n        \
         self.0.get(index).map_or_else(String::new, |phrase| phrase.with(&values))\n    }}\n\n    \
         pub(super) fn read(list: &mut List) -> Self {{\n        \
         Self(std::array::from_fn(|_| list.phrase()))\n    }}\n}}\n"
    )
}

/// Returns the sentences of an entry with their placeholders: its own, or those of its group.
fn sentences<'a>(key: &str, node: &'a Node) -> Vec<(String, Vec<&'a str>)> {
    match node {
        Node::Sentence(Sentence::Text(text)) => {
            vec![(key.to_owned(), placeholders_in_order(text).unwrap_or_default())]
        }
        Node::Sentence(Sentence::Plural(_)) => panic!("{key}: the sentence of a problem has no plural forms"),
        Node::Group(entries) => entries.iter().flat_map(|(name, node)| sentences(&join(key, name), node)).collect(),
    }
}

fn variant(key: &str, fields: &[&str]) -> String {
    let fields: Vec<String> = fields.iter().map(|field| format!("{field}: String")).collect();
    match fields.as_slice() {
        [] => format!("    {},\n", type_name(key)),
        fields => format!("    {} {{ {} }},\n", type_name(key), fields.join(", ")),
    }
}

fn arm(index: usize, key: &str, fields: &[&str]) -> String {
    match fields {
        [] => format!("Self::{} => ({index}, vec![]), ", type_name(key)),
        fields => {
            let values: Vec<String> = fields.iter().map(|field| format!("{field} as &dyn std::fmt::Display")).collect();
            format!("Self::{} {{ {} }} => ({index}, vec![{}]), ", type_name(key), fields.join(", "), values.join(", "))
        }
    }
}

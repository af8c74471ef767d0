//! Changes one value of `config.json` in its text, and nothing else.

use std::fmt::Write;
use std::ops::Range;

use super::keys::{KeyKind, KnownKey, bare_name};
use super::scan::{Member, Scanned, Value, is_number, scan};

/// A replacement of a part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// What is replaced, in bytes.
    pub span: Range<usize>,
    /// By what.
    pub text: String,
}

impl Edit {
    /// Returns the text after the edit.
    pub fn apply(&self, text: &str) -> String {
        let (before, after) = (text.get(..self.span.start), text.get(self.span.end..));
        [before.unwrap_or_default(), &self.text, after.unwrap_or_default()].concat()
    }
}

/// What a field for a key shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldValue {
    /// This text; empty if the key is not set.
    Text(String),
    /// The value is an object, a list or a switch, or the text is not JSON: nothing that a field can change.
    Fixed,
}

/// Returns what the field for a key shows. The later of two values counts.
pub fn field_value(text: &str, name: &str) -> FieldValue {
    let Ok(Scanned { root, .. }) = scan(text) else { return FieldValue::Fixed };
    let Some(members) = root.members() else { return FieldValue::Fixed };
    match find(members, name).map(|member| &member.value) {
        None | Some(Value::Null) => FieldValue::Text(String::new()),
        Some(Value::Number(shown) | Value::Text(shown)) => FieldValue::Text(shown.clone()),
        Some(Value::Switch(_) | Value::List | Value::Object(_)) => FieldValue::Fixed,
    }
}

fn find<'m>(members: &'m [Member], name: &str) -> Option<&'m Member> {
    members.iter().rev().find(|member| bare_name(&member.key) == name)
}

/// Returns the edit that gives a key the value that was typed in its field; an empty value removes the key. None if the
/// text is not an object, or if nothing changes.
pub fn set_value(text: &str, known: &KnownKey, typed: &str) -> Option<Edit> {
    let root = scan(text).ok()?.root;
    let members = root.members()?;
    let typed = typed.trim();
    let edit = match (find(members, known.name), typed.is_empty()) {
        (None, true) => return None,
        (None, false) => insertion(text, &root.span, members, known, typed),
        (Some(member), true) => removal(members, member),
        (Some(member), false) => {
            Edit { span: member.value_span.clone(), text: value_text(known.kind, typed, Some(&member.value)) }
        }
    };
    (text.get(edit.span.clone()) != Some(edit.text.as_str())).then_some(edit)
}

/// The value as JSON: a number as it was typed, unless the author writes numbers as text.
fn value_text(kind: KeyKind, typed: &str, old: Option<&Value>) -> String {
    let was_quoted = matches!(old, Some(Value::Text(text)) if is_number(text));
    if kind.is_number() && is_number(typed) && !was_quoted { typed.to_owned() } else { quoted(typed) }
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            control if control.is_control() => {
                // Writing to a string cannot fail.
                let _written = write!(quoted, "\\u{:04x}", u32::from(control));
            }
            letter => quoted.push(letter),
        }
    }
    quoted + "\""
}

/// Adds a key after the last one, in the spelling and with the indentation of the others.
fn insertion(text: &str, object: &Range<usize>, members: &[Member], known: &KnownKey, typed: &str) -> Edit {
    let dashes = if members.iter().any(|member| member.key.starts_with("--")) { "--" } else { "" };
    let entry = format!("\"{dashes}{}\": {}", known.name, value_text(known.kind, typed, None));
    match members.last() {
        Some(last) => {
            let line_start = last.key_span.start - indentation(text, last.key_span.start).len();
            let is_own_line = text.get(..line_start).is_some_and(|before| before.ends_with('\n'));
            let line_end = if text.contains("\r\n") { "\r\n" } else { "\n" };
            let separator = if is_own_line {
                format!(",{line_end}{}", indentation(text, last.key_span.start))
            } else {
                ", ".to_owned()
            };
            Edit { span: last.value_span.end..last.value_span.end, text: separator + &entry }
        }
        None => Edit { span: object.start + 1..object.end - 1, text: format!("\n  {entry}\n") },
    }
}

/// The blanks before a position.
fn indentation(text: &str, position: usize) -> &str {
    let before = text.get(..position).unwrap_or_default();
    before.get(before.trim_end_matches([' ', '\t']).len()..).unwrap_or_default()
}

/// Removes a key with its comma: the one after it, or before the last one.
fn removal(members: &[Member], member: &Member) -> Edit {
    let index = members.iter().position(|other| other.key_span == member.key_span).unwrap_or_default();
    let span = match (index.checked_sub(1).and_then(|before| members.get(before)), members.get(index + 1)) {
        (_, Some(next)) => member.key_span.start..next.key_span.start,
        (Some(previous), None) => previous.value_span.end..member.value_span.end,
        (None, None) => member.key_span.start..member.value_span.end,
    };
    Edit { span, text: String::new() }
}

/// Returns what a line break adds to the text: the break, with the indentation of the line that ends, and one level more
/// after an opening bracket.
pub fn line_break(before: &str) -> String {
    let line = before.rsplit('\n').next().unwrap_or_default();
    let indent = line.get(..line.len() - line.trim_start_matches([' ', '\t']).len()).unwrap_or_default();
    let opens = line.trim_end().ends_with(['{', '[']);
    format!("\n{indent}{}", if opens { "  " } else { "" })
}

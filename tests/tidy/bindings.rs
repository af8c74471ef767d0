//! Names say the thing (docs/GLOSSARY.md): nothing is called by a word that tells a story instead.

use super::{everything, report, sources};

/// Such a name leaves open whether the value is a response, a report, a path, or whether something exists.
const STORY_WORDS: [&str; 10] = ["asked", "gone", "here", "made", "met", "said", "there", "told", "way", "whole"];

/// The length of the word at the start of a text.
fn word_length(text: &str) -> usize {
    text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len())
}

/// The length of the comment, string or character at the start of a text, if there is one.
fn skipped_length(text: &str) -> Option<usize> {
    let until = |start: usize, end: &str| text[start..].find(end).map_or(text.len(), |at| start + at + end.len());
    if text.starts_with("//") {
        return Some(until(0, "\n"));
    }
    if text.starts_with("/*") {
        return Some(until(2, "*/"));
    }
    if text.starts_with(r"'\") {
        return Some(until(3, "'"));
    }
    if text.starts_with('\'') {
        // Otherwise it is a lifetime.
        return text.char_indices().nth(2).filter(|(_, c)| *c == '\'').map(|(at, _)| at + 1);
    }
    let prefix = word_length(text);
    let hashes = text[prefix..].len() - text[prefix..].trim_start_matches('#').len();
    let start = prefix + hashes + 1;
    if !text[prefix + hashes..].starts_with('"') {
        return None;
    }
    if text[..prefix].contains('r') {
        return Some(until(start, &format!("\"{}", "#".repeat(hashes))));
    }
    let mut is_escaped = false;
    let ends = |c: char| {
        let ends = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        ends
    };
    Some(text[start..].find(ends).map_or(text.len(), |at| start + at + 1))
}

/// The story words by which something is called, each with its line. Every declaration is found, and every use except
/// after `.` and `-`: those are sentences of the dashboard (`words.made`) and parts of attributes.
fn story_names(text: &str) -> Vec<(usize, &str)> {
    let (mut found, mut at, mut line, mut before) = (Vec::new(), 0, 1, ' ');
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let token = &rest[..skipped_length(rest).unwrap_or_else(|| word_length(rest).max(c.len_utf8()))];
        if STORY_WORDS.contains(&token) && !matches!(before, '.' | '-') {
            found.push((line, token));
        }
        if !c.is_whitespace() {
            before = token.chars().next_back().unwrap_or(c);
        }
        line += token.matches('\n').count();
        at += token.len();
    }
    found
}

#[test]
fn names_say_the_thing() {
    let mut broken = Vec::new();
    for (file, text) in
        everything().into_iter().chain(sources("benches")).chain(sources("fuzz/src")).chain(sources("prove"))
    {
        for (line, name) in story_names(&text) {
            broken.push(format!("{file}:{line}: {name}: see \"Names in code\" in docs/GLOSSARY.md"));
        }
    }
    report(&broken);
}

#[test]
fn story_words_are_found_where_they_name_something() {
    let text = r##"//! said
/* told */ struct Answer { said: Option<String> }
fn told(there: &str, whole_text: &'static str) -> char {
    let (mut made, quote) = (words.there, '"');
    let path = r#"a "whole" path"#; // made
    let text = "\"said\"
        gone"; let gone = |met| view! { <p data-passkey-said="">{met}</p> };
    Answer { said: asked }
}"##;
    let expected = [
        (2, "said"),
        (3, "told"),
        (3, "there"),
        (4, "made"),
        (7, "gone"),
        (7, "met"),
        (7, "met"),
        (8, "said"),
        (8, "asked"),
    ];
    assert_eq!(story_names(text), expected);
    let literals = r#"'\'' said '\\' b'"' told<'a> br"made" r#type met"#;
    assert_eq!(story_names(literals), [(1, "said"), (1, "told"), (1, "met")]);
}

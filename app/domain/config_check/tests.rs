use super::edit::{Edit, FieldValue, field_value, line_break, set_value};
use super::keys::{KNOWN_KEYS, closest};
use super::*;

/// The findings in short: the place, what is marked, and its kind.
fn found(text: &str) -> Vec<(usize, usize, String, FindingKind)> {
    let findings = check(text, CheckedFile::Config).into_iter();
    let described = findings.map(|Finding { span, kind }| {
        let Place { line, column } = Place::of(text, span.start);
        (line, column, text[span].to_owned(), kind)
    });
    described.collect()
}

#[test]
fn syntax_error_is_named_at_its_place() {
    let rows: [(&str, usize, usize, &str, SyntaxFault); 32] = [
        ("", 1, 1, "", SyntaxFault::Empty),
        (" \n ", 1, 1, " \n ", SyntaxFault::Empty),
        ("\u{feff}{}", 1, 1, "\u{feff}", SyntaxFault::ByteOrderMark),
        ("{\n  \"a\": 1,\n}\n", 2, 9, ",", SyntaxFault::TrailingComma),
        ("{\"a\": [1, 2,]}", 1, 12, ",", SyntaxFault::TrailingComma),
        ("{\"a\": 1\n \"b\": 2}", 2, 2, "\"", SyntaxFault::MissingComma),
        ("[1 2]", 1, 4, "2", SyntaxFault::MissingComma),
        ("{\"a\" 1}", 1, 6, "1", SyntaxFault::MissingColon),
        ("{\"a\": }", 1, 7, "}", SyntaxFault::MissingValue),
        ("{\"a\": ,}", 1, 7, ",", SyntaxFault::MissingValue),
        ("{,}", 1, 2, ",", SyntaxFault::MissingValue),
        ("[,]", 1, 2, ",", SyntaxFault::MissingValue),
        ("{\"a\": 1", 1, 1, "{", SyntaxFault::UnclosedBracket),
        ("{\"a\": [1}", 1, 7, "[", SyntaxFault::UnclosedBracket),
        ("{\"a\": \"x\n}", 1, 7, "\"x", SyntaxFault::UnclosedString),
        ("{\"a\": \"x\r\n}", 1, 7, "\"x", SyntaxFault::UnclosedString),
        ("{a: 1}", 1, 2, "a", SyntaxFault::UnquotedKey),
        ("{--seed: 1}", 1, 2, "--seed", SyntaxFault::UnquotedKey),
        ("{'a': 1}", 1, 2, "'", SyntaxFault::SingleQuotes),
        ("{\"a\": 'x'}", 1, 7, "'", SyntaxFault::SingleQuotes),
        ("{ // why\n}", 1, 3, "// why", SyntaxFault::Comment),
        ("{\"a\": 1 # why\n}", 1, 9, "# why", SyntaxFault::Comment),
        ("{\"a\": True}", 1, 7, "True", SyntaxFault::UnknownWord),
        ("{\"a\": NaN}", 1, 7, "NaN", SyntaxFault::UnknownWord),
        ("{\"a\": .5}", 1, 7, ".5", SyntaxFault::InvalidNumber),
        ("{\"a\": 007}", 1, 7, "007", SyntaxFault::InvalidNumber),
        ("{\"a\": 1e400}", 1, 7, "1e400", SyntaxFault::NumberTooLarge),
        ("{\"a\": \"C:\\d\"}", 1, 10, "\\d", SyntaxFault::InvalidEscape),
        ("{\"a\": \"\\ud800\"}", 1, 8, "\\u", SyntaxFault::InvalidEscape),
        ("{\"a\": \"\t\"}", 1, 8, "\t", SyntaxFault::ControlCharacter),
        ("{\"é😀\":\u{a0}1}", 1, 7, "\u{a0}", SyntaxFault::UnexpectedCharacter),
        ("{} x\n", 1, 4, "x", SyntaxFault::TextAfterEnd),
    ];
    for (text, line, column, marked, fault) in rows {
        assert_eq!(found(text), [(line, column, marked.to_owned(), FindingKind::Syntax(fault))], "{text:?}");
    }
}

#[test]
fn duplicate_key_is_found_in_each_object_and_spelling() {
    let text = r#"{"seed": 1, "a": {"x": 1, "x": 2}, "b": [{"y": 1}, {"y": 1}], "--seed": 2, "\u0061": 3}"#;
    let keys: Vec<_> = check(text, CheckedFile::Config).into_iter().map(|finding| finding.kind).collect();
    let duplicate = |key: &str| FindingKind::DuplicateKey(key.to_owned());
    assert_eq!(keys, [duplicate("x"), duplicate("--seed"), duplicate("a")]);
    let keys: Vec<_> = check(text, CheckedFile::Json).into_iter().map(|finding| finding.kind).collect();
    assert_eq!(keys, [duplicate("x"), duplicate("a")], "only config.json has keys with dashes");
}

#[test]
fn only_an_object_is_a_configuration() {
    assert_eq!(found(" [1]"), [(1, 2, "[1]".to_owned(), FindingKind::NotAnObject)]);
    assert_eq!(check("[1]", CheckedFile::Json), []);
}

#[test]
fn mistyped_keys_are_recognized_in_their_spelling() {
    let rows = [
        ("learning_rat", Some("learning_rate")),
        ("--learnign_rate", Some("--learning_rate")),
        ("learning-rate", Some("learning_rate")),
        ("--Learning_Rate", Some("--learning_rate")),
        ("-seed", Some("seed")),
        ("sed", Some("seed")),
        ("max_train_step", Some("max_train_steps")),
        ("max_train_epochs", None),
        ("lora_alpha", None),
        ("send", Some("seed")),
        ("used", None),
        ("", None),
        ("ключ", None),
    ];
    for (key, expected) in rows {
        assert_eq!(closest(key).as_deref(), expected, "{key}");
    }
    let known = FindingKind::SimilarKey { key: "sed".to_owned(), known: "seed".to_owned() };
    assert_eq!(found(r#"{"sed": {"sed": 1}}"#), [(1, 2, "\"sed\"".to_owned(), known)], "only at the top");
}

#[test]
fn values_of_the_wrong_kind_are_found() {
    let rows = [
        ("learning_rate", "1e-4", true),
        ("learning_rate", "\"1e-4\"", true),
        ("learning_rate", "\"fast\"", false),
        ("learning_rate", "[1]", false),
        ("learning_rate", "null", true),
        ("max_train_steps", "1000", true),
        ("--max_train_steps", "1e3", true),
        ("max_train_steps", "\"1000\"", true),
        ("max_train_steps", "10.5", false),
        ("max_train_steps", "-1", false),
        ("max_train_steps", "true", false),
        ("model_type", "\"lora\"", true),
        ("model_type", "1", false),
        ("some_key", "{}", true),
    ];
    for (key, value, is_accepted) in rows {
        let kinds = found(&format!("{{\"{key}\": {value}}}"));
        let is_wrong = |row: &(usize, usize, String, FindingKind)| matches!(row.3, FindingKind::WrongKind { .. });
        assert_eq!(kinds.iter().any(is_wrong), !is_accepted, "{key}: {value}");
    }
}

#[test]
fn what_the_agent_changes_is_said() {
    let kinds = |text: &str| check(text, CheckedFile::Config).into_iter().map(|found| found.kind).collect::<Vec<_>>();
    let change = |key: &str, change| FindingKind::ChangedByAgent { key: key.to_owned(), change };
    let text = r#"{"--output_dir": "x", "webhook_config": [], "resume_from_checkpoint": "latest"}"#;
    let expected = [
        change("--output_dir", AgentUse::Replaces),
        change("webhook_config", AgentUse::Extends),
        change("resume_from_checkpoint", AgentUse::Resumes),
    ];
    assert_eq!(kinds(text), expected);
    assert_eq!(kinds(r#"{"output_dir": null}"#), []);
}

#[test]
fn known_keys_have_their_own_names() {
    for (index, key) in KNOWN_KEYS.iter().enumerate() {
        assert_eq!(KNOWN_KEYS.iter().position(|other| other.name == key.name), Some(index), "{}", key.name);
        let near = KNOWN_KEYS.iter().filter(|other| closest(&format!("{}x", key.name)).as_deref() == Some(other.name));
        assert_eq!(near.map(|near| near.name).collect::<Vec<_>>(), [key.name], "no other key is as close");
    }
}

#[test]
fn large_text_is_read() {
    let entries: Vec<String> = (0..60_000).map(|number| format!("  \"key {number}\": \"ünicode 😀 \\n\"")).collect();
    let text = format!("{{\n{}\n}}\n", entries.join(",\n"));
    assert!(text.len() > 2_000_000);
    assert_eq!(check(&text, CheckedFile::Config), []);
}

fn known(name: &str) -> KnownKey {
    *KnownKey::find(name).expect("a known key")
}

fn set(text: &str, name: &str, typed: &str) -> String {
    set_value(text, &known(name), typed).map_or_else(|| text.to_owned(), |edit: Edit| edit.apply(text))
}

#[test]
fn field_changes_its_value_and_nothing_else() {
    let text = "{\n\t\"--seed\": 1,\n\n\t\"x\" : [ 1,2 ],\n\t\"--learning_rate\":1e-4\n}\n";
    assert_eq!(set(text, "seed", "42"), text.replace("\"--seed\": 1", "\"--seed\": 42"));
    assert_eq!(set(text, "learning_rate", "5e-5"), text.replace("1e-4", "5e-5"));
    assert_eq!(
        set(text, "model_type", "lo\"ra"),
        text.replace(":1e-4\n", ":1e-4,\n\t\"--model_type\": \"lo\\\"ra\"\n")
    );
    assert_eq!(set(text, "seed", ""), text.replace("\"--seed\": 1,\n\n\t", ""));
    assert_eq!(set(text, "learning_rate", " "), text.replace(",\n\t\"--learning_rate\":1e-4", ""));
    assert_eq!(set_value(text, &known("seed"), "1"), None, "nothing changes");
    assert_eq!(set_value(text, &known("lora_rank"), ""), None);
    assert_eq!(set_value("{", &known("seed"), "1"), None);
    assert_eq!(set("{}", "seed", "1"), "{\n  \"seed\": 1\n}");
    assert_eq!(set("{\n}\n", "seed", "1"), "{\n  \"seed\": 1\n}\n");
    assert_eq!(set("{\"a\": 1}", "seed", "7"), "{\"a\": 1, \"seed\": 7}");
    assert_eq!(set("{\"seed\": 1}", "seed", ""), "{}");
    assert_eq!(set("{\r\n  \"a\": 1\r\n}", "seed", "7"), "{\r\n  \"a\": 1,\r\n  \"seed\": 7\r\n}");
    assert_eq!(set("{\"seed\": \"1\"}", "seed", "7"), "{\"seed\": \"7\"}", "the author writes numbers as text");
    assert_eq!(set("{\"seed\": 1}", "seed", "many"), "{\"seed\": \"many\"}", "which the check then reports");
    assert_eq!(
        set("{\"seed\": 1, \"--seed\": 2}", "seed", "3"),
        "{\"seed\": 1, \"--seed\": 3}",
        "the later one counts"
    );
}

#[test]
fn field_shows_the_value_of_the_text() {
    let shown = |text: &str| field_value(text, "seed");
    let text = |text: &str| FieldValue::Text(text.to_owned());
    assert_eq!((shown("{}"), shown("{\"seed\": null}")), (text(""), text("")));
    assert_eq!((shown("{\"--seed\": 1e3}"), shown("{\"seed\": \"\u{202e}7\"}")), (text("1e3"), text("\u{202e}7")));
    assert_eq!(
        (shown("{\"seed\": {}}"), shown("{"), shown("[]")),
        (FieldValue::Fixed, FieldValue::Fixed, FieldValue::Fixed)
    );
}

#[test]
fn line_break_keeps_the_indentation() {
    assert_eq!(line_break("{"), "\n  ");
    assert_eq!(line_break("{\n\t\"a\": 1,"), "\n\t");
    assert_eq!(line_break("{\n  \"a\": [ "), "\n    ");
    assert_eq!(line_break(""), "\n");
}

#[test]
fn positions_are_those_of_a_browser() {
    assert_eq!((utf16_position("é😀x", 2), utf16_position("é😀x", 6), utf16_position("é", 9)), (1, 3, 1));
}

//! The check of the domain agrees with the parser of the server about what is JSON.

use proptest::prelude::*;
use serde_json::Value as Json;

use crate::domain::config_check::edit::{FieldValue, field_value, set_value};
use crate::domain::config_check::keys::KnownKey;
use crate::domain::config_check::{CheckedFile, check, scan};

fn known(name: &str) -> &'static KnownKey {
    KnownKey::find(name).expect("a known key")
}

#[test]
fn nesting_is_accepted_to_the_depth_of_the_server() {
    for depth in [1, 126, 127, 128, 129, 100_000] {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let inner = if open == "[" { "" } else { "1" };
            let text = format!("{}{inner}{}", open.repeat(depth), close.repeat(depth));
            let is_json = serde_json::from_str::<Json>(&text).is_ok();
            assert_eq!(scan::scan(&text).is_ok(), is_json, "{depth} {open}");
        }
    }
}

/// JSON, and texts that almost are.
fn texts() -> impl Strategy<Value = String> {
    let json = {
        let leaf = prop_oneof![
            Just("null".to_owned()),
            any::<i64>().prop_map(|number| number.to_string()),
            any::<f64>()
                .prop_filter("JSON has no other numbers", |number| number.is_finite())
                .prop_map(|number| format!("{number:e}")),
            "[a-zé😀\"\\\\\n]{0,4}".prop_map(|text| Json::from(text).to_string()),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(|items| format!("[{}]", items.join(", "))),
                proptest::collection::vec(("(--)?(seed|x|\\\\u0061)", inner), 0..4).prop_map(|members| {
                    let members: Vec<_> =
                        members.into_iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
                    format!("{{\r\n{}\n}}", members.join(",\n  "))
                }),
            ]
        })
    };
    let damaged =
        (json.clone(), any::<prop::sample::Index>(), "[ -~\n\t\u{feff}é]{0,2}").prop_map(|(text, at, inserted)| {
            let at = at.index(text.len() + 1);
            let at = (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
            format!("{}{inserted}{}", &text[..at], text[at..].chars().skip(1).collect::<String>())
        });
    prop_oneof![json, damaged, "[\\[\\]{}:,\"\\\\0-9eE.+u truefalsn/#'-]{0,16}", ".{0,12}"]
}

proptest! {
    #[test]
    fn check_agrees_with_the_parser_of_the_server(text in texts()) {
        let parsed = serde_json::from_str::<Json>(&text);
        prop_assert_eq!(scan::scan(&text).is_ok(), parsed.is_ok(), "{:?}", text);
        for finding in check(&text, CheckedFile::Config) {
            prop_assert!(text.get(finding.span).is_some(), "a place is inside the text");
        }
    }

    #[test]
    fn edited_text_has_the_value(text in texts(), typed in "[0-9]{1,3}|[a-z\"\\\\]{1,3}") {
        for name in ["seed", "model_type"] {
            let Some(edit) = set_value(&text, known(name), &typed) else { continue };
            let edited = edit.apply(&text);
            prop_assert!(serde_json::from_str::<Json>(&edited).is_ok(), "{:?} -> {:?}", text, edited);
            prop_assert_eq!(field_value(&edited, name), FieldValue::Text(typed.trim().to_owned()));
            let removed = set_value(&edited, known(name), "").expect("it was set").apply(&edited);
            prop_assert!(serde_json::from_str::<Json>(&removed).is_ok(), "{:?} -> {:?}", edited, removed);
        }
    }
}

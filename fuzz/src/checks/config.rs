//! The text of a configuration, after a line with what is typed into its fields: the check agrees with the parser about what
//! is JSON, its places are inside the text, and a field changes its own value only.

use app::domain::config_check::edit::{FieldValue, field_value, set_value};
use app::domain::config_check::keys::{KNOWN_KEYS, bare_name};
use app::domain::config_check::{CheckedFile, Place, check as check_text, scan, utf16_position};
use serde_json::{Map, Value};

/// See the module.
pub fn check(data: &[u8]) {
    let Some((typed, text)) = super::first_line(data) else { return };
    let parsed = serde_json::from_str::<Value>(text);
    assert_eq!(scan::scan(text).is_ok(), parsed.is_ok(), "{text:?}");
    for finding in check_text(text, CheckedFile::Config) {
        assert!(text.get(finding.span.clone()).is_some(), "{finding:?} in {text:?}");
        let _shown = (Place::of(text, finding.span.start), utf16_position(text, finding.span.end));
    }
    let Ok(Value::Object(before)) = parsed else { return };
    for known in KNOWN_KEYS.iter().filter(|known| known.is_usual) {
        let Some(edit) = set_value(text, known, typed) else { continue };
        let edited = edit.apply(text);
        let after: Map<String, Value> = serde_json::from_str(&edited).expect("an edited object is an object");
        let others = |object: &Map<String, Value>| {
            object.clone().into_iter().filter(|(key, _)| bare_name(key) != known.name).collect::<Map<_, _>>()
        };
        assert_eq!(others(&after), others(&before), "{text:?} -> {edited:?}");
        if !typed.trim().is_empty() {
            assert_eq!(field_value(&edited, known.name), FieldValue::Text(typed.trim().to_owned()), "{edited:?}");
        }
    }
}

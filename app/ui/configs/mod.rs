//! Functions that format, check and compare the files of configurations.

#[cfg(feature = "ssr")]
pub(crate) mod changes;
#[cfg(all(test, feature = "ssr"))]
mod check_tests;
#[cfg(feature = "ssr")]
pub(crate) mod diff;
pub(crate) mod findings;
#[cfg(feature = "ssr")]
pub(crate) mod json;

/// Formats the text of a file for display: JSON in a single line is pretty-printed, and secrets are masked.
#[cfg(feature = "ssr")]
pub(crate) fn format_for_display(name: &str, text: &str) -> String {
    if !is_json(name) {
        return text.to_owned();
    }
    let redacted = json::redact(text);
    if redacted.trim_end().contains('\n') { redacted } else { json::pretty_print(&redacted) }
}

/// Whether the name is that of a JSON file.
pub(crate) fn is_json(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, end)| end.eq_ignore_ascii_case("json"))
}

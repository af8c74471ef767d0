//! Configurations to be read and compared: pure functions over the text of their files.

pub(crate) mod changes;
pub(crate) mod diff;
pub(crate) mod json;

/// A file's text as a reader wants it: JSON that stands in one line is laid out, and values of secrets are hidden.
pub(crate) fn format_for_display(name: &str, text: &str) -> String {
    if !is_json(name) {
        return text.to_owned();
    }
    let hidden = json::redact(text);
    if hidden.trim_end().contains('\n') { hidden } else { json::pretty_print(&hidden) }
}

/// Whether a file is JSON, by its name.
pub(crate) fn is_json(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, end)| end.eq_ignore_ascii_case("json"))
}

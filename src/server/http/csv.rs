//! Comma-separated values.

use axum::http::header;
use axum::response::{IntoResponse, Response};

/// A name as a field (RFC 4180), which no spreadsheet takes for a formula.
pub fn field(name: &str) -> String {
    let formula = name.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let text = if formula { format!("'{name}") } else { name.to_owned() };
    if text.contains([',', '"', '\r', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

/// Lines under a line of names, as a file of this name.
pub fn file(name: &str, lines: String) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/csv; charset=utf-8".to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\"")),
        (header::CACHE_CONTROL, "no-store".to_owned()),
    ];
    (headers, lines).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_fields_and_no_formulas() {
        assert_eq!(field("ada"), "ada");
        assert_eq!(field("=HYPERLINK(\"x\",1)"), "\"'=HYPERLINK(\"\"x\"\",1)\"");
        assert_eq!(["@a", "-1", "+1", "a-b"].map(field), ["'@a", "'-1", "'+1", "a-b"]);
        assert_eq!(field("a\nb"), "\"a\nb\"");
    }
}

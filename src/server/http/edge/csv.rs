use axum::http::header;
use axum::response::{IntoResponse, Response};

/// Returns a name as a field (RFC 4180) that no spreadsheet interprets as a formula.
pub fn csv_field(name: &str) -> String {
    let is_formula = name.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let text = if is_formula { format!("'{name}") } else { name.to_owned() };
    if text.contains([',', '"', '\r', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

/// Returns a CSV file of this name; the first line contains the column names.
pub fn csv_response(name: &str, lines: impl IntoResponse) -> Response {
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
    fn names_are_escaped_and_never_formulas() {
        assert_eq!(csv_field("ada"), "ada");
        assert_eq!(csv_field("=HYPERLINK(\"x\",1)"), "\"'=HYPERLINK(\"\"x\"\",1)\"");
        assert_eq!(["@a", "-1", "+1", "a-b"].map(csv_field), ["'@a", "'-1", "'+1", "a-b"]);
        assert_eq!(csv_field("a\nb"), "\"a\nb\"");
    }
}

//! Messages of syslog, as RFC 5424 has them.

use serde_json::Value;

/// Facility 13 (log audit), severity 5 (notice).
const PRIORITY: u8 = 13 * 8 + 5;

/// A line as a message; its moment is that of the line.
pub fn message(line: &str) -> String {
    let at = serde_json::from_str::<Value>(line).ok().and_then(|line| line["at"].as_str().map(str::to_owned));
    let (at, process) = (at.unwrap_or_else(|| "-".to_owned()), std::process::id());
    // The collector knows better than we do which host that is.
    format!("<{PRIORITY}>1 {at} - simpletuner {process} audit - {line}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_becomes_a_message() {
        let process = std::process::id();
        let line = r#"{"at":"2024-01-15T10:30:00.000Z","seq":1}"#;
        assert_eq!(message(line), format!("<109>1 2024-01-15T10:30:00.000Z - simpletuner {process} audit - {line}"));
        assert_eq!(message("torn"), format!("<109>1 - - simpletuner {process} audit - torn"));
    }
}

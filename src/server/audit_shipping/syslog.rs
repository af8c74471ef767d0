//! Syslog messages (RFC 5424).

use serde_json::Value;

/// Facility 13 (log audit), severity 5 (notice).
const PRIORITY: u8 = 13 * 8 + 5;

/// Formats a line as a message with the line's time.
pub fn format_message(line: &str) -> String {
    let at = serde_json::from_str::<Value>(line).ok().and_then(|line| line["at"].as_str().map(str::to_owned));
    let (at, process) = (at.unwrap_or_else(|| "-".to_owned()), std::process::id());
    // The collector adds the host's name itself.
    format!("<{PRIORITY}>1 {at} - simpletuner {process} audit - {line}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_is_formatted_as_a_message() {
        let process = std::process::id();
        let line = r#"{"at":"2024-01-15T10:30:00.000Z","seq":1}"#;
        assert_eq!(
            format_message(line),
            format!("<109>1 2024-01-15T10:30:00.000Z - simpletuner {process} audit - {line}")
        );
        assert_eq!(format_message("torn"), format!("<109>1 - - simpletuner {process} audit - torn"));
    }
}

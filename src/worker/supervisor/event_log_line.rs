//! Writes errors and warnings from events to the trainer's log, which may not contain them.

use app::domain::exit_diagnosis::EVENT_PREFIX;
use serde_json::Value;

use crate::worker::progress::event_type;

/// Severities without a log line: trainers report many successes.
const IGNORED_SEVERITIES: &[&str] = &["debug", "info", "success"];
/// Max characters of a line.
const MAX_LINE_CHARS: usize = 2_000;

/// The line for an event, if it reports a problem.
pub fn log_line(event: &Value) -> Option<String> {
    let kind = event_type(event)?;
    let line = match kind {
        "gpu.fault" => format_fault(&event["fault"]),
        "notification" | "error" => format_notice(kind, event)?,
        _ => return None,
    };
    Some(line.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MAX_LINE_CHARS).collect())
}

fn format_fault(fault: &Value) -> String {
    let kind = value_text(&fault["type"]).unwrap_or_else(|| "unknown".to_owned());
    let gpu = value_text(&fault["gpu"]).map(|gpu| format!(" on GPU {gpu}")).unwrap_or_default();
    let action = value_text(&fault["action_taken"]).map(|action| format!("; action: {action}")).unwrap_or_default();
    format!("{EVENT_PREFIX}ERROR GPU fault: {kind}{gpu}{action}")
}

fn format_notice(kind: &str, event: &Value) -> Option<String> {
    let [severity, title, message] = ["severity", "title", "message"].map(|key| value_text(&event[key]));
    let severity = severity.unwrap_or_else(|| if kind == "error" { "error" } else { "info" }.to_owned());
    if IGNORED_SEVERITIES.contains(&severity.to_lowercase().as_str()) {
        return None;
    }
    let body = [title, message].into_iter().flatten().collect::<Vec<_>>().join(": ");
    Some(format!("{EVENT_PREFIX}{} {body}", severity.to_uppercase()))
}

fn value_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Object(fields) => ["index", "name", "uuid"].iter().find_map(|key| value_text(fields.get(*key)?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn problems_get_a_log_line() {
        let rows = [
            (
                json!({"type": "gpu.fault", "fault": {"type": "thermal", "gpu": {"index": 1}, "action_taken": "paused"}}),
                Some("[event] ERROR GPU fault: thermal on GPU 1; action: paused"),
            ),
            (json!({"type": "gpu.fault"}), Some("[event] ERROR GPU fault: unknown")),
            (
                json!({"type": "notification", "severity": "warning", "title": "Disk", "message": "nearly\nfull"}),
                Some("[event] WARNING Disk: nearly full"),
            ),
            (json!({"type": "error", "message": "CUDA out of memory"}), Some("[event] ERROR CUDA out of memory")),
            (json!({"type": "notification", "severity": "info", "message": "started"}), None),
            (json!({"type": "notification", "message": "started"}), None),
            (json!({"type": "training.status"}), None),
            (json!([1]), None),
        ];
        for (event, expected) in rows {
            assert_eq!(log_line(&event).as_deref(), expected, "{event}");
        }
        let long = json!({"type": "error", "message": "x".repeat(9_000)});
        assert_eq!(log_line(&long).map(|line| line.chars().count()), Some(MAX_LINE_CHARS));
    }
}

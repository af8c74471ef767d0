//! What a trainer tells by an event and may not have written to its log: faults, errors, warnings. It gets a line there.

use serde_json::Value;

/// Severities that need no line: trainers notify of much that goes well.
const QUIET: &[&str] = &["debug", "info", "success"];
/// The longest line, in characters.
const LONGEST: usize = 2_000;

/// The line for an event, if it tells of trouble.
pub fn line(event: &Value) -> Option<String> {
    let kind = ["type", "event", "event_type", "message_type"].iter().find_map(|key| event[*key].as_str())?;
    let line = match kind {
        "gpu.fault" => fault(&event["fault"]),
        "notification" | "error" => notice(kind, event)?,
        _ => return None,
    };
    Some(line.chars().map(|found| if found.is_control() { ' ' } else { found }).take(LONGEST).collect())
}

fn fault(fault: &Value) -> String {
    let kind = said(&fault["type"]).unwrap_or_else(|| "unknown".to_owned());
    let gpu = said(&fault["gpu"]).map(|gpu| format!(" on GPU {gpu}")).unwrap_or_default();
    let action = said(&fault["action_taken"]).map(|action| format!("; action: {action}")).unwrap_or_default();
    format!("[event] ERROR GPU fault: {kind}{gpu}{action}")
}

fn notice(kind: &str, event: &Value) -> Option<String> {
    let [severity, title, message] = ["severity", "title", "message"].map(|key| said(&event[key]));
    let severity = severity.unwrap_or_else(|| if kind == "error" { "error" } else { "info" }.to_owned());
    if QUIET.contains(&severity.to_lowercase().as_str()) {
        return None;
    }
    let body = [title, message].into_iter().flatten().collect::<Vec<_>>().join(": ");
    Some(format!("[event] {} {body}", severity.to_uppercase()))
}

fn said(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Object(fields) => ["index", "name", "uuid"].iter().find_map(|key| said(fields.get(*key)?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn trouble_gets_a_line() {
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
            assert_eq!(line(&event).as_deref(), expected, "{event}");
        }
        let long = json!({"type": "error", "message": "x".repeat(9_000)});
        assert_eq!(line(&long).map(|line| line.chars().count()), Some(LONGEST));
    }
}

//! Parses the responses of the providers' metadata services.

use std::time::Duration;

use app::domain::time::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::TerminationNotice;
use crate::worker::clock;

/// Google gives notice half a minute before, without a time.
const GCP_NOTICE: Duration = Duration::from_secs(30);

fn time_left(at: Option<Timestamp>, now: Timestamp) -> Option<Duration> {
    Some(Duration::from_millis(u64::try_from((at? - now).0).unwrap_or_default()))
}

/// `spot/instance-action`: 404 until there is a notice.
pub fn parse_aws(status: u16, body: &str, now: Timestamp) -> Option<TerminationNotice> {
    #[derive(Deserialize)]
    struct InstanceAction {
        action: String,
        #[serde(default)]
        time: String,
    }
    let action: InstanceAction = serde_json::from_str(body).ok().filter(|_| status == 200)?;
    let is_termination = matches!(action.action.as_str(), "terminate" | "stop" | "hibernate");
    is_termination.then(|| TerminationNotice { time_left: time_left(Timestamp::parse_rfc3339(&action.time), now) })
}

/// `instance/preempted`: a word.
pub fn parse_gcp(status: u16, body: &str) -> Option<TerminationNotice> {
    (status == 200 && body.trim() == "TRUE").then_some(TerminationNotice { time_left: Some(GCP_NOTICE) })
}

/// `scheduledevents`: lists those of all machines of a set; `machine_name` is this one's name, if it is known.
pub fn parse_azure(status: u16, body: &str, machine_name: Option<&str>, now: Timestamp) -> Option<TerminationNotice> {
    let document: Value = serde_json::from_str(body).ok().filter(|_| status == 200)?;
    let mut events = document["Events"].as_array()?.iter();
    let event = events.find(|event| {
        let resources = event["Resources"].as_array();
        let is_own =
            machine_name.zip(resources).is_none_or(|(machine_name, all)| all.iter().any(|name| name == machine_name));
        event["EventType"] == "Preempt" && is_own
    })?;
    Some(TerminationNotice { time_left: time_left(event["NotBefore"].as_str().and_then(clock::parse_http_date), now) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2024-01-15T10:30:00Z";

    fn now() -> Timestamp {
        Timestamp::parse_rfc3339(NOW).expect("a time")
    }

    fn in_seconds(seconds: u64) -> TerminationNotice {
        TerminationNotice { time_left: Some(Duration::from_secs(seconds)) }
    }

    #[test]
    fn aws_notice_has_a_time() {
        let terminate = r#"{"action": "terminate", "time": "2024-01-15T10:32:00Z"}"#;
        let cases = [
            (200, terminate, Some(in_seconds(120))),
            (200, r#"{"action": "stop", "time": "2024-01-15T10:29:00Z"}"#, Some(in_seconds(0))),
            (200, r#"{"action": "hibernate"}"#, Some(TerminationNotice { time_left: None })),
            (200, r#"{"action": "none"}"#, None),
            (404, terminate, None),
            (200, "<html>", None),
        ];
        for (status, body, expected) in cases {
            assert_eq!(parse_aws(status, body, now()), expected, "{status} {body}");
        }
    }

    #[test]
    fn gcp_notice_is_a_word() {
        let cases = [(200, "TRUE\n", Some(in_seconds(30))), (200, "FALSE", None), (403, "TRUE", None), (200, "", None)];
        for (status, body, expected) in cases {
            assert_eq!(parse_gcp(status, body), expected, "{status} {body}");
        }
    }

    #[test]
    fn azure_lists_events_of_a_whole_set() {
        let event = |kind: &str, resource: &str, not_before: &str| {
            format!(
                r#"{{"DocumentIncarnation": 2, "Events": [{{"EventId": "x", "EventStatus": "Scheduled", "EventType": "{kind}",
                "ResourceType": "VirtualMachine", "Resources": ["{resource}"], "NotBefore": "{not_before}"}}]}}"#
            )
        };
        let soon = "Mon, 15 Jan 2024 10:30:45 GMT";
        let cases = [
            (event("Preempt", "gpu-1", soon), Some("gpu-1"), Some(in_seconds(45))),
            (event("Preempt", "gpu-2", soon), Some("gpu-1"), None),
            (event("Preempt", "gpu-2", soon), None, Some(in_seconds(45))),
            (event("Preempt", "gpu-1", ""), Some("gpu-1"), Some(TerminationNotice { time_left: None })),
            (event("Reboot", "gpu-1", soon), Some("gpu-1"), None),
            (r#"{"DocumentIncarnation": 1, "Events": []}"#.to_owned(), Some("gpu-1"), None),
            ("x".to_owned(), None, None),
        ];
        for (body, machine_name, expected) in cases {
            assert_eq!(parse_azure(200, &body, machine_name, now()), expected, "{machine_name:?} {body}");
        }
    }
}

//! The agent's state in one line.

use app::domain::time::Timestamp;

use crate::worker::context::JobProgress;
use crate::worker::files::AttemptKey;

#[derive(Debug, Clone, PartialEq)]
pub struct StatusLine {
    /// Since when the orchestrator cannot be reached.
    pub unreachable_since: Option<Timestamp>,
    /// Whether the agent has ever registered.
    pub registered: bool,
    /// Whether the agent was asked to stop.
    pub is_stopping: bool,
    /// Running attempts and their progress.
    pub running: Vec<(AttemptKey, JobProgress)>,
}

impl StatusLine {
    /// For users; includes the progress of jobs only where the line is updated continuously.
    pub fn render(&self, with_progress: bool) -> String {
        let mut parts = Vec::new();
        match (self.unreachable_since, self.registered) {
            (Some(since), true) => parts.push(format!("unreachable since {}", format_time(since))),
            (Some(since), false) => parts.push(format!("not connected yet, trying since {}", format_time(since))),
            (None, _) => parts.push("connected".to_owned()),
        }
        if self.is_stopping {
            parts.push("stopping".to_owned());
        }
        if self.running.is_empty() {
            parts.push("idle".to_owned());
        } else {
            let jobs: Vec<String> =
                self.running.iter().map(|(key, progress)| format_job(key, *progress, with_progress)).collect();
            parts.push(format!("busy with {}", jobs.join(", ")));
        }
        parts.join(", ")
    }
}

fn format_job(key: &AttemptKey, progress: JobProgress, with_progress: bool) -> String {
    let step = match (progress.step, progress.total) {
        (Some(step), Some(total)) => Some(format!("step {step}/{total}")),
        (Some(step), None) => Some(format!("step {step}")),
        (None, _) => None,
    };
    let loss = progress.loss.map(|loss| format!("loss {loss:.4}"));
    let details: Vec<String> = step.into_iter().chain(loss).filter(|_| with_progress).collect();
    if details.is_empty() { key.job_id.to_string() } else { format!("{} ({})", key.job_id, details.join(", ")) }
}

/// `23:04:05 UTC`
fn format_time(at: Timestamp) -> String {
    let text = at.to_string();
    format!("{} UTC", text.get(11..19).unwrap_or(&text))
}

#[cfg(test)]
mod tests {
    use app::domain::ids::{AttemptNumber, JobId};

    use super::*;

    #[test]
    fn status_line_describes_each_state() {
        let since = Timestamp::parse_rfc3339("2024-01-15T10:30:05Z");
        let key = |id: &str| AttemptKey { job_id: JobId::parse(id).expect("an id"), attempt: AttemptNumber(1) };
        let progress = JobProgress { step: Some(5), total: Some(10), loss: Some(0.25) };
        let status_line = |unreachable_since, registered, is_stopping, running: &[(AttemptKey, JobProgress)]| {
            StatusLine { unreachable_since, registered, is_stopping, running: running.to_vec() }
        };
        let cases = [
            (status_line(since, false, false, &[]), "not connected yet, trying since 10:30:05 UTC, idle"),
            (status_line(None, true, false, &[]), "connected, idle"),
            (
                status_line(None, true, false, &[(key("j_1"), progress)]),
                "connected, busy with j_1 (step 5/10, loss 0.2500)",
            ),
            (
                status_line(since, true, true, &[(key("j_1"), progress), (key("j_2"), JobProgress::default())]),
                "unreachable since 10:30:05 UTC, stopping, busy with j_1 (step 5/10, loss 0.2500), j_2",
            ),
        ];
        for (status_line, expected) in cases {
            assert_eq!(status_line.render(true), expected);
        }
        assert_eq!(status_line(None, true, false, &[(key("j_1"), progress)]).render(false), "connected, busy with j_1");
    }
}

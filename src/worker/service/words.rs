//! How the agent stands, in one line.

use app::domain::time::Timestamp;

use super::seen::Progress;
use crate::files::Key;

/// How it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct View {
    /// Since when the orchestrator is out of reach, if it is.
    pub away_since: Option<Timestamp>,
    /// Whether it was ever reached.
    pub registered: bool,
    /// Whether the agent was told to end.
    pub ending: bool,
    /// What runs, and how far it is.
    pub running: Vec<(Key, Progress)>,
}

impl View {
    /// For a person; with how far jobs are only where it is looked at all the time.
    pub fn words(&self, with_progress: bool) -> String {
        let mut parts = Vec::new();
        match (self.away_since, self.registered) {
            (Some(since), true) => parts.push(format!("out of reach since {}", clock(since))),
            (Some(since), false) => parts.push(format!("not connected yet, trying since {}", clock(since))),
            (None, _) => parts.push("connected".to_owned()),
        }
        if self.ending {
            parts.push("ending".to_owned());
        }
        if self.running.is_empty() {
            parts.push("idle".to_owned());
        } else {
            let jobs: Vec<String> =
                self.running.iter().map(|(key, progress)| job(key, *progress, with_progress)).collect();
            parts.push(format!("busy with {}", jobs.join(", ")));
        }
        parts.join(", ")
    }
}

fn job(key: &Key, progress: Progress, with_progress: bool) -> String {
    let step = match (progress.step, progress.total) {
        (Some(step), Some(total)) => Some(format!("step {step}/{total}")),
        (Some(step), None) => Some(format!("step {step}")),
        (None, _) => None,
    };
    let loss = progress.loss.map(|loss| format!("loss {loss:.4}"));
    let said: Vec<String> = step.into_iter().chain(loss).filter(|_| with_progress).collect();
    if said.is_empty() { key.job_id.to_string() } else { format!("{} ({})", key.job_id, said.join(", ")) }
}

/// `23:04:05 UTC`
fn clock(at: Timestamp) -> String {
    let text = at.to_string();
    format!("{} UTC", text.get(11..19).unwrap_or(&text))
}

#[cfg(test)]
mod tests {
    use app::domain::ids::{Attempt, JobId};

    use super::*;

    #[test]
    fn each_state_has_its_words() {
        let since = Timestamp::parse_rfc3339("2024-01-15T10:30:05Z");
        let key = |id: &str| Key { job_id: JobId::parse(id).expect("an id"), attempt: Attempt(1) };
        let half = Progress { step: Some(5), total: Some(10), loss: Some(0.25) };
        let view = |away_since, registered, ending, running: &[(Key, Progress)]| View {
            away_since,
            registered,
            ending,
            running: running.to_vec(),
        };
        let cases = [
            (view(since, false, false, &[]), "not connected yet, trying since 10:30:05 UTC, idle"),
            (view(None, true, false, &[]), "connected, idle"),
            (view(None, true, false, &[(key("j_1"), half)]), "connected, busy with j_1 (step 5/10, loss 0.2500)"),
            (
                view(since, true, true, &[(key("j_1"), half), (key("j_2"), Progress::default())]),
                "out of reach since 10:30:05 UTC, ending, busy with j_1 (step 5/10, loss 0.2500), j_2",
            ),
        ];
        for (view, words) in cases {
            assert_eq!(view.words(true), words);
        }
        assert_eq!(view(None, true, false, &[(key("j_1"), half)]).words(false), "connected, busy with j_1");
    }
}

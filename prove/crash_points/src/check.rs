//! Checks what a server recovers from a crash.

use std::path::Path;

use anyhow::{Result, bail};
use serde_json::{Value, json};

use crate::client::{Change, Client, text};
use crate::observation::Observation;
use crate::server::{Server, Settings};
use crate::workload::{Repetition, Step};

/// Names of objects that a check creates.
const PROBE: &str = "probe";

/// The steps between which a crash happened.
pub struct Expectation<'a> {
    /// The last acknowledged step.
    before: Option<&'a Step>,
    /// The step that had begun.
    after: Option<&'a Step>,
}

impl<'a> Expectation<'a> {
    /// For a crash after this many operations.
    pub fn at(steps: &'a [Step], prefix: usize) -> Self {
        let acknowledged = steps.iter().take_while(|step| step.acknowledged <= prefix).count();
        Self { before: acknowledged.checked_sub(1).map(|last| &steps[last]), after: steps.get(acknowledged) }
    }

    /// For a report.
    pub fn describe(&self) -> String {
        let name = |step: Option<&Step>| step.map_or_else(|| "none".to_owned(), |step| step.name.clone());
        format!("acknowledged: {}, begun: {}", name(self.before), name(self.after))
    }
}

/// Starts a server on a recovered directory; returns what is wrong.
pub fn check(settings: &Settings, root: &Path, expected: &Expectation<'_>) -> Result<Vec<String>> {
    let server = match Server::start(settings, root) {
        Ok(server) => server,
        Err(error) => return Ok(vec![format!("{error:#}")]),
    };
    let mut violations = match check_running(&server.client, expected) {
        Ok(violations) => violations,
        Err(error) => vec![format!("{error:#}")],
    };
    let log = server.kill()?;
    let is_error = |line: &&str| line.contains(" ERROR ") || line.contains("panicked");
    violations.extend(log.lines().filter(is_error).map(str::to_owned));
    if !violations.is_empty() {
        violations.insert(0, expected.describe());
    }
    Ok(violations)
}

fn check_running(client: &Client, expected: &Expectation<'_>) -> Result<Vec<String>> {
    let found = Observation::of(client)?;
    let nothing = Observation::default();
    let mut violations = match (expected.before, expected.after) {
        (Some(before), None) => found.violations(&before.after, &before.after, false),
        (Some(before), Some(after)) => found.violations(&before.after, &after.after, after.is_gradual),
        // Before the first response only what the start creates may be there.
        (None, _) => found.logs.keys().map(|job| format!("{job} was not submitted")).collect(),
    };
    if let Some(step) = expected.after
        && let Some(repetition) = &step.repetition
    {
        repeat(client, repetition)?;
        let repeated = Observation::of(client)?;
        let before = expected.before.map_or(&nothing, |step| &step.after);
        violations.extend(after_repetition(&repeated, before, &step.after));
    }
    violations.extend(check_usable(client)?);
    Ok(violations)
}

/// A job can be submitted and offered, and the audit log is intact.
pub fn check_usable(client: &Client) -> Result<Option<String>> {
    use_server(client)?;
    let audit = client.get("/api/audit/verify")?;
    Ok((audit["intact"] != true).then(|| format!("the audit log: {audit}")))
}

/// Repeats a change as agents do: also again, if the server rejects what has arrived before the crash.
fn repeat(client: &Client, repetition: &Repetition) -> Result<()> {
    let credential = repetition.credential.clone();
    let client = credential.map_or_else(|| client.clone(), |(header, token)| client.with_header(header, token));
    let send = || repetition.changes.iter().try_for_each(|change| client.change(PROBE, change).map(drop));
    if repetition.changes.len() > 1 { send().or_else(|_| send()) } else { send() }
}

/// A repeated request completes the change, once.
fn after_repetition(repeated: &Observation, before: &Observation, after: &Observation) -> Vec<String> {
    let mut violations = Vec::new();
    if repeated.logs.len() != after.logs.len() {
        violations.push(format!("{} jobs after the repetition, not {}", repeated.logs.len(), after.logs.len()));
    }
    for (job, log) in after.logs.iter().filter(|(job, _)| before.logs.contains_key(*job)) {
        if repeated.logs.get(job) != Some(log) {
            violations.push(format!("the log of {job} differs from what was sent, after the repetition"));
        }
    }
    let artifacts = after.records.iter().filter(|(key, _)| key.starts_with("artifact"));
    let missing = artifacts
        .filter(|(key, value)| repeated.records.get(*key).map(|found| &found["sha256"]) != Some(&value["sha256"]));
    violations.extend(missing.map(|(key, _)| format!("{key} differs after the repetition")));
    violations
}

/// A job can be submitted and offered.
fn use_server(client: &Client) -> Result<()> {
    let send = |change: Change| client.change(PROBE, &change);
    send(Change::new("PUT", format!("/api/configs/{PROBE}"), &json!({"files": {"config.json": "{}"}})))?;
    let labels = json!({PROBE: "1"});
    let worker = json!({"name": PROBE, "worker_type": "persistent", "labels": labels});
    let worker = send(Change::new("POST", "/api/admin/workers", &worker))?;
    let submit = json!({"config_name": PROBE, "target": "worker", "worker_labels": labels});
    let job = text(&send(Change::new("POST", "/api/queue/submit", &submit))?, "job_id")?;
    let agent = client.with_header("x-worker-token", text(&worker, "token")?);
    let body = json!({"protocol": 1, "persistent": true, "accelerator_type": "cpu", "attempts": []});
    let registered: Value = agent.change(PROBE, &Change::new("POST", "/api/workers/register", &body))?;
    let session = client.with_header("x-worker-token", text(&registered, "session")?);
    let offer = session.events()?.wait_for("job_submit")?;
    if offer["job_id"] != job.as_str() {
        bail!("{} was offered instead of {job}", offer["job_id"]);
    }
    Ok(())
}

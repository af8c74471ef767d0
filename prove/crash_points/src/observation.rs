//! What a server shows of its state, without what depends on the time.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::client::{Client, text};

/// The prefix of the IDs of requests that change something.
pub const STEP: &str = "step-";

/// Fields of a job that are not part of its state.
const VOLATILE_OF_JOBS: [&str; 4] = ["queue_position", "fits_none", "progress", "eta_seconds"];
/// Fields of a job that an offer changes, and its expiry.
const OFFER_OF_JOBS: [&str; 7] =
    ["status", "status_since", "attempt", "attempts", "worker_id", "worker_name", "loss_code"];
/// Fields of a worker that a user has set.
const SET_OF_WORKERS: [&str; 6] = ["worker_id", "name", "worker_type", "labels", "draining", "drain"];

/// A server's state as its API shows it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Observation {
    /// What is in the database, by object.
    pub records: BTreeMap<String, Value>,
    /// The log of each job.
    pub logs: BTreeMap<String, Vec<u8>>,
}

impl Observation {
    pub fn of(client: &Client) -> Result<Self> {
        let mut observed = Self::default();
        observed.add_jobs(client)?;
        observed.add_list(client, "/api/configs", "configs", "name", |config| {
            pick(config, &["name", "revision", "sha256"])
        })?;
        observed
            .add_list(client, "/api/admin/workers", "workers", "worker_id", |worker| pick(worker, &SET_OF_WORKERS))?;
        observed.add_list(client, "/api/account/tokens", "tokens", "id", |token| pick(token, &["id", "name"]))?;
        observed.add_list(client, "/api/secrets", "secrets", "name", |secret| pick(secret, &["name", "shared"]))?;
        observed.add_list(client, "/api/admin/users", "users", "id", |user| pick(user, &["id", "name", "role"]))?;
        let audit = client.get("/api/audit?limit=500")?;
        let entries = audit["entries"].as_array().context("entries of the audit log")?.iter().rev();
        let by_steps = entries.filter(|entry| entry["request_id"].as_str().is_some_and(|id| id.starts_with(STEP)));
        let entries = by_steps.map(|entry| pick(entry, &["request_id", "action", "target"])).collect();
        observed.records.insert("audit".to_owned(), Value::Array(entries));
        Ok(observed)
    }

    fn add_jobs(&mut self, client: &Client) -> Result<()> {
        let jobs = client.get("/api/queue?limit=200")?;
        for job in jobs["jobs"].as_array().context("jobs")? {
            let id = text(job, "job_id")?;
            let mut view = client.get(&format!("/api/queue/{id}"))?;
            remove(&mut view, &VOLATILE_OF_JOBS);
            for attempt in view["attempts"].as_array_mut().into_iter().flatten() {
                // Logs are compared themselves.
                remove(attempt, &["log_bytes"]);
            }
            if has_open_offer(&view) {
                remove(&mut view, &OFFER_OF_JOBS);
            }
            self.records.insert(format!("job {id}"), view);
            self.logs.insert(id.clone(), client.bytes(&format!("/api/queue/{id}/logs?raw=1"))?);
            let metrics = client.get(&format!("/api/queue/{id}/metrics"))?;
            self.records.insert(format!("metrics {id}"), metrics);
            let artifacts = client.get(&format!("/api/queue/{id}/artifacts"))?;
            for artifact in artifacts["artifacts"].as_array().context("artifacts")? {
                let path = text(artifact, "path")?;
                let content = client.bytes(&format!("/api/queue/{id}/artifacts/{path}"))?;
                let facts = json!({"listed": artifact, "sha256": hex(&Sha256::digest(content))});
                self.records.insert(format!("artifact {id} {path}"), facts);
            }
        }
        Ok(())
    }

    fn add_list(
        &mut self,
        client: &Client,
        path: &str,
        list: &str,
        id: &str,
        facts: impl Fn(&Value) -> Value,
    ) -> Result<()> {
        let answer = client.get(path)?;
        for item in answer[list].as_array().with_context(|| format!("{list} of {path}: {answer}"))? {
            self.records.insert(format!("{list} {}", text(item, id)?), facts(item));
        }
        Ok(())
    }

    /// How it contradicts the two states between which it must be: all records of one of them, and each log at least as
    /// far as in the first and at most as far as in the second.
    /// If the change is gradual, each record alone may be as in either.
    pub fn violations(&self, before: &Self, after: &Self, is_gradual: bool) -> Vec<String> {
        let mut violations = Vec::new();
        let keys: BTreeSet<_> = [self, before, after].iter().flat_map(|state| state.records.keys()).collect();
        let (mut old, mut new) = (Vec::new(), Vec::new());
        for key in keys {
            let [found, first, second] = [self, before, after].map(|state| state.records.get(key));
            match (found == first, found == second) {
                (true, true) => {}
                (true, false) => old.push(key.as_str()),
                (false, true) => new.push(key.as_str()),
                (false, false) => violations.push(format!("{key}: {}", describe(found, first, second))),
            }
        }
        if !old.is_empty() && !new.is_empty() && !is_gradual {
            violations.push(format!("half of a change: {} is as before, {} as after", old.join(", "), new.join(", ")));
        }
        for (job, log) in &after.logs {
            let acknowledged = before.logs.get(job).map_or(&[][..], Vec::as_slice);
            let found = self.logs.get(job).map_or(&[][..], Vec::as_slice);
            // ext4 may commit the length of a write before its data: until its worker sends it again, what was not
            // acknowledged may be zeros. After the repetition the log is complete.
            let is_sent_or_zero = |(found, sent): (&u8, &u8)| found == sent || *found == 0;
            let is_part = found.len() <= log.len() && found.iter().zip(log).all(is_sent_or_zero);
            if !found.starts_with(acknowledged) || !is_part {
                violations.push(format!(
                    "log of {job}: {} bytes of which {} are as sent; {} were acknowledged, {} sent",
                    found.len(),
                    found.iter().zip(log).take_while(|(found, sent)| found == sent).count(),
                    acknowledged.len(),
                    log.len()
                ));
            }
        }
        violations
    }
}

fn describe(found: Option<&Value>, first: Option<&Value>, second: Option<&Value>) -> String {
    let text = |value: Option<&Value>| value.map_or_else(|| "missing".to_owned(), Value::to_string);
    if first == second {
        format!("is {}, was acknowledged as {}", text(found), text(first))
    } else {
        format!("is {}, was {} before and {} after the change", text(found), text(first), text(second))
    }
}

/// Whether a job is offered, or was until its offer expired. A check of a server may start after that.
fn has_open_offer(job: &Value) -> bool {
    let last = job["attempts"].as_array().and_then(|attempts| attempts.last());
    job["status"] == "offered" || last.is_some_and(|attempt| attempt["outcome"] == "expired")
}

fn pick(object: &Value, fields: &[&str]) -> Value {
    fields
        .iter()
        .filter(|field| !object[**field].is_null())
        .map(|field| ((*field).to_owned(), object[*field].clone()))
        .collect()
}

fn remove(object: &mut Value, fields: &[&str]) {
    if let Some(object) = object.as_object_mut() {
        object.retain(|field, _| !fields.contains(&field.as_str()));
    }
}

/// Bytes in hex.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

//! What users and an agent do with the server while it is recorded.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::client::{Change, Client, Events, text};
use crate::observation::{Observation, STEP, hex};
use crate::recording::SharedRecording;
use crate::wait::wait_for;

/// One change, and the state after it.
#[derive(Debug, Clone)]
pub struct Step {
    pub name: String,
    /// How many operations had ended when its response was sent.
    pub acknowledged: usize,
    /// How a client repeats it after a crash.
    pub repetition: Option<Repetition>,
    pub after: Observation,
    /// Whether it consists of several changes, of which a crash may separate any.
    pub is_gradual: bool,
}

/// A change that completes, and happens once, if a client repeats it.
#[derive(Debug, Clone)]
pub struct Repetition {
    /// All of them in order; a file in chunks is sent again from its begin.
    pub changes: Vec<Change>,
    /// The header that authenticates them, if it is not the admin's.
    pub credential: Option<Credential>,
}

/// A header.
pub type Credential = (&'static str, String);

/// Runs steps against one server.
pub struct Workload<'a> {
    client: Client,
    recording: &'a SharedRecording,
    /// How many steps have happened, observed or not.
    pub acknowledged: usize,
    pub steps: &'a mut Vec<Step>,
}

/// An attempt that a worker was offered.
struct Attempt {
    job: String,
    number: u64,
    token: String,
}

impl<'a> Workload<'a> {
    pub fn new(client: &Client, recording: &'a SharedRecording, steps: &'a mut Vec<Step>) -> Self {
        Self { client: client.clone(), recording, acknowledged: 0, steps }
    }

    /// A change by the admin.
    fn change(&mut self, name: &str, change: &Change) -> Result<Value> {
        self.change_by(name, change, None, None)
    }

    /// A change that can be repeated.
    fn repeatable(&mut self, name: &str, change: &Change, by: Option<Credential>) -> Result<Value> {
        self.change_by(name, change, by, Some(vec![change.clone()]))
    }

    fn change_by(
        &mut self,
        name: &str,
        change: &Change,
        by: Option<Credential>,
        repetition: Option<Vec<Change>>,
    ) -> Result<Value> {
        let id = format!("{STEP}{}-{name}", self.steps.len());
        let client = match &by {
            Some((header, token)) => self.client.with_header(header, token.clone()),
            None => self.client.clone(),
        };
        let response = client.change(&id, change).with_context(|| id.clone())?;
        let acknowledged = self.recording.lock().responses.get(&id).copied();
        let acknowledged = acknowledged.with_context(|| format!("the response to {id} was not recorded"))?;
        self.observe(name, acknowledged, repetition.map(|changes| Repetition { changes, credential: by }))?;
        Ok(response)
    }

    /// Ends a step.
    fn observe(&mut self, name: &str, acknowledged: usize, repetition: Option<Repetition>) -> Result<()> {
        self.acknowledged += 1;
        let after = Observation::of(&self.client)?;
        self.steps.push(Step { name: name.to_owned(), acknowledged, repetition, after, is_gradual: false });
        Ok(())
    }

    /// What a server does at the begin of its life.
    pub fn first_day(&mut self) -> Result<()> {
        self.observe("started", self.recording.length(), None)?;
        let files = json!({"files": {"config.json": "{}"}});
        self.change("config", &Change::new("PUT", "/api/configs/digits", &files))?;
        let files = json!({"files": {"config.json": "{\"seed\": 7}", "prompts.json": "[]"}});
        self.change("config-revision", &Change::new("PUT", "/api/configs/digits", &files))?;
        self.change("token", &Change::new("POST", "/api/account/tokens", &json!({"name": "script"})))?;
        self.change("secret", &Change::new("PUT", "/api/secrets/WANDB_API_KEY", &json!({"value": "hf_secret"})))?;
        let user = json!({"name": "ada", "role": "researcher", "password": "correct horse battery staple 9"});
        self.change("user", &Change::new("POST", "/api/admin/users", &user))?;
        let worker = json!({"name": "gpu-1", "worker_type": "persistent", "labels": {"site": "one"}});
        let worker = self.change("worker", &Change::new("POST", "/api/admin/workers", &worker))?;
        let first = self.submit("submit-first")?;
        let second = self.submit("submit-second")?;
        let priority = Change::new("POST", format!("/api/queue/{second}/priority"), &json!({"priority": 9}));
        self.change("priority", &priority)?;
        self.change("cancel", &Change::new("POST", format!("/api/queue/{second}/cancel"), &Value::Null))?;
        let (attempt, _events) = self.offer(&text(&worker, "token")?)?;
        assert_eq!(attempt.job, first, "the other one was cancelled");
        self.train(&attempt)?;
        self.edit_workers()
    }

    fn submit(&mut self, name: &str) -> Result<String> {
        let body = json!({"config_name": "digits", "target": "worker", "worker_labels": {"site": "one"}});
        let submit = Change::new("POST", "/api/queue/submit", &body).header("idempotency-key", name);
        text(&self.repeatable(name, &submit, None)?, "job_id")
    }

    /// Registers an agent, and waits for its offer.
    fn offer(&mut self, token: &str) -> Result<(Attempt, Events)> {
        let body = json!({"protocol": 1, "persistent": true, "accelerator_type": "cpu", "attempts": []});
        let register = Change::new("POST", "/api/workers/register", &body);
        let registered = self.change_by("register", &register, Some(("x-worker-token", token.to_owned())), None)?;
        let agent = self.client.with_header("x-worker-token", text(&registered, "session")?);
        let mut events = agent.events()?;
        let offer = events.wait_for("job_submit")?;
        let number = offer["attempt"].as_u64().context("an attempt")?;
        let attempt = Attempt { job: text(&offer, "job_id")?, number, token: text(&offer, "upload_token")? };
        let position = self.recording.length();
        self.observe("offer", position, None)?;
        Ok((attempt, events))
    }

    /// An attempt from its acceptance to its end.
    fn train(&mut self, attempt: &Attempt) -> Result<()> {
        let base = format!("/api/workers/job/{}", attempt.job);
        let by = || Some(("x-upload-token", attempt.token.clone()));
        for status in ["starting", "running"] {
            let report = json!({"status": status, "attempt": attempt.number});
            self.change_by(status, &Change::new("POST", format!("{base}/status"), &report), by(), None)?;
        }
        let lines: Vec<u8> = (0..400).flat_map(|line| format!("line {line} of the log\n").into_bytes()).collect();
        let log = |from: usize, to: usize| {
            let path = format!("{base}/logs?attempt={}&offset={from}", attempt.number);
            Change::new("PUT", path, &Value::Null).bytes(&lines[from..to])
        };
        for (from, to) in [(0, 300), (300, 5_000), (5_000, lines.len())] {
            self.repeatable("log", &log(from, to), by())?;
        }
        let dropped = lines.len() + 100_000;
        let path = format!("{base}/logs?attempt={}&offset={dropped}&dropped=100000", attempt.number);
        self.repeatable("log-gap", &Change::new("PUT", path, &Value::Null).bytes(b"after the gap\n"), by())?;
        let points =
            json!({"attempt": attempt.number, "points": [{"at": "2026-01-01T00:00:00Z", "step": 1, "loss": 0.5}]});
        self.change_by("progress", &Change::new("POST", format!("{base}/progress"), &points), by(), None)?;
        self.upload_files(attempt, &base)?;
        let end = json!({"status": "completed", "attempt": attempt.number, "exit_code": 0});
        self.change_by("completed", &Change::new("POST", format!("{base}/status"), &end), by(), None)?;
        Ok(())
    }

    fn upload_files(&mut self, attempt: &Attempt, base: &str) -> Result<()> {
        let by = || Some(("x-upload-token", attempt.token.clone()));
        let file = |length: usize, seed: usize| -> Vec<u8> {
            (0..length).map(|at| u8::try_from(at * seed % 251).expect("a byte")).collect()
        };
        let small = file(3_000, 7);
        let path = format!("{base}/artifacts/sample.png?attempt={}&kind=sample", attempt.number);
        let upload = Change::new("PUT", path, &Value::Null).bytes(&small);
        self.repeatable("artifact", &upload.header("x-content-sha256", hex(&Sha256::digest(&small))), by())?;
        let weights = file(20_000, 13);
        let sha256 = hex(&Sha256::digest(&weights));
        let mut chunks = Vec::new();
        for from in (0..weights.len()).step_by(8_000) {
            let chunk = &weights[from..weights.len().min(from + 8_000)];
            let query = format!("attempt={}&kind=checkpoint&offset={from}&size={}", attempt.number, weights.len());
            let path = format!("{base}/artifacts/checkpoint-1/model.bin?{query}");
            let upload = Change::new("PUT", path, &Value::Null).bytes(chunk).header("x-content-sha256", &sha256);
            chunks.push(upload.clone());
            self.change_by("artifact-chunk", &upload, by(), Some(chunks.clone()))?;
        }
        let files = json!([{"path": "checkpoint-1/model.bin", "size_bytes": weights.len(), "sha256": sha256}]);
        let manifest = json!({"name": "checkpoint-1", "files": files});
        let path = format!("{base}/checkpoint?attempt={}", attempt.number);
        self.change_by("checkpoint", &Change::new("POST", path, &manifest), by(), None)?;
        Ok(())
    }

    fn edit_workers(&mut self) -> Result<()> {
        let worker = self.change("worker-2", &Change::new("POST", "/api/admin/workers", &json!({"name": "gpu-2"})))?;
        let path = format!("/api/admin/workers/{}", text(&worker, "worker_id")?);
        self.change("edit-worker", &Change::new("PATCH", &path, &json!({"labels": {"room": "a"}})))?;
        self.change("drain", &Change::new("POST", format!("{path}/drain"), &json!({"reason": "update"})))?;
        self.change("resume", &Change::new("POST", format!("{path}/resume"), &Value::Null))?;
        self.change("rotate", &Change::new("POST", format!("{path}/token"), &Value::Null))?;
        self.change("delete-worker", &Change::new("DELETE", &path, &Value::Null))?;
        Ok(())
    }

    /// What a server does after a restart. Returns the job of the first day.
    pub fn second_day(&mut self) -> Result<String> {
        let jobs = self.client.get("/api/queue?status=completed")?;
        let job = text(&jobs["jobs"][0], "job_id")?;
        self.observe("restarted", self.recording.length(), None)?;
        let retry = Change::new("POST", format!("/api/queue/{job}/retry"), &json!({}));
        self.repeatable("retry", &retry.header("idempotency-key", "retry"), None)?;
        let files = json!({"files": {"config.json": "{\"a\": 1}"}});
        self.change("config-2", &Change::new("PUT", "/api/configs/other", &files))?;
        self.change("delete-config", &Change::new("DELETE", "/api/configs/other", &Value::Null))?;
        self.change("delete-secret", &Change::new("DELETE", "/api/secrets/WANDB_API_KEY", &Value::Null))?;
        let tokens = self.client.get("/api/account/tokens")?;
        let tokens = tokens["tokens"].as_array().context("tokens")?;
        let script = tokens.iter().find(|token| token["name"] == "script").context("the script's token")?;
        let path = format!("/api/account/tokens/{}", text(script, "id")?);
        self.change("revoke-token", &Change::new("DELETE", path, &Value::Null))?;
        Ok(job)
    }

    /// A server whose limit for artifacts is exceeded.
    pub fn third_day(&mut self, job: &str) -> Result<()> {
        wait_for("the removal of artifacts", || {
            let artifacts = self.client.get(&format!("/api/queue/{job}/artifacts"))?;
            Ok(artifacts["artifacts"].as_array().is_some_and(Vec::is_empty))
        })?;
        self.observe("retention", self.recording.length(), None)?;
        self.steps.last_mut().context("the step")?.is_gradual = true;
        Ok(())
    }
}

//! Endpoints for an agent's jobs.

use hyper::Response;
use hyper::body::Bytes;
use hyper::http::request::Parts;
use serde_json::{Value, json};

use super::responses::{json_response, ok_response, problem_response};
use super::{Attempt, Body, FakeState, files};

impl FakeState {
    pub(super) fn handle_job(
        &mut self,
        job: &str,
        rest: &str,
        parts: &Parts,
        value: Value,
        body: &Bytes,
    ) -> Response<Body> {
        if self.rejects_reports {
            return problem_response(409, "attempt_old", json!({}));
        }
        let query = parts.uri.query().unwrap_or_default();
        let number = |name: &str| {
            let found = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
            found.and_then(|text| text.parse::<usize>().ok()).unwrap_or_default()
        };
        match rest {
            "bundle" => json_response(200, "application/json", &serde_json::from_str(&self.bundle).unwrap_or_default()),
            "secrets" => match self.secrets_error {
                None => ok_response(&json!({"secrets": self.secrets})),
                Some(code) => problem_response(409, code, json!({})),
            },
            "status" => self.handle_status(job, value),
            "progress" => {
                self.points.extend(value["points"].as_array().cloned().unwrap_or_default());
                ok_response(&json!({"success": true}))
            }
            "logs" if self.max_log_bytes.is_some_and(|max_bytes| number("offset") + body.len() > max_bytes) => {
                problem_response(422, "too_large", json!({}))
            }
            "logs" if self.rejects_logs => problem_response(503, "busy", json!({})),
            "logs" => self.handle_log((job.to_owned(), number("attempt")), number("offset"), number("dropped"), body),
            _ => files::respond(self, rest, parts, body),
        }
    }

    /// Adds to the log of this attempt, of which `dropped` bytes before `offset` are missing.
    fn handle_log(&mut self, attempt: Attempt, offset: usize, dropped: usize, body: &[u8]) -> Response<Body> {
        let is_current = *self.log_attempt.get_or_insert_with(|| attempt.clone()) == attempt;
        let log = if is_current { &mut self.log } else { self.other_logs.entry(attempt).or_default() };
        if dropped > 0 && !self.rejects_gaps && offset == log.len() + dropped {
            self.dropped.push((log.len(), offset));
            log.resize(offset, b'?');
        }
        if offset > log.len() {
            self.gaps += 1;
            return problem_response(409, "log_gap", json!({"durable": log.len()}));
        }
        let overlap = (log.len() - offset).min(body.len());
        assert_eq!(log[offset..offset + overlap], body[..overlap], "a log never changes");
        log.extend_from_slice(&body[overlap..]);
        ok_response(&json!({"durable": log.len()}))
    }

    fn handle_status(&mut self, job: &str, mut value: Value) -> Response<Body> {
        let status = value["status"].as_str().unwrap_or_default().to_owned();
        let is_end = !matches!(status.as_str(), "starting" | "running");
        if is_end && self.failing_ends > 0 {
            self.failing_ends -= 1;
            return problem_response(503, "busy", json!({}));
        }
        if status == "starting" && self.rejects_acceptances {
            self.rejected_acceptances += 1;
            return problem_response(503, "busy", json!({}));
        }
        let is_this_attempt = |entry: &Value| entry["job_id"] == job && entry["attempt"] == value["attempt"];
        self.offers.retain(|entry| !is_this_attempt(entry));
        if is_end {
            self.stop.retain(|entry| !is_this_attempt(entry));
            self.running.retain(|entry| !is_this_attempt(entry));
        }
        value["job_id"] = job.into();
        self.statuses.push(value);
        ok_response(&json!({"success": true}))
    }
}

//! The users of the fleet: they submit, cancel, drain and rotate tokens by the API, and try again until they get an answer.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use app::domain::ids::JobId;
use app::protocol::jobs::submit::SubmitJobResponse;
use app::protocol::status::JobStatus;
use axum::http::{Method, Request, StatusCode};
use bytes::Bytes;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::attempt::log_text;
use super::checks::Checks;
use super::network::Network;
use super::property::{AUDIT_IS_INTACT, DRAIN_LASTS, JOBS_END, LOG_IS_COMPLETE, SUBMIT_COUNTS_ONCE, SUBMIT_IS_KEPT};
use super::server_process::ADMIN_TOKEN;
use super::{property, trace};

/// Users have a link of their own, without faults.
const USER_LINK: usize = usize::MAX;
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// How often users look at their jobs.
const LOOK_INTERVAL: Duration = Duration::from_secs(10);
/// After this time a user sends a request again.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

pub struct Users {
    network: Arc<Network>,
    checks: Rc<Checks>,
    /// Acknowledged jobs, by their number.
    jobs: RefCell<BTreeMap<u64, JobId>>,
    /// The workers' IDs, by host.
    workers: RefCell<Vec<String>>,
    /// Hosts with an acknowledged drain that no user has begun to end.
    drained: RefCell<BTreeSet<usize>>,
    drain_changes: RefCell<DrainChanges>,
}

/// The drains and resumes that users have sent, by host. The server decides the order of those that overlap.
#[derive(Debug, Default)]
struct DrainChanges {
    begun: BTreeMap<usize, u64>,
    ended: BTreeMap<usize, u64>,
}

impl DrainChanges {
    /// Returns the number of the change, and whether no other is on its way.
    fn begin(&mut self, host: usize) -> (u64, bool) {
        let begun = self.begun.entry(host).or_default();
        let is_alone = *begun == self.ended.get(&host).copied().unwrap_or_default();
        *begun += 1;
        (*begun, is_alone)
    }

    /// Returns whether it has overlapped with no other change.
    fn end(&mut self, host: usize, (number, was_alone): (u64, bool)) -> bool {
        *self.ended.entry(host).or_default() += 1;
        was_alone && self.begun.get(&host) == Some(&number)
    }
}

/// The fields of a job that users look at.
#[derive(Debug, Deserialize)]
struct SeenJob {
    status: JobStatus,
    attempt: u32,
}

#[derive(Debug, Deserialize)]
struct NewWorker {
    worker_id: String,
    token: String,
}

impl Users {
    pub fn new(network: Arc<Network>, checks: Rc<Checks>) -> Rc<Self> {
        Rc::new(Self {
            network,
            checks,
            jobs: RefCell::default(),
            workers: RefCell::default(),
            drained: RefCell::default(),
            drain_changes: RefCell::default(),
        })
    }

    /// Sends a request until there is an answer other than that the server is not available.
    async fn request(&self, method: Method, path: &str, key: Option<String>, body: &Value) -> (StatusCode, Vec<u8>) {
        loop {
            let mut request = Request::builder().method(&method).uri(path).header("host", "server:8001");
            request = request.header("x-api-key", ADMIN_TOKEN).header("content-type", "application/json");
            if let Some(key) = &key {
                request = request.header("idempotency-key", key);
            }
            let request = request.body(Bytes::from(body.to_string())).expect("a valid request");
            let exchange = async {
                let (parts, body) = self.network.send(USER_LINK, request).await.ok()?.into_parts();
                Some((parts.status, body.read().await.ok()?))
            };
            match tokio::time::timeout(REQUEST_TIMEOUT, exchange).await {
                Ok(Some((status, body))) if !is_temporary(status) => return (status, body),
                Ok(Some((status, _))) => trace::record(format_args!("user {method} {path} {status}")),
                _ => {}
            }
            tokio::time::sleep(RETRY_DELAY).await;
        }
    }

    async fn expect<T: DeserializeOwned>(&self, method: Method, path: &str, key: Option<String>, body: &Value) -> T {
        let (status, answer) = self.request(method, path, key, body).await;
        serde_json::from_slice(&answer).ok().filter(|_| status.is_success()).unwrap_or_else(|| {
            property::stop(&format!("{path}: {status}: {}", String::from_utf8_lossy(&answer)));
        })
    }

    /// Creates a configuration and the workers. Returns their tokens.
    pub async fn set_up(&self, names: &[String]) -> Vec<String> {
        let config = json!({"files": {"config.json": "{}", "multidatabackend.json": "[]"}});
        let _: Value = self.expect(Method::PUT, "/api/configs/digits", None, &config).await;
        let mut tokens = Vec::new();
        for name in names {
            let created: NewWorker =
                self.expect(Method::POST, "/api/admin/workers", None, &json!({"name": name})).await;
            self.workers.borrow_mut().push(created.worker_id);
            tokens.push(created.token);
        }
        tokens
    }

    pub async fn submit(&self, number: u64, is_exclusive: bool, is_retried: bool) {
        let body = json!({"config_name": "digits", "target": "worker", "exclusive": is_exclusive,
            "retry_on_failure": is_retried, "max_retries": 20});
        let key = Some(format!("submit-{number}"));
        let answer: SubmitJobResponse = self.expect(Method::POST, "/api/queue/submit", key, &body).await;
        trace::record(format_args!("user submitted {number}: {}", answer.job_id));
        if let Some(other) = self.jobs.borrow_mut().insert(number, answer.job_id) {
            SUBMIT_COUNTS_ONCE.violated(&format!("the submit {number} also created {other}"));
        }
    }

    pub async fn cancel(&self, number: u64) {
        let Some(id) = self.jobs.borrow().get(&number).cloned() else { return };
        let (status, _) = self.request(Method::POST, &format!("/api/queue/{id}/cancel"), None, &json!({})).await;
        trace::record(format_args!("user cancels {id}: {status}"));
    }

    /// Drains or resumes a host.
    pub async fn set_draining(&self, host: usize, drain: bool) {
        let id = self.workers.borrow()[host].clone();
        let action = if drain { "drain" } else { "resume" };
        self.drained.borrow_mut().remove(&host);
        let begun = self.drain_changes.borrow_mut().begin(host);
        let (status, _) =
            self.request(Method::POST, &format!("/api/admin/workers/{id}/{action}"), None, &json!({})).await;
        trace::record(format_args!("user {action}s host {host}: {status}"));
        let was_alone = self.drain_changes.borrow_mut().end(host, begun);
        if drain && was_alone && status.is_success() {
            self.drained.borrow_mut().insert(host);
        }
    }

    /// Returns the new token.
    pub async fn rotate_token(&self, host: usize) -> String {
        #[derive(Deserialize)]
        struct NewToken {
            token: String,
        }

        let id = self.workers.borrow()[host].clone();
        let path = format!("/api/admin/workers/{id}/token");
        let new: NewToken = self.expect(Method::POST, &path, None, &json!({})).await;
        trace::record(format_args!("user rotates the token of host {host}"));
        new.token
    }

    /// Looks at all jobs again and again.
    pub async fn watch(&self) {
        loop {
            tokio::time::sleep(LOOK_INTERVAL).await;
            self.have_all_ended().await;
            self.check_drains().await;
        }
    }

    /// A drain that was acknowledged lasts until a user asks for its end.
    async fn check_drains(&self) {
        let drained = self.drained.borrow().clone();
        for host in drained {
            let id = self.workers.borrow()[host].clone();
            let worker: Value = self.expect(Method::GET, &format!("/api/admin/workers/{id}"), None, &json!({})).await;
            if worker["draining"] != true && self.drained.borrow().contains(&host) {
                DRAIN_LASTS.violated(&format!("host {host} is not draining: {worker}"));
            }
        }
    }

    /// Whether all submitted jobs have ended.
    pub async fn have_all_ended(&self) -> bool {
        let ids: Vec<JobId> = self.jobs.borrow().values().cloned().collect();
        let mut all_ended = true;
        for id in ids {
            all_ended &= self.look_at(&id).await.status.is_terminal();
        }
        all_ended
    }

    async fn look_at(&self, id: &JobId) -> SeenJob {
        let (status, answer) = self.request(Method::GET, &format!("/api/queue/{id}"), None, &json!({})).await;
        let Ok(job) = serde_json::from_slice::<SeenJob>(&answer) else {
            SUBMIT_IS_KEPT.violated(&format!("{id}: {status}: {}", String::from_utf8_lossy(&answer)));
        };
        self.checks.job_seen(id, job.status, job.attempt);
        job
    }

    /// Checks what has become of all jobs. If only the server had faults, `calm_restarts` is the number of its restarts.
    pub async fn check_ends(&self, calm_restarts: Option<u64>) {
        let ids: Vec<JobId> = self.jobs.borrow().values().cloned().collect();
        for id in ids {
            let job = self.look_at(&id).await;
            trace::record(format_args!("{id} is {:?} after {} attempts", job.status, job.attempt));
            if !job.status.is_terminal() {
                let explanation: Value =
                    self.expect(Method::GET, &format!("/api/queue/{id}/explain"), None, &json!({})).await;
                JOBS_END.violated(&format!("{id} is {:?} long after the last fault: {explanation}", job.status));
            }
            if job.status == JobStatus::Completed {
                self.check_log(&id, job.attempt).await;
            }
            if let Some(restarts) = calm_restarts {
                self.checks.no_attempt_was_lost(&id, job.attempt, restarts > 0);
            }
        }
        let submitted = self.jobs.borrow().len();
        let all: Value = self.expect(Method::GET, "/api/queue", None, &json!({})).await;
        if all["total"] != json!(submitted) {
            SUBMIT_COUNTS_ONCE.violated(&format!("{submitted} submits have created {} jobs", all["total"]));
        }
        let verified: Value = self.expect(Method::GET, "/api/audit/verify", None, &json!({})).await;
        if verified["intact"] != true {
            AUDIT_IS_INTACT.violated(&verified.to_string());
        }
    }

    /// The log must be what the trainer wrote, byte by byte.
    async fn check_log(&self, id: &JobId, attempt: u32) {
        let (status, log) =
            self.request(Method::GET, &format!("/api/queue/{id}/logs?attempt={attempt}&raw=1"), None, &json!({})).await;
        let expected = log_text(id, attempt, 0, self.checks.log_length(id, attempt));
        if !status.is_success() || log != expected {
            let (have, expect) = (log.len(), expected.len());
            LOG_IS_COMPLETE.violated(&format!("{id} attempt {attempt}: {have} bytes instead of {expect} ({status})"));
        }
    }
}

/// Whether a request is sent again after this answer.
fn is_temporary(status: StatusCode) -> bool {
    status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS
}

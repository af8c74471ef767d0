//! Problems of transitions that the state of a job or worker does not allow.

use app::domain::{job, worker};
use axum::http::StatusCode;

use super::ApiError;

/// Returns the problem of a job's transition.
pub fn job_problem(error: &job::JobTransitionError) -> ApiError {
    let (code, detail) = match error {
        job::JobTransitionError::AlreadyEnded => ("job_ended", "The job has ended and cannot be changed.".to_owned()),
        job::JobTransitionError::StaleAttempt { current } => (
            "stale_attempt",
            format!("The job was given to another attempt: {current} is the current one. Stop this attempt."),
        ),
        job::JobTransitionError::WrongWorker => {
            ("not_your_attempt", "This worker does not hold the attempt. Stop it.".to_owned())
        }
        job::JobTransitionError::NotEnded => {
            ("job_not_ended", "The job has not ended. Cancel it first, or wait until it ends.".to_owned())
        }
        job::JobTransitionError::NotQueued => ("job_not_queued", "The job is not queued.".to_owned()),
    };
    ApiError::new(StatusCode::CONFLICT, code, detail)
}

/// Returns the problem of a worker's transition.
pub fn worker_problem(error: worker::WorkerTransitionError) -> ApiError {
    let (code, detail) = match error {
        worker::WorkerTransitionError::Connected => (
            "worker_connected",
            "The worker is connected. Stop its agent first; only workers that are offline can be deleted.",
        ),
        worker::WorkerTransitionError::ConnectionLost { offline_at } => {
            let detail = format!(
                "The worker lost its connection while it ran a job, and the trainer may still run. If it does not come back, it \
                 counts as offline after {offline_at} and can be deleted then."
            );
            return ApiError::new(StatusCode::CONFLICT, "worker_connected", detail);
        }
        worker::WorkerTransitionError::Retired => {
            return ApiError::new(
                StatusCode::UNAUTHORIZED,
                "worker_retired",
                "This ephemeral worker has run its job, and its token is revoked. Create a new worker, or a persistent one.",
            );
        }
        worker::WorkerTransitionError::TokenInUse => (
            "token_in_use",
            "Another agent, on another host or with another work directory, uses this token and is alive. Give each host its own worker and token; if that agent has stopped for good, this one is accepted when the heartbeat timeout has passed.",
        ),
        worker::WorkerTransitionError::OlderAgentRefused => {
            return ApiError::new(
                StatusCode::FORBIDDEN,
                "older_agent_refused",
                "This worker does not allow agents of the older protocol. Install simpletuner-worker of this release, or allow older agents on the worker's page.",
            );
        }
        worker::WorkerTransitionError::NotRegistered => {
            ("not_registered", "The worker is not registered. Register first.")
        }
    };
    ApiError::new(StatusCode::CONFLICT, code, detail)
}

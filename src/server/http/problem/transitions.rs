//! Problems of transitions that the state of a job or worker does not allow.

use app::domain::{job, worker};
use axum::http::StatusCode;

use super::{ApiError, Sentence};

/// Returns the problem of a job's transition.
pub fn job_problem(error: &job::JobTransitionError) -> ApiError {
    let sentence = match error {
        job::JobTransitionError::AlreadyEnded => Sentence::JobEnded,
        job::JobTransitionError::StaleAttempt { current } => Sentence::StaleAttempt { current: current.to_string() },
        job::JobTransitionError::WrongWorker => Sentence::NotYourAttempt,
        job::JobTransitionError::NotEnded => Sentence::JobNotEnded,
        job::JobTransitionError::NotQueued => Sentence::JobNotQueued,
    };
    ApiError::new(StatusCode::CONFLICT, sentence)
}

/// Returns the problem of a worker's transition.
pub fn worker_problem(error: worker::WorkerTransitionError) -> ApiError {
    use StatusCode as S;
    let (status, sentence) = match error {
        worker::WorkerTransitionError::Connected => (S::CONFLICT, Sentence::WorkerConnectedOnline),
        worker::WorkerTransitionError::ConnectionLost { offline_at } => {
            (S::CONFLICT, Sentence::WorkerConnectedLost { offline_at: offline_at.to_string() })
        }
        worker::WorkerTransitionError::Retired => (S::UNAUTHORIZED, Sentence::WorkerRetired),
        worker::WorkerTransitionError::TokenInUse => (S::CONFLICT, Sentence::TokenInUse),
        worker::WorkerTransitionError::OlderAgentRejected => (S::FORBIDDEN, Sentence::OlderAgentRejected),
        worker::WorkerTransitionError::NotRegistered => (S::CONFLICT, Sentence::NotRegistered),
    };
    ApiError::new(status, sentence)
}

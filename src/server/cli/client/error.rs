//! Errors of requests, with their exit codes.

use app::protocol::problem::Problem;

use crate::exit::ExitError;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientError {
    /// No connection, or the server's identity is wrong.
    Unreachable(String),
    /// The connection was lost; the request may have been executed or not.
    Interrupted(String),
    /// An error response.
    Problem(Problem),
    /// The response is not from an orchestrator.
    NotOrchestrator(String),
}

impl ClientError {
    /// Returns the error for an unsuccessful response.
    pub fn from_response(status: u16, body: &[u8], base: &str) -> Self {
        match serde_json::from_slice::<Problem>(body) {
            Ok(problem) => Self::Problem(problem),
            Err(_) if status >= 500 || status == 429 => Self::Interrupted(format!(
                "{base} responds with {status}: it is overloaded, or the server behind it is down"
            )),
            Err(_) => {
                Self::NotOrchestrator(format!("no orchestrator at {base} (response status {status}): check --url"))
            }
        }
    }

    /// Returns whether a retry may succeed.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Interrupted(_) => true,
            Self::Problem(problem) => matches!(problem.status, 408 | 425 | 429 | 502..=504),
            Self::Unreachable(_) | Self::NotOrchestrator(_) => false,
        }
    }
}

impl From<ClientError> for ExitError {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Unreachable(message) | ClientError::NotOrchestrator(message) => Self::unavailable(message),
            ClientError::Interrupted(message) => Self::temp_failure(message),
            ClientError::Problem(problem) => problem_exit(&problem),
        }
    }
}

fn problem_exit(problem: &Problem) -> ExitError {
    let message = |detail: &str| match &problem.request_id {
        Some(id) if problem.status >= 500 => format!("{detail} ({}, request {id})", problem.code),
        _ => format!("{detail} ({})", problem.code),
    };
    match (problem.status, problem.code.as_str()) {
        (401, "not_authenticated") => ExitError::no_permission(message(
            "Not authenticated. Set SIMPLETUNER_API_TOKEN or --token-file (tokens \
             are created on the account page); on the server's host, run this as the server's user or root, with its \
             --data-dir.",
        )),
        (401, "wrong_token") => ExitError::no_permission(message(
            "The server rejects this token. Check it for typing errors, and whether it has expired or was revoked.",
        )),
        (401 | 403, _) => ExitError::no_permission(message(&problem.detail)),
        (408 | 425 | 429 | 500..=599, _) => ExitError::temp_failure(message(&problem.detail)),
        _ if problem.errors.len() > 1 => {
            let details = problem.errors.iter().map(|error| format!("{} ({})", error.detail, error.code));
            ExitError::failed(details.collect::<Vec<_>>().join(" "))
        }
        _ => ExitError::failed(message(&problem.detail)),
    }
}

#[cfg(test)]
mod tests {
    use app::protocol::problem::FieldError;

    use super::*;

    fn problem(status: u16, code: &str) -> Vec<u8> {
        serde_json::to_vec(&Problem::new(status, "Title", code, "What is wrong.")).expect("plain fields")
    }

    #[test]
    fn each_response_has_its_exit_code() {
        for (status, body, code, expected) in [
            (400, problem(400, "invalid_json"), 1, "What is wrong. (invalid_json)"),
            (404, problem(404, "job_not_found"), 1, "What is wrong."),
            (409, problem(409, "name_taken"), 1, "What is wrong."),
            (401, problem(401, "not_authenticated"), 77, "SIMPLETUNER_API_TOKEN"),
            (401, problem(401, "wrong_token"), 77, "revoked"),
            (403, problem(403, "permission_denied"), 77, "What is wrong. (permission_denied)"),
            (429, problem(429, "too_many_requests"), 75, "What is wrong."),
            (503, problem(503, "database_unavailable"), 75, "What is wrong."),
            (502, b"<html>".to_vec(), 75, "responds with 502"),
            (404, b"<html>".to_vec(), 69, "no orchestrator at http://h"),
            (200, b"<html>".to_vec(), 69, "no orchestrator"),
        ] {
            let exit = ExitError::from(ClientError::from_response(status, &body, "http://h"));
            assert_eq!(exit.code(), code, "{status} {exit:?}");
            assert!(exit.message().contains(expected), "{exit:?}");
        }
    }

    #[test]
    fn all_field_errors_are_printed() {
        let error = |field: &str, code: &str| FieldError {
            field: field.to_owned(),
            code: code.to_owned(),
            detail: format!("{field} is wrong."),
            why: None,
        };
        let errors = vec![error("name", "bad_name"), error("gpu_count", "out_of_range")];
        let problem = Problem { errors, ..Problem::new(422, "Title", "bad_name", "name is wrong.") };
        let exit = ExitError::from(ClientError::Problem(problem));
        assert_eq!(exit.message(), "name is wrong. (bad_name) gpu_count is wrong. (out_of_range)");
    }

    #[test]
    fn transient_errors_are_retried() {
        for (status, is_transient) in [(503, true), (429, true), (502, true), (500, false), (409, false), (401, false)]
        {
            assert_eq!(
                ClientError::from_response(status, &problem(status, "x"), "").is_transient(),
                is_transient,
                "{status}"
            );
        }
        assert!(
            ClientError::from_response(502, b"", "").is_transient()
                && ClientError::Interrupted(String::new()).is_transient()
        );
        assert!(
            !ClientError::Unreachable(String::new()).is_transient()
                && !ClientError::from_response(404, b"", "").is_transient()
        );
    }
}

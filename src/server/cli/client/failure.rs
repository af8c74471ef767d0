//! Why a request came to nothing, and what the exit code is.

use app::protocol::problem::Problem;

use crate::boot::exit::Exit;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// Nobody answers there, or it is not who it should be.
    Unreachable(String),
    /// It broke off on the way: it may have been done or not.
    Broken(String),
    /// An answer that says what is wrong.
    Problem(Problem),
    /// No orchestrator answers like that.
    Foreign(String),
}

impl Failure {
    /// An answer that is no success.
    pub fn of(status: u16, body: &[u8], base: &str) -> Self {
        match serde_json::from_slice::<Problem>(body) {
            Ok(problem) => Self::Problem(problem),
            Err(_) if status >= 500 || status == 429 => {
                Self::Broken(format!("{base} answers {status}: it is too busy, or the server behind it is down"))
            }
            Err(_) => Self::Foreign(format!("there is no orchestrator at {base} (it answers {status}): check --url")),
        }
    }

    /// Whether the same request may go well in a moment.
    pub fn passes(&self) -> bool {
        match self {
            Self::Broken(_) => true,
            Self::Problem(problem) => matches!(problem.status, 408 | 425 | 429 | 502..=504),
            Self::Unreachable(_) | Self::Foreign(_) => false,
        }
    }
}

impl From<Failure> for Exit {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Unreachable(sentence) | Failure::Foreign(sentence) => Self::unavailable(sentence),
            Failure::Broken(sentence) => Self::try_again(sentence),
            Failure::Problem(problem) => of_problem(&problem),
        }
    }
}

fn of_problem(problem: &Problem) -> Exit {
    let said = |detail: &str| match &problem.request_id {
        Some(id) if problem.status >= 500 => format!("{detail} ({}, request {id})", problem.code),
        _ => format!("{detail} ({})", problem.code),
    };
    match (problem.status, problem.code.as_str()) {
        (401, "not_authenticated") => Exit::denied(said(
            "The server does not know who is asking. Set SIMPLETUNER_API_TOKEN or name a file with --token-file (tokens \
             are made on the account page); on the server's host, run this as the server's user or root, with its \
             --data-dir.",
        )),
        (401, "wrong_token") => Exit::denied(said(
            "This token opens nothing there. Check it for typing errors, and whether it has ended or was revoked.",
        )),
        (401 | 403, _) => Exit::denied(said(&problem.detail)),
        (408 | 425 | 429 | 500..=599, _) => Exit::try_again(said(&problem.detail)),
        _ => Exit::failed(said(&problem.detail)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(status: u16, code: &str) -> Vec<u8> {
        serde_json::to_vec(&Problem::new(status, "Title", code, "What is wrong.")).expect("plain fields")
    }

    #[test]
    fn each_answer_has_its_exit_code() {
        for (status, body, code, words) in [
            (400, problem(400, "invalid_json"), 1, "What is wrong. (invalid_json)"),
            (404, problem(404, "job_not_found"), 1, "What is wrong."),
            (409, problem(409, "name_taken"), 1, "What is wrong."),
            (401, problem(401, "not_authenticated"), 77, "SIMPLETUNER_API_TOKEN"),
            (401, problem(401, "wrong_token"), 77, "revoked"),
            (403, problem(403, "permission_denied"), 77, "What is wrong. (permission_denied)"),
            (429, problem(429, "too_many_requests"), 75, "What is wrong."),
            (503, problem(503, "database_unavailable"), 75, "What is wrong."),
            (502, b"<html>".to_vec(), 75, "answers 502"),
            (404, b"<html>".to_vec(), 69, "no orchestrator at http://h"),
            (200, b"<html>".to_vec(), 69, "no orchestrator"),
        ] {
            let exit = Exit::from(Failure::of(status, &body, "http://h"));
            assert_eq!(exit.code(), code, "{status} {exit:?}");
            assert!(exit.sentence().contains(words), "{exit:?}");
        }
    }

    #[test]
    fn what_may_pass_is_tried_again() {
        for (status, passes) in [(503, true), (429, true), (502, true), (500, false), (409, false), (401, false)] {
            assert_eq!(Failure::of(status, &problem(status, "x"), "").passes(), passes, "{status}");
        }
        assert!(Failure::of(502, b"", "").passes() && Failure::Broken(String::new()).passes());
        assert!(!Failure::Unreachable(String::new()).passes() && !Failure::of(404, b"", "").passes());
    }
}

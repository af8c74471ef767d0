//! Errors of requests to the orchestrator, classified by how the agent handles them.

use std::time::Duration;

use app::remote::{root_cause, untrusted_certificate_text};
use reqwest::{Response, StatusCode, Url};
use serde::Deserialize;

use super::body;

/// Why a request failed. Every message is for users.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OrchestratorError {
    /// Retry later.
    #[error("{detail}")]
    Transient {
        detail: String,
        /// Delay that the server asks for.
        retry_after: Option<Duration>,
    },
    /// This host rejected the orchestrator's certificate. Retry later: it may be replaced.
    #[error("{0}")]
    UntrustedCertificate(String),
    /// The orchestrator rejected the token.
    #[error("{0}")]
    Unauthorized(String),
    /// 409: the request does not match the current state.
    #[error("{detail}")]
    Conflict {
        /// The problem's code.
        code: String,
        detail: String,
        /// How many bytes of a log or file the server has.
        durable: Option<u64>,
        /// The file concerned.
        path: Option<String>,
    },
    /// 404: unknown or deleted.
    #[error("{0}")]
    NotFound(String),
    /// Another rejection; a retry does not help.
    #[error("{detail} ({status})")]
    Rejected { status: u16, detail: String },
    /// The response is not one of an orchestrator.
    #[error("{0}")]
    InvalidResponse(String),
}

/// The fields of a problem document that the agent uses.
#[derive(Debug, Default, Deserialize)]
struct ProblemFields {
    #[serde(default)]
    code: Option<String>,
    #[serde(default)]
    detail: Option<String>,
    #[serde(default, alias = "received")]
    durable: Option<u64>,
    #[serde(default)]
    path: Option<String>,
}

impl OrchestratorError {
    /// Creates a retryable error.
    pub fn transient(detail: impl Into<String>) -> Self {
        Self::Transient { detail: detail.into(), retry_after: None }
    }

    /// The error for a request without a response.
    pub fn unreachable(error: &reqwest::Error, base: &Url) -> Self {
        if let Some(sentence) = untrusted_certificate_text(error, base) {
            return Self::UntrustedCertificate(sentence);
        }
        let cause = root_cause(error);
        let lower = cause.to_lowercase();
        let advice = if error.is_timeout() {
            "no response in time: check the URL and any firewall"
        } else if lower.contains("invalidcontenttype") {
            "the server does not use TLS: use http:// if the network is trusted, or enable TLS on the server"
        } else if lower.contains("refused") {
            "check the URL and port, that the orchestrator runs, and that it listens with --host 0.0.0.0"
        } else if lower.contains("dns") || lower.contains("lookup") {
            "host name not found: check --orchestrator-url"
        } else {
            "check --orchestrator-url and the network"
        };
        Self::transient(format!("cannot reach the orchestrator at {base} ({cause}): {advice}"))
    }

    /// The error for an unsuccessful response, of which at most `max_bytes` are read.
    pub async fn from_response(response: Response, base: &Url, max_bytes: usize) -> Self {
        let status = response.status();
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let retry_after = header("retry-after").and_then(|text| text.parse().ok()).map(Duration::from_secs);
        let location = header("location");
        // A larger body is no problem document.
        let body = body::read_limited(response, max_bytes).await.unwrap_or_default();
        let problem: ProblemFields = serde_json::from_slice(&body).unwrap_or_default();
        Self::classify(status, problem, retry_after, location.as_deref(), base)
    }

    fn classify(
        status: StatusCode,
        problem: ProblemFields,
        retry_after: Option<Duration>,
        location: Option<&str>,
        base: &Url,
    ) -> Self {
        let detail = problem.detail.unwrap_or_else(|| format!("the orchestrator at {base} responded with {status}"));
        match (status.as_u16(), problem.code) {
            (401 | 403, Some(_)) => Self::Unauthorized(detail),
            (409, code) => {
                Self::Conflict { code: code.unwrap_or_default(), detail, durable: problem.durable, path: problem.path }
            }
            (404 | 410, Some(_)) => Self::NotFound(detail),
            (300..=399, _) => Self::transient(format!(
                "{base} redirects to {}; set that address with --orchestrator-url",
                location.unwrap_or("another address")
            )),
            (404 | 410, None) => Self::transient(format!(
                "no orchestrator at {base} ({status}): check --orchestrator-url, and any path that a proxy adds"
            )),
            // The orchestrator always sends a problem code. A response without one is from a proxy, or its maintenance
            // page.
            (408 | 425 | 429 | 500..=599, _) | (_, None) => Self::Transient { detail, retry_after },
            (number, Some(_)) => Self::Rejected { status: number, detail },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_map_to_error_kinds() {
        let base = Url::parse("http://h/").unwrap_or_else(|_| panic!("url"));
        let classified = |status: u16, code: Option<&str>| {
            let problem = ProblemFields { code: code.map(str::to_owned), ..ProblemFields::default() };
            let status = StatusCode::from_u16(status).unwrap_or_default();
            OrchestratorError::classify(status, problem, Some(Duration::from_secs(3)), None, &base)
        };
        for status in [408, 425, 429, 500, 502, 503] {
            assert!(
                matches!(classified(status, Some("x")), OrchestratorError::Transient { retry_after: Some(_), .. }),
                "{status}"
            );
        }
        assert!(matches!(classified(401, Some("invalid_token")), OrchestratorError::Unauthorized(_)));
        for status in [400, 401, 403, 407, 413] {
            assert!(
                matches!(classified(status, None), OrchestratorError::Transient { .. }),
                "{status} without a code is from a proxy"
            );
        }
        assert!(
            matches!(classified(409, Some("log_gap")), OrchestratorError::Conflict { code, .. } if code == "log_gap")
        );
        assert!(matches!(classified(404, Some("job_unknown")), OrchestratorError::NotFound(_)));
        assert!(matches!(classified(404, None), OrchestratorError::Transient { .. }), "a page of a proxy");
        assert!(matches!(classified(302, None), OrchestratorError::Transient { .. }));
        assert!(matches!(classified(413, Some("body_too_large")), OrchestratorError::Rejected { status: 413, .. }));
    }
}

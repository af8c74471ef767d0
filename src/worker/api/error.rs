//! Why a request did not succeed, sorted by what to do about it.

use std::time::Duration;

use app::remote::{distrust, innermost};
use reqwest::{Response, StatusCode, Url};
use serde::Deserialize;

use super::body;

/// Why a request did not succeed. Every sentence is for a person.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    /// Try again later.
    #[error("{sentence}")]
    Transient {
        /// What happened.
        sentence: String,
        /// When the server wants to be asked again.
        retry_after: Option<Duration>,
    },
    /// The orchestrator's certificate was refused here. Try again later: it may be replaced.
    #[error("{0}")]
    Untrusted(String),
    /// The token was refused.
    #[error("{0}")]
    Refused(String),
    /// 409: this is no longer how things stand.
    #[error("{detail}")]
    Conflict {
        /// The problem's stable name.
        code: String,
        /// In words.
        detail: String,
        /// What the server has of a log or file.
        durable: Option<u64>,
        /// The file that it means.
        path: Option<String>,
    },
    /// The orchestrator does not know this (any more).
    #[error("{0}")]
    Gone(String),
    /// Another refusal, which trying again does not change.
    #[error("{detail} ({status})")]
    Rejected {
        /// The HTTP status.
        status: u16,
        /// In words.
        detail: String,
    },
    /// An answer that is none of the orchestrator's.
    #[error("{0}")]
    Answer(String),
}

/// The parts of a problem document that matter here.
#[derive(Debug, Default, Deserialize)]
struct ProblemParts {
    #[serde(default)]
    code: Option<String>,
    #[serde(default)]
    detail: Option<String>,
    #[serde(default, alias = "received")]
    durable: Option<u64>,
    #[serde(default)]
    path: Option<String>,
}

impl ApiError {
    /// Try again later.
    pub fn transient(sentence: impl Into<String>) -> Self {
        Self::Transient { sentence: sentence.into(), retry_after: None }
    }

    /// No answer at all.
    pub fn unreachable(error: &reqwest::Error, base: &Url) -> Self {
        if let Some(sentence) = distrust(error, base) {
            return Self::Untrusted(sentence);
        }
        let cause = innermost(error);
        let lower = cause.to_lowercase();
        let advice = if error.is_timeout() {
            "no answer in time: check the URL and any firewall between"
        } else if lower.contains("invalidcontenttype") {
            "it speaks no TLS there: write http:// in place of https:// if the network is trusted, or give it TLS"
        } else if lower.contains("refused") {
            "check URL and port, that the orchestrator runs, and that it listens with --host 0.0.0.0"
        } else if lower.contains("dns") || lower.contains("lookup") {
            "the host name is not known: check --orchestrator-url"
        } else {
            "check --orchestrator-url and the network"
        };
        Self::transient(format!("cannot reach the orchestrator at {base} ({cause}): {advice}"))
    }

    /// An answer that is no success, with its text of at most so many bytes.
    pub async fn of(response: Response, base: &Url, most: usize) -> Self {
        let status = response.status();
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let retry_after = header("retry-after").and_then(|text| text.parse().ok()).map(Duration::from_secs);
        let location = header("location");
        // What is larger is no problem document.
        let body = body::read(response, most).await.unwrap_or_default();
        let parts: ProblemParts = serde_json::from_slice(&body).unwrap_or_default();
        Self::sorted(status, parts, retry_after, location.as_deref(), base)
    }

    fn sorted(
        status: StatusCode,
        parts: ProblemParts,
        retry_after: Option<Duration>,
        location: Option<&str>,
        base: &Url,
    ) -> Self {
        let detail = parts.detail.unwrap_or_else(|| format!("the orchestrator at {base} answers {status}"));
        match (status.as_u16(), parts.code) {
            (401 | 403, Some(_)) => Self::Refused(detail),
            (409, code) => {
                Self::Conflict { code: code.unwrap_or_default(), detail, durable: parts.durable, path: parts.path }
            }
            (404 | 410, Some(_)) => Self::Gone(detail),
            (300..=399, _) => Self::transient(format!(
                "{base} redirects to {}; give that address as --orchestrator-url",
                location.unwrap_or("another address")
            )),
            (404 | 410, None) => Self::transient(format!(
                "there is no orchestrator at {base} ({status}): check --orchestrator-url, and any path that a proxy adds"
            )),
            // Our orchestrator always says which problem it is: without, it is a proxy's word, or its maintenance page.
            (408 | 425 | 429 | 500..=599, _) | (_, None) => Self::Transient { sentence: detail, retry_after },
            (number, Some(_)) => Self::Rejected { status: number, detail },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_sorted_by_what_to_do() {
        let base = Url::parse("http://h/").unwrap_or_else(|_| panic!("url"));
        let sorted = |status: u16, code: Option<&str>| {
            let parts = ProblemParts { code: code.map(str::to_owned), ..ProblemParts::default() };
            let status = StatusCode::from_u16(status).unwrap_or_default();
            ApiError::sorted(status, parts, Some(Duration::from_secs(3)), None, &base)
        };
        for status in [408, 425, 429, 500, 502, 503] {
            assert!(matches!(sorted(status, Some("x")), ApiError::Transient { retry_after: Some(_), .. }), "{status}");
        }
        assert!(matches!(sorted(401, Some("invalid_token")), ApiError::Refused(_)));
        for status in [400, 401, 403, 407, 413] {
            assert!(matches!(sorted(status, None), ApiError::Transient { .. }), "{status} is a proxy's, not ours");
        }
        assert!(matches!(sorted(409, Some("log_gap")), ApiError::Conflict { code, .. } if code == "log_gap"));
        assert!(matches!(sorted(404, Some("job_unknown")), ApiError::Gone(_)));
        assert!(matches!(sorted(404, None), ApiError::Transient { .. }), "a proxy's page, not ours");
        assert!(matches!(sorted(302, None), ApiError::Transient { .. }));
        assert!(matches!(sorted(413, Some("body_too_large")), ApiError::Rejected { status: 413, .. }));
    }
}

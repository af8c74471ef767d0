//! The one error envelope: `application/problem+json` (RFC 9457) with a stable `code`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What went wrong, for programs (`code`) and for people (`detail`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Problem {
    /// Always `about:blank`: the code says it all.
    #[serde(rename = "type", default = "about_blank")]
    pub kind: String,
    /// The HTTP status in words.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// Stable name of the problem, `snake_case`.
    pub code: String,
    /// One or two sentences: what is wrong, and what to do.
    pub detail: String,
    /// What to quote when asking for help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// What it carries beside these, for the page's own sentences; documents have it as fields of their own.
    #[serde(skip)]
    pub with: BTreeMap<String, String>,
}

fn about_blank() -> String {
    "about:blank".to_owned()
}

impl Problem {
    /// A problem of this status.
    pub fn new(status: u16, title: &str, code: &str, detail: impl Into<String>) -> Self {
        Self {
            kind: about_blank(),
            title: title.to_owned(),
            status,
            code: code.to_owned(),
            detail: detail.into(),
            request_id: None,
            with: BTreeMap::new(),
        }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({} {})", self.detail, self.status, self.code)
    }
}

impl std::error::Error for Problem {}

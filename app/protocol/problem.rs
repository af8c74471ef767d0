//! The error format of the API: `application/problem+json` (RFC 9457) with a stable `code`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// An error, for programs (`code`) and for users (`detail`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Problem {
    /// Always `about:blank`; use `code`.
    #[serde(rename = "type", default = "about_blank")]
    pub kind: String,
    /// The HTTP status as text.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// The stable error code, in `snake_case`.
    pub code: String,
    /// One or two sentences: what is wrong, and what to do.
    pub detail: String,
    /// The invalid fields, if known; `code` and `detail` above are those of the first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
    /// The request ID, to quote in a support request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Further fields of the document as texts, such as the name of the invalid field.
    #[serde(skip)]
    pub params: BTreeMap<String, String>,
}

/// An error of one field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FieldError {
    /// The field's name; `files/NAME` is a file of a configuration.
    pub field: String,
    /// The error code.
    pub code: String,
    /// One or two sentences: what is wrong, and what to do.
    pub detail: String,
    /// The reason, for `weak_password`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

fn about_blank() -> String {
    "about:blank".to_owned()
}

impl Problem {
    /// Creates a problem with this status.
    pub fn new(status: u16, title: &str, code: &str, detail: impl Into<String>) -> Self {
        Self {
            kind: about_blank(),
            title: title.to_owned(),
            status,
            code: code.to_owned(),
            detail: detail.into(),
            errors: Vec::new(),
            request_id: None,
            params: BTreeMap::new(),
        }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({} {})", self.detail, self.status, self.code)
    }
}

impl std::error::Error for Problem {}

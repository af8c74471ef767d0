//! Artifacts: the files that a job has uploaded.

pub mod checkpoints;

use serde::{Deserialize, Deserializer, Serialize, de};

use super::status::ArtifactKind;
use crate::domain::ids::{AttemptNumber, JobId};
use crate::domain::time::Timestamp;

/// `GET /api/queue/{id}/artifacts`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ArtifactsPage {
    /// The artifacts, by path.
    pub artifacts: Vec<ArtifactView>,
    /// The checkpoint that the next attempt would resume from, if there is a complete one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumes_from: Option<ResumePointView>,
}

/// Query string of `GET /api/queue/{id}/artifacts.zip`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ArtifactsZipQuery {
    /// Only files of this kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<ArtifactKind>,
    /// Only this file, or the files below this directory (repeatable).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<String>,
}

impl ArtifactsZipQuery {
    /// Returns whether a file is one of those.
    pub fn matches(&self, path: &str, kind: ArtifactKind) -> bool {
        let is_named = self.path.is_empty() || self.path.iter().any(|name| is_at_or_below(path, name));
        is_named && self.kind.is_none_or(|wanted| wanted == kind)
    }
}

/// A query string repeats the name of each value, which serde does not read as a list.
impl<'de> Deserialize<'de> for ArtifactsZipQuery {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut query = Self::default();
        for (name, value) in Vec::<(String, String)>::deserialize(deserializer)? {
            match name.as_str() {
                "kind" => {
                    let kind = ArtifactKind::parse(&value);
                    query.kind = Some(kind.ok_or_else(|| de::Error::custom(format!("unknown kind {value:?}")))?);
                }
                "path" => query.path.push(value),
                _ => {}
            }
        }
        Ok(query)
    }
}

/// Returns whether a path is this file, or below this directory.
pub fn is_at_or_below(path: &str, name: &str) -> bool {
    let rest = path.strip_prefix(name.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A complete checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResumePointView {
    /// The job that created it: this job, or one that it retries.
    pub job_id: JobId,
    /// The attempt that created it.
    pub attempt: AttemptNumber,
    /// The name of its directory.
    pub name: String,
}

/// A file that a job has uploaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ArtifactView {
    /// Path below the job's output directory.
    pub path: String,
    /// The attempt that uploaded it.
    pub attempt: AttemptNumber,
    /// The kind of file.
    pub kind: ArtifactKind,
    /// Size in bytes.
    pub size_bytes: u64,
    /// SHA-256 in hex.
    pub sha256: String,
    /// When it was stored.
    pub created_at: Timestamp,
    /// The URL to download it from.
    pub url: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_selected_by_kind_and_path() {
        let query =
            |path: &[&str], kind| ArtifactsZipQuery { kind, path: path.iter().map(ToString::to_string).collect() };
        let matches = |path: &[&str], kind| query(path, kind).matches("notes/a.txt", ArtifactKind::Other);
        assert!(matches(&[], None) && matches(&[], Some(ArtifactKind::Other)));
        assert!(!matches(&[], Some(ArtifactKind::Final)) && !matches(&["notes"], Some(ArtifactKind::Final)));
        for name in ["notes", "notes/", "notes/a.txt"] {
            assert!(matches(&["other", name], None), "{name}");
        }
        for name in ["note", "notes/a", "otes", "notes/a.txt/b", "a.txt"] {
            assert!(!matches(&[name], None), "{name}");
        }
    }
}

//! One line of the report.

use app::domain::text::escape;
use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DiagnosticLevel {
    Ok,
    /// Jobs run, but it should be reviewed.
    Warn,
    /// This host gets no jobs, or they fail.
    Fail,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    pub verdict: DiagnosticLevel,
    /// The check.
    pub what: &'static str,
    pub found: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

impl Diagnostic {
    pub fn ok(what: &'static str, found: impl Into<String>) -> Self {
        Self { verdict: DiagnosticLevel::Ok, what, found: found.into(), advice: None }
    }

    pub fn warn(what: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { verdict: DiagnosticLevel::Warn, what, found: found.into(), advice: Some(advice.into()) }
    }

    pub fn fail(what: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { verdict: DiagnosticLevel::Fail, what, found: found.into(), advice: Some(advice.into()) }
    }

    /// A failure whose message already says what to do.
    pub fn fail_with_sentence(what: &'static str, sentence: impl Into<String>) -> Self {
        Self { verdict: DiagnosticLevel::Fail, what, found: sentence.into(), advice: None }
    }

    /// For users. Control characters are removed, because it contains text from others.
    pub fn render(&self, colors: bool) -> String {
        let (label, color) = match self.verdict {
            DiagnosticLevel::Ok => ("ok  ", 32),
            DiagnosticLevel::Warn => ("warn", 33),
            DiagnosticLevel::Fail => ("fail", 31),
        };
        let label = if colors { format!("\u{1b}[{color}m{label}\u{1b}[0m") } else { label.to_owned() };
        let advice = self.advice.as_ref().map(|advice| format!(" — {advice}")).unwrap_or_default();
        format!("{label}  {}", escape(&format!("{}: {}{advice}", self.what, self.found)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rendered_diagnostic_is_one_line() {
        let line = Diagnostic::warn("x", "a\nb\u{1b}[2J", "do c");
        assert_eq!(line.render(false), "warn  x: a\\nb\\u{1b}[2J — do c");
        assert!(line.render(true).starts_with("\u{1b}[33mwarn\u{1b}[0m  x: a\\n"));
        let json = serde_json::to_value(Diagnostic::ok("x", "y")).expect("plain fields");
        assert_eq!(json, serde_json::json!({"verdict": "ok", "what": "x", "found": "y"}));
    }
}

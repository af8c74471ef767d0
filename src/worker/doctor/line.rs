//! One line of the report.

use app::domain::text::escaped;
use serde::Serialize;

/// Whether it stands in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It is as it should be.
    Ok,
    /// Jobs come, but it is worth a look.
    Warn,
    /// This host gets no jobs, or they fail.
    Fail,
}

/// What was looked at, what was found, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line {
    /// How it is.
    pub verdict: Verdict,
    /// What was looked at.
    pub what: &'static str,
    /// What was found.
    pub found: String,
    /// What to do, if anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

impl Line {
    /// All is well.
    pub fn ok(what: &'static str, found: impl Into<String>) -> Self {
        Self { verdict: Verdict::Ok, what, found: found.into(), advice: None }
    }

    /// Worth a look.
    pub fn warn(what: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { verdict: Verdict::Warn, what, found: found.into(), advice: Some(advice.into()) }
    }

    /// It stands in the way.
    pub fn fail(what: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { verdict: Verdict::Fail, what, found: found.into(), advice: Some(advice.into()) }
    }

    /// It stands in the way, and one sentence says both what and what to do.
    pub fn failed(what: &'static str, sentence: impl Into<String>) -> Self {
        Self { verdict: Verdict::Fail, what, found: sentence.into(), advice: None }
    }

    /// For a person. Words of strangers stand in it, so nothing in it moves a cursor.
    pub fn text(&self, colours: bool) -> String {
        let (word, colour) = match self.verdict {
            Verdict::Ok => ("ok  ", 32),
            Verdict::Warn => ("warn", 33),
            Verdict::Fail => ("fail", 31),
        };
        let word = if colours { format!("\u{1b}[{colour}m{word}\u{1b}[0m") } else { word.to_owned() };
        let advice = self.advice.as_ref().map(|advice| format!(" — {advice}")).unwrap_or_default();
        format!("{word}  {}", escaped(&format!("{}: {}{advice}", self.what, self.found)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_line() {
        let line = Line::warn("x", "a\nb\u{1b}[2J", "do c");
        assert_eq!(line.text(false), "warn  x: a\\nb\\u{1b}[2J — do c");
        assert!(line.text(true).starts_with("\u{1b}[33mwarn\u{1b}[0m  x: a\\n"));
        let json = serde_json::to_value(Line::ok("x", "y")).expect("plain fields");
        assert_eq!(json, serde_json::json!({"verdict": "ok", "what": "x", "found": "y"}));
    }
}

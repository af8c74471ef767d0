//! How the status of a job is presented: its badge, and its color in a terminal.

use super::glyph::Glyph;
use super::locales::words::Status as StatusWords;
use super::status_style::StatusStyle;
use crate::protocol::status::JobStatus;

/// The tone of a status, which decides its color.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusTone {
    /// It waits.
    Waiting,
    /// It is in progress.
    Active,
    /// It needs attention.
    Warning,
    /// It completed.
    Good,
    /// It failed.
    Bad,
    /// It was cancelled by a user.
    Off,
}

/// Returns the tone of a status.
pub const fn status_tone(status: JobStatus) -> StatusTone {
    match status {
        JobStatus::Queued | JobStatus::Offered => StatusTone::Waiting,
        JobStatus::Starting | JobStatus::Running => StatusTone::Active,
        JobStatus::Cancelling => StatusTone::Warning,
        JobStatus::Completed => StatusTone::Good,
        JobStatus::Failed => StatusTone::Bad,
        JobStatus::Cancelled => StatusTone::Off,
    }
}

/// Returns the badge of a status.
pub(crate) fn job_status_style(words: &StatusWords, status: JobStatus) -> StatusStyle {
    let (glyph, label) = match status {
        JobStatus::Queued => (Glyph::Dotted, words.queued),
        JobStatus::Offered => (Glyph::HalfCircle, words.offered),
        JobStatus::Starting => (Glyph::HalfCircle, words.starting),
        JobStatus::Running => (Glyph::Spinner, words.running),
        JobStatus::Cancelling => (Glyph::StopCircle, words.cancelling),
        JobStatus::Completed => (Glyph::CheckCircle, words.completed),
        JobStatus::Failed => (Glyph::CrossCircle, words.failed),
        JobStatus::Cancelled => (Glyph::StopCircle, words.cancelled),
    };
    // Class names are literals, because the style sheet is generated from the words in the source.
    let class = match status_tone(status) {
        StatusTone::Waiting => "status status-wait",
        StatusTone::Active if glyph == Glyph::Spinner => "status status-active status-spin",
        StatusTone::Active => "status status-active",
        StatusTone::Warning => "status status-warn",
        StatusTone::Good => "status status-good",
        StatusTone::Bad => "status status-bad",
        StatusTone::Off => "status status-off",
    };
    StatusStyle { class, glyph, label }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::locales::Language;
    use crate::ui::prefs::Locale;

    #[test]
    fn each_status_has_a_word_of_its_own() {
        let words = &Language::of(Locale::En).status;
        let labels: std::collections::BTreeSet<_> =
            JobStatus::ALL.iter().map(|status| job_status_style(words, *status).label).collect();
        assert_eq!(labels.len(), JobStatus::ALL.len());
    }

    #[test]
    fn what_ended_badly_looks_bad() {
        let words = &Language::of(Locale::En).status;
        assert_eq!(job_status_style(words, JobStatus::Failed).class, "status status-bad");
    }
}

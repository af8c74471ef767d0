//! Why an attempt was lost, and why a worker is offline, in the user's language.

use crate::domain::causes::{LossCode, OfflineCause};
use crate::protocol::jobs::JobView;
use crate::protocol::status::JobStatus;
use crate::ui::i18n::t;
use crate::ui::locales::sentence::Text;

/// Returns the sentence of a loss; none if the trainer or the agent has written the reason.
fn code_sentence(code: LossCode) -> Option<Text> {
    let words = &t().job.losses;
    match code {
        LossCode::HeartbeatTimeout => Some(words.heartbeat_timeout),
        LossCode::Disconnected => Some(words.disconnected),
        LossCode::TokenRotated => Some(words.token_rotated),
        LossCode::UnknownToAgent => Some(words.unknown_to_agent),
        LossCode::Evicted => Some(words.evicted),
        LossCode::StoppedByAgent => Some(words.stopped_by_agent),
        LossCode::NeverStarted => Some(words.never_started),
        LossCode::Returned => Some(words.returned),
        // The server names the other job, and what was lost.
        LossCode::Preempted | LossCode::ReturnedWithReason | LossCode::TrainerFailed => None,
    }
}

/// Returns why an attempt was lost. `text` is its error, which is shown if there is no sentence: it is data, or older
/// than the codes.
pub(crate) fn loss_sentence(code: Option<LossCode>, text: &str) -> String {
    code.and_then(code_sentence).unwrap_or(text).to_owned()
}

/// Returns why a job failed, given how its last attempt was lost, if it was.
pub(crate) fn failure_sentence(code: Option<LossCode>, text: &str) -> String {
    let sentence = code.and_then(code_sentence).map(|sentence| t().job.no_retries_left.of(sentence));
    sentence.unwrap_or_else(|| text.to_owned())
}

/// Returns why a job failed or was requeued.
pub(crate) fn job_error(job: &JobView) -> Option<String> {
    let error = job.error.as_deref()?;
    let has_failed = job.status == JobStatus::Failed;
    Some(if has_failed { failure_sentence(job.loss_code, error) } else { loss_sentence(job.loss_code, error) })
}

/// Returns why a worker is offline.
pub(crate) fn offline_sentence(cause: OfflineCause) -> Text {
    let words = &t().worker.offline_causes;
    match cause {
        OfflineCause::HeartbeatTimeout => words.heartbeat_timeout,
        OfflineCause::Disconnected => words.disconnected,
        OfflineCause::TokenRotated => words.token_rotated,
    }
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;

    #[test]
    fn sentences_replace_the_texts_of_the_server_only() {
        let silent = Some(LossCode::HeartbeatTimeout);
        assert_eq!(
            loss_sentence(silent, "text"),
            "The worker went offline: its heartbeats stopped (heartbeat timeout)."
        );
        assert_eq!(
            failure_sentence(silent, "text"),
            "No retries left. The last attempt was lost: The worker went offline: its heartbeats stopped (heartbeat timeout)."
        );
        for code in [None, Some(LossCode::TrainerFailed), Some(LossCode::ReturnedWithReason)] {
            assert_eq!(
                (loss_sentence(code, "text"), failure_sentence(code, "text")),
                ("text".to_owned(), "text".to_owned())
            );
        }
    }
}

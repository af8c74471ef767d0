//! Why a worker goes offline, why its stream ends, and why an attempt is lost, as codes. The audit log, the database and
//! the API have the codes; pages have a sentence for each.

use crate::words::wire_words;

wire_words!(
    /// Why a worker is offline.
    OfflineCause {
        /// No contact for longer than the heartbeat timeout.
        HeartbeatTimeout = "heartbeat_timeout",
        /// Its agent disconnected.
        Disconnected = "disconnected",
        /// Its token was rotated while it had no job.
        TokenRotated = "token_rotated",
    }
);

wire_words!(
    /// Why a worker's stream ended, if neither its agent nor the network ended it.
    StreamEndCause {
        /// The server that held it has stopped.
        ServerStopped = "server_stopped",
    }
);

wire_words!(
    /// Why an attempt was lost.
    LossCode {
        /// Its worker went offline: its heartbeats stopped.
        HeartbeatTimeout = "heartbeat_timeout",
        /// Its worker went offline: its agent disconnected, and did not return within the heartbeat timeout.
        Disconnected = "disconnected",
        /// Its worker went offline: its token was rotated.
        TokenRotated = "token_rotated",
        /// The agent registered again without it.
        UnknownToAgent = "unknown_to_agent",
        /// The deadline of its worker's drain passed.
        Evicted = "evicted",
        /// It was stopped so that another job could start.
        Preempted = "preempted",
        /// The agent stopped it, and the server had not requested that.
        StoppedByAgent = "stopped_by_agent",
        /// An older agent accepted it and never started the trainer.
        NeverStarted = "never_started",
        /// The agent returned it without a reason.
        Returned = "returned",
        /// The agent returned it for the reason in its error.
        ReturnedWithReason = "returned_with_reason",
        /// The trainer failed, and the submit allows retries on failure.
        TrainerFailed = "trainer_failed",
    }
);

impl From<OfflineCause> for LossCode {
    fn from(cause: OfflineCause) -> Self {
        match cause {
            OfflineCause::HeartbeatTimeout => Self::HeartbeatTimeout,
            OfflineCause::Disconnected => Self::Disconnected,
            OfflineCause::TokenRotated => Self::TokenRotated,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loss_has_the_word_of_its_workers_cause() {
        for cause in OfflineCause::ALL {
            assert_eq!(LossCode::from(cause).as_str(), cause.as_str());
        }
    }
}

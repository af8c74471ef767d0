//! The words of the audit trail, in the order in which each language has its sentences. The rules of the trail are not the
//! page's business; a test of the server holds the two lists together.

use super::i18n::t;

/// Every action, by its word.
pub const ACTIONS: [&str; 55] = [
    "worker.created",
    "worker.registered",
    "worker.online",
    "worker.connecting",
    "worker.offline",
    "worker.drained",
    "worker.resumed",
    "worker.spent",
    "worker.astray",
    "worker.gpus",
    "worker.fitness",
    "worker.token_rotated",
    "worker.edited",
    "worker.token_in_use",
    "worker.registration_refused",
    "worker.removed",
    "worker.deleted",
    "job.submitted",
    "job.prioritised",
    "job.offered",
    "job.offer_expired",
    "job.starting",
    "job.running",
    "job.kept_back",
    "job.requeued",
    "job.cancelling",
    "job.cancelled",
    "job.completed",
    "job.failed",
    "config.stored",
    "config.deleted",
    "access.setup_completed",
    "access.token_bootstrapped",
    "access.logged_in",
    "access.session_proved",
    "access.logged_out",
    "access.session_ended",
    "access.user_created",
    "access.user_edited",
    "access.password_changed",
    "access.password_reset",
    "access.factor_added",
    "access.factor_removed",
    "access.recovery_codes_renewed",
    "access.recovery_code_used",
    "access.token_created",
    "access.token_revoked",
    "access.login_refused",
    "access.denied",
    "secret.set",
    "secret.removed",
    "secret.given",
    "audit.checkpoint",
    "audit.expired",
    "retention.swept",
];

/// What an action's word says in the reader's language.
pub(crate) fn sentence(word: &str) -> Option<&'static str> {
    let place = ACTIONS.iter().position(|action| *action == word)?;
    Some(t().overview.actions[place])
}

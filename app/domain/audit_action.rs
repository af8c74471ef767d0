//! The actions of the audit log. Unlike its entries, pages may name them.

use crate::words::words;

/// The audit actions, each with its description.
macro_rules! actions {
    ($(#[doc = $about:literal] $name:ident => $word:literal,)+) => {
        words! {
            /// An audit action.
            AuditAction { $(#[doc = $about] $name = $word,)+ }
        }

        impl AuditAction {
            /// Returns the action's description.
            pub const fn description(self) -> &'static str {
                match self {
                    $(Self::$name => $about.trim_ascii(),)+
                }
            }
        }
    };
}

actions! {
    /// An admin created a worker.
    WorkerCreated => "worker.created",
    /// An agent registered.
    WorkerRegistered => "worker.registered",
    /// A worker connected.
    WorkerOnline => "worker.online",
    /// A worker's stream ended.
    WorkerConnecting => "worker.connecting",
    /// A worker disconnected, was silent for too long, or had its token rotated; the detail's `cause` says which.
    WorkerOffline => "worker.offline",
    /// A user drained a worker.
    WorkerDrained => "worker.drained",
    /// A user resumed a drained worker.
    WorkerResumed => "worker.resumed",
    /// An ephemeral worker was retired: its job ended.
    WorkerRetired => "worker.retired",
    /// An older agent runs a job that is not assigned to it, or no longer does.
    WorkerUnassignedRun => "worker.unassigned_run",
    /// A worker's agent quarantined or released GPUs; the detail says which, and why.
    WorkerGpus => "worker.gpus_changed",
    /// A worker's agent reported its host as unhealthy (the detail's `unhealthy_reason` says why), or as healthy again.
    WorkerHostHealth => "worker.health_changed",
    /// An admin rotated a worker's token.
    WorkerTokenRotated => "worker.token_rotated",
    /// An admin changed a worker's name, type, labels or networks, or dismissed its alert.
    WorkerEdited => "worker.updated",
    /// A second agent used a token that is already in use.
    WorkerTokenInUse => "worker.token_in_use",
    /// An agent could not register: its token is invalid, its worker is retired, or the request is invalid.
    WorkerRegistrationRejected => "worker.registration_rejected",
    /// The record of an offline ephemeral worker was removed.
    WorkerRemoved => "worker.removed",
    /// An admin deleted a worker.
    WorkerDeleted => "worker.deleted",
    /// A user submitted a job.
    JobSubmitted => "job.submitted",
    /// A user changed a job's name, tags or notes.
    JobDescribed => "job.described",
    /// A user changed a job's priority.
    JobPrioritized => "job.priority_changed",
    /// An attempt was offered to a worker.
    JobOffered => "job.offered",
    /// An offer timed out, or was withdrawn because its worker drains or is offline.
    JobOfferExpired => "job.offer_expired",
    /// A worker accepted an offer.
    JobStarting => "job.starting",
    /// A running job is to be stopped so that another one can start; the detail says which, why and when.
    JobPreempting => "job.preempting",
    /// The trainer is running.
    JobRunning => "job.running",
    /// The fencing delay of an exclusive job was extended, because its lost attempt sent a request and may still train.
    JobHeld => "job.held",
    /// An attempt was lost; the job is queued again. The detail's `loss_code` says why.
    JobRequeued => "job.requeued",
    /// A user cancelled a running job.
    JobCancelling => "job.cancelling",
    /// A job was cancelled.
    JobCancelled => "job.cancelled",
    /// A job completed.
    JobCompleted => "job.completed",
    /// A job failed. If its last attempt was lost, the detail's `loss_code` says why.
    JobFailed => "job.failed",
    /// A configuration was created or changed.
    ConfigStored => "config.saved",
    /// A configuration was deleted.
    ConfigDeleted => "config.deleted",
    /// The setup code was used to create the first admin.
    SetupCompleted => "access.setup_completed",
    /// An admin token was created from the environment.
    TokenBootstrapped => "access.token_bootstrapped",
    /// A user signed in.
    LoggedIn => "access.logged_in",
    /// A user confirmed the password again for a protected action.
    SessionReauthenticated => "access.reauthenticated",
    /// A user signed out.
    LoggedOut => "access.logged_out",
    /// A browser session was ended from elsewhere.
    SessionEnded => "access.session_revoked",
    /// A user was added.
    UserCreated => "access.user_created",
    /// A user's role was changed, or the user was enabled or disabled.
    UserEdited => "access.user_updated",
    /// A user changed their password.
    PasswordChanged => "access.password_changed",
    /// An admin reset a user's password; each session that ended and each API token that was revoked has its own entry.
    PasswordReset => "access.password_reset",
    /// A user set up a second factor; the detail says which: `totp`, or `passkey` with its name.
    FactorAdded => "access.factor_added",
    /// A user's second factor was removed; the detail says which, or `all` if an admin removed it.
    FactorRemoved => "access.factor_removed",
    /// A user replaced their recovery codes.
    RecoveryCodesRenewed => "access.recovery_codes_renewed",
    /// A user signed in with a recovery code; the detail says how many are left.
    RecoveryCodeUsed => "access.recovery_code_used",
    /// A user created an API token.
    TokenCreated => "access.token_created",
    /// An API token was revoked, or had expired and was replaced.
    TokenRevoked => "access.token_revoked",
    /// A sign-in failed.
    LoginFailed => "access.login_failed",
    /// A request was not permitted.
    AccessDenied => "access.denied",
    /// A user saved a view of the list of jobs.
    ViewSaved => "view.saved",
    /// A user deleted a saved view of the list of jobs.
    ViewDeleted => "view.deleted",
    /// An admin created a team.
    TeamCreated => "team.created",
    /// An admin changed a team's description or what it may use.
    TeamEdited => "team.updated",
    /// An admin deleted a team.
    TeamDeleted => "team.deleted",
    /// An admin added a user to a team.
    TeamMemberAdded => "team.member_added",
    /// An admin changed what a member of a team may use.
    TeamMemberEdited => "team.member_updated",
    /// An admin removed a user from a team.
    TeamMemberRemoved => "team.member_removed",
    /// An admin changed how the usage of shares is counted.
    ShareRulesEdited => "share.rules_updated",
    /// A job secret was saved.
    SecretSet => "secret.saved",
    /// A job secret was deleted.
    SecretRemoved => "secret.deleted",
    /// An attempt received secrets.
    SecretsDelivered => "secret.delivered",
    /// The newest entry of this chain was signed.
    AuditCheckpoint => "audit.checkpoint",
    /// The oldest entries of a chain were deleted by retention.
    AuditExpired => "audit.expired",
    /// Ended jobs, their logs or their artifacts were deleted by retention.
    RetentionSwept => "retention.pruned",
}

/// What the entries of an action are about: their target is its ID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditSubject {
    /// A job; the page of its events describes each of them.
    Job,
    /// A worker; the page of its events describes each of them.
    Worker,
    /// Something else.
    Other,
}

impl AuditAction {
    /// Returns what the action's entries are about: the first part of its word, except where an entry is about the job
    /// for which something happened.
    pub fn subject(self) -> AuditSubject {
        match (self, self.as_str().split_once('.')) {
            (Self::SecretsDelivered, _) | (_, Some(("job", _))) => AuditSubject::Job,
            (_, Some(("worker", _))) => AuditSubject::Worker,
            _ => AuditSubject::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn action_names_are_unique_and_described() {
        let words: std::collections::BTreeSet<_> = AuditAction::ALL.iter().map(|action| action.as_str()).collect();
        assert_eq!(words.len(), AuditAction::ALL.len());
        assert!(
            AuditAction::ALL
                .iter()
                .all(|action| action.description().ends_with('.') && !action.description().starts_with(' '))
        );
    }

    #[test]
    fn actions_have_subjects() {
        let subjects =
            [AuditAction::JobHeld, AuditAction::SecretsDelivered, AuditAction::WorkerOnline, AuditAction::SecretSet]
                .map(AuditAction::subject);
        assert_eq!(subjects, [AuditSubject::Job, AuditSubject::Job, AuditSubject::Worker, AuditSubject::Other]);
    }
}

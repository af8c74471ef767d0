//! Worker tokens: validity, allowed networks, and the alert when two agents use one token.

use std::net::IpAddr;
use std::sync::Arc;

use app::domain::allowed_values::AllowedValues;
use app::domain::audit::AuditAction;
use app::domain::audit::rate_limit::RejectionKind;
use app::domain::ids::WorkerId;
use app::domain::time::{Millis, Timestamp};
use app::domain::worker::credential::{MAX_OVERLAP, TokenRejection, WorkerCredential, WorkerSession, check_network};
use app::domain::worker::{OfflineCause, Worker, WorkerTransitionError};
use app::protocol::topic::Topic;
use app::protocol::workers::{RotateToken, TokenLifetime};
use serde_json::json;

use super::local::rotate_local_token;
use crate::service::error::{InvalidInput, ServiceError};
use crate::service::unit_of_work::{Caller, UnitOfWork};
use crate::service::workers::WorkerService;
use crate::service::workers::WorkerWithToken;
use crate::service::workers::liveness::log_offline;
use crate::service::workers::token_conflict::{has_stream_on_other_host, host_of_peer};
use crate::store::workers::StoredWorker;
use crate::tokens;

/// The maximum lifetime of a token that expires: ten years.
const MAX_TOKEN_LIFETIME: Millis = Millis::from_secs(3_660 * 86_400);

/// An accepted worker token or session.
#[derive(Debug, Clone)]
pub struct WorkerAuth {
    pub worker: WorkerId,
    /// The SHA-256 of the secret, in hex.
    pub digest: String,
    /// Token or session.
    pub kind: WorkerAuthKind,
    /// The address it came from, as far as known.
    pub peer: Option<IpAddr>,
}

/// How an agent authenticates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerAuthKind {
    /// The worker's token: for registration, and for everything by older agents.
    Token,
    /// The session from the registration.
    Session,
}

/// What an agent uses its token for, besides registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenUse {
    /// Requests for which agents with a session use the session.
    Work,
    /// An older agent opens its stream; it may have moved to another host.
    Listen,
    /// A check whether the token is valid, by `simpletuner-worker doctor` beside a running agent.
    Check,
}

impl WorkerAuth {
    /// Returns until when the token or session is valid for this worker, or why it is rejected.
    pub fn check(&self, stored: &StoredWorker, now: Timestamp) -> Result<Option<Timestamp>, TokenRejection> {
        check_network(&stored.worker.networks, self.peer)?;
        match self.kind {
            WorkerAuthKind::Token => stored.credential.verify(&self.digest, now),
            WorkerAuthKind::Session => stored.credential.verify_session(&self.digest, now),
        }
    }
}

impl WorkerService {
    /// Authenticates a worker's token or session from this address. One with a typing error is rejected by its
    /// checksum.
    pub async fn authenticate_worker(&self, token: &str, peer: Option<IpAddr>) -> Result<WorkerAuth, ServiceError> {
        let token = token.trim();
        let (kind, unknown) = match token {
            _ if tokens::has_valid_checksum("wt_", token) => (WorkerAuthKind::Token, ServiceError::WrongToken),
            // A later registration has replaced the session. Its agent registers again, with the token.
            _ if tokens::has_valid_checksum("ws_", token) => {
                (WorkerAuthKind::Session, WorkerTransitionError::NotRegistered.into())
            }
            _ => return Err(ServiceError::WrongToken),
        };
        let digest = tokens::digest(token);
        let stored = self.context.read_recent().await?.worker_by_token(&digest).await?.ok_or(unknown)?;
        let auth = WorkerAuth { worker: stored.worker.id.clone(), digest, kind, peer };
        match auth.check(&stored, self.context.now()) {
            Ok(_) => Ok(auth),
            Err(TokenRejection::Unknown) => Err(ServiceError::WrongToken),
            Err(TokenRejection::SessionEnded) => Err(WorkerTransitionError::NotRegistered.into()),
            Err(rejection) => Err(ServiceError::WorkerTokenRejected(rejection, auth.worker)),
        }
    }

    /// Checks that only the registered agent uses a worker's token for more than registration.
    pub async fn check_holder(&self, auth: &WorkerAuth, to: TokenUse) -> Result<(), ServiceError> {
        if auth.kind == WorkerAuthKind::Session {
            return Ok(());
        }
        let is_another = |stored: &StoredWorker| {
            let has_session = stored.credential.session.is_some();
            let is_elsewhere = || has_stream_on_other_host(&stored.worker, &host_of_peer(auth.peer));
            match to {
                TokenUse::Work => has_session || is_elsewhere(),
                TokenUse::Listen => has_session,
                TokenUse::Check => is_elsewhere(),
            }
        };
        let recent = self.context.read_recent().await?.worker(&auth.worker).await?;
        if !recent.as_ref().is_some_and(is_another) {
            return Ok(());
        }
        // Another agent may just have registered on another server.
        let current = self.context.read().await?.worker(&auth.worker).await?;
        if current.as_ref().is_some_and(is_another) { Err(WorkerTransitionError::TokenInUse.into()) } else { Ok(()) }
    }

    /// Checks against the recent state of the worker, or, as that may be older than the agent's registration on another
    /// server, against the current one.
    pub async fn check_worker_auth(
        &self,
        auth: &WorkerAuth,
        recent: &StoredWorker,
    ) -> Result<Option<Timestamp>, ServiceError> {
        let rejection = match auth.check(recent, self.context.now()) {
            Ok(expires_at) => return Ok(expires_at),
            Err(rejection) => rejection,
        };
        let current = self.context.read().await?.worker(&auth.worker).await?;
        let result = current.map_or(Err(rejection), |stored| auth.check(&stored, self.context.now()));
        result.map_err(|rejection| ServiceError::WorkerTokenRejected(rejection, auth.worker.clone()))
    }

    /// Rotates a worker's token. The old one is revoked and its streams end: immediately, or, with an overlap, when
    /// that is over or an agent has registered with the new token.
    pub async fn rotate_token(
        self: &Arc<Self>,
        caller: Caller,
        id: WorkerId,
        rotate: RotateToken,
    ) -> Result<WorkerWithToken, ServiceError> {
        let overlap = rotate.overlap_seconds.map(|seconds| Millis::from_secs(i64::from(seconds)));
        if overlap.is_some_and(|overlap| overlap > MAX_OVERLAP) {
            let allowed = AllowedValues::Seconds { days: 7 };
            return Err(InvalidInput::OutOfRange { field: "overlap_seconds", allowed }.into());
        }
        let token = tokens::generate("wt_", &*self.context.random);
        let expires_at = self.worker_token_expiry(rotate.lifetime)?;
        let unused_ends_at = self.unused_token_expiry(rotate.lifetime);
        let new_credential = WorkerCredential {
            expires_at,
            expires_unused_at: unused_ends_at,
            ..WorkerCredential::issued(tokens::digest(&token), self.context.now(), &caller.actor)
        };
        let input = Arc::new((id, token, new_credential));
        let (rotated, evicted) = self
            .context
            .change(caller, move |unit| {
                let input = Arc::clone(&input);
                Box::pin(async move {
                    let (id, token, new_credential) = &*input;
                    let stored = unit.worker(id).await?;
                    let (token, new_credential) = if stored.worker.local {
                        let token = rotate_local_token(unit, id, &tokens::digest(token)).await?;
                        let digest = tokens::digest(&token);
                        // The server starts the agent that uses it.
                        (token, WorkerCredential { digest, expires_unused_at: None, ..new_credential.clone() })
                    } else {
                        (token.clone(), new_credential.clone())
                    };
                    let credential =
                        WorkerCredential::clone(&stored.credential).rotated(unit.now, new_credential, overlap);
                    unit.tx.put_credential(id, &credential).await?;
                    let worker = stored.worker.clone().token_rotated();
                    if worker != stored.worker {
                        unit.tx.update_worker(&stored.worker, &worker).await?;
                    }
                    let old_ends_at = credential.previous.map(|old| old.expires_at);
                    let unused_ends_at = credential.expires_unused_at;
                    let detail = json!({
                        "expires_at": credential.expires_at,
                        "token_unused_ends_at": unused_ends_at,
                        "old_token_ends_at": old_ends_at,
                    });
                    unit.record(AuditAction::WorkerTokenRotated, id.as_str(), &detail).await?;
                    unit.notify(Topic::Workers);
                    // Its open stream re-checks the token, and ends.
                    unit.notify(Topic::Worker(id.clone()));
                    let is_immediate = overlap.is_none_or(|overlap| overlap.0 == 0);
                    let before = worker.clone();
                    let worker = if is_immediate { evict_agent(unit, worker).await? } else { worker };
                    let evicted = worker != before;
                    Ok((WorkerWithToken { worker, token, unused_expires_at: unused_ends_at }, evicted))
                })
            })
            .await?;
        if evicted {
            log_offline(&rotated.worker.id, &rotated.worker.name, OfflineCause::TokenRotated);
        }
        Ok(rotated)
    }

    /// When a token that is created now expires.
    pub(in crate::service) fn worker_token_expiry(
        &self,
        lifetime: TokenLifetime,
    ) -> Result<Option<Timestamp>, InvalidInput> {
        let now = self.context.now();
        let end = match (lifetime.expires_at, lifetime.expires_in_seconds) {
            (None, None) => return Ok(None),
            (Some(at), None) => at,
            (None, Some(seconds)) => now + Millis::from_secs(i64::from(seconds)),
            (Some(_), Some(_)) => {
                let allowed = AllowedValues::LeftOut { given: "expires_in_seconds" };
                return Err(InvalidInput::OutOfRange { field: "expires_at", allowed });
            }
        };
        let is_valid = end > now && end - now <= MAX_TOKEN_LIFETIME;
        let field = if lifetime.expires_at.is_some() { "expires_at" } else { "expires_in_seconds" };
        let error = || InvalidInput::OutOfRange { field, allowed: AllowedValues::Expiry };
        is_valid.then_some(Some(end)).ok_or_else(error)
    }

    /// When a token that is created now expires unless an agent registers with it: for tokens without an expiry date.
    pub(in crate::service) fn unused_token_expiry(&self, lifetime: TokenLifetime) -> Option<Timestamp> {
        let has_expiry = lifetime.expires_at.is_some() || lifetime.expires_in_seconds.is_some();
        self.context
            .policy
            .accounts
            .unused_worker_token_lifetime
            .filter(|_| !has_expiry)
            .map(|lifetime| self.context.now() + lifetime)
    }

    /// Raises the alert: two agents use one token. The worker shows it until its token is rotated, or the alert is
    /// dismissed.
    pub async fn record_token_conflict(self: &Arc<Self>, caller: Caller, worker: &WorkerId, host: Option<&str>) {
        tracing::warn!(%worker, ?host, "worker token: rejected a second agent with a token in use");
        let Some(suppressed) = self.audit.admit_rejection(RejectionKind::TokenInUse, worker.to_string()) else {
            return;
        };
        let mut detail = json!({"host": host});
        if suppressed > 0 {
            detail["left_out_before"] = json!(suppressed);
        }
        let input = Arc::new((worker.clone(), host.unwrap_or_default().to_owned(), detail));
        let recorded = self.context.change(caller, move |unit| {
            let input = Arc::clone(&input);
            Box::pin(async move {
                let (worker, host, detail) = &*input;
                let before = unit.worker(worker).await?.worker;
                let after = before.clone().token_contended(unit.now, host);
                // A repeated conflict at the same time adds an entry, but does not change the state.
                if before == after {
                    return unit.record(AuditAction::WorkerTokenInUse, worker.as_str(), detail).await;
                }
                unit.save_worker(&before, &after, AuditAction::WorkerTokenInUse, detail).await
            })
        });
        if let Err(error) = recorded.await {
            tracing::error!(?error, "audit: failed to record a worker token used by two agents");
        }
    }
}

/// Disconnects the agent that had the old token and can no longer disconnect itself, unless it has leases: then it
/// continues with their job tokens.
async fn evict_agent(unit: &mut UnitOfWork<'_>, worker: Worker) -> Result<Worker, ServiceError> {
    // The server restarts the agent of its own machine.
    if worker.local || !unit.tx.leased_jobs(Some(&worker.id)).await?.is_empty() {
        return Ok(worker);
    }
    let cause = OfflineCause::TokenRotated;
    let offline = worker.clone().went_offline(unit.now, cause);
    unit.save_worker(&worker, &offline, AuditAction::WorkerOffline, &json!({"cause": cause})).await?;
    Ok(offline)
}

/// Records that an agent has registered with this credential, and starts its session unless a newer one exists: earlier
/// session and token end. Returns whether there was an earlier token.
pub(in crate::service) async fn activate_token(
    unit: &mut UnitOfWork<'_>,
    auth: &WorkerAuth,
    stored: &StoredWorker,
    session: Option<&str>,
) -> Result<bool, ServiceError> {
    let session =
        session.map(|session| WorkerSession { digest: tokens::digest(session), token_digest: auth.digest.clone() });
    let credential = WorkerCredential::clone(&stored.credential).activated(&auth.digest).with_session(session);
    if credential != *stored.credential {
        unit.tx.put_credential(&auth.worker, &credential).await?;
    }
    Ok(credential.previous != stored.credential.previous)
}

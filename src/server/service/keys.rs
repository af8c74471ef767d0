//! Workers' tokens: whose they are, from where and until when they open, and the alarm when two agents have one.

use std::net::IpAddr;
use std::sync::Arc;

use app::domain::audit::Action;
use app::domain::audit::flood::Refused as Flood;
use app::domain::ids::WorkerId;
use app::domain::time::{Millis, Timestamp};
use app::domain::worker::Refused;
use app::domain::worker::credential::{Closed, Credential, LONGEST_OVERLAP, Session, may_come_from};
use app::protocol::topic::Topic;
use app::protocol::workers::{RotateToken, TokenLife};
use serde_json::json;

use super::Core;
use super::contention::{host_at, listens_elsewhere};
use super::local::turn_token;
use super::refusal::{Invalid, Refusal};
use super::unit::{Caller, Unit};
use super::workers::Created;
use crate::store::workers::{Seen, StoredWorker};
use crate::tokens;

/// The longest life of a token that has an end: ten years.
const LONGEST_LIFE: Millis = Millis::seconds(3_660 * 86_400);

/// A worker's token that was accepted.
#[derive(Debug, Clone)]
pub struct WorkerKey {
    /// Whose it is.
    pub worker: WorkerId,
    /// The SHA-256 of what was shown, in hex.
    pub digest: String,
    /// What was shown.
    pub means: Means,
    /// Where it was shown, as far as that is known.
    pub peer: Option<IpAddr>,
}

/// How an agent proves which worker it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Means {
    /// The worker's token: to register, and for older agents everything.
    Token,
    /// The session that it got when it registered.
    Session,
}

/// What an agent does with its token, besides registering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenUse {
    /// Everything for which agents with a session use the session.
    Work,
    /// An older agent opens its stream; it may have moved to another host.
    Listen,
    /// A check whether the token is valid, as `simpletuner-worker doctor` does beside a running agent.
    Check,
}

impl WorkerKey {
    /// Whether it still opens what belongs to this worker, and until when.
    pub fn opens(&self, stored: &StoredWorker, now: Timestamp) -> Result<Option<Timestamp>, Closed> {
        may_come_from(&stored.worker.networks, self.peer)?;
        match self.means {
            Means::Token => stored.credential.opens(&self.digest, now),
            Means::Session => stored.credential.session_opens(&self.digest, now),
        }
    }
}

impl Core {
    /// Whose token or session this is, if it opens from there. One with a typing error is known without a look.
    pub async fn authenticate_worker(&self, token: &str, peer: Option<IpAddr>) -> Result<WorkerKey, Refusal> {
        let token = token.trim();
        let (means, unknown) = match token {
            _ if tokens::is_whole("wt_", token) => (Means::Token, Refusal::WrongToken),
            // A later registration has replaced it. Its agent registers again, with the token.
            _ if tokens::is_whole("ws_", token) => (Means::Session, Refused::NotRegistered.into()),
            _ => return Err(Refusal::WrongToken),
        };
        let digest = tokens::digest(token);
        let stored = self.recent().await?.worker_by_token(&digest).await?.ok_or(unknown)?;
        let key = WorkerKey { worker: stored.worker.id.clone(), digest, means, peer };
        match key.opens(&stored, self.now()) {
            Ok(_) => Ok(key),
            Err(Closed::Unknown) => Err(Refusal::WrongToken),
            Err(Closed::SessionOver) => Err(Refused::NotRegistered.into()),
            Err(closed) => Err(Refusal::WorkerKey(closed, key.worker)),
        }
    }

    /// Checks that who shows a worker's token to do more than register is the agent that has registered.
    pub async fn check_holder(&self, key: &WorkerKey, to: TokenUse) -> Result<(), Refusal> {
        if key.means == Means::Session {
            return Ok(());
        }
        let is_another = |stored: &StoredWorker| {
            let has_session = stored.credential.session.is_some();
            let is_elsewhere = || listens_elsewhere(&stored.worker, &host_at(key.peer));
            match to {
                TokenUse::Work => has_session || is_elsewhere(),
                TokenUse::Listen => has_session,
                TokenUse::Check => is_elsewhere(),
            }
        };
        let recent = self.recent().await?.worker(&key.worker).await?;
        if !recent.as_ref().is_some_and(is_another) {
            return Ok(());
        }
        // Another agent may have registered on another server just now.
        let now = self.read().await?.worker(&key.worker).await?;
        if now.as_ref().is_some_and(is_another) { Err(Refused::TokenInUse.into()) } else { Ok(()) }
    }

    /// Whether a key opens a worker as it was recently, or, as that may be before its agent registered on another server, as
    /// it is now.
    pub async fn opens(&self, key: &WorkerKey, recent: &StoredWorker) -> Result<Option<Timestamp>, Refusal> {
        let closed = match key.opens(recent, self.now()) {
            Ok(until) => return Ok(until),
            Err(closed) => closed,
        };
        let now = self.read().await?.worker(&key.worker).await?;
        let opened = now.map_or(Err(closed), |stored| key.opens(&stored, self.now()));
        opened.map_err(|closed| Refusal::WorkerKey(closed, key.worker.clone()))
    }

    /// Notes a sign of life.
    pub fn heard_of(&self, worker: &WorkerId, from: Option<IpAddr>) {
        let now = self.now();
        if let Some(before) = self.presence.note(worker, Seen { at: now, from }) {
            self.metrics.silence.observe((now - before).0.max(0).unsigned_abs() * 1_000);
        }
    }

    /// Gives a worker a new token. The old one opens nothing any more and streams that it opened end: at once, or, with
    /// an overlap, when that is over or an agent has registered with the new one.
    pub async fn rotate_token(
        self: &Arc<Self>,
        caller: Caller,
        id: WorkerId,
        rotate: RotateToken,
    ) -> Result<Created, Refusal> {
        let overlap = rotate.overlap_seconds.map(|seconds| Millis::seconds(i64::from(seconds)));
        if overlap.is_some_and(|overlap| overlap > LONGEST_OVERLAP) {
            return Err(Invalid::Range { field: "overlap_seconds", allowed: "at most 604800 (7 days)" }.into());
        }
        let token = tokens::mint("wt_", &*self.random);
        let expires_at = self.end_of(rotate.life)?;
        let unused_ends_at = self.end_if_unused(rotate.life);
        let fresh = Credential {
            expires_at,
            unused_ends_at,
            ..Credential::made(tokens::digest(&token), self.now(), &caller.actor)
        };
        let input = Arc::new((id, token, fresh));
        self.change(caller, move |unit| {
            let input = Arc::clone(&input);
            Box::pin(async move {
                let (id, token, fresh) = &*input;
                let stored = unit.worker(id).await?;
                let (token, fresh) = if stored.worker.local {
                    let token = turn_token(unit, id, &tokens::digest(token)).await?;
                    let digest = tokens::digest(&token);
                    // The server starts the agent that uses it.
                    (token, Credential { digest, unused_ends_at: None, ..fresh.clone() })
                } else {
                    (token.clone(), fresh.clone())
                };
                let credential = Credential::clone(&stored.credential).rotated(unit.now, fresh, overlap);
                unit.tx.put_credential(id, &credential).await?;
                let worker = stored.worker.clone().rekeyed();
                if worker != stored.worker {
                    unit.tx.update_worker(&stored.worker, &worker).await?;
                }
                let old_ends_at = credential.old.map(|old| old.ends_at);
                let unused_ends_at = credential.unused_ends_at;
                let detail = json!({
                    "expires_at": credential.expires_at,
                    "token_unused_ends_at": unused_ends_at,
                    "old_token_ends_at": old_ends_at,
                });
                unit.record(Action::WorkerTokenRotated, id.as_str(), &detail).await?;
                unit.touch(Topic::Workers);
                // Its open stream looks, and finds that the token opens nothing any more.
                unit.touch(Topic::Worker(id.clone()));
                Ok(Created { worker, token, unused_ends_at })
            })
        })
        .await
    }

    /// When a token ends that is made now.
    pub(super) fn end_of(&self, life: TokenLife) -> Result<Option<Timestamp>, Refusal> {
        let now = self.now();
        let end = match (life.expires_at, life.expires_in_seconds) {
            (None, None) => return Ok(None),
            (Some(at), None) => at,
            (None, Some(seconds)) => now + Millis::seconds(i64::from(seconds)),
            (Some(_), Some(_)) => {
                let allowed = "left out where `expires_in_seconds` is given";
                return Err(Invalid::Range { field: "expires_at", allowed }.into());
            }
        };
        let usable = end > now && end - now <= LONGEST_LIFE;
        let field = if life.expires_at.is_some() { "expires_at" } else { "expires_in_seconds" };
        let bad = || Invalid::Range { field, allowed: "in the future, at most ten years ahead" }.into();
        usable.then_some(Some(end)).ok_or_else(bad)
    }

    /// When a token that is made now ends if no agent registers with it: of one whose maker chose no end.
    pub(super) fn end_if_unused(&self, life: TokenLife) -> Option<Timestamp> {
        let chosen = life.expires_at.is_some() || life.expires_in_seconds.is_some();
        self.policy.accounts.unused_worker_token_life.filter(|_| !chosen).map(|life| self.now() + life)
    }

    /// Raises the alarm: one token, two agents. The worker shows it until its token is rotated, or somebody has said
    /// that it is settled.
    pub async fn record_token_in_use(self: &Arc<Self>, caller: Caller, worker: &WorkerId, host: Option<&str>) {
        tracing::warn!(%worker, ?host, "a second agent came with a token that is in use; it was refused");
        let Some(left_out) = self.another(Flood::TokenInUse, worker.to_string()) else { return };
        let mut detail = json!({"host": host});
        if left_out > 0 {
            detail["left_out_before"] = json!(left_out);
        }
        let input = Arc::new((worker.clone(), host.unwrap_or_default().to_owned(), detail));
        let recorded = self.change(caller, move |unit| {
            let input = Arc::clone(&input);
            Box::pin(async move {
                let (worker, host, detail) = &*input;
                let before = unit.worker(worker).await?.worker;
                let after = before.clone().contended(unit.now, host);
                // Twice within one moment is another entry, but no other state.
                if before == after {
                    return unit.record(Action::WorkerTokenInUse, worker.as_str(), detail).await;
                }
                unit.save_worker(&before, &after, Action::WorkerTokenInUse, detail).await
            })
        });
        if let Err(refusal) = recorded.await {
            tracing::error!(?refusal, "a token that two agents have is not on record");
        }
    }
}

/// An agent has registered with this key, and gets this session if it is no older one: the session and the token before end.
/// Returns whether there was a token before.
pub(super) async fn take_up(
    unit: &mut Unit<'_>,
    key: &WorkerKey,
    stored: &StoredWorker,
    session: Option<&str>,
) -> Result<bool, Refusal> {
    let session = session.map(|session| Session { digest: tokens::digest(session), token: key.digest.clone() });
    let credential = Credential::clone(&stored.credential).taken_up(&key.digest).registered(session);
    if credential != *stored.credential {
        unit.tx.put_credential(&key.worker, &credential).await?;
    }
    Ok(credential.old != stored.credential.old)
}

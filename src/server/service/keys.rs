//! Workers' tokens: whose they are, from where and until when they open, and the alarm when two agents have one.

use std::net::IpAddr;
use std::sync::Arc;

use app::domain::audit::Action;
use app::domain::audit::flood::Refused;
use app::domain::ids::WorkerId;
use app::domain::time::{Millis, Timestamp};
use app::domain::worker::credential::{Closed, Credential, LONGEST_OVERLAP, may_come_from};
use app::protocol::topic::Topic;
use app::protocol::workers::{RotateToken, TokenLife};
use serde_json::json;

use super::Core;
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
    /// The token's SHA-256, in hex.
    pub digest: String,
    /// Where it was shown, as far as that is known.
    pub peer: Option<IpAddr>,
}

impl WorkerKey {
    /// Whether it still opens what belongs to this worker, and until when.
    pub fn opens(&self, stored: &StoredWorker, now: Timestamp) -> Result<Option<Timestamp>, Closed> {
        may_come_from(&stored.worker.networks, self.peer)?;
        stored.credential.opens(&self.digest, now)
    }
}

impl Core {
    /// Whose token this is, if it opens from there. One with a typing error is known without a look.
    pub async fn authenticate_worker(&self, token: &str, peer: Option<IpAddr>) -> Result<WorkerKey, Refusal> {
        let token = token.trim();
        if !tokens::is_whole("wt_", token) {
            return Err(Refusal::WrongToken);
        }
        let digest = tokens::digest(token);
        let stored = self.recent().await?.worker_by_token(&digest).await?.ok_or(Refusal::WrongToken)?;
        let key = WorkerKey { worker: stored.worker.id.clone(), digest, peer };
        match key.opens(&stored, self.now()) {
            Ok(_) => Ok(key),
            Err(Closed::Unknown) => Err(Refusal::WrongToken),
            Err(closed) => Err(Refusal::WorkerKey(closed, key.worker)),
        }
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
        let fresh = Credential { expires_at, ..Credential::made(tokens::digest(&token), self.now(), &caller.actor) };
        let input = Arc::new((id, token, fresh));
        self.change(caller, move |unit| {
            let input = Arc::clone(&input);
            Box::pin(async move {
                let (id, token, fresh) = &*input;
                let stored = unit.worker(id).await?;
                let (token, fresh) = if stored.worker.local {
                    let token = turn_token(unit, id, &tokens::digest(token)).await?;
                    let digest = tokens::digest(&token);
                    (token, Credential { digest, ..fresh.clone() })
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
                let detail = json!({"expires_at": credential.expires_at, "old_token_ends_at": old_ends_at});
                unit.record(Action::WorkerTokenRotated, id.as_str(), &detail).await?;
                unit.touch(Topic::Workers);
                // Its open stream looks, and finds that the token opens nothing any more.
                unit.touch(Topic::Worker(id.clone()));
                Ok(Created { worker, token })
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

    /// Raises the alarm: one token, two agents. The worker shows it until its token is rotated, or somebody has said
    /// that it is settled.
    pub async fn record_token_in_use(self: &Arc<Self>, caller: Caller, worker: &WorkerId, host: Option<&str>) {
        tracing::warn!(%worker, ?host, "a second agent came with a token that is in use; it was refused");
        let Some(left_out) = self.another(Refused::TokenInUse, worker.to_string()) else { return };
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

/// An agent has registered with this key: the token before it ends. Returns whether there was one.
pub(super) async fn take_up(unit: &mut Unit<'_>, key: &WorkerKey, stored: &StoredWorker) -> Result<bool, Refusal> {
    let credential = Credential::clone(&stored.credential).taken_up(&key.digest);
    let ended = credential != *stored.credential;
    if ended {
        unit.tx.put_credential(&key.worker, &credential).await?;
    }
    Ok(ended)
}

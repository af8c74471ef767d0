//! Entries that have been kept for long enough go, from the beginning of each chain. The last one that went is known from
//! then on, so that the rest of the chain can still be verified.

use std::sync::Arc;

use app::domain::audit::verify::Mark;
use app::domain::audit::{Action, expired};
use app::domain::time::Timestamp;
use serde_json::json;

use crate::service::Core;
use crate::service::refusal::Refusal;
use crate::service::unit::{Caller, Unit};

/// So many entries are removed in one transaction; others want to write too.
const BATCH: u32 = 1_000;

impl Core {
    /// Removes what is older than `--audit-retention-days` says; returns how many entries that were.
    pub async fn expire_audit(self: &Arc<Self>) -> Result<u64, Refusal> {
        let Some(kept) = self.policy.audit_retention else { return Ok(0) };
        let before = Timestamp(self.now().0 - kept.0);
        let heads = self.read().await?.audit_heads().await?;
        let mut removed = 0;
        for (chain, head) in heads {
            let mut some = head.removed.seq < head.newest.seq;
            while some {
                let of = chain.clone();
                let batch = self.change(Caller::system(), move |unit| {
                    let chain = of.clone();
                    Box::pin(async move { remove_some(unit, &chain, before).await })
                });
                let Some((batch, last)) = batch.await? else { break };
                self.sign_removal(&chain, &last)?;
                removed += batch;
                some = batch == u64::from(BATCH);
            }
        }
        if removed > 0 {
            // Who verifies with another file goes by the entries about it, which count once they are signed.
            self.sign_audit().await?;
        }
        Ok(removed)
    }
}

async fn remove_some(unit: &mut Unit<'_>, chain: &str, before: Timestamp) -> Result<Option<(u64, Mark)>, Refusal> {
    let oldest = unit.tx.oldest_audit(chain, BATCH).await?;
    let number = expired(oldest.iter().map(|(at, _)| *at), before);
    let Some((_, last)) = number.checked_sub(1).and_then(|at| oldest.get(at)) else { return Ok(None) };
    unit.tx.remove_audit(chain, last).await?;
    let detail = json!({"from": oldest[0].1.seq, "to": last.seq, "hash": last.hash, "before": before});
    unit.record(Action::AuditExpired, chain, &detail).await?;
    Ok(Some((number as u64, last.clone())))
}

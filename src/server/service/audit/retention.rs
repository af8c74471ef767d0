//! Retention of audit entries: old ones are removed from the beginning of each chain. The last removed one is recorded,
//! so that the rest of the chain can still be verified.

use std::sync::Arc;

use app::domain::audit::verify::EntryRef;
use app::domain::audit::{AuditAction, count_expired};
use app::domain::time::Timestamp;
use serde_json::json;

use crate::service::audit::AuditService;
use crate::service::error::ServiceError;
use crate::service::unit_of_work::{Caller, UnitOfWork};

/// The maximum number of entries per transaction, so that other writers are not blocked.
const BATCH: u32 = 1_000;

impl AuditService {
    /// Removes entries older than `--audit-retention-days`; returns their number.
    pub async fn prune_audit(self: &Arc<Self>) -> Result<u64, ServiceError> {
        let Some(retention) = self.context.policy.audit_retention else { return Ok(0) };
        let before = Timestamp(self.context.now().0 - retention.0);
        let heads = self.context.read().await?.audit_heads().await?;
        let mut removed = 0;
        for (chain, head) in heads {
            let mut has_more = head.removed.seq < head.newest.seq;
            while has_more {
                let chain_name = chain.clone();
                let batch = self.context.change(Caller::system(), move |unit| {
                    let chain = chain_name.clone();
                    Box::pin(async move { remove_batch(unit, &chain, before).await })
                });
                let Some((batch, last)) = batch.await? else { break };
                self.sign_removal(&chain, &last)?;
                removed += batch;
                has_more = batch == u64::from(BATCH);
            }
        }
        if removed > 0 {
            // A verification with another file relies on the entries about retention, which count once they are signed.
            self.sign_audit().await?;
        }
        Ok(removed)
    }
}

async fn remove_batch(
    unit: &mut UnitOfWork<'_>,
    chain: &str,
    before: Timestamp,
) -> Result<Option<(u64, EntryRef)>, ServiceError> {
    let oldest = unit.tx.oldest_audit(chain, BATCH).await?;
    let number = count_expired(oldest.iter().map(|(at, _)| *at), before);
    let Some((_, last)) = number.checked_sub(1).and_then(|index| oldest.get(index)) else { return Ok(None) };
    unit.tx.remove_audit(chain, last).await?;
    let detail = json!({"from": oldest[0].1.seq, "to": last.seq, "hash": last.hash, "before": before});
    unit.record(AuditAction::AuditExpired, chain, &detail).await?;
    Ok(Some((number as u64, last.clone())))
}

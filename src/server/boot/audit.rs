//! The audit trail while the server runs: who ships its checkpoints, and how it is ended.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::cli::ServerArgs;
use crate::service::Core;
use crate::shipping::Shipper;

/// Who sends the audit trail's checkpoints elsewhere, if somebody is to.
pub fn shipper(args: &ServerArgs, core: &Arc<Core>, data: &Path) -> Option<Arc<Shipper>> {
    let target = args.ops.audit_ship.clone()?;
    let timeout = Duration::from_secs(args.ops.audit_ship_timeout.into());
    Some(Arc::new(Shipper::new(Arc::clone(core), target, data, timeout)))
}

/// Signs the end of this server's part of the audit trail, and sends what was signed.
pub async fn end_audit(core: &Arc<Core>, shipper: Option<&Shipper>) {
    if let Err(refusal) = core.sign_audit().await {
        tracing::warn!(?refusal, "the end of the audit trail was not signed");
    } else if let Err(refusal) = core.close_audit().await {
        tracing::warn!(?refusal, "that the audit trail has ended was not signed");
    }
    if let Some(shipper) = shipper
        && let Err(error) = shipper.send_all().await
    {
        tracing::warn!(%error, "the last audit checkpoints were not shipped; the next start sends them");
    }
}

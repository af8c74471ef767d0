//! The audit log while the server runs: shipping of checkpoints, and the end of the chain.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::args::ServerArgs;
use crate::audit_shipping::AuditShipper;
use crate::service::Services;

/// Creates the shipper of audit checkpoints, if one is configured.
pub fn build_shipper(args: &ServerArgs, services: &Arc<Services>, data: &Path) -> Option<Arc<AuditShipper>> {
    let target = args.ops.audit_ship.clone()?;
    let timeout = Duration::from_secs(args.ops.audit_ship_timeout.into());
    Some(Arc::new(AuditShipper::new(Arc::clone(services), target, data, timeout)))
}

/// Signs the end of this server's chain, and ships the checkpoint.
pub async fn close_audit(services: &Arc<Services>, shipper: Option<&AuditShipper>) {
    if let Err(error) = services.audit.sign_audit().await {
        tracing::warn!(?error, "audit: failed to sign the last entries");
    } else if let Err(error) = services.audit.close_audit().await {
        tracing::warn!(?error, "audit: failed to sign the end of the chain");
    }
    if let Some(shipper) = shipper
        && let Err(error) = shipper.send_all().await
    {
        tracing::warn!(%error, "audit shipping: failed to ship the last checkpoints; the next start ships them");
    }
}

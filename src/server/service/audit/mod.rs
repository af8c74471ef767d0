//! The audit log beyond writing to it (see [`unit_of_work`](super::unit_of_work)): reading, verification, signatures,
//! retention, and the records of rejected requests.

pub mod checkpoint;
pub mod entries;
pub mod rejections;
pub mod retention;
pub mod signatures;
pub mod verify;

use std::sync::Arc;

use self::checkpoint::AuditSigner;
use self::rejections::AuditRateLimiter;
use super::ServiceContext;

pub struct AuditService {
    /// Limits records of rejected requests.
    pub(super) limiter: AuditRateLimiter,
    pub signer: AuditSigner,
    pub(super) context: Arc<ServiceContext>,
}

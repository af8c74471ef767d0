//! Re-checks, for streams that outlive their request, whether the caller is still authorized.

use std::time::Duration;

use app::domain::time::{Millis, Timestamp};
use app::protocol::topic::Topic;

use crate::clock::slightly_after;
use crate::service::access::AccessService;
use crate::service::auth_grant::{AuthGrant, Credential, effective_permissions};
use crate::service::error::ServiceError;
use crate::store::access::ResolvedCredential;

/// Interval between re-checks without a change notification: an idle session expires without one.
const RECHECK_INTERVAL: Duration = Duration::from_mins(1);
/// Delay before the next try when the database did not answer.
const RETRY_DELAY: Duration = Duration::from_secs(1);

impl AccessService {
    /// Resolves a credential; `None` if it was revoked.
    pub(super) async fn resolve_credential(
        &self,
        credential: &Credential,
    ) -> Result<Option<ResolvedCredential>, ServiceError> {
        credential.resolve(&mut *self.context.read_recent().await?).await
    }

    /// Returns whether the caller would still get the same permissions.
    pub async fn is_grant_valid(&self, grant: &AuthGrant) -> Result<bool, ServiceError> {
        grant
            .is_valid(
                &mut *self.context.read_recent().await?,
                self.context.now(),
                self.context.policy.accounts.session_idle,
            )
            .await
    }

    /// Completes when the grant is no longer valid: the token or session was revoked or has expired, the user was
    /// disabled, or the permissions have changed.
    pub async fn wait_until_revoked(&self, grant: &AuthGrant) {
        let idle = self.context.policy.accounts.session_idle;
        let mut updates = self.context.notifier.subscribe_topic(&Topic::Access(grant.user.clone()));
        loop {
            updates.mark_unchanged();
            let now = self.context.now();
            let wait = match self.resolve_credential(&grant.credential).await {
                Err(_) => RETRY_DELAY,
                Ok(None) => return,
                Ok(Some(resolved)) => {
                    if effective_permissions(&resolved, now, idle) != Some(grant.permissions) {
                        return;
                    }
                    expires_at(&resolved, idle)
                        .map_or(RECHECK_INTERVAL, |end| RECHECK_INTERVAL.min(slightly_after(end - now)))
                }
            };
            tokio::select! {
                changed = updates.changed() => if changed.is_err() { return },
                () = tokio::time::sleep(wait) => {}
            }
        }
    }
}

/// Returns when the credential expires.
fn expires_at(resolved: &ResolvedCredential, idle: Millis) -> Option<Timestamp> {
    let token = resolved.token.as_ref().and_then(|token| token.expires_at);
    let session = resolved.session.as_ref().map(|session| session.expires_at.min(session.last_used_at + idle));
    [token, session].into_iter().flatten().min()
}

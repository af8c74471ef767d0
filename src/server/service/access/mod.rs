//! Authentication and authorization.

mod blocklist;
mod factors;
mod login;
mod login_second_factor;
pub mod notices;
mod operator;
mod passkeys;
mod passwords;
pub mod per_user_limit;
pub mod rate_limits;
mod revocation;
mod sessions;
mod setup;
mod shared_rates;
pub mod tokens;
mod users;

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use app::domain::access::{Permission, Permissions};
use app::domain::ids::{JobId, SessionId, TokenId, UserId};
use app::domain::time::{Millis, Timestamp};
use tokio::sync::Semaphore;

pub use self::blocklist::Blocklist;
pub use self::login::{BrowserInfo, LoginOutcome, NewSession, PendingLogin};
use self::per_user_limit::PerUserLimiter;
use self::rate_limits::RateLimits;
pub use self::sessions::ReauthProof;
pub use self::setup::load_token_signing_key;
use super::auth_grant::{AuthGrant, Credential, effective_permissions};
use super::error::ServiceError;
use crate::service::ServiceContext;
use crate::store::access::{LastUsed, ResolvedCredential};

/// How long a browser counts as known after a sign-in.
pub const DEVICE_LIFETIME: Millis = Millis::from_secs(365 * 24 * 3_600);

/// How long a correct password counts until the second factor is given.
pub const PENDING_LOGIN_LIFETIME: Millis = Millis::from_secs(10 * 60);

/// How long a password check allows what the thief of a session must not do: create tokens, edit users, rotate a
/// worker's token, delete a worker.
pub const REAUTH_LIFETIME: Millis = Millis::from_secs(15 * 60);

/// An authenticated user, or a script of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    pub name: String,
    /// `None` on a server without accounts.
    pub user: Option<UserId>,
    /// How the caller authenticated.
    pub via: AuthMethod,
    /// The caller's permissions.
    pub permissions: Permissions,
    /// When the session's password was last given; `None` without a session.
    pub reauthenticated_at: Option<Timestamp>,
    /// The number of unread notices about the account.
    pub unread_notices: u64,
    /// `None` for callers without a credential, or with one that is not in the database.
    pub credential: Option<Credential>,
}

/// The authentication method.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthMethod {
    /// The loopback address of a server without accounts.
    Loopback,
    Token {
        id: TokenId,
        name: String,
    },
    /// A browser session.
    Session(SessionId),
    /// The operator token of the server's host, for the server's user or root.
    Host,
}

/// What a route requires of its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requirement {
    /// Any authenticated user.
    Login,
    /// One of these permissions.
    AnyOf(&'static [Permission]),
    /// A token for itself, or one of these permissions. The use case checks which token is meant.
    OwnTokenOr(&'static [Permission]),
    Permission(Permission),
    /// This permission, and a recent password check.
    RecentlyAuthenticated(Permission),
    /// Lists jobs: all, or the caller's own.
    SeeJobs,
    /// Reads the job in the path.
    SeeJob,
    /// Reads the job in the path, and cancels it.
    CancelJob,
    /// Reads the job in the path, and changes its name, tags and notes.
    DescribeJob,
    /// Reads the job in the path; also requires this permission.
    SeeJobAnd(Permission),
}

impl Principal {
    /// The caller of a server without accounts, on its loopback address.
    pub fn on_loopback() -> Self {
        Self {
            name: "local-user".to_owned(),
            user: None,
            via: AuthMethod::Loopback,
            permissions: Permissions::all(),
            reauthenticated_at: None,
            unread_notices: 0,
            credential: None,
        }
    }

    /// The actor for the audit log: the name, and the token that was used.
    pub fn actor(&self) -> String {
        match &self.via {
            AuthMethod::Token { name, .. } => format!("{}/{name}", self.name),
            AuthMethod::Loopback | AuthMethod::Session(_) | AuthMethod::Host => self.name.clone(),
        }
    }

    /// What the caller is granted; `None` for a caller without an account.
    pub fn grant(&self) -> Option<AuthGrant> {
        Some(AuthGrant {
            credential: self.credential.clone()?,
            user: self.user.clone()?,
            permissions: self.permissions,
        })
    }

    /// The API token of the caller.
    pub const fn token(&self) -> Option<&TokenId> {
        match &self.via {
            AuthMethod::Token { id, .. } => Some(id),
            AuthMethod::Loopback | AuthMethod::Session(_) | AuthMethod::Host => None,
        }
    }

    /// Returns the account whose tokens, sessions and password the caller manages.
    pub fn account_id(&self) -> Result<UserId, ServiceError> {
        let error = if self.via == AuthMethod::Host { ServiceError::NoAccount } else { ServiceError::NoAccounts };
        self.user.clone().ok_or(error)
    }

    /// Fails without this permission.
    pub fn require(&self, permission: Permission) -> Result<(), ServiceError> {
        if self.permissions.contains(permission) { Ok(()) } else { Err(ServiceError::PermissionDenied(permission)) }
    }

    /// Fails without any of these permissions; the error names the first.
    fn require_any(&self, permissions: &[Permission]) -> Result<(), ServiceError> {
        if permissions.iter().any(|permission| self.permissions.contains(*permission)) {
            return Ok(());
        }
        permissions.first().map_or(Ok(()), |first| self.require(*first))
    }

    /// Returns whether this is a token, or a session that may have been opened with one.
    const fn uses_token(&self) -> bool {
        matches!(self.via, AuthMethod::Token { .. } | AuthMethod::Session(_))
    }

    /// Returns whether the caller can manage tokens and sessions of this user: their own, or with permission those of
    /// others.
    pub fn can_manage(&self, user: &UserId) -> bool {
        let is_own = self.user.as_ref() == Some(user) && self.permissions.contains(Permission::AccountManage);
        is_own || self.permissions.contains(Permission::AdminUsers)
    }

    /// Restricts the visible jobs to an owner; `None`: all jobs.
    pub fn visible_owner(&self) -> Option<String> {
        (!self.permissions.contains(Permission::JobViewAll)).then(|| self.name.clone())
    }
}

/// The in-memory state of authentication.
pub struct Authenticator {
    /// Whether there is no user yet, so that the sign-in page asks for the setup code.
    pub setup_pending: AtomicBool,
    /// The digest of the operator token for the server's host.
    operator: Mutex<Option<String>>,
    /// Last-used times that are not written yet.
    last_used: Mutex<HashMap<String, LastUsed>>,
    pub rate_limits: RateLimits,
    /// Passwords that are not allowed.
    pub blocklist: Blocklist,
    /// Limits concurrent password hashing, which takes CPU time and memory.
    hashing: Arc<Semaphore>,
}

impl Authenticator {
    pub fn new(blocklist: Blocklist) -> Self {
        Self {
            setup_pending: AtomicBool::default(),
            operator: Mutex::default(),
            last_used: Mutex::default(),
            rate_limits: RateLimits::default(),
            blocklist,
            hashing: Arc::new(Semaphore::new(2)),
        }
    }
}

/// Users, sessions, tokens and rate limits.
pub struct AccessService {
    pub authenticator: Authenticator,
    pub(super) event_streams: PerUserLimiter,
    pub(super) context: Arc<ServiceContext>,
}

impl AccessService {
    /// Returns the principal of a credential; `None` if it is invalid.
    pub async fn authenticate(&self, credential: &Credential) -> Result<Option<Principal>, ServiceError> {
        Ok(self.resolve_credential(credential).await?.and_then(|resolved| self.admit(&resolved, credential)))
    }

    /// Checks whether a principal meets a route's requirement for the job in the path.
    ///
    /// A job that the caller may not see is reported as not found.
    pub async fn authorize(
        &self,
        principal: &Principal,
        requirement: Requirement,
        job: Option<&JobId>,
    ) -> Result<(), ServiceError> {
        match requirement {
            Requirement::Login => return Ok(()),
            Requirement::OwnTokenOr(_) if principal.uses_token() => return Ok(()),
            Requirement::AnyOf(permissions) | Requirement::OwnTokenOr(permissions) => {
                return principal.require_any(permissions);
            }
            Requirement::Permission(permission) => return principal.require(permission),
            Requirement::RecentlyAuthenticated(permission) => {
                principal.require(permission)?;
                return self.require_recent_auth(principal);
            }
            Requirement::SeeJobs => return principal.require(Permission::JobViewOwn),
            Requirement::SeeJob => {}
            Requirement::CancelJob => principal.require(Permission::JobCancelOwn)?,
            Requirement::DescribeJob => principal.require(Permission::JobSubmit)?,
            Requirement::SeeJobAnd(permission) => principal.require(permission)?,
        }
        principal.require(Permission::JobViewOwn)?;
        let Some(job) = job else { return Ok(()) };
        // What is required for jobs of other users.
        let for_others = match requirement {
            Requirement::CancelJob => Permission::JobCancelAll,
            Requirement::DescribeJob => Permission::QueueManage,
            _ => Permission::JobViewAll,
        };
        if principal.permissions.contains(for_others) && principal.permissions.contains(Permission::JobViewAll) {
            return Ok(());
        }
        let owner = self.context.read_recent().await?.job(job).await?.map(|job| job.submitted_by);
        if owner.is_none_or(|owner| owner == principal.name) {
            return Ok(());
        }
        principal.require(Permission::JobViewAll).map_err(|_| ServiceError::JobNotFound(job.clone()))?;
        principal.require(for_others)
    }

    /// Fails if the session's last password check is too old.
    pub fn require_recent_auth(&self, principal: &Principal) -> Result<(), ServiceError> {
        let is_outdated = principal.reauthenticated_at.is_some_and(|at| at + REAUTH_LIFETIME <= self.context.now());
        if is_outdated { Err(ServiceError::RecentAuthRequired) } else { Ok(()) }
    }

    /// Writes the last-used times of tokens and sessions.
    pub async fn flush_last_used(&self) -> Result<(), ServiceError> {
        let used: Vec<LastUsed> = {
            let mut used = self.authenticator.last_used.lock().expect("no panic while it is held");
            std::mem::take(&mut *used).into_values().collect()
        };
        if used.is_empty() {
            return Ok(());
        }
        let used = Arc::new(used);
        let write = self.context.store.write(Box::new(move |tx| {
            let used = Arc::clone(&used);
            Box::pin(async move { tx.record_last_used(&used).await })
        }));
        Ok(write.await?)
    }

    /// Returns the principal unless the user is disabled; records the use.
    fn admit(&self, resolved: &ResolvedCredential, credential: &Credential) -> Option<Principal> {
        let now = self.context.now();
        let permissions = effective_permissions(resolved, now, self.context.policy.accounts.session_idle)?;
        let (user, token) = (&resolved.user, resolved.token.as_ref());
        let via = match (&resolved.session, token) {
            (Some(session), _) => {
                self.record_use(session.id.as_str(), LastUsed::Session(session.id.clone(), now));
                AuthMethod::Session(session.id.clone())
            }
            (None, Some(token)) => {
                self.record_use(token.id.as_str(), LastUsed::Token(token.id.clone(), now));
                AuthMethod::Token { id: token.id.clone(), name: token.name.clone() }
            }
            (None, None) => return None,
        };
        let reauthenticated_at = resolved.session.as_ref().map(|session| session.reauthenticated_at);
        Some(Principal {
            name: user.name.clone(),
            user: Some(user.id.clone()),
            via,
            permissions,
            reauthenticated_at,
            unread_notices: user.unread_notices,
            credential: Some(credential.clone()),
        })
    }

    fn record_use(&self, key: &str, used: LastUsed) {
        self.authenticator.last_used.lock().expect("no panic while it is held").insert(key.to_owned(), used);
    }
}

//! Sign-in: name and password, then a second factor if the user has one; or an API token.

use std::sync::Arc;

use app::domain::audit::AuditAction;
use app::domain::ids::SessionId;
use app::domain::passkey::PasskeyOrigin;
use app::domain::second_factor::NextLoginStep;
use app::domain::time::Millis;
use app::protocol::topic::Topic;
use serde_json::json;

use super::factors::has_factor;
use super::notices::record_login;
use super::{DEVICE_LIFETIME, PENDING_LOGIN_LIFETIME};
use crate::service::access::AccessService;
use crate::service::access::rate_limits::KnownBrowser;
use crate::service::auth_grant::effective_permissions;
use crate::service::error::ServiceError;
use crate::service::unit_of_work::{Caller, UnitOfWork};
use crate::store::Tx;
use crate::store::access::{ResolvedCredential, StoredSession, StoredUser};
use crate::tokens;

/// What is known of the client's browser.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BrowserInfo {
    pub host: String,
    /// The `User-Agent` header.
    pub user_agent: String,
    /// The cookie of the browser's previous session, which a new sign-in ends.
    pub session: Option<String>,
    /// The cookie that identifies a known browser.
    pub device: Option<String>,
    /// The origin of the page, if passkeys work there.
    pub origin: Option<PasskeyOrigin>,
}

impl BrowserInfo {
    /// The user agent, shortened for storage.
    pub fn stored_user_agent(&self) -> String {
        self.user_agent.chars().filter(|c| !c.is_control()).take(200).collect()
    }
}

/// A new session.
#[derive(Debug, Clone)]
pub struct NewSession {
    /// The session's secret, for its cookie.
    pub cookie: String,
    /// The maximum lifetime of the cookie.
    pub max_age: Millis,
    pub device: String,
    pub name: String,
}

/// The state of a sign-in after the correct password.
#[derive(Debug, Clone)]
pub enum LoginOutcome {
    /// A session was created.
    LoggedIn(NewSession),
    /// A second factor is required; the text is for a cookie that proves the password.
    FactorRequired(String),
    /// A second factor must be set up first; the text is for a cookie that proves the password.
    EnrollmentRequired(String),
}

/// A user who has given the correct password, but no second factor yet.
#[derive(Debug, Clone)]
pub struct PendingLogin {
    pub user: StoredUser,
    /// The hash of the password.
    password_hash: String,
}

impl AccessService {
    /// Returns the browser of this device cookie if this user has signed in with it before.
    pub async fn known_browser(&self, name: &str, cookie: Option<&str>) -> Result<Option<KnownBrowser>, ServiceError> {
        let device = cookie.and_then(|cookie| {
            tokens::verify_device_cookie(&self.context.token_signing_key, cookie, self.context.now())
        });
        let Some((user, number)) = device else { return Ok(None) };
        let is_same_user = self.context.read().await?.user_by_name(name).await?.is_some_and(|found| found.id == user);
        Ok(is_same_user.then(|| KnownBrowser(format!("device {number}"))))
    }

    /// Checks name and password; creates a session if no second factor is required.
    pub async fn log_in(
        self: &Arc<Self>,
        caller: Caller,
        name: &str,
        password: &str,
        browser: BrowserInfo,
    ) -> Result<LoginOutcome, ServiceError> {
        let (user, password_hash) = {
            let mut tx = self.context.read().await?;
            let user = tx.user_by_name(name).await?;
            let password_hash = match &user {
                Some(user) => tx.password_hash(&user.id).await?,
                None => None,
            };
            (user, password_hash)
        };
        let is_correct = self.verify_password(password_hash.clone(), password).await?;
        let user = user.filter(|user| is_correct && user.disabled_at.is_none()).ok_or(ServiceError::WrongPassword)?;
        let pending = PendingLogin { user, password_hash: password_hash.ok_or(ServiceError::WrongPassword)? };
        self.begin_session(caller, pending, browser).await
    }

    /// Creates a session for a user with the correct password, or returns the required next step.
    pub(super) async fn begin_session(
        self: &Arc<Self>,
        caller: Caller,
        pending: PendingLogin,
        browser: BrowserInfo,
    ) -> Result<LoginOutcome, ServiceError> {
        let next_step = self.required_step(&mut *self.context.read().await?, &pending.user).await?;
        match next_step {
            NextLoginStep::Done => {
                let access = Arc::clone(self);
                let session = self.open_session(caller, browser, move |unit| {
                    let (access, pending) = (Arc::clone(&access), pending.clone());
                    Box::pin(async move {
                        let user = pending.reload_user(unit).await?;
                        let next_step = access.required_step(unit.tx, &user).await?;
                        if next_step == NextLoginStep::Done {
                            Ok(resolved_user(user))
                        } else {
                            Err(ServiceError::WrongPassword)
                        }
                    })
                });
                session.await.map(LoginOutcome::LoggedIn)
            }
            NextLoginStep::SecondFactor => {
                let cookie = self.pending_cookie(&pending);
                self.request_login_passkey(&pending, &cookie, &browser).await?;
                Ok(LoginOutcome::FactorRequired(cookie))
            }
            NextLoginStep::Enrollment => {
                self.begin_totp_enrollment(caller, &pending.user).await?;
                Ok(LoginOutcome::EnrollmentRequired(self.pending_cookie(&pending)))
            }
        }
    }

    /// Returns the sign-in that this cookie proves; `None` if it has expired or the password was changed.
    pub async fn pending_login(&self, cookie: &str) -> Result<Option<PendingLogin>, ServiceError> {
        let Some((user, expires_at)) =
            tokens::pending_login_user(cookie).filter(|(_, expires_at)| *expires_at > self.context.now())
        else {
            return Ok(None);
        };
        let mut tx = self.context.read().await?;
        let (user, password_hash) = (tx.user(&user).await?, tx.password_hash(&user).await?);
        let (Some(user), Some(password_hash)) = (user.filter(|user| user.disabled_at.is_none()), password_hash) else {
            return Ok(None);
        };
        let is_valid =
            tokens::verify_pending_login(&self.context.token_signing_key, cookie, &user.id, expires_at, &password_hash);
        Ok(is_valid.then_some(PendingLogin { user, password_hash }))
    }

    /// Creates a session for an API token, with the token's scopes and expiry.
    pub async fn log_in_with_token(
        self: &Arc<Self>,
        caller: Caller,
        token: &str,
        browser: BrowserInfo,
    ) -> Result<NewSession, ServiceError> {
        let digest = tokens::digest(token.trim());
        self.open_session(caller, browser, move |unit| {
            let digest = digest.clone();
            Box::pin(async move { unit.tx.resolve_token(&digest).await?.ok_or(ServiceError::WrongToken) })
        })
        .await
    }

    /// Returns the step that a sign-in requires besides the password.
    pub(super) async fn required_step(
        &self,
        tx: &mut dyn Tx,
        user: &StoredUser,
    ) -> Result<NextLoginStep, ServiceError> {
        let has_second_factor = has_factor(tx, &user.id).await?;
        Ok(NextLoginStep::new(has_second_factor, self.context.policy.accounts.second_factor, user.role))
    }

    /// Returns the cookie that proves the correct password.
    fn pending_cookie(&self, pending: &PendingLogin) -> String {
        tokens::pending_login_cookie(
            &self.context.token_signing_key,
            &pending.user.id,
            self.context.now() + PENDING_LOGIN_LIFETIME,
            &pending.password_hash,
        )
    }

    /// Creates a session for the user whom `step` authenticates.
    pub(super) async fn open_session<F>(
        self: &Arc<Self>,
        caller: Caller,
        browser: BrowserInfo,
        step: F,
    ) -> Result<NewSession, ServiceError>
    where
        F: for<'u> Fn(
                &'u mut UnitOfWork<'_>,
            ) -> futures_util::future::BoxFuture<'u, Result<ResolvedCredential, ServiceError>>
            + Send
            + Sync
            + 'static,
    {
        let cookie = tokens::generate("ss_", &*self.context.random);
        let id = SessionId::new(self.context.now(), self.context.entropy());
        let shared = Arc::new((step, cookie, id, browser));
        self.context
            .change(caller, move |unit| {
                let shared = Arc::clone(&shared);
                Box::pin(async move {
                    let (step, cookie, id, browser) = &*shared;
                    let resolved = step(unit).await?;
                    let accounts = unit.context.policy.accounts;
                    effective_permissions(&resolved, unit.now, accounts.session_idle)
                        .ok_or(ServiceError::WrongPassword)?;
                    let session = StoredSession {
                        id: id.clone(),
                        user: resolved.user.id.clone(),
                        token: resolved.token.as_ref().map(|token| token.id.clone()),
                        host: browser.host.clone(),
                        user_agent: browser.stored_user_agent(),
                        created_at: unit.now,
                        reauthenticated_at: unit.now,
                        last_used_at: unit.now,
                        expires_at: unit.now + accounts.session_max_age,
                    };
                    end_previous_session(unit, browser, id).await?;
                    unit.tx.insert_session(&session, &tokens::digest(cookie)).await?;
                    let name = resolved.user.name.clone();
                    unit.notify(Topic::Access(resolved.user.id.clone()));
                    let detail = json!({"session": id, "host": browser.host});
                    unit.record_as(&name, AuditAction::LoggedIn, &name, &detail).await?;
                    if resolved.token.is_none() {
                        record_login(unit, &resolved.user, browser, id).await?;
                    }
                    let (key, number) = (&unit.context.token_signing_key, unit.context.random.bytes());
                    let device = tokens::device_cookie(key, &resolved.user.id, unit.now + DEVICE_LIFETIME, &number);
                    Ok(NewSession { cookie: cookie.clone(), max_age: accounts.session_max_age, device, name })
                })
            })
            .await
    }
}

impl PendingLogin {
    /// For a user whose password was just set or verified.
    pub(super) fn new(user: StoredUser, password: String) -> Self {
        Self { user, password_hash: password }
    }

    /// Reloads the user; fails if the password was changed or the user was disabled since.
    pub(super) async fn reload_user(&self, unit: &mut UnitOfWork<'_>) -> Result<StoredUser, ServiceError> {
        let is_unchanged = unit.tx.password_hash(&self.user.id).await?.as_deref() == Some(self.password_hash.as_str());
        let user = unit.tx.user(&self.user.id).await?.filter(|user| is_unchanged && user.disabled_at.is_none());
        user.ok_or(ServiceError::WrongPassword)
    }
}

pub(super) fn resolved_user(user: StoredUser) -> ResolvedCredential {
    ResolvedCredential { user: Arc::new(user), token: None, session: None }
}

/// Ends the browser's previous session, whose cookie the new sign-in replaces.
async fn end_previous_session(
    unit: &mut UnitOfWork<'_>,
    browser: &BrowserInfo,
    next: &SessionId,
) -> Result<(), ServiceError> {
    let Some(cookie) = &browser.session else { return Ok(()) };
    let Some(resolved) = unit.tx.resolve_cookie(&tokens::digest(cookie)).await? else { return Ok(()) };
    let Some(session) = &resolved.session else { return Ok(()) };
    unit.tx.delete_session(&session.id).await?;
    unit.notify(Topic::Access(resolved.user.id.clone()));
    let detail = json!({"session": session.id, "replaced_by": next});
    unit.record(AuditAction::SessionEnded, &resolved.user.name, &detail).await
}

//! Logging in: a name with its password, then the second factor where the person has one; or an API token.

use std::sync::Arc;

use app::domain::audit::Action;
use app::domain::factor::AfterPassword;
use app::domain::ids::SessionId;
use app::domain::passkey::Origin;
use app::domain::time::Millis;
use app::protocol::topic::Topic;
use serde_json::json;

use super::factors::has_factor;
use super::notices::note_login;
use super::{DEVICE, PENDING, permissions};
use crate::service::Core;
use crate::service::rates::KnownBrowser;
use crate::service::refusal::Refusal;
use crate::service::unit::{Caller, Unit};
use crate::store::Tx;
use crate::store::access::{Opened, StoredSession, StoredUser};
use crate::tokens;

/// What a browser says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Browser {
    /// The host it is on.
    pub host: String,
    /// What it calls itself.
    pub agent: String,
    /// The cookie of the session that it had until now: a new login ends that one.
    pub session: Option<String>,
    /// The cookie by which it is known again.
    pub device: Option<String>,
    /// The address that it shows, if passkeys work there.
    pub origin: Option<Origin>,
}

impl Browser {
    /// What it calls itself, as it is kept.
    pub fn kept_agent(&self) -> String {
        self.agent.chars().filter(|c| !c.is_control()).take(200).collect()
    }
}

/// Somebody who logged in.
#[derive(Debug, Clone)]
pub struct LoggedIn {
    /// The session's secret, for a cookie.
    pub cookie: String,
    /// How long the cookie is good at most.
    pub longest: Millis,
    /// By what the browser is known from now on, for another cookie.
    pub device: String,
    /// Who.
    pub name: String,
}

/// Where a login stands once the password was right.
#[derive(Debug, Clone)]
pub enum Login {
    /// The session has begun.
    Done(LoggedIn),
    /// A second factor is wanted; the text is for a cookie that proves the password.
    Factor(String),
    /// A second factor has to be set up first; likewise.
    Enrolment(String),
}

/// Somebody who has given the right password, and not more yet.
#[derive(Debug, Clone)]
pub struct PendingLogin {
    /// Who.
    pub user: StoredUser,
    /// What is kept of the password.
    password: String,
}

impl Core {
    /// The browser that has this cookie, if somebody of this name has logged in with it before.
    pub async fn known_browser(&self, name: &str, cookie: Option<&str>) -> Result<Option<KnownBrowser>, Refusal> {
        let known = cookie.and_then(|cookie| tokens::known_device(&self.job_token_key, cookie, self.now()));
        let Some((user, number)) = known else { return Ok(None) };
        let same = self.read().await?.user_by_name(name).await?.is_some_and(|found| found.id == user);
        Ok(same.then(|| KnownBrowser(format!("device {number}"))))
    }

    /// Checks a name and its password; opens a session if that is all it takes.
    pub async fn log_in(
        self: &Arc<Self>,
        caller: Caller,
        name: &str,
        password: &str,
        browser: Browser,
    ) -> Result<Login, Refusal> {
        let (user, kept) = {
            let mut tx = self.read().await?;
            let user = tx.user_by_name(name).await?;
            let kept = match &user {
                Some(user) => tx.password(&user.id).await?,
                None => None,
            };
            (user, kept)
        };
        let right = self.is_password(kept.clone(), password).await?;
        let user = user.filter(|user| right && user.disabled_at.is_none()).ok_or(Refusal::WrongPassword)?;
        let pending = PendingLogin { user, password: kept.ok_or(Refusal::WrongPassword)? };
        self.begin_session(caller, pending, browser).await
    }

    /// Opens a session for whoever has given the right password, or says what else it takes.
    pub(super) async fn begin_session(
        self: &Arc<Self>,
        caller: Caller,
        pending: PendingLogin,
        browser: Browser,
    ) -> Result<Login, Refusal> {
        let takes = self.takes(&mut *self.read().await?, &pending.user).await?;
        match takes {
            AfterPassword::Nothing => {
                let opened = self.open_session(caller, browser, move |unit| {
                    let pending = pending.clone();
                    Box::pin(async move {
                        let user = pending.still(unit).await?;
                        let takes = unit.core.takes(unit.tx, &user).await?;
                        if takes == AfterPassword::Nothing { Ok(opened(user)) } else { Err(Refusal::WrongPassword) }
                    })
                });
                opened.await.map(Login::Done)
            }
            AfterPassword::Factor => {
                let cookie = self.pending_cookie(&pending);
                self.ask_at_login(&pending, &cookie, &browser).await?;
                Ok(Login::Factor(cookie))
            }
            AfterPassword::Enrolment => {
                self.begin_enrolment(caller, &pending.user).await?;
                Ok(Login::Enrolment(self.pending_cookie(&pending)))
            }
        }
    }

    /// Who has given the right password, by the cookie that proves it; none if it is over, or the password was changed.
    pub async fn pending_login(&self, cookie: &str) -> Result<Option<PendingLogin>, Refusal> {
        let Some((user, until)) = tokens::pending_user(cookie).filter(|(_, until)| *until > self.now()) else {
            return Ok(None);
        };
        let mut tx = self.read().await?;
        let (user, password) = (tx.user(&user).await?, tx.password(&user).await?);
        let (Some(user), Some(password)) = (user.filter(|user| user.disabled_at.is_none()), password) else {
            return Ok(None);
        };
        let same = tokens::is_pending(&self.job_token_key, cookie, &user.id, until, &password);
        Ok(same.then_some(PendingLogin { user, password }))
    }

    /// Opens a session for an API token: it can do no more than that, and ends with it.
    pub async fn log_in_with_token(
        self: &Arc<Self>,
        caller: Caller,
        token: &str,
        browser: Browser,
    ) -> Result<LoggedIn, Refusal> {
        let digest = tokens::digest(token.trim());
        self.open_session(caller, browser, move |unit| {
            let digest = digest.clone();
            Box::pin(async move { unit.tx.by_token(&digest).await?.ok_or(Refusal::WrongToken) })
        })
        .await
    }

    /// What a person's login takes besides the password.
    pub(super) async fn takes(&self, tx: &mut dyn Tx, user: &StoredUser) -> Result<AfterPassword, Refusal> {
        let has = has_factor(tx, &user.id).await?;
        Ok(AfterPassword::of(has, self.policy.accounts.second_factor, user.role))
    }

    /// The cookie of somebody who has given the right password.
    fn pending_cookie(&self, pending: &PendingLogin) -> String {
        tokens::pending(&self.job_token_key, &pending.user.id, self.now() + PENDING, &pending.password)
    }

    /// Opens a session for whoever a step lets in.
    pub(super) async fn open_session<F>(
        self: &Arc<Self>,
        caller: Caller,
        browser: Browser,
        step: F,
    ) -> Result<LoggedIn, Refusal>
    where
        F: for<'u> Fn(&'u mut Unit<'_>) -> futures_util::future::BoxFuture<'u, Result<Opened, Refusal>>
            + Send
            + Sync
            + 'static,
    {
        let cookie = tokens::mint("ss_", &*self.random);
        let id = SessionId::new(self.now(), self.entropy());
        let shared = Arc::new((step, cookie, id, browser));
        self.change(caller, move |unit| {
            let shared = Arc::clone(&shared);
            Box::pin(async move {
                let (step, cookie, id, browser) = &*shared;
                let opened = step(unit).await?;
                let accounts = unit.core.policy.accounts;
                permissions(&opened, unit.now, accounts.session_idle).ok_or(Refusal::WrongPassword)?;
                let session = StoredSession {
                    id: id.clone(),
                    user: opened.user.id.clone(),
                    token: opened.token.as_ref().map(|token| token.id.clone()),
                    host: browser.host.clone(),
                    agent: browser.kept_agent(),
                    created_at: unit.now,
                    proved_at: unit.now,
                    seen_at: unit.now,
                    expires_at: unit.now + accounts.session_longest,
                };
                end_previous(unit, browser, id).await?;
                unit.tx.insert_session(&session, &tokens::digest(cookie)).await?;
                let name = opened.user.name.clone();
                unit.touch(Topic::Access(opened.user.id.clone()));
                let detail = json!({"session": id, "host": browser.host});
                unit.record_by(&name, Action::LoggedIn, &name, &detail).await?;
                if opened.token.is_none() {
                    note_login(unit, &opened.user, browser, id).await?;
                }
                let (key, number) = (&unit.core.job_token_key, unit.core.random.bytes());
                let device = tokens::device(key, &opened.user.id, unit.now + DEVICE, &number);
                Ok(LoggedIn { cookie: cookie.clone(), longest: accounts.session_longest, device, name })
            })
        })
        .await
    }
}

impl PendingLogin {
    /// Of somebody whose password has just been set or given.
    pub(super) fn of(user: StoredUser, password: String) -> Self {
        Self { user, password }
    }

    /// The person as they are now, if nobody has changed the password or shut them out since.
    pub(super) async fn still(&self, unit: &mut Unit<'_>) -> Result<StoredUser, Refusal> {
        let same = unit.tx.password(&self.user.id).await?.as_deref() == Some(self.password.as_str());
        let user = unit.tx.user(&self.user.id).await?.filter(|user| same && user.disabled_at.is_none());
        user.ok_or(Refusal::WrongPassword)
    }
}

pub(super) fn opened(user: StoredUser) -> Opened {
    Opened { user: Arc::new(user), token: None, session: None }
}

/// Ends the session that a browser had before it logged in again: nobody could use it on purpose any more.
async fn end_previous(unit: &mut Unit<'_>, browser: &Browser, next: &SessionId) -> Result<(), Refusal> {
    let Some(cookie) = &browser.session else { return Ok(()) };
    let Some(opened) = unit.tx.by_cookie(&tokens::digest(cookie)).await? else { return Ok(()) };
    let Some(session) = &opened.session else { return Ok(()) };
    unit.tx.delete_session(&session.id).await?;
    unit.touch(Topic::Access(opened.user.id.clone()));
    let detail = json!({"session": session.id, "replaced_by": next});
    unit.record(Action::SessionEnded, &opened.user.name, &detail).await
}

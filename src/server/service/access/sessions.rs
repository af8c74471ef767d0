//! Browsers: login, logout, and the sessions of a person.

use std::sync::Arc;

use app::domain::audit::Action;
use app::domain::ids::SessionId;
use app::protocol::topic::Topic;
use serde_json::json;

use super::{IDLE, Person, SESSION, Via, passwords, permissions};
use crate::service::Core;
use crate::service::refusal::Refusal;
use crate::service::unit::{Caller, Unit};
use crate::store::access::{Opened, StoredSession, StoredUser};
use crate::tokens;

/// What a browser says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Browser {
    /// The host it is on.
    pub host: String,
    /// What it calls itself.
    pub agent: String,
}

/// Somebody who logged in.
#[derive(Debug, Clone)]
pub struct LoggedIn {
    /// The session's secret, for a cookie.
    pub cookie: String,
    /// Who.
    pub name: String,
}

impl Core {
    /// Opens a session for a name and a password.
    pub async fn log_in(
        self: &Arc<Self>,
        caller: Caller,
        name: &str,
        password: &str,
        browser: Browser,
    ) -> Result<LoggedIn, Refusal> {
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
        let user = user.filter(|_| right).ok_or(Refusal::WrongPassword)?;
        self.open_session(caller, browser, move |unit| {
            let (user, kept) = (user.id.clone(), kept.clone());
            Box::pin(async move {
                // Whoever changed it meanwhile did so for a reason.
                let same = unit.tx.password(&user).await? == kept;
                let user = unit.tx.user(&user).await?.filter(|_| same).ok_or(Refusal::WrongPassword)?;
                Ok(Opened { user: Arc::new(user), token: None, session: None })
            })
        })
        .await
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

    /// Gives a session's password, or the token that opened it, once more.
    pub async fn prove(self: &Arc<Self>, caller: Caller, person: &Person, secret: &str) -> Result<(), Refusal> {
        let Via::Session(session) = person.via.clone() else { return Ok(()) };
        let found = self.read().await?.session(&session).await?.ok_or(Refusal::Nobody)?;
        let right = if let Some(token) = &found.token {
            let opened = self.read().await?.by_token(&tokens::digest(secret.trim())).await?;
            opened.and_then(|opened| opened.token).is_some_and(|given| given.id == *token)
        } else {
            let kept = self.read().await?.password(&found.user).await?;
            self.is_password(kept, secret).await?
        };
        if !right {
            return Err(Refusal::WrongPassword);
        }
        let name = person.name.clone();
        self.change(caller, move |unit| {
            let (session, name) = (session.clone(), name.clone());
            Box::pin(async move {
                unit.tx.prove_session(&session, unit.now).await?;
                unit.record(Action::SessionProved, &name, &json!({"session": session})).await
            })
        })
        .await
    }

    /// Ends the session that somebody came with.
    pub async fn log_out(self: &Arc<Self>, caller: Caller, person: &Person) -> Result<(), Refusal> {
        let Via::Session(session) = person.via.clone() else { return Ok(()) };
        let (name, user) = (person.name.clone(), person.user.clone());
        self.change(caller, move |unit| {
            let (session, name, user) = (session.clone(), name.clone(), user.clone());
            Box::pin(async move {
                unit.tx.delete_session(&session).await?;
                if let Some(user) = user {
                    unit.touch(Topic::Access(user));
                }
                unit.record(Action::LoggedOut, &name, &json!({"session": session})).await
            })
        })
        .await
    }

    /// Ends a session of somebody's own, or of anybody's for who may.
    pub async fn end_session(
        self: &Arc<Self>,
        caller: Caller,
        person: &Person,
        session: SessionId,
    ) -> Result<(), Refusal> {
        let person = person.clone();
        self.change(caller, move |unit| {
            let (person, session) = (person.clone(), session.clone());
            Box::pin(async move {
                let found = unit.tx.session(&session).await?.filter(|session| person.sees_to(&session.user));
                let found = found.ok_or_else(|| Refusal::NoSession(session.clone()))?;
                let owner = unit.tx.user(&found.user).await?.ok_or_else(|| Refusal::NoSession(session.clone()))?;
                unit.tx.delete_session(&session).await?;
                unit.touch(Topic::Access(owner.id.clone()));
                unit.record(Action::SessionEnded, &owner.name, &json!({"session": session})).await
            })
        })
        .await
    }

    /// Removes sessions that are over.
    pub async fn sweep_sessions(self: &Arc<Self>) -> Result<(), Refusal> {
        self.flush_used().await?;
        self.change(Caller::system(), |unit| {
            let idle_since = app::domain::time::Timestamp(unit.now.0 - IDLE.0);
            Box::pin(async move { Ok(unit.tx.sweep_sessions(unit.now, idle_since).await?) })
        })
        .await
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
                permissions(&opened, unit.now).ok_or(Refusal::WrongPassword)?;
                let session = StoredSession {
                    id: id.clone(),
                    user: opened.user.id.clone(),
                    token: opened.token.as_ref().map(|token| token.id.clone()),
                    host: browser.host.clone(),
                    agent: browser.agent.chars().filter(|c| !c.is_control()).take(200).collect(),
                    created_at: unit.now,
                    proved_at: unit.now,
                    seen_at: unit.now,
                    expires_at: unit.now + SESSION,
                };
                unit.tx.insert_session(&session, &tokens::digest(cookie)).await?;
                let name = opened.user.name.clone();
                unit.record(Action::LoggedIn, &name, &json!({"session": id, "host": browser.host})).await?;
                Ok(LoggedIn { cookie: cookie.clone(), name })
            })
        })
        .await
    }

    /// Gives a person another password, who must know the one before; other browsers of theirs are logged out.
    pub async fn change_password(
        self: &Arc<Self>,
        caller: Caller,
        person: &Person,
        old: &str,
        new: &str,
    ) -> Result<(), Refusal> {
        passwords::check(new)?;
        let user = person.account()?;
        let kept = self.read().await?.password(&user).await?;
        if !self.is_password(kept.clone(), old).await? {
            return Err(Refusal::WrongPassword);
        }
        let hash = self.hashed(new).await?;
        let stays = match &person.via {
            Via::Session(session) => Some(session.clone()),
            Via::Loopback | Via::Host | Via::Token { .. } => None,
        };
        self.change(caller, move |unit| {
            let (user, kept, hash, stays) = (user.clone(), kept.clone(), hash.clone(), stays.clone());
            Box::pin(async move {
                // Somebody may have changed it since.
                let same = unit.tx.password(&user).await? == kept;
                let user = unit.tx.user(&user).await?.filter(|_| same).ok_or(Refusal::WrongPassword)?;
                unit.tx.put_password(&user.id, &hash).await?;
                unit.record(Action::PasswordChanged, &user.name, &json!({})).await?;
                end_sessions(unit, &user, stays.as_ref()).await
            })
        })
        .await
    }
}

/// Ends the sessions of somebody, but for one.
pub(super) async fn end_sessions(
    unit: &mut Unit<'_>,
    user: &StoredUser,
    but: Option<&SessionId>,
) -> Result<(), Refusal> {
    for session in unit.tx.sessions(&user.id).await?.into_iter().filter(|session| Some(&session.id) != but) {
        unit.tx.delete_session(&session.id).await?;
        unit.touch(Topic::Access(user.id.clone()));
        unit.record(Action::SessionEnded, &user.name, &json!({"session": session.id})).await?;
    }
    Ok(())
}

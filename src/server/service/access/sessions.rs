//! The sessions of a person: how they end, and what a session proves.

use std::sync::Arc;

use app::domain::audit::Action;
use app::domain::ids::SessionId;
use app::domain::notice::NoticeKind;
use app::protocol::topic::Topic;
use serde_json::json;

use super::notices::{Changer, notify_of_change};
use super::{Person, Via};
use crate::service::Core;
use crate::service::refusal::Refusal;
use crate::service::unit::{Caller, Unit};
use crate::store::access::StoredUser;
use crate::tokens;

impl Core {
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

    /// Ends a session: one's own, or that of somebody with no more permissions.
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
                let found = unit.tx.session(&session).await?.filter(|session| person.manages(&session.user));
                let found = found.ok_or_else(|| Refusal::NoSession(session.clone()))?;
                let owner = unit.tx.user(&found.user).await?.ok_or_else(|| Refusal::NoSession(session.clone()))?;
                if person.user.as_ref() != Some(&owner.id) {
                    unit.covers(owner.role.permissions())?;
                }
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
            let idle_since = app::domain::time::Timestamp(unit.now.0 - unit.core.policy.accounts.session_idle.0);
            Box::pin(async move { Ok(unit.tx.sweep_sessions(unit.now, idle_since).await?) })
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
        let user = person.account()?;
        self.check_password(&person.name, new).await?;
        let kept = self.read().await?.password(&user).await?;
        if !self.is_password(kept.clone(), old).await? {
            return Err(Refusal::WrongPassword);
        }
        let hash = self.hashed(new).await?;
        let by = Changer::of(person);
        let stays = match &person.via {
            Via::Session(session) => Some(session.clone()),
            Via::Loopback | Via::Host | Via::Token { .. } => None,
        };
        self.change(caller, move |unit| {
            let (user, kept, hash, stays) = (user.clone(), kept.clone(), hash.clone(), stays.clone());
            let by = by.clone();
            Box::pin(async move {
                // Somebody may have changed it since.
                let same = unit.tx.password(&user).await? == kept;
                let user = unit.tx.user(&user).await?.filter(|_| same).ok_or(Refusal::WrongPassword)?;
                unit.tx.put_password(&user.id, &hash).await?;
                unit.record(Action::PasswordChanged, &user.name, &json!({})).await?;
                notify_of_change(unit, &user.id, NoticeKind::PasswordChanged, &by).await?;
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

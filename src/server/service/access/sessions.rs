//! The sessions of a person: how they end, and what a session proves.

use std::sync::Arc;

use app::domain::audit::Action;
use app::domain::factor::Ways;
use app::domain::ids::SessionId;
use app::domain::notice::NoticeKind;
use app::domain::passkey::Origin;
use app::protocol::topic::Topic;
use serde_json::json;

use super::factors::{has_factor, use_code};
use super::notices::{Changer, notify_of_change};
use super::passkeys::{Shown, use_passkey};
use super::{Person, Via};
use crate::service::Core;
use crate::service::refusal::{FactorRefusal, Refusal};
use crate::service::unit::{Caller, Unit};
use crate::store::access::StoredUser;
use crate::store::passkeys::Purpose;
use crate::tokens;

/// What somebody gives who proves once more who they are.
#[derive(Debug, Default)]
pub struct Proof {
    /// The password, or the API token that the session was opened with.
    pub secret: String,
    /// A code of the second factor.
    pub code: Option<String>,
    /// What a passkey has signed.
    pub credential: Option<String>,
}

/// A second factor that was given.
enum Factor {
    None,
    Code(String),
    Passkey(Shown),
}

impl Core {
    /// Gives a session's password, or the token that opened it, once more; with a password also the second factor of whoever
    /// has one.
    pub async fn prove(self: &Arc<Self>, caller: Caller, person: &Person, proof: Proof) -> Result<(), Refusal> {
        let Via::Session(session) = person.via.clone() else { return Ok(()) };
        let found = self.read().await?.session(&session).await?.ok_or(Refusal::Nobody)?;
        let right = if let Some(token) = &found.token {
            let opened = self.read().await?.by_token(&tokens::digest(proof.secret.trim())).await?;
            opened.and_then(|opened| opened.token).is_some_and(|given| given.id == *token)
        } else {
            let kept = self.read().await?.password(&found.user).await?;
            self.is_password(kept, &proof.secret).await?
        };
        if !right {
            return Err(Refusal::WrongPassword);
        }
        let asks = found.token.is_none() && has_factor(&mut *self.read().await?, &found.user).await?;
        let factor = match (proof.credential, proof.code) {
            _ if !asks => Factor::None,
            (Some(answer), _) => {
                Factor::Passkey(self.shown(Purpose::Proof, session.as_str(), &found.user, &answer).await?)
            }
            (None, Some(code)) => Factor::Code(code),
            (None, None) => return Err(FactorRefusal::Wanted.into()),
        };
        let shared = Arc::new((session, person.name.clone(), found.user, factor));
        self.change(caller, move |unit| {
            let shared = Arc::clone(&shared);
            Box::pin(async move {
                let (session, name, user, factor) = &*shared;
                let user = unit.tx.user(user).await?.ok_or(Refusal::Nobody)?;
                match factor {
                    Factor::None => {}
                    Factor::Code(code) => use_code(unit, &user, code).await?,
                    Factor::Passkey(shown) => use_passkey(unit, &user, shown).await?,
                }
                unit.tx.prove_session(session, unit.now).await?;
                unit.record(Action::SessionProved, name, &json!({"session": session})).await
            })
        })
        .await
    }

    /// By what whoever asks can give their second factor besides the password; none where it is not asked for. A passkey is
    /// asked for something else after each answer.
    pub async fn ways_to_prove(
        self: &Arc<Self>,
        person: &Person,
        origin: Option<Origin>,
    ) -> Result<Option<Ways>, Refusal> {
        let (Via::Session(session), Some(user)) = (&person.via, &person.user) else { return Ok(None) };
        let found = self.read().await?.session(session).await?;
        if found.is_none_or(|found| found.token.is_some()) || !has_factor(&mut *self.read().await?, user).await? {
            return Ok(None);
        }
        let (holder, origin) = (session.as_str(), origin.as_ref());
        let ways = self.ways_of(user, Purpose::Proof, holder, origin).await?;
        if ways.passkey.is_some() {
            return Ok(Some(ways));
        }
        self.ask_for_passkey(user, Purpose::Proof, holder, origin).await?;
        self.ways_of(user, Purpose::Proof, holder, origin).await.map(Some)
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
                end_sessions(unit, &user, stays.as_ref()).await.map(|_| ())
            })
        })
        .await
    }
}

/// Ends the sessions of somebody, but for one; returns how many.
pub(super) async fn end_sessions(
    unit: &mut Unit<'_>,
    user: &StoredUser,
    but: Option<&SessionId>,
) -> Result<u64, Refusal> {
    let mut ended = 0;
    for session in unit.tx.sessions(&user.id).await?.into_iter().filter(|session| Some(&session.id) != but) {
        unit.tx.delete_session(&session.id).await?;
        unit.touch(Topic::Access(user.id.clone()));
        unit.record(Action::SessionEnded, &user.name, &json!({"session": session.id})).await?;
        ended += 1;
    }
    Ok(ended)
}

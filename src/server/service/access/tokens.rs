//! API tokens: for scripts, each for as much as it needs and for as long.

use std::sync::Arc;

use app::domain::access::{Permission, Permissions};
use app::domain::audit::Action;
use app::domain::ids::{TokenId, UserId};
use app::domain::time::{Millis, Timestamp};
use app::protocol::access::{CreateToken, CreatedToken, SessionEntry, SessionsPage, TokenView};
use app::protocol::topic::Topic;
use serde_json::json;

use super::users::check_name;
use super::{Person, Via};
use crate::service::Core;
use crate::service::refusal::{Invalid, Limit, Refusal};
use crate::service::unit::{Caller, Unit};
use crate::store::StoreError;
use crate::store::access::{StoredToken, StoredUser};
use crate::tokens;

/// The longest life of a token that has an end, in days.
const LONGEST_DAYS: u32 = 3_660;

impl Core {
    /// The tokens of somebody.
    pub async fn tokens_of(&self, user: &UserId) -> Result<Vec<TokenView>, Refusal> {
        self.flush_used().await?;
        Ok(self.read().await?.api_tokens(user).await?.into_iter().map(view).collect())
    }

    /// The sessions of somebody.
    pub async fn sessions_of(&self, person: &Person, user: &UserId) -> Result<Vec<SessionEntry>, Refusal> {
        self.flush_used().await?;
        let sessions = self.read().await?.sessions(user).await?;
        let entry = |session: crate::store::access::StoredSession| SessionEntry {
            current: person.via == Via::Session(session.id.clone()),
            id: session.id,
            host: session.host,
            agent: session.agent,
            created_at: session.created_at,
            seen_at: session.seen_at,
            idle_ends_at: session.seen_at + self.policy.accounts.session_idle,
            expires_at: session.expires_at,
        };
        Ok(sessions.into_iter().map(entry).collect())
    }

    /// One's own sessions, and how long they last.
    pub async fn sessions_page(&self, person: &Person) -> Result<SessionsPage, Refusal> {
        let user = person.account()?;
        let seconds = |span: Millis| (span.0 / 1_000).unsigned_abs();
        let accounts = &self.policy.accounts;
        Ok(SessionsPage {
            sessions: self.sessions_of(person, &user).await?,
            idle_seconds: seconds(accounts.session_idle),
            longest_seconds: seconds(accounts.session_longest),
        })
    }

    /// When an API token expires that is made now.
    fn end_of_token(&self, create: &CreateToken) -> Result<Option<Timestamp>, Refusal> {
        let days = |days: u32| Some(self.now() + Millis::seconds(i64::from(days) * 86_400));
        match (create.expires_in_days, create.never_expires) {
            (Some(chosen @ 1..=LONGEST_DAYS), false) => Ok(days(chosen)),
            (None, false) => Ok(Some(self.now() + self.policy.accounts.api_token_life)),
            (None, true) => Ok(None),
            (Some(_), _) => {
                let allowed = "1 to 3660, or left out; left out where `never_expires` is set";
                Err(Invalid::Range { field: "expires_in_days", allowed }.into())
            }
        }
    }

    /// Makes a token of somebody's own; its secret is shown this once. It can do no more than what made it, and lasts no
    /// longer.
    pub async fn create_token(
        self: &Arc<Self>,
        caller: Caller,
        person: &Person,
        create: CreateToken,
    ) -> Result<CreatedToken, Refusal> {
        self.create_token_for(caller, person, person.account()?, create).await
    }

    /// The same for somebody else, which takes every permission: jobs of such a token use its owner's private secrets.
    pub async fn create_token_for(
        self: &Arc<Self>,
        caller: Caller,
        person: &Person,
        user: UserId,
        create: CreateToken,
    ) -> Result<CreatedToken, Refusal> {
        check_name(&create.name)?;
        let for_another = person.user.as_ref() != Some(&user);
        if for_another && let Some(missing) = Permissions::all().iter().find(|one| !person.permissions.has(*one)) {
            return Err(Refusal::Denied(missing));
        }
        let expires_at = self.end_of_token(&create)?;
        if let Some(missing) = create.scopes.and_then(|scopes| scopes.iter().find(|one| !person.permissions.has(*one)))
        {
            return Err(Refusal::Denied(missing));
        }
        let secret = tokens::mint("st_", &*self.random);
        let token = StoredToken {
            id: TokenId::new(self.now(), self.entropy()),
            user,
            name: create.name,
            scopes: create.scopes,
            created_at: self.now(),
            expires_at,
            used_at: None,
        };
        let shared = Arc::new((token, tokens::digest(&secret), person.clone()));
        let token = self.change(caller, move |unit| {
            let shared = Arc::clone(&shared);
            Box::pin(async move {
                let (token, digest, person) = &*shared;
                let token = &match came_with(unit, person).await? {
                    Some(maker) => bounded(token.clone(), &maker, person),
                    None => token.clone(),
                };
                let owner = unit.tx.user(&token.user).await?.ok_or_else(|| Refusal::NoUser(token.user.clone()))?;
                check_room(unit, &owner, &token.name).await?;
                // No more than its owner may now: it must not grow when they are promoted.
                let scopes = token.scopes.map(|scopes| scopes.and(owner.role.permissions()));
                let token = &StoredToken { scopes, ..token.clone() };
                unit.tx.insert_api_token(token, digest).await?;
                let for_another = person.user.as_ref() != Some(&token.user);
                let detail = json!({
                    "token": token.id,
                    "name": token.name,
                    "scopes": token.scopes,
                    "expires_at": token.expires_at,
                    "for_another": for_another,
                });
                unit.touch(Topic::Access(owner.id.clone()));
                unit.record(Action::TokenCreated, &owner.name, &detail).await?;
                Ok(token.clone())
            })
        });
        Ok(CreatedToken { secret, token: view(token.await?) })
    }

    /// Revokes a token: one's own, that of somebody with no more permissions, or the one that the caller came with.
    pub async fn revoke_token(self: &Arc<Self>, caller: Caller, person: &Person, id: TokenId) -> Result<(), Refusal> {
        let person = person.clone();
        self.change(caller, move |unit| {
            let (person, id) = (person.clone(), id.clone());
            Box::pin(async move {
                let itself = came_with(unit, &person).await?.is_some_and(|token| token.id == id);
                if !itself && !person.permissions.has(Permission::AdminUsers) {
                    person.need(Permission::AccountManage)?;
                }
                let token = unit.tx.api_token(&id).await?.filter(|token| itself || person.manages(&token.user));
                let token = token.ok_or_else(|| Refusal::NoToken(id.clone()))?;
                let owner = unit.tx.user(&token.user).await?.ok_or(StoreError::Conflict)?;
                if person.user.as_ref() != Some(&owner.id) {
                    unit.covers(owner.role.permissions())?;
                }
                revoke(unit, &owner, &token).await
            })
        })
        .await
    }
}

/// Revokes every API token of somebody; returns how many.
pub(super) async fn revoke_tokens(unit: &mut Unit<'_>, user: &StoredUser) -> Result<u64, Refusal> {
    let mut revoked = 0;
    for token in unit.tx.api_tokens(&user.id).await? {
        revoke(unit, user, &token).await?;
        revoked += 1;
    }
    Ok(revoked)
}

async fn revoke(unit: &mut Unit<'_>, owner: &StoredUser, token: &StoredToken) -> Result<(), Refusal> {
    unit.tx.delete_api_token(&token.id).await?;
    unit.touch(Topic::Access(owner.id.clone()));
    unit.record(Action::TokenRevoked, &owner.name, &json!({"token": token.id, "name": token.name})).await
}

/// The token that somebody came with, or that opened the session they came with.
async fn came_with(unit: &mut Unit<'_>, person: &Person) -> Result<Option<StoredToken>, Refusal> {
    let id = match &person.via {
        Via::Token { id, .. } => Some(id.clone()),
        Via::Session(session) => unit.tx.session(session).await?.ok_or(Refusal::Nobody)?.token,
        Via::Loopback | Via::Host => None,
    };
    let Some(id) = id else { return Ok(None) };
    unit.tx.api_token(&id).await?.map(Some).ok_or(Refusal::Nobody)
}

/// Refuses a second token of this name, and one more than a person may have. At that limit, expired tokens go first.
async fn check_room(unit: &mut Unit<'_>, owner: &StoredUser, name: &str) -> Result<(), Refusal> {
    let mut tokens = unit.tx.api_tokens(&owner.id).await?;
    if tokens.iter().any(|token| token.name == name) {
        return Err(Refusal::TokenThere(name.to_owned()));
    }
    let most = unit.core.policy.bounds.api_tokens_per_user;
    if tokens.len() >= most {
        let now = unit.now;
        for expired in tokens.extract_if(.., |token| token.expires_at.is_some_and(|end| end <= now)) {
            revoke(unit, owner, &expired).await?;
        }
    }
    if tokens.len() >= most { Err(Refusal::OverLimit(Limit::ApiTokens { most })) } else { Ok(()) }
}

/// A token within what its maker had.
fn bounded(token: StoredToken, maker: &StoredToken, person: &Person) -> StoredToken {
    let ends = [token.expires_at, maker.expires_at].into_iter().flatten().min();
    StoredToken { scopes: token.scopes.or(Some(person.permissions)), expires_at: ends, ..token }
}

fn view(token: StoredToken) -> TokenView {
    TokenView {
        id: token.id,
        name: token.name,
        scopes: token.scopes,
        created_at: token.created_at,
        expires_at: token.expires_at,
        last_used_at: token.used_at,
    }
}

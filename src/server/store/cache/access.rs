//! Users and their credentials in memory, by the SHA-256 of each secret.

use std::collections::HashMap;
use std::sync::Arc;

use app::domain::ids::{SessionId, TokenId, UserId};
use app::domain::time::Timestamp;

use crate::store::access::{LastUsed, ResolvedCredential, StoredSession, StoredToken, StoredUser};

#[derive(Debug, Clone, PartialEq, Default)]
pub struct AccessState {
    users: HashMap<UserId, Arc<StoredUser>>,
    tokens: HashMap<String, Arc<StoredToken>>,
    sessions: HashMap<String, Arc<StoredSession>>,
}

/// A change of users or credentials.
#[derive(Debug, Clone)]
pub enum AccessChange {
    /// A user was inserted or updated.
    User(StoredUser),
    /// A token was inserted, with this digest.
    Token(String, StoredToken),
    /// A token was deleted with its sessions.
    TokenRemoved(TokenId),
    /// A session was inserted, with this digest.
    Session(String, StoredSession),
    /// A session's password was given again.
    Reauthenticated(SessionId, Timestamp),
    /// Sessions were deleted.
    SessionsRemoved(Vec<SessionId>),
    /// A credential was used.
    Used(LastUsed),
}

impl AccessState {
    /// Applies a change.
    pub fn apply(&mut self, change: AccessChange) {
        match change {
            AccessChange::User(user) => {
                self.users.insert(user.id.clone(), Arc::new(user));
            }
            AccessChange::Token(digest, token) => {
                self.tokens.insert(digest, Arc::new(token));
            }
            AccessChange::TokenRemoved(id) => {
                self.tokens.retain(|_, token| token.id != id);
                self.sessions.retain(|_, session| session.token.as_ref() != Some(&id));
            }
            AccessChange::Session(digest, session) => {
                self.sessions.insert(digest, Arc::new(session));
            }
            AccessChange::Reauthenticated(id, at) => {
                for session in self.sessions.values_mut().filter(|session| session.id == id) {
                    Arc::make_mut(session).reauthenticated_at = at;
                }
            }
            AccessChange::SessionsRemoved(ids) => self.sessions.retain(|_, session| !ids.contains(&session.id)),
            AccessChange::Used(LastUsed::Token(id, at)) => {
                for token in self.tokens.values_mut().filter(|token| token.id == id) {
                    Arc::make_mut(token).used_at = token.used_at.max(Some(at));
                }
            }
            AccessChange::Used(LastUsed::Session(id, at)) => {
                for session in self.sessions.values_mut().filter(|session| session.id == id) {
                    Arc::make_mut(session).last_used_at = session.last_used_at.max(at);
                }
            }
        }
    }

    /// Resolves a token by its digest.
    pub fn resolve_token(&self, digest: &str) -> Option<ResolvedCredential> {
        let token = self.tokens.get(digest)?;
        Some(ResolvedCredential {
            user: Arc::clone(self.users.get(&token.user)?),
            token: Some(Arc::clone(token)),
            session: None,
        })
    }

    /// Resolves a cookie by its digest.
    pub fn resolve_cookie(&self, digest: &str) -> Option<ResolvedCredential> {
        let session = self.sessions.get(digest)?;
        let token = match &session.token {
            Some(id) => Some(self.tokens.values().find(|token| token.id == *id)?),
            None => None,
        };
        Some(ResolvedCredential {
            user: Arc::clone(self.users.get(&session.user)?),
            token: token.map(Arc::clone),
            session: Some(Arc::clone(session)),
        })
    }
}

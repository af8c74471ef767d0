//! Who may come in, in memory: people, and what opens doors for them, by the SHA-256 of each secret.

use std::collections::HashMap;
use std::sync::Arc;

use app::domain::ids::{SessionId, TokenId, UserId};
use app::domain::time::Timestamp;

use super::access::{Opened, StoredSession, StoredToken, StoredUser, Used};

/// See the module.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct People {
    users: HashMap<UserId, Arc<StoredUser>>,
    tokens: HashMap<String, Arc<StoredToken>>,
    sessions: HashMap<String, Arc<StoredSession>>,
}

/// One thing that was written.
#[derive(Debug, Clone)]
pub enum AccessChange {
    /// Somebody is like this now.
    User(StoredUser),
    /// A token is there, with this digest.
    Token(String, StoredToken),
    /// A token is gone, and what it opened.
    TokenGone(TokenId),
    /// A session is there, with this digest.
    Session(String, StoredSession),
    /// A session's password was given once more.
    Proved(SessionId, Timestamp),
    /// Sessions are gone.
    SessionsGone(Vec<SessionId>),
    /// Something was used.
    Used(Used),
}

impl People {
    /// Follows what was written.
    pub fn apply(&mut self, change: AccessChange) {
        match change {
            AccessChange::User(user) => {
                self.users.insert(user.id.clone(), Arc::new(user));
            }
            AccessChange::Token(digest, token) => {
                self.tokens.insert(digest, Arc::new(token));
            }
            AccessChange::TokenGone(id) => {
                self.tokens.retain(|_, token| token.id != id);
                self.sessions.retain(|_, session| session.token.as_ref() != Some(&id));
            }
            AccessChange::Session(digest, session) => {
                self.sessions.insert(digest, Arc::new(session));
            }
            AccessChange::Proved(id, at) => {
                for session in self.sessions.values_mut().filter(|session| session.id == id) {
                    Arc::make_mut(session).proved_at = at;
                }
            }
            AccessChange::SessionsGone(ids) => self.sessions.retain(|_, session| !ids.contains(&session.id)),
            AccessChange::Used(Used::Token(id, at)) => {
                for token in self.tokens.values_mut().filter(|token| token.id == id) {
                    Arc::make_mut(token).used_at = token.used_at.max(Some(at));
                }
            }
            AccessChange::Used(Used::Session(id, at)) => {
                for session in self.sessions.values_mut().filter(|session| session.id == id) {
                    Arc::make_mut(session).seen_at = session.seen_at.max(at);
                }
            }
        }
    }

    /// What a token opens.
    pub fn by_token(&self, digest: &str) -> Option<Opened> {
        let token = self.tokens.get(digest)?;
        Some(Opened { user: Arc::clone(self.users.get(&token.user)?), token: Some(Arc::clone(token)), session: None })
    }

    /// What a cookie opens.
    pub fn by_cookie(&self, digest: &str) -> Option<Opened> {
        let session = self.sessions.get(digest)?;
        let token = match &session.token {
            Some(id) => Some(self.tokens.values().find(|token| token.id == *id)?),
            None => None,
        };
        Some(Opened {
            user: Arc::clone(self.users.get(&session.user)?),
            token: token.map(Arc::clone),
            session: Some(Arc::clone(session)),
        })
    }
}

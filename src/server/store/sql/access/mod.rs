//! `users`, `api_tokens`, `sessions` and `settings`.

pub(super) mod factors;
pub(super) mod notices;
pub(super) mod passkeys;

use std::sync::Arc;

use app::domain::access::{Permissions, Role};
use app::domain::ids::{InvalidId, SessionId, TokenId, UserId};
use app::domain::time::Timestamp;
use async_trait::async_trait;

use super::rows::{NamedRow, to_json};
use super::statement::sql;
use super::{SqlRow, SqlSession};
use crate::store::Result;
use crate::store::access::{
    AccessQueries, LastUsed, ResolvedCredential, StoredSession, StoredToken, StoredUser, UserActivity,
};
use crate::store::cache::access::{AccessChange, AccessState};
use crate::store::cache::state::StateChange;

#[async_trait]
impl AccessQueries for SqlSession<'_> {
    async fn user(&mut self, id: &UserId) -> Result<Option<StoredUser>> {
        let row = self.fetch_first(sql("SELECT * FROM users WHERE id = $1").bind(id.as_str())).await?;
        row.as_ref().map(user_from).transpose()
    }

    async fn user_by_name(&mut self, name: &str) -> Result<Option<StoredUser>> {
        let row = self.fetch_first(sql("SELECT * FROM users WHERE name = $1").bind(name)).await?;
        row.as_ref().map(user_from).transpose()
    }

    async fn users(&mut self) -> Result<Vec<StoredUser>> {
        self.fetch_all(sql("SELECT * FROM users ORDER BY name"), user_from).await
    }

    async fn user_activity(&mut self) -> Result<Vec<UserActivity>> {
        let select = sql("SELECT user_id, MAX(at) AS at, COUNT(token_id) AS tokens FROM (
                SELECT user_id, id AS token_id, used_at AS at FROM api_tokens
                UNION ALL SELECT user_id, NULL AS token_id, seen_at AS at FROM sessions
            ) AS used GROUP BY user_id ORDER BY user_id");
        self.fetch_all(select, activity_from).await
    }

    async fn insert_user(&mut self, user: &StoredUser) -> Result<()> {
        let insert = sql("INSERT INTO users (id, name, role, created_at, disabled_at) VALUES ($1, $2, $3, $4, $5)");
        let insert = insert.bind(user.id.as_str()).bind(&user.name).bind(user.role.as_str()).bind(user.created_at.0);
        self.execute_one(insert.bind(user.disabled_at.map(|at| at.0))).await?;
        self.record_access_change(AccessChange::User(user.clone()));
        Ok(())
    }

    async fn update_user(&mut self, user: &StoredUser) -> Result<()> {
        let update = sql("UPDATE users SET role = $1, disabled_at = $2 WHERE id = $3");
        let update = update.bind(user.role.as_str()).bind(user.disabled_at.map(|at| at.0)).bind(user.id.as_str());
        self.execute_one(update).await?;
        self.record_access_change(AccessChange::User(user.clone()));
        Ok(())
    }

    async fn password_hash(&mut self, user: &UserId) -> Result<Option<String>> {
        let row = self.fetch_first(sql("SELECT password_hash FROM users WHERE id = $1").bind(user.as_str())).await?;
        row.map_or(Ok(None), |row| row.get("password_hash"))
    }

    async fn put_password(&mut self, user: &UserId, hash: &str) -> Result<()> {
        self.execute_one(sql("UPDATE users SET password_hash = $1 WHERE id = $2").bind(hash).bind(user.as_str())).await
    }

    async fn resolve_token(&mut self, digest: &str) -> Result<Option<ResolvedCredential>> {
        if let Some(Some(resolved)) = self.try_read_state(|fleet_state| fleet_state.access().resolve_token(digest)) {
            return Ok(Some(resolved));
        }
        let row = self.fetch_first(sql("SELECT * FROM api_tokens WHERE digest = $1").bind(digest)).await?;
        let Some(token) = row.as_ref().map(token_from).transpose()? else { return Ok(None) };
        let user = self.user(&token.user).await?;
        Ok(user.map(|user| ResolvedCredential { user: Arc::new(user), token: Some(Arc::new(token)), session: None }))
    }

    async fn resolve_cookie(&mut self, digest: &str) -> Result<Option<ResolvedCredential>> {
        if let Some(Some(resolved)) = self.try_read_state(|fleet_state| fleet_state.access().resolve_cookie(digest)) {
            return Ok(Some(resolved));
        }
        let row = self.fetch_first(sql("SELECT * FROM sessions WHERE digest = $1").bind(digest)).await?;
        let Some(session) = row.as_ref().map(session_from).transpose()? else { return Ok(None) };
        let token = match &session.token {
            None => None,
            Some(id) => match self.api_token(id).await? {
                Some(token) => Some(Arc::new(token)),
                None => return Ok(None),
            },
        };
        let user = self.user(&session.user).await?;
        Ok(user.map(|user| ResolvedCredential { user: Arc::new(user), token, session: Some(Arc::new(session)) }))
    }

    async fn api_tokens(&mut self, user: &UserId) -> Result<Vec<StoredToken>> {
        let select = sql("SELECT * FROM api_tokens WHERE user_id = $1 ORDER BY created_at, id").bind(user.as_str());
        self.fetch_all(select, token_from).await
    }

    async fn api_token(&mut self, token: &TokenId) -> Result<Option<StoredToken>> {
        let row = self.fetch_first(sql("SELECT * FROM api_tokens WHERE id = $1").bind(token.as_str())).await?;
        row.as_ref().map(token_from).transpose()
    }

    async fn insert_api_token(&mut self, token: &StoredToken, digest: &str) -> Result<()> {
        let insert = sql("INSERT INTO api_tokens (id, user_id, name, digest, scopes, created_at, expires_at, used_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)");
        let insert = insert.bind(token.id.as_str()).bind(token.user.as_str()).bind(&token.name).bind(digest);
        let insert = insert.bind(token.scopes.as_ref().map(to_json)).bind(token.created_at.0);
        self.execute_one(insert.bind(token.expires_at.map(|at| at.0)).bind(token.used_at.map(|at| at.0))).await?;
        self.record_access_change(AccessChange::Token(digest.to_owned(), token.clone()));
        Ok(())
    }

    async fn delete_api_token(&mut self, token: &TokenId) -> Result<()> {
        self.execute(sql("DELETE FROM sessions WHERE token_id = $1").bind(token.as_str())).await?;
        self.execute_one(sql("DELETE FROM api_tokens WHERE id = $1").bind(token.as_str())).await?;
        self.record_access_change(AccessChange::TokenRemoved(token.clone()));
        Ok(())
    }

    async fn sessions(&mut self, user: &UserId) -> Result<Vec<StoredSession>> {
        let select = sql("SELECT * FROM sessions WHERE user_id = $1 ORDER BY created_at, id").bind(user.as_str());
        self.fetch_all(select, session_from).await
    }

    async fn session(&mut self, session: &SessionId) -> Result<Option<StoredSession>> {
        let row = self.fetch_first(sql("SELECT * FROM sessions WHERE id = $1").bind(session.as_str())).await?;
        row.as_ref().map(session_from).transpose()
    }

    async fn insert_session(&mut self, session: &StoredSession, digest: &str) -> Result<()> {
        let insert =
            sql("INSERT INTO sessions (digest, id, user_id, token_id, host, agent, created_at, seen_at, expires_at, reauthenticated_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)");
        let token = session.token.as_ref().map(TokenId::as_str);
        let insert = insert.bind(digest).bind(session.id.as_str()).bind(session.user.as_str()).bind(token);
        let insert = insert.bind(&session.host).bind(&session.user_agent).bind(session.created_at.0);
        self.execute_one(
            insert.bind(session.last_used_at.0).bind(session.expires_at.0).bind(session.reauthenticated_at.0),
        )
        .await?;
        self.record_access_change(AccessChange::Session(digest.to_owned(), session.clone()));
        Ok(())
    }

    async fn reauthenticate_session(&mut self, session: &SessionId, at: Timestamp) -> Result<()> {
        self.execute_one(
            sql("UPDATE sessions SET reauthenticated_at = $1 WHERE id = $2").bind(at.0).bind(session.as_str()),
        )
        .await?;
        self.record_access_change(AccessChange::Reauthenticated(session.clone(), at));
        Ok(())
    }

    async fn delete_session(&mut self, session: &SessionId) -> Result<()> {
        self.execute_one(sql("DELETE FROM sessions WHERE id = $1").bind(session.as_str())).await?;
        self.record_access_change(AccessChange::SessionsRemoved(vec![session.clone()]));
        Ok(())
    }

    async fn sweep_sessions(&mut self, now: Timestamp, idle_since: Timestamp) -> Result<()> {
        let delete = sql("DELETE FROM sessions WHERE expires_at <= $1 OR seen_at <= $2 RETURNING id");
        let session_id = |row: &SqlRow| NamedRow::new(row, "sessions", "id")?.session_id("id");
        let removed = self.fetch_all(delete.bind(now.0).bind(idle_since.0), session_id).await?;
        if !removed.is_empty() {
            self.record_access_change(AccessChange::SessionsRemoved(removed));
        }
        Ok(())
    }

    async fn record_last_used(&mut self, used: &[LastUsed]) -> Result<()> {
        for last_used in used {
            // Another server may have recorded a later use.
            let update = match last_used {
                LastUsed::Token(id, at) => {
                    sql("UPDATE api_tokens SET used_at = $1 WHERE id = $2 AND (used_at IS NULL OR used_at < $1)")
                        .bind(at.0)
                        .bind(id.as_str())
                }
                LastUsed::Session(id, at) => {
                    sql("UPDATE sessions SET seen_at = $1 WHERE id = $2 AND seen_at < $1").bind(at.0).bind(id.as_str())
                }
            };
            self.execute(update).await?;
            self.record_access_change(AccessChange::Used(last_used.clone()));
        }
        Ok(())
    }

    async fn setting(&mut self, key: &str) -> Result<Option<String>> {
        let row = self.fetch_first(sql("SELECT value FROM settings WHERE key = $1").bind(key)).await?;
        row.map(|row| row.get("value")).transpose()
    }

    async fn put_setting(&mut self, key: &str, value: Option<&str>) -> Result<()> {
        let put = match value {
            Some(value) => sql("INSERT INTO settings (key, value) VALUES ($1, $2)
                 ON CONFLICT (key) DO UPDATE SET value = excluded.value")
            .bind(key)
            .bind(value),
            None => sql("DELETE FROM settings WHERE key = $1").bind(key),
        };
        self.execute(put).await.map(drop)
    }
}

impl SqlSession<'_> {
    fn record_access_change(&mut self, change: AccessChange) {
        self.record_change(StateChange::Access(change));
    }

    /// Loads all users and credentials.
    pub(super) async fn load_access(&mut self) -> Result<AccessState> {
        let user = |row: &SqlRow| user_from(row).map(AccessChange::User);
        let token = |row: &SqlRow| Ok(AccessChange::Token(row.get("digest")?, token_from(row)?));
        let session = |row: &SqlRow| Ok(AccessChange::Session(row.get("digest")?, session_from(row)?));
        let users = self.fetch_valid(sql("SELECT * FROM users"), user).await?;
        let tokens = self.fetch_valid(sql("SELECT * FROM api_tokens"), token).await?;
        let sessions = self.fetch_valid(sql("SELECT * FROM sessions"), session).await?;
        let mut access = AccessState::default();
        users.into_iter().chain(tokens).chain(sessions).for_each(|change| access.apply(change));
        Ok(access)
    }
}

pub(super) fn user_from(row: &SqlRow) -> Result<StoredUser> {
    let row = NamedRow::new(row, "users", "id")?;
    let role: String = row.get("role")?;
    Ok(StoredUser {
        id: row.user_id("id")?,
        name: row.get("name")?,
        role: Role::parse(&role).ok_or_else(|| row.corrupt(format!("role is {role:?}")))?,
        created_at: row.timestamp("created_at")?,
        disabled_at: row.optional_timestamp("disabled_at")?,
        unread_notices: row.get::<i64>("unread_notices")?.unsigned_abs(),
    })
}

fn activity_from(row: &SqlRow) -> Result<UserActivity> {
    let tokens = row.get::<i64>("tokens")?.unsigned_abs();
    let row = NamedRow::new(row, "users", "user_id")?;
    Ok(UserActivity { user: row.user_id("user_id")?, last_used_at: row.optional_timestamp("at")?, tokens })
}

pub(super) fn token_from(row: &SqlRow) -> Result<StoredToken> {
    let row = NamedRow::new(row, "api_tokens", "id")?;
    let scopes: Option<String> = row.get("scopes")?;
    Ok(StoredToken {
        id: row.token_id("id")?,
        user: row.user_id("user_id")?,
        name: row.get("name")?,
        scopes: scopes.map(|_| row.json::<Permissions>("scopes")).transpose()?,
        created_at: row.timestamp("created_at")?,
        expires_at: row.optional_timestamp("expires_at")?,
        used_at: row.optional_timestamp("used_at")?,
    })
}

pub(super) fn session_from(row: &SqlRow) -> Result<StoredSession> {
    let row = NamedRow::new(row, "sessions", "id")?;
    let token: Option<String> = row.get("token_id")?;
    Ok(StoredSession {
        id: row.session_id("id")?,
        user: row.user_id("user_id")?,
        token: token.map(|_| row.token_id("token_id")).transpose()?,
        host: row.get("host")?,
        user_agent: row.get("agent")?,
        created_at: row.timestamp("created_at")?,
        reauthenticated_at: row.timestamp("reauthenticated_at")?,
        last_used_at: row.timestamp("seen_at")?,
        expires_at: row.timestamp("expires_at")?,
    })
}

impl NamedRow<'_> {
    pub(super) fn user_id(&self, column: &'static str) -> Result<UserId> {
        self.parse_id(column, UserId::parse)
    }

    fn token_id(&self, column: &'static str) -> Result<TokenId> {
        self.parse_id(column, TokenId::parse)
    }

    pub(super) fn session_id(&self, column: &'static str) -> Result<SessionId> {
        self.parse_id(column, SessionId::parse)
    }

    fn parse_id<T>(
        &self,
        column: &'static str,
        parse: impl Fn(&str) -> std::result::Result<T, InvalidId>,
    ) -> Result<T> {
        let text: String = self.get(column)?;
        parse(&text).map_err(|InvalidId| self.corrupt(format!("{column} is {text:?}")))
    }
}

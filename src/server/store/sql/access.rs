//! `users`, `api_tokens`, `sessions` and `settings`.

use std::sync::Arc;

use app::domain::access::{Permissions, Role};
use app::domain::ids::{BadId, SessionId, TokenId, UserId};
use app::domain::time::Timestamp;
use async_trait::async_trait;

use super::rows::{Named, to_json};
use super::statement::sql;
use super::{Row, Session};
use crate::store::Result;
use crate::store::access::{Access, Activity, Opened, StoredSession, StoredToken, StoredUser, Used};
use crate::store::known::Change;
use crate::store::people::{AccessChange, People};

#[async_trait]
impl Access for Session<'_> {
    async fn user(&mut self, id: &UserId) -> Result<Option<StoredUser>> {
        let row = self.first(sql("SELECT * FROM users WHERE id = $1").bind(id.as_str())).await?;
        row.as_ref().map(user_from).transpose()
    }

    async fn user_by_name(&mut self, name: &str) -> Result<Option<StoredUser>> {
        let row = self.first(sql("SELECT * FROM users WHERE name = $1").bind(name)).await?;
        row.as_ref().map(user_from).transpose()
    }

    async fn users(&mut self) -> Result<Vec<StoredUser>> {
        self.all(sql("SELECT * FROM users ORDER BY name"), user_from).await
    }

    async fn activity(&mut self) -> Result<Vec<Activity>> {
        let used = sql("SELECT user_id, MAX(at) AS at, COUNT(token_id) AS tokens FROM (
                SELECT user_id, id AS token_id, used_at AS at FROM api_tokens
                UNION ALL SELECT user_id, NULL AS token_id, seen_at AS at FROM sessions
            ) AS used GROUP BY user_id ORDER BY user_id");
        self.all(used, activity_from).await
    }

    async fn insert_user(&mut self, user: &StoredUser) -> Result<()> {
        let insert = sql("INSERT INTO users (id, name, role, created_at, disabled_at) VALUES ($1, $2, $3, $4, $5)");
        let insert = insert.bind(user.id.as_str()).bind(&user.name).bind(user.role.as_str()).bind(user.created_at.0);
        self.one(insert.bind(user.disabled_at.map(|at| at.0))).await?;
        self.note_access(AccessChange::User(user.clone()));
        Ok(())
    }

    async fn update_user(&mut self, user: &StoredUser) -> Result<()> {
        let update = sql("UPDATE users SET role = $1, disabled_at = $2 WHERE id = $3");
        let update = update.bind(user.role.as_str()).bind(user.disabled_at.map(|at| at.0)).bind(user.id.as_str());
        self.one(update).await?;
        self.note_access(AccessChange::User(user.clone()));
        Ok(())
    }

    async fn password(&mut self, user: &UserId) -> Result<Option<String>> {
        let row = self.first(sql("SELECT password_hash FROM users WHERE id = $1").bind(user.as_str())).await?;
        row.map_or(Ok(None), |row| row.get("password_hash"))
    }

    async fn put_password(&mut self, user: &UserId, hash: &str) -> Result<()> {
        self.one(sql("UPDATE users SET password_hash = $1 WHERE id = $2").bind(hash).bind(user.as_str())).await
    }

    async fn by_token(&mut self, digest: &str) -> Result<Option<Opened>> {
        if let Some(Some(known)) = self.glance(|known| known.people().by_token(digest)) {
            return Ok(Some(known));
        }
        let row = self.first(sql("SELECT * FROM api_tokens WHERE digest = $1").bind(digest)).await?;
        let Some(token) = row.as_ref().map(token_from).transpose()? else { return Ok(None) };
        let user = self.user(&token.user).await?;
        Ok(user.map(|user| Opened { user: Arc::new(user), token: Some(Arc::new(token)), session: None }))
    }

    async fn by_cookie(&mut self, digest: &str) -> Result<Option<Opened>> {
        if let Some(Some(known)) = self.glance(|known| known.people().by_cookie(digest)) {
            return Ok(Some(known));
        }
        let row = self.first(sql("SELECT * FROM sessions WHERE digest = $1").bind(digest)).await?;
        let Some(session) = row.as_ref().map(session_from).transpose()? else { return Ok(None) };
        let token = match &session.token {
            None => None,
            Some(id) => match self.api_token(id).await? {
                Some(token) => Some(Arc::new(token)),
                None => return Ok(None),
            },
        };
        let user = self.user(&session.user).await?;
        Ok(user.map(|user| Opened { user: Arc::new(user), token, session: Some(Arc::new(session)) }))
    }

    async fn api_tokens(&mut self, user: &UserId) -> Result<Vec<StoredToken>> {
        let select = sql("SELECT * FROM api_tokens WHERE user_id = $1 ORDER BY created_at, id").bind(user.as_str());
        self.all(select, token_from).await
    }

    async fn api_token(&mut self, token: &TokenId) -> Result<Option<StoredToken>> {
        let row = self.first(sql("SELECT * FROM api_tokens WHERE id = $1").bind(token.as_str())).await?;
        row.as_ref().map(token_from).transpose()
    }

    async fn insert_api_token(&mut self, token: &StoredToken, digest: &str) -> Result<()> {
        let insert = sql("INSERT INTO api_tokens (id, user_id, name, digest, scopes, created_at, expires_at, used_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)");
        let insert = insert.bind(token.id.as_str()).bind(token.user.as_str()).bind(&token.name).bind(digest);
        let insert = insert.bind(token.scopes.as_ref().map(to_json)).bind(token.created_at.0);
        self.one(insert.bind(token.expires_at.map(|at| at.0)).bind(token.used_at.map(|at| at.0))).await?;
        self.note_access(AccessChange::Token(digest.to_owned(), token.clone()));
        Ok(())
    }

    async fn delete_api_token(&mut self, token: &TokenId) -> Result<()> {
        self.run(sql("DELETE FROM sessions WHERE token_id = $1").bind(token.as_str())).await?;
        self.one(sql("DELETE FROM api_tokens WHERE id = $1").bind(token.as_str())).await?;
        self.note_access(AccessChange::TokenGone(token.clone()));
        Ok(())
    }

    async fn sessions(&mut self, user: &UserId) -> Result<Vec<StoredSession>> {
        let select = sql("SELECT * FROM sessions WHERE user_id = $1 ORDER BY created_at, id").bind(user.as_str());
        self.all(select, session_from).await
    }

    async fn session(&mut self, session: &SessionId) -> Result<Option<StoredSession>> {
        let row = self.first(sql("SELECT * FROM sessions WHERE id = $1").bind(session.as_str())).await?;
        row.as_ref().map(session_from).transpose()
    }

    async fn insert_session(&mut self, session: &StoredSession, digest: &str) -> Result<()> {
        let insert =
            sql("INSERT INTO sessions (digest, id, user_id, token_id, host, agent, created_at, seen_at, expires_at, proved_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)");
        let token = session.token.as_ref().map(TokenId::as_str);
        let insert = insert.bind(digest).bind(session.id.as_str()).bind(session.user.as_str()).bind(token);
        let insert = insert.bind(&session.host).bind(&session.agent).bind(session.created_at.0);
        self.one(insert.bind(session.seen_at.0).bind(session.expires_at.0).bind(session.proved_at.0)).await?;
        self.note_access(AccessChange::Session(digest.to_owned(), session.clone()));
        Ok(())
    }

    async fn prove_session(&mut self, session: &SessionId, at: Timestamp) -> Result<()> {
        self.one(sql("UPDATE sessions SET proved_at = $1 WHERE id = $2").bind(at.0).bind(session.as_str())).await?;
        self.note_access(AccessChange::Proved(session.clone(), at));
        Ok(())
    }

    async fn delete_session(&mut self, session: &SessionId) -> Result<()> {
        self.one(sql("DELETE FROM sessions WHERE id = $1").bind(session.as_str())).await?;
        self.note_access(AccessChange::SessionsGone(vec![session.clone()]));
        Ok(())
    }

    async fn sweep_sessions(&mut self, now: Timestamp, idle_since: Timestamp) -> Result<()> {
        let delete = sql("DELETE FROM sessions WHERE expires_at <= $1 OR seen_at <= $2 RETURNING id");
        let of = |row: &Row| Named::new(row, "sessions", "id")?.session_id("id");
        let gone = self.all(delete.bind(now.0).bind(idle_since.0), of).await?;
        if !gone.is_empty() {
            self.note_access(AccessChange::SessionsGone(gone));
        }
        Ok(())
    }

    async fn note_used(&mut self, used: &[Used]) -> Result<()> {
        for used in used {
            // Another server may have seen it later.
            let update = match used {
                Used::Token(id, at) => {
                    sql("UPDATE api_tokens SET used_at = $1 WHERE id = $2 AND (used_at IS NULL OR used_at < $1)")
                        .bind(at.0)
                        .bind(id.as_str())
                }
                Used::Session(id, at) => {
                    sql("UPDATE sessions SET seen_at = $1 WHERE id = $2 AND seen_at < $1").bind(at.0).bind(id.as_str())
                }
            };
            self.run(update).await?;
            self.note_access(AccessChange::Used(used.clone()));
        }
        Ok(())
    }

    async fn setting(&mut self, key: &str) -> Result<Option<String>> {
        let row = self.first(sql("SELECT value FROM settings WHERE key = $1").bind(key)).await?;
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
        self.run(put).await.map(drop)
    }
}

impl Session<'_> {
    fn note_access(&mut self, change: AccessChange) {
        self.note(Change::Access(change));
    }

    /// All of it, for memory.
    pub(super) async fn load_people(&mut self) -> Result<People> {
        let user = |row: &Row| user_from(row).map(AccessChange::User);
        let token = |row: &Row| Ok(AccessChange::Token(row.get("digest")?, token_from(row)?));
        let session = |row: &Row| Ok(AccessChange::Session(row.get("digest")?, session_from(row)?));
        let users = self.whole(sql("SELECT * FROM users"), user).await?;
        let tokens = self.whole(sql("SELECT * FROM api_tokens"), token).await?;
        let sessions = self.whole(sql("SELECT * FROM sessions"), session).await?;
        let mut people = People::default();
        users.into_iter().chain(tokens).chain(sessions).for_each(|change| people.apply(change));
        Ok(people)
    }
}

fn user_from(row: &Row) -> Result<StoredUser> {
    let row = Named::new(row, "users", "id")?;
    let role: String = row.get("role")?;
    Ok(StoredUser {
        id: row.user_id("id")?,
        name: row.get("name")?,
        role: Role::parse(&role).ok_or_else(|| row.broken(format!("role is {role:?}")))?,
        created_at: row.moment("created_at")?,
        disabled_at: row.optional_moment("disabled_at")?,
        unread_notices: row.get::<i64>("unread_notices")?.unsigned_abs(),
    })
}

fn activity_from(row: &Row) -> Result<Activity> {
    let tokens = row.get::<i64>("tokens")?.unsigned_abs();
    let row = Named::new(row, "users", "user_id")?;
    Ok(Activity { user: row.user_id("user_id")?, at: row.optional_moment("at")?, tokens })
}

fn token_from(row: &Row) -> Result<StoredToken> {
    let row = Named::new(row, "api_tokens", "id")?;
    let scopes: Option<String> = row.get("scopes")?;
    Ok(StoredToken {
        id: row.token_id("id")?,
        user: row.user_id("user_id")?,
        name: row.get("name")?,
        scopes: scopes.map(|_| row.json::<Permissions>("scopes")).transpose()?,
        created_at: row.moment("created_at")?,
        expires_at: row.optional_moment("expires_at")?,
        used_at: row.optional_moment("used_at")?,
    })
}

fn session_from(row: &Row) -> Result<StoredSession> {
    let row = Named::new(row, "sessions", "id")?;
    let token: Option<String> = row.get("token_id")?;
    Ok(StoredSession {
        id: row.session_id("id")?,
        user: row.user_id("user_id")?,
        token: token.map(|_| row.token_id("token_id")).transpose()?,
        host: row.get("host")?,
        agent: row.get("agent")?,
        created_at: row.moment("created_at")?,
        proved_at: row.moment("proved_at")?,
        seen_at: row.moment("seen_at")?,
        expires_at: row.moment("expires_at")?,
    })
}

impl Named<'_> {
    pub(super) fn user_id(&self, column: &'static str) -> Result<UserId> {
        self.id(column, UserId::parse)
    }

    fn token_id(&self, column: &'static str) -> Result<TokenId> {
        self.id(column, TokenId::parse)
    }

    pub(super) fn session_id(&self, column: &'static str) -> Result<SessionId> {
        self.id(column, SessionId::parse)
    }

    fn id<T>(&self, column: &'static str, parse: impl Fn(&str) -> std::result::Result<T, BadId>) -> Result<T> {
        let text: String = self.get(column)?;
        parse(&text).map_err(|BadId| self.broken(format!("{column} is {text:?}")))
    }
}

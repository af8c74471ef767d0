//! `passkeys` and `passkey_challenges`.

use app::domain::ids::{InvalidId, PasskeyId, UserId};
use app::domain::time::Timestamp;
use async_trait::async_trait;

use crate::store::Result;
use crate::store::access::passkeys::{ChallengePurpose, PasskeyChallenge, PasskeyQueries, StoredPasskey};
use crate::store::sql::rows::NamedRow;
use crate::store::sql::statement::sql;
use crate::store::sql::{SqlRow, SqlSession};

#[async_trait]
impl PasskeyQueries for SqlSession<'_> {
    async fn passkeys(&mut self, user: &UserId) -> Result<Vec<StoredPasskey>> {
        let select = sql("SELECT * FROM passkeys WHERE user_id = $1 ORDER BY created_at, id").bind(user.as_str());
        self.fetch_all(select, passkey_from).await
    }

    async fn has_credential(&mut self, credential_id: &str) -> Result<bool> {
        let select = sql("SELECT id FROM passkeys WHERE credential_id = $1").bind(credential_id);
        Ok(self.fetch_first(select).await?.is_some())
    }

    async fn insert_passkey(&mut self, passkey: &StoredPasskey) -> Result<()> {
        let insert =
            sql("INSERT INTO passkeys (id, user_id, name, origin, credential_id, credential, created_at, used_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (credential_id) DO NOTHING");
        let insert = insert.bind(passkey.id.as_str()).bind(passkey.user.as_str()).bind(&passkey.name);
        let insert = insert.bind(&passkey.origin).bind(&passkey.credential_id).bind(&passkey.credential);
        self.execute_one(insert.bind(passkey.created_at.0).bind(passkey.used_at.map(|at| at.0))).await
    }

    async fn record_passkey_use(&mut self, id: &PasskeyId, credential: &str, at: Timestamp) -> Result<()> {
        let update = sql("UPDATE passkeys SET credential = $1, used_at = $2 WHERE id = $3");
        self.execute_one(update.bind(credential).bind(at.0).bind(id.as_str())).await
    }

    async fn delete_passkey(&mut self, id: &PasskeyId) -> Result<()> {
        self.execute_one(sql("DELETE FROM passkeys WHERE id = $1").bind(id.as_str())).await
    }

    async fn put_challenge(
        &mut self,
        purpose: ChallengePurpose,
        holder: &str,
        challenge: &PasskeyChallenge,
    ) -> Result<()> {
        let delete_expired = sql("DELETE FROM passkey_challenges WHERE ends_at <= $1").bind(challenge.created_at.0);
        self.execute(delete_expired).await?;
        let put = sql("INSERT INTO passkey_challenges
               (purpose, holder, user_id, origin, options, state, created_at, ends_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
             ON CONFLICT (purpose, holder) DO UPDATE SET user_id = excluded.user_id, origin = excluded.origin,
               options = excluded.options, state = excluded.state, created_at = excluded.created_at,
               ends_at = excluded.ends_at");
        let put = put.bind(purpose.as_str()).bind(holder).bind(challenge.user.as_str()).bind(&challenge.origin);
        let put = put.bind(&challenge.options).bind(&challenge.state);
        self.execute_one(put.bind(challenge.created_at.0).bind(challenge.expires_at.0)).await
    }

    async fn challenge(&mut self, purpose: ChallengePurpose, holder: &str) -> Result<Option<PasskeyChallenge>> {
        let select = sql("SELECT * FROM passkey_challenges WHERE purpose = $1 AND holder = $2");
        let row = self.fetch_first(select.bind(purpose.as_str()).bind(holder)).await?;
        row.as_ref().map(challenge_from).transpose()
    }

    async fn take_challenge(&mut self, purpose: ChallengePurpose, holder: &str) -> Result<Option<PasskeyChallenge>> {
        let challenge = self.challenge(purpose, holder).await?;
        let delete = sql("DELETE FROM passkey_challenges WHERE purpose = $1 AND holder = $2");
        self.execute(delete.bind(purpose.as_str()).bind(holder)).await?;
        Ok(challenge)
    }
}

impl NamedRow<'_> {
    fn passkey_id(&self, column: &'static str) -> Result<PasskeyId> {
        let text: String = self.get(column)?;
        PasskeyId::parse(&text).map_err(|InvalidId| self.corrupt(format!("{column} is {text:?}")))
    }
}

fn passkey_from(row: &SqlRow) -> Result<StoredPasskey> {
    let row = NamedRow::new(row, "passkeys", "id")?;
    Ok(StoredPasskey {
        id: row.passkey_id("id")?,
        user: row.user_id("user_id")?,
        name: row.get("name")?,
        origin: row.get("origin")?,
        credential_id: row.get("credential_id")?,
        credential: row.get("credential")?,
        created_at: row.timestamp("created_at")?,
        used_at: row.optional_timestamp("used_at")?,
    })
}

fn challenge_from(row: &SqlRow) -> Result<PasskeyChallenge> {
    let row = NamedRow::new(row, "passkey_challenges", "holder")?;
    Ok(PasskeyChallenge {
        user: row.user_id("user_id")?,
        origin: row.get("origin")?,
        options: row.get("options")?,
        state: row.get("state")?,
        created_at: row.timestamp("created_at")?,
        expires_at: row.timestamp("ends_at")?,
    })
}

//! `totp` and `recovery_codes`.

use app::domain::ids::UserId;
use app::domain::time::Timestamp;
use async_trait::async_trait;

use crate::store::Result;
use crate::store::access::factors::{FactorQueries, StoredRecoveryCode, StoredTotp};
use crate::store::sql::rows::NamedRow;
use crate::store::sql::statement::sql;
use crate::store::sql::{SqlRow, SqlSession};
use crate::vault::Sealed;

#[async_trait]
impl FactorQueries for SqlSession<'_> {
    async fn totp(&mut self, user: &UserId) -> Result<Option<StoredTotp>> {
        let row = self.fetch_first(sql("SELECT * FROM totp WHERE user_id = $1").bind(user.as_str())).await?;
        row.as_ref().map(totp_from).transpose()
    }

    async fn put_totp(&mut self, totp: &StoredTotp) -> Result<()> {
        let put = sql("INSERT INTO totp (user_id, sealed, key_id, created_at, confirmed_at, last_step)
             VALUES ($1, $2, $3, $4, $5, $6)
             ON CONFLICT (user_id) DO UPDATE SET sealed = excluded.sealed, key_id = excluded.key_id,
               created_at = excluded.created_at, confirmed_at = excluded.confirmed_at, last_step = excluded.last_step");
        let put = put.bind(totp.user.as_str()).bind(&totp.sealed.text).bind(&totp.sealed.key_id);
        let put = put.bind(totp.created_at.0).bind(totp.confirmed_at.map(|at| at.0));
        self.execute_one(put.bind(totp.last_step)).await
    }

    async fn delete_totp(&mut self, user: &UserId) -> Result<()> {
        self.execute(sql("DELETE FROM totp WHERE user_id = $1").bind(user.as_str())).await.map(drop)
    }

    async fn users_with_factors(&mut self) -> Result<Vec<UserId>> {
        let select = sql("SELECT user_id FROM totp WHERE confirmed_at IS NOT NULL
             UNION SELECT user_id FROM passkeys ORDER BY user_id");
        self.fetch_all(select, |row| NamedRow::new(row, "totp", "user_id")?.user_id("user_id")).await
    }

    async fn delete_factors(&mut self, user: &UserId) -> Result<()> {
        self.delete_totp(user).await?;
        self.execute(sql("DELETE FROM passkeys WHERE user_id = $1").bind(user.as_str())).await?;
        self.execute(sql("DELETE FROM recovery_codes WHERE user_id = $1").bind(user.as_str())).await.map(drop)
    }

    async fn recovery_codes(&mut self, user: &UserId) -> Result<Vec<StoredRecoveryCode>> {
        let select = sql("SELECT * FROM recovery_codes WHERE user_id = $1 ORDER BY digest").bind(user.as_str());
        self.fetch_all(select, code_from).await
    }

    async fn put_recovery_codes(&mut self, user: &UserId, digests: &[String]) -> Result<()> {
        self.execute(sql("DELETE FROM recovery_codes WHERE user_id = $1").bind(user.as_str())).await?;
        for digest in digests {
            let insert = sql("INSERT INTO recovery_codes (user_id, digest) VALUES ($1, $2)");
            self.execute_one(insert.bind(user.as_str()).bind(digest)).await?;
        }
        Ok(())
    }

    async fn use_recovery_code(&mut self, user: &UserId, digest: &str, at: Timestamp) -> Result<()> {
        let update =
            sql("UPDATE recovery_codes SET used_at = $1 WHERE user_id = $2 AND digest = $3 AND used_at IS NULL");
        self.execute_one(update.bind(at.0).bind(user.as_str()).bind(digest)).await
    }
}

fn totp_from(row: &SqlRow) -> Result<StoredTotp> {
    let row = NamedRow::new(row, "totp", "user_id")?;
    Ok(StoredTotp {
        user: row.user_id("user_id")?,
        sealed: Sealed { key_id: row.get("key_id")?, text: row.get("sealed")? },
        created_at: row.timestamp("created_at")?,
        confirmed_at: row.optional_timestamp("confirmed_at")?,
        last_step: row.get("last_step")?,
    })
}

fn code_from(row: &SqlRow) -> Result<StoredRecoveryCode> {
    let row = NamedRow::new(row, "recovery_codes", "digest")?;
    Ok(StoredRecoveryCode { digest: row.get("digest")?, used_at: row.optional_timestamp("used_at")? })
}

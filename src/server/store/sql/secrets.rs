//! `secrets`.

use app::domain::time::Timestamp;
use async_trait::async_trait;

use super::rows::NamedRow;
use super::statement::sql;
use super::{SqlRow, SqlSession};
use crate::store::Result;
use crate::store::secrets::{SecretQueries, StoredSecret};
use crate::vault::Sealed;

#[async_trait]
impl SecretQueries for SqlSession<'_> {
    async fn secrets_for(&mut self, owner: &str) -> Result<Vec<StoredSecret>> {
        let select = sql("SELECT * FROM secrets WHERE owner = '' OR owner = $1 ORDER BY name, owner").bind(owner);
        self.fetch_all(select, from_row).await
    }

    async fn put_secret(&mut self, secret: &StoredSecret) -> Result<()> {
        let put = sql("INSERT INTO secrets (owner, name, sealed, key_id, updated_at, updated_by)
             VALUES ($1, $2, $3, $4, $5, $6)
             ON CONFLICT (owner, name) DO UPDATE SET sealed = excluded.sealed, key_id = excluded.key_id,
               updated_at = excluded.updated_at, updated_by = excluded.updated_by, delivered_at = NULL");
        let put = put.bind(&secret.owner).bind(&secret.name).bind(&secret.sealed.text).bind(&secret.sealed.key_id);
        self.execute_one(put.bind(secret.updated_at.0).bind(&secret.updated_by)).await
    }

    async fn delete_secret(&mut self, owner: &str, name: &str) -> Result<()> {
        self.execute_one(sql("DELETE FROM secrets WHERE owner = $1 AND name = $2").bind(owner).bind(name)).await
    }

    async fn record_delivery(&mut self, owner: &str, name: &str, at: Timestamp) -> Result<()> {
        let update = sql("UPDATE secrets SET delivered_at = $1 WHERE owner = $2 AND name = $3");
        self.execute(update.bind(at.0).bind(owner).bind(name)).await.map(drop)
    }
}

fn from_row(row: &SqlRow) -> Result<StoredSecret> {
    let row = NamedRow::new(row, "secrets", "name")?;
    Ok(StoredSecret {
        owner: row.get("owner")?,
        name: row.get("name")?,
        sealed: Sealed { key_id: row.get("key_id")?, text: row.get("sealed")? },
        updated_at: row.timestamp("updated_at")?,
        updated_by: row.get("updated_by")?,
        delivered_at: row.optional_timestamp("delivered_at")?,
    })
}

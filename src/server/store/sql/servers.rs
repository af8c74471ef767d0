//! `servers` and `leases`, on PostgreSQL.

use app::domain::time::{Millis, Timestamp};
use async_trait::async_trait;

use super::statement::sql;
use super::{Db, Row, Session};
use crate::store::Result;
use crate::store::servers::{KnownServer, Servers};

impl Session<'_> {
    /// Whether the engine serves one server only.
    pub(super) fn serves_one(&self) -> bool {
        matches!(self.db, Db::Sqlite(_) | Db::SqliteReader(_))
    }
}

#[async_trait]
impl Servers for Session<'_> {
    async fn living_servers(&mut self, span: Millis) -> Result<Vec<String>> {
        let chain = self.shared.chain.clone();
        if self.serves_one() {
            return Ok(vec![chain.to_string()]);
        }
        let put =
            sql("INSERT INTO servers (id, seen_at) VALUES ($1, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
             ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at");
        self.one(put.bind(&*chain)).await?;
        // Who was not heard of for a day does not come back: its name was its process's.
        let forget = sql(
            "DELETE FROM servers WHERE seen_at < (extract(epoch FROM clock_timestamp()) * 1000)::bigint - 86400000",
        );
        self.run(forget).await?;
        let select =
            sql("SELECT id FROM servers WHERE seen_at >= (extract(epoch FROM clock_timestamp()) * 1000)::bigint - $1");
        self.all(select.bind(span.0), |row| row.get("id")).await
    }

    async fn lead(&mut self, span: Millis) -> Result<bool> {
        if self.serves_one() {
            return Ok(true);
        }
        let chain = self.shared.chain.clone();
        let take = sql("INSERT INTO leases (name, holder, until)
             VALUES ('leader', $1, (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $2)
             ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until
             WHERE leases.holder = excluded.holder OR leases.until < excluded.until - $2");
        Ok(self.run(take.bind(&*chain).bind(span.0)).await? == 1)
    }

    async fn leader_is_known(&mut self) -> Result<bool> {
        if self.serves_one() {
            return Ok(true);
        }
        let holds = sql("SELECT holder FROM leases
             WHERE name = 'leader' AND until >= (extract(epoch FROM clock_timestamp()) * 1000)::bigint");
        Ok(self.first(holds).await?.is_some())
    }

    async fn shared_time(&mut self) -> Result<Option<Timestamp>> {
        if self.serves_one() {
            return Ok(None);
        }
        let asked = sql("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS told");
        self.first(asked).await?.map(|row| row.get("told").map(Timestamp)).transpose()
    }

    async fn known_servers(&mut self, span: Millis) -> Result<Vec<KnownServer>> {
        if self.serves_one() {
            return Ok(vec![KnownServer { id: self.shared.chain.to_string(), leads: true, seen_at: None }]);
        }
        let select =
            sql("SELECT servers.id, servers.seen_at, CAST(leases.holder IS NOT NULL AS INTEGER)::bigint AS leads
             FROM servers LEFT JOIN leases ON leases.holder = servers.id AND leases.name = 'leader'
                  AND leases.until >= (extract(epoch FROM clock_timestamp()) * 1000)::bigint
             WHERE servers.seen_at >= (extract(epoch FROM clock_timestamp()) * 1000)::bigint - $1 ORDER BY servers.id");
        let known = |row: &Row| {
            let (id, leads) = (row.get("id")?, row.get::<i64>("leads")? != 0);
            Ok(KnownServer { id, leads, seen_at: Some(Timestamp(row.get("seen_at")?)) })
        };
        self.all(select.bind(span.0), known).await
    }

    async fn leave(&mut self) -> Result<()> {
        if self.serves_one() {
            return Ok(());
        }
        let chain = self.shared.chain.clone();
        self.run(sql("DELETE FROM leases WHERE holder = $1").bind(&*chain)).await?;
        self.run(sql("DELETE FROM servers WHERE id = $1").bind(&*chain)).await.map(drop)
    }
}

//! `servers` and `leases`, on PostgreSQL.

use app::domain::time::{Millis, Timestamp};
use async_trait::async_trait;

use crate::store::Result;
use crate::store::sql::statement::sql;
use crate::store::sql::{DbConnection, SqlRow, SqlSession};
use crate::store::system::servers::{RegisteredServer, ServerQueries};

/// The version of this program.
const VERSION: &str = env!("CARGO_PKG_VERSION");

impl SqlSession<'_> {
    /// Whether the engine serves one server only.
    pub(in crate::store::sql) fn is_single_server(&self) -> bool {
        matches!(self.db, DbConnection::Sqlite(_) | DbConnection::SqliteReader(_))
    }
}

#[async_trait]
impl ServerQueries for SqlSession<'_> {
    async fn heartbeat_server(&mut self, duration: Millis) -> Result<Vec<String>> {
        let chain = self.shared.chain.clone();
        if self.is_single_server() {
            return Ok(vec![chain.to_string()]);
        }
        let put = sql("INSERT INTO servers (id, seen_at, version, known_schema)
             VALUES ($1, (extract(epoch FROM clock_timestamp()) * 1000)::bigint, $2, $3)
             ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at");
        let known_schema = self.shared.known_schema;
        self.execute_one(put.bind(&*chain).bind(VERSION).bind(known_schema)).await?;
        // A server that was silent for a day does not return: each process has its own name.
        let delete_old = sql(
            "DELETE FROM servers WHERE seen_at < (extract(epoch FROM clock_timestamp()) * 1000)::bigint - 86400000",
        );
        self.execute(delete_old).await?;
        let select =
            sql("SELECT id FROM servers WHERE seen_at >= (extract(epoch FROM clock_timestamp()) * 1000)::bigint - $1");
        self.fetch_all(select.bind(duration.0), |row| row.get("id")).await
    }

    async fn try_lead(&mut self, duration: Millis) -> Result<bool> {
        if self.is_single_server() {
            return Ok(true);
        }
        let chain = self.shared.chain.clone();
        let acquire = sql("INSERT INTO leases (name, holder, until)
             VALUES ('leader', $1, (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $2)
             ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until
             WHERE leases.holder = excluded.holder OR leases.until < excluded.until - $2");
        Ok(self.execute(acquire.bind(&*chain).bind(duration.0)).await? == 1)
    }

    async fn has_leader(&mut self) -> Result<bool> {
        if self.is_single_server() {
            return Ok(true);
        }
        let select = sql("SELECT holder FROM leases
             WHERE name = 'leader' AND until >= (extract(epoch FROM clock_timestamp()) * 1000)::bigint");
        Ok(self.fetch_first(select).await?.is_some())
    }

    async fn database_time(&mut self) -> Result<Option<Timestamp>> {
        if self.is_single_server() {
            return Ok(None);
        }
        let select = sql("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms");
        self.fetch_first(select).await?.map(|row| row.get("now_ms").map(Timestamp)).transpose()
    }

    async fn registered_servers(&mut self, duration: Millis) -> Result<Vec<RegisteredServer>> {
        if self.is_single_server() {
            let (id, version) = (self.shared.chain.to_string(), Some(VERSION.to_owned()));
            return Ok(vec![RegisteredServer { id, is_leader: true, seen_at: None, version }]);
        }
        let select =
            sql("SELECT servers.id, servers.seen_at, servers.version, CAST(leases.holder IS NOT NULL AS INTEGER)::bigint AS leads
             FROM servers LEFT JOIN leases ON leases.holder = servers.id AND leases.name = 'leader'
                  AND leases.until >= (extract(epoch FROM clock_timestamp()) * 1000)::bigint
             WHERE servers.seen_at >= (extract(epoch FROM clock_timestamp()) * 1000)::bigint - $1 ORDER BY servers.id");
        let registered_server = |row: &SqlRow| {
            let (id, is_leader) = (row.get("id")?, row.get::<i64>("leads")? != 0);
            let (seen_at, version) = (Some(Timestamp(row.get("seen_at")?)), row.get("version")?);
            Ok(RegisteredServer { id, is_leader, seen_at, version })
        };
        self.fetch_all(select.bind(duration.0), registered_server).await
    }

    async fn remove_server(&mut self) -> Result<()> {
        if self.is_single_server() {
            return Ok(());
        }
        let chain = self.shared.chain.clone();
        self.execute(sql("DELETE FROM leases WHERE holder = $1").bind(&*chain)).await?;
        self.execute(sql("DELETE FROM servers WHERE id = $1").bind(&*chain)).await.map(drop)
    }
}

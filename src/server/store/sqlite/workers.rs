//! `workers`.

use std::ops::DerefMut;

use app::domain::ids::WorkerId;
use app::domain::time::Timestamp;
use app::domain::worker::{Kind, Worker};
use async_trait::async_trait;
use sqlx::SqliteConnection;

use super::rows::worker::{link_columns, worker as from_row};
use super::rows::{Named, to_json};
use super::session::Session;
use super::{exactly_one, failed};
use crate::store::Result;
use crate::store::workers::{StoredWorker, Workers};

#[async_trait]
impl<C: DerefMut<Target = SqliteConnection> + Send> Workers for Session<C> {
    async fn workers(&mut self) -> Result<Vec<StoredWorker>> {
        let rows = sqlx::query("SELECT * FROM workers ORDER BY name").fetch_all(self.db()).await.map_err(failed)?;
        // One broken row must not hide the others.
        let whole = |row: &_| from_row(row).inspect_err(|error| tracing::error!(%error, "a worker is left out")).ok();
        Ok(rows.iter().filter_map(whole).collect())
    }

    async fn worker(&mut self, id: &WorkerId) -> Result<Option<StoredWorker>> {
        let query = sqlx::query("SELECT * FROM workers WHERE id = ?").bind(id.as_str());
        query.fetch_optional(self.db()).await.map_err(failed)?.as_ref().map(from_row).transpose()
    }

    async fn worker_by_token(&mut self, digest: &str) -> Result<Option<WorkerId>> {
        let query = sqlx::query("SELECT id FROM workers WHERE token_digest = ?").bind(digest);
        let row = query.fetch_optional(self.db()).await.map_err(failed)?;
        row.as_ref().map(|row| Named::new(row, "workers", "id")?.worker_id("id")).transpose()
    }

    async fn insert_worker(&mut self, worker: &Worker, token_digest: &str) -> Result<()> {
        let link = link_columns(worker);
        let query = sqlx::query(
            "INSERT INTO workers (id, name, kind, labels, created_at, token_digest, link, link_since, local)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        );
        query
            .bind(worker.id.as_str())
            .bind(&worker.name)
            .bind(worker.kind.map(Kind::as_str))
            .bind(to_json(&worker.labels))
            .bind(worker.created_at.0)
            .bind(token_digest)
            .bind(link.word)
            .bind(link.since)
            .bind(worker.local)
            .execute(self.db())
            .await
            .map_err(failed)
            .and_then(|result| exactly_one(&result))
    }

    async fn update_worker(&mut self, before: &Worker, after: &Worker) -> Result<()> {
        let (old, new) = (link_columns(before), link_columns(after));
        let query = sqlx::query(
            "UPDATE workers SET name = ?, kind = ?, labels = ?, link = ?, link_since = ?, offline_cause = ?,
                    capability = ?, drain_since = ?, drain_reason = ?, spent_at = ?
             WHERE id = ? AND link = ? AND link_since = ? AND drain_since IS ?",
        );
        query
            .bind(&after.name)
            .bind(after.kind.map(Kind::as_str))
            .bind(to_json(&after.labels))
            .bind(new.word)
            .bind(new.since)
            .bind(new.cause)
            .bind(new.capability)
            .bind(after.drain.as_ref().map(|drain| drain.since.0))
            .bind(after.drain.as_ref().and_then(|drain| drain.reason.clone()))
            .bind(after.spent.map(|at| at.0))
            .bind(before.id.as_str())
            .bind(old.word)
            .bind(old.since)
            .bind(before.drain.as_ref().map(|drain| drain.since.0))
            .execute(self.db())
            .await
            .map_err(failed)
            .and_then(|result| exactly_one(&result))
    }

    async fn put_worker_token(&mut self, id: &WorkerId, token_digest: &str) -> Result<()> {
        let query =
            sqlx::query("UPDATE workers SET token_digest = ? WHERE id = ?").bind(token_digest).bind(id.as_str());
        query.execute(self.db()).await.map_err(failed).and_then(|result| exactly_one(&result))
    }

    async fn delete_worker(&mut self, id: &WorkerId) -> Result<()> {
        let query = sqlx::query("DELETE FROM workers WHERE id = ? AND link IN ('never_seen', 'offline')");
        let result = query.bind(id.as_str()).execute(self.db()).await.map_err(failed)?;
        exactly_one(&result)
    }

    async fn flush_last_seen(&mut self, seen: &[(WorkerId, Timestamp)]) -> Result<()> {
        for (id, at) in seen {
            let query = sqlx::query("UPDATE workers SET last_seen = ? WHERE id = ?").bind(at.0).bind(id.as_str());
            query.execute(self.db()).await.map_err(failed)?;
        }
        Ok(())
    }
}

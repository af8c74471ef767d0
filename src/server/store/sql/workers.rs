//! `workers`.

use app::domain::ids::WorkerId;
use app::domain::time::Timestamp;
use app::domain::worker::{Kind, Worker};
use async_trait::async_trait;

use super::pending::portions;
use super::rows::worker::{link_columns, worker as from_row};
use super::rows::{Named, to_json};
use super::statement::{sql, update};
use super::{Row, Session};
use crate::store::Result;
use crate::store::known::Change;
use crate::store::workers::{StoredWorker, Workers};

#[async_trait]
impl Workers for Session<'_> {
    async fn workers(&mut self) -> Result<Vec<StoredWorker>> {
        let rows = self.all(sql("SELECT * FROM workers ORDER BY name")).await?;
        Ok(whole_workers(&rows))
    }

    async fn worker(&mut self, id: &WorkerId) -> Result<Option<StoredWorker>> {
        // One whose row makes no sense is not known, and has to be an error.
        if let Some(Some(known)) = self.glance(|known| known.worker(id).map(|stored| StoredWorker::clone(stored))) {
            return Ok(Some(known));
        }
        let select = sql("SELECT * FROM workers WHERE id = $1").bind(id.as_str());
        self.first(select).await?.as_ref().map(from_row).transpose()
    }

    async fn worker_by_token(&mut self, digest: &str) -> Result<Option<WorkerId>> {
        if let Some(Some(known)) = self.glance(|known| known.worker_by_token(digest).cloned()) {
            return Ok(Some(known));
        }
        let row = self.first(sql("SELECT id FROM workers WHERE token_digest = $1").bind(digest)).await?;
        row.as_ref().map(|row| Named::new(row, "workers", "id")?.worker_id("id")).transpose()
    }

    async fn insert_worker(&mut self, worker: &Worker, token_digest: &str) -> Result<()> {
        let link = link_columns(worker);
        let insert =
            sql("INSERT INTO workers (id, name, kind, labels, created_at, token_digest, link, link_since, local,
                    ignores_reported)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)");
        let insert = insert.bind(worker.id.as_str()).bind(&worker.name).bind(worker.kind.map(Kind::as_str));
        let insert = insert.bind(to_json(&worker.labels)).bind(worker.created_at.0).bind(token_digest);
        let insert = insert.bind(link.word).bind(link.since).bind(worker.local);
        self.one(insert.bind(worker.ignores_reported)).await?;
        self.note(Change::Worker(Box::new(worker.clone())));
        self.note(Change::Token(worker.id.clone(), token_digest.to_owned()));
        Ok(())
    }

    async fn update_worker(&mut self, before: &Worker, after: &Worker) -> Result<()> {
        let (old, new) = (link_columns(before), link_columns(after));
        let update =
            sql("UPDATE workers SET name = $1, kind = $2, labels = $3, link = $4, link_since = $5, link_stream = $6,
                    offline_cause = $7, capability = $8, drain_since = $9, drain_reason = $10, drain_deadline = $11,
                    spent_at = $12, ignores_reported = $13
             WHERE id = $14 AND link = $15 AND link_since = $16 AND drain_since IS NOT DISTINCT FROM $17");
        let update = update.bind(&after.name).bind(after.kind.map(Kind::as_str)).bind(to_json(&after.labels));
        let update = update.bind(new.word).bind(new.since).bind(new.stream).bind(new.cause).bind(new.capability);
        let update = update
            .bind(after.drain.as_ref().map(|drain| drain.since.0))
            .bind(after.drain.as_ref().and_then(|drain| drain.reason.clone()))
            .bind(after.drain.as_ref().and_then(|drain| drain.deadline).map(|deadline| deadline.0))
            .bind(after.spent.map(|at| at.0))
            .bind(after.ignores_reported);
        let update = update.bind(before.id.as_str()).bind(old.word).bind(old.since);
        self.one(update.bind(before.drain.as_ref().map(|drain| drain.since.0))).await?;
        self.note(Change::Worker(Box::new(after.clone())));
        Ok(())
    }

    async fn put_worker_token(&mut self, id: &WorkerId, token_digest: &str) -> Result<()> {
        self.one(sql("UPDATE workers SET token_digest = $1 WHERE id = $2").bind(token_digest).bind(id.as_str()))
            .await?;
        self.note(Change::Token(id.clone(), token_digest.to_owned()));
        Ok(())
    }

    async fn delete_worker(&mut self, id: &WorkerId) -> Result<()> {
        let delete = sql("DELETE FROM workers WHERE id = $1 AND link IN ('never_seen', 'offline')");
        self.one(delete.bind(id.as_str())).await?;
        self.note(Change::Removed(id.clone()));
        Ok(())
    }

    async fn flush_last_seen(&mut self, seen: &[(WorkerId, Timestamp)]) -> Result<()> {
        let rows = seen.iter().map(|(id, at)| vec![id.as_str().into(), at.0.into()]).collect();
        // Another server may have heard of one later, and one may be gone.
        let key = "workers.id = v.id AND (workers.last_seen IS NULL OR workers.last_seen < v.seen)";
        let (places, columns) = (self.places(), ["id", "seen"]);
        let statement = |rows| update(places, "workers", &columns, "last_seen = v.seen", key, rows);
        for (statement, _) in portions(rows, statement) {
            self.run(statement).await?;
        }
        for (id, at) in seen {
            self.note(Change::Seen(id.clone(), *at));
        }
        Ok(())
    }
}

/// One broken row must not hide the others.
pub(super) fn whole_workers(rows: &[Row]) -> Vec<StoredWorker> {
    let whole = |row| from_row(row).inspect_err(|error| tracing::error!(%error, "a worker is left out")).ok();
    rows.iter().filter_map(whole).collect()
}

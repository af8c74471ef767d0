//! `workers`.

use app::domain::ids::WorkerId;
use app::domain::worker::credential::Credential;
use app::domain::worker::{Kind, Worker};
use async_trait::async_trait;

use super::Session;
use super::pending::portions;
use super::rows::to_json;
use super::rows::worker::{credential_columns, link_columns, networks_text, worker as from_row};
use super::statement::{Statement, sql, update};
use crate::store::Result;
use crate::store::known::Change;
use crate::store::workers::{Seen, StoredWorker, Workers};

#[async_trait]
impl Workers for Session<'_> {
    async fn workers(&mut self) -> Result<Vec<StoredWorker>> {
        self.whole(sql("SELECT * FROM workers ORDER BY name"), from_row).await
    }

    async fn worker(&mut self, id: &WorkerId) -> Result<Option<StoredWorker>> {
        // One whose row makes no sense is not known, and has to be an error.
        if let Some(Some(known)) = self.glance(|known| known.worker(id).map(|stored| StoredWorker::clone(stored))) {
            return Ok(Some(known));
        }
        let select = sql("SELECT * FROM workers WHERE id = $1").bind(id.as_str());
        self.first(select).await?.as_ref().map(from_row).transpose()
    }

    async fn worker_by_token(&mut self, digest: &str) -> Result<Option<StoredWorker>> {
        let known = self.glance(|known| known.worker_by_token(digest).map(|stored| StoredWorker::clone(stored)));
        if let Some(Some(known)) = known {
            return Ok(Some(known));
        }
        let select =
            sql("SELECT * FROM workers WHERE token_digest = $1 OR old_token_digest = $1 OR session_digest = $1");
        self.first(select.bind(digest)).await?.as_ref().map(from_row).transpose()
    }

    async fn insert_worker(&mut self, worker: &Worker, credential: &Credential) -> Result<()> {
        let link = link_columns(worker);
        let insert =
            sql("INSERT INTO workers (id, name, kind, labels, created_at, token_digest, link, link_since, local,
                    ignores_reported, networks, token_expires_at, old_token_digest, old_token_ends_at,
                    token_made_at, token_made_by, token_unused_ends_at, session_digest, session_token, allows_older)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)");
        let insert = insert.bind(worker.id.as_str()).bind(&worker.name).bind(worker.kind.map(Kind::as_str));
        let insert = insert.bind(to_json(&worker.labels)).bind(worker.created_at.0).bind(&credential.digest);
        let insert = insert.bind(link.word).bind(link.since).bind(worker.local);
        let insert = insert.bind(worker.ignores_reported).bind(networks_text(&worker.networks));
        let insert = credential_columns(credential).into_iter().fold(insert, Statement::bind);
        self.one(insert.bind(worker.allows_older)).await?;
        self.note(Change::Worker(Box::new(worker.clone())));
        self.note(Change::Credential(worker.id.clone(), credential.clone()));
        Ok(())
    }

    async fn update_worker(&mut self, before: &Worker, after: &Worker) -> Result<()> {
        let (old, new) = (link_columns(before), link_columns(after));
        let update =
            sql("UPDATE workers SET name = $1, kind = $2, labels = $3, link = $4, link_since = $5, link_stream = $6,
                    offline_cause = $7, capability = $8, drain_since = $9, drain_reason = $10, drain_deadline = $11,
                    spent_at = $12, ignores_reported = $13, networks = $14, conflict_at = $15, conflict_host = $16,
                    astray_job = $17, lease = $18, allows_older = $19, finishing_since = $20
             WHERE id = $21 AND link = $22 AND link_since = $23 AND drain_since IS NOT DISTINCT FROM $24");
        let update = update.bind(&after.name).bind(after.kind.map(Kind::as_str)).bind(to_json(&after.labels));
        let update = update.bind(new.word).bind(new.since).bind(new.stream).bind(new.cause).bind(new.capability);
        let update = update
            .bind(after.drain.as_ref().map(|drain| drain.since.0))
            .bind(after.drain.as_ref().and_then(|drain| drain.reason.clone()))
            .bind(after.drain.as_ref().and_then(|drain| drain.deadline).map(|deadline| deadline.0))
            .bind(after.spent.map(|at| at.0))
            .bind(after.ignores_reported)
            .bind(networks_text(&after.networks))
            .bind(after.conflict.as_ref().map(|conflict| conflict.at.0))
            .bind(after.conflict.as_ref().map(|conflict| conflict.host.clone()))
            .bind(after.astray.as_ref().map(ToString::to_string))
            .bind(after.lease.map(|lease| lease.0))
            .bind(after.allows_older)
            .bind(after.finishing.map(|since| since.0));
        let update = update.bind(before.id.as_str()).bind(old.word).bind(old.since);
        self.one(update.bind(before.drain.as_ref().map(|drain| drain.since.0))).await?;
        self.note(Change::Worker(Box::new(after.clone())));
        Ok(())
    }

    async fn put_credential(&mut self, id: &WorkerId, credential: &Credential) -> Result<()> {
        let update = sql("UPDATE workers SET token_digest = $1, token_expires_at = $2, old_token_digest = $3,
                    old_token_ends_at = $4, token_made_at = $5, token_made_by = $6, token_unused_ends_at = $7,
                    session_digest = $8, session_token = $9
             WHERE id = $10");
        let update = credential_columns(credential).into_iter().fold(update.bind(&credential.digest), Statement::bind);
        self.one(update.bind(id.as_str())).await?;
        self.note(Change::Credential(id.clone(), credential.clone()));
        Ok(())
    }

    async fn delete_worker(&mut self, id: &WorkerId) -> Result<()> {
        let delete = sql("DELETE FROM workers WHERE id = $1 AND link IN ('never_seen', 'offline')");
        self.one(delete.bind(id.as_str())).await?;
        self.note(Change::Removed(id.clone()));
        Ok(())
    }

    async fn flush_last_seen(&mut self, seen: &[(WorkerId, Seen)]) -> Result<()> {
        let from = |seen: &Seen| seen.from.map(|from| from.to_string());
        let row = |(id, seen): &(WorkerId, Seen)| vec![id.as_str().into(), seen.at.0.into(), from(seen).into()];
        let rows = seen.iter().map(row).collect();
        // Another server may have heard of one later, and one may be gone.
        let key = "workers.id = v.id AND (workers.last_seen IS NULL OR workers.last_seen < v.seen)";
        let (places, columns) = (self.places(), ["id", "seen", "seen_from"]);
        let statement =
            |rows| update(places, "workers", &columns, "last_seen = v.seen, last_seen_from = v.seen_from", key, rows);
        for (statement, _) in portions(rows, statement) {
            self.run(statement).await?;
        }
        for (id, seen) in seen {
            self.note(Change::Seen(id.clone(), *seen));
        }
        Ok(())
    }
}

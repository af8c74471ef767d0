//! `workers`.

use app::domain::ids::WorkerId;
use app::domain::worker::credential::WorkerCredential;
use app::domain::worker::{Worker, WorkerKind};
use async_trait::async_trait;

use super::SqlSession;
use super::rows::to_json;
use super::rows::worker::{connection_columns, credential_columns, networks_text, worker_from as from_row};
use super::statement::{Statement, sql, update};
use super::write_batch::batched;
use crate::store::Result;
use crate::store::cache::state::StateChange;
use crate::store::workers::{LastContact, StoredWorker, WorkerQueries};

#[async_trait]
impl WorkerQueries for SqlSession<'_> {
    async fn workers(&mut self) -> Result<Vec<StoredWorker>> {
        self.fetch_valid(sql("SELECT * FROM workers ORDER BY name"), from_row).await
    }

    async fn worker(&mut self, id: &WorkerId) -> Result<Option<StoredWorker>> {
        // A corrupt row is not in memory, and must be an error.
        if let Some(Some(stored)) =
            self.try_read_state(|fleet_state| fleet_state.worker(id).map(|stored| StoredWorker::clone(stored)))
        {
            return Ok(Some(stored));
        }
        let select = sql("SELECT * FROM workers WHERE id = $1").bind(id.as_str());
        self.fetch_first(select).await?.as_ref().map(from_row).transpose()
    }

    async fn worker_by_token(&mut self, digest: &str) -> Result<Option<StoredWorker>> {
        let cached = self.try_read_state(|fleet_state| {
            fleet_state.worker_by_token(digest).map(|stored| StoredWorker::clone(stored))
        });
        if let Some(Some(stored)) = cached {
            return Ok(Some(stored));
        }
        let select =
            sql("SELECT * FROM workers WHERE token_digest = $1 OR old_token_digest = $1 OR session_digest = $1");
        self.fetch_first(select.bind(digest)).await?.as_ref().map(from_row).transpose()
    }

    async fn insert_worker(&mut self, worker: &Worker, credential: &WorkerCredential) -> Result<()> {
        let connection = connection_columns(worker);
        let insert =
            sql("INSERT INTO workers (id, name, kind, labels, created_at, token_digest, connection, connection_since, local,
                    ignores_reported, networks, token_expires_at, old_token_digest, old_token_ends_at,
                    token_created_at, token_created_by, token_unused_ends_at, session_digest, session_token, allows_older)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)");
        let insert = insert.bind(worker.id.as_str()).bind(&worker.name).bind(worker.kind.map(WorkerKind::as_str));
        let insert = insert.bind(to_json(&worker.labels)).bind(worker.created_at.0).bind(&credential.digest);
        let insert = insert.bind(connection.state).bind(connection.since).bind(worker.local);
        let insert = insert.bind(worker.ignores_reported_labels).bind(networks_text(&worker.networks));
        let insert = credential_columns(credential).into_iter().fold(insert, Statement::bind);
        self.execute_one(insert.bind(worker.allows_older_agents)).await?;
        self.record_change(StateChange::Worker(Box::new(worker.clone())));
        self.record_change(StateChange::Credential(worker.id.clone(), credential.clone()));
        Ok(())
    }

    async fn update_worker(&mut self, before: &Worker, after: &Worker) -> Result<()> {
        let (old, new) = (connection_columns(before), connection_columns(after));
        let update =
            sql("UPDATE workers SET name = $1, kind = $2, labels = $3, connection = $4, connection_since = $5, connection_stream = $6,
                    offline_cause = $7, capability = $8, drain_since = $9, drain_reason = $10, drain_deadline = $11,
                    retired_at = $12, ignores_reported = $13, networks = $14, conflict_at = $15, conflict_host = $16,
                    unassigned_job = $17, lease = $18, allows_older = $19, finishing_since = $20, lost_jobs = $21
             WHERE id = $22 AND connection = $23 AND connection_since = $24 AND drain_since IS NOT DISTINCT FROM $25");
        let update = update.bind(&after.name).bind(after.kind.map(WorkerKind::as_str)).bind(to_json(&after.labels));
        let update = update.bind(new.state).bind(new.since).bind(new.stream).bind(new.cause).bind(new.capability);
        let update = update
            .bind(after.drain.as_ref().map(|drain| drain.since.0))
            .bind(after.drain.as_ref().and_then(|drain| drain.reason.clone()))
            .bind(after.drain.as_ref().and_then(|drain| drain.deadline).map(|deadline| deadline.0))
            .bind(after.retired_at.map(|at| at.0))
            .bind(after.ignores_reported_labels)
            .bind(networks_text(&after.networks))
            .bind(after.token_conflict.as_ref().map(|conflict| conflict.at.0))
            .bind(after.token_conflict.as_ref().map(|conflict| conflict.host.clone()))
            .bind(after.unassigned_run.as_ref().map(ToString::to_string))
            .bind(after.lease_duration.map(|lease| lease.0))
            .bind(after.allows_older_agents)
            .bind(after.finishing_since.map(|since| since.0))
            .bind(new.lost_jobs);
        let update = update.bind(before.id.as_str()).bind(old.state).bind(old.since);
        self.execute_one(update.bind(before.drain.as_ref().map(|drain| drain.since.0))).await?;
        self.record_change(StateChange::Worker(Box::new(after.clone())));
        Ok(())
    }

    async fn put_credential(&mut self, id: &WorkerId, credential: &WorkerCredential) -> Result<()> {
        let update = sql("UPDATE workers SET token_digest = $1, token_expires_at = $2, old_token_digest = $3,
                    old_token_ends_at = $4, token_created_at = $5, token_created_by = $6, token_unused_ends_at = $7,
                    session_digest = $8, session_token = $9
             WHERE id = $10");
        let update = credential_columns(credential).into_iter().fold(update.bind(&credential.digest), Statement::bind);
        self.execute_one(update.bind(id.as_str())).await?;
        self.record_change(StateChange::Credential(id.clone(), credential.clone()));
        Ok(())
    }

    async fn delete_worker(&mut self, id: &WorkerId) -> Result<()> {
        let delete = sql(
            "DELETE FROM workers WHERE id = $1 AND (connection IN ('never_seen', 'offline') OR offline_cause = 'lost')",
        );
        self.execute_one(delete.bind(id.as_str())).await?;
        self.record_change(StateChange::WorkerRemoved(id.clone()));
        Ok(())
    }

    async fn flush_last_seen(&mut self, contacts: &[(WorkerId, LastContact)]) -> Result<()> {
        let from = |contact: &LastContact| contact.from.map(|from| from.to_string());
        let row = |(id, contact): &(WorkerId, LastContact)| {
            vec![id.as_str().into(), contact.at.0.into(), from(contact).into()]
        };
        let rows = contacts.iter().map(row).collect();
        // Another server may have recorded a later contact, and the worker may be deleted.
        let key = "workers.id = v.id AND (workers.last_seen IS NULL OR workers.last_seen < v.seen)";
        let (placeholders, columns) = (self.placeholder_style(), ["id", "seen", "seen_from"]);
        let statement = |rows| {
            update(placeholders, "workers", &columns, "last_seen = v.seen, last_seen_from = v.seen_from", key, rows)
        };
        for (statement, _) in batched(placeholders, rows, statement) {
            self.execute(statement).await?;
        }
        for (id, contact) in contacts {
            self.record_change(StateChange::Contact(id.clone(), *contact));
        }
        Ok(())
    }
}

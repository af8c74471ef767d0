//! The one writer. Use cases that wait at the same time share one transaction, and so one flush to disk.
//!
//! A refusal or a conflict inside a group has written nothing of its own (use cases decide before they write, and a
//! guarded write that meets no row writes none), so the others go on. If the database itself fails, the group is
//! rolled back and its members are run again one by one, so that one cannot take the others along.

use std::future::Future;
use std::sync::Arc;

use sqlx::{Connection, SqliteConnection};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::super::{Result, StoreError, Work};
use super::failed;
use super::session::Session;

const QUEUE: usize = 1_024;
const GROUP: usize = 128;

struct Job {
    work: Work,
    answer: oneshot::Sender<Result<()>>,
}

/// A handle to the writer's task.
pub struct Writer {
    queue: std::sync::Mutex<Option<mpsc::Sender<Job>>>,
    task: std::sync::Mutex<Option<JoinHandle<()>>>,
}

impl Writer {
    /// Takes the connection into a task of its own.
    pub fn start(connection: SqliteConnection, chain: Arc<str>) -> Self {
        let (queue, jobs) = mpsc::channel(QUEUE);
        let task = tokio::spawn(run(connection, chain, jobs));
        Self { queue: std::sync::Mutex::new(Some(queue)), task: std::sync::Mutex::new(Some(task)) }
    }

    /// Queues `work`; the answer comes when its transaction is durable, or failed.
    pub fn submit(&self, work: Work) -> impl Future<Output = Result<()>> + use<> {
        let queue = self.queue.lock().expect("no panic while it is held").clone();
        async move {
            let closed = || StoreError::Unavailable("the server is shutting down".to_owned());
            let (answer, answered) = oneshot::channel();
            queue.ok_or_else(closed)?.send(Job { work, answer }).await.map_err(|_| closed())?;
            answered.await.map_err(|_| closed())?
        }
    }

    /// Finishes what is queued and closes the connection.
    pub async fn stop(&self) {
        self.queue.lock().expect("no panic while it is held").take();
        let task = self.task.lock().expect("no panic while it is held").take();
        if let Some(task) = task
            && let Err(error) = task.await
        {
            tracing::error!(%error, "the database writer ended badly");
        }
    }
}

async fn run(mut connection: SqliteConnection, chain: Arc<str>, mut jobs: mpsc::Receiver<Job>) {
    let mut group = Vec::with_capacity(GROUP);
    while jobs.recv_many(&mut group, GROUP).await > 0 {
        match transact(&mut connection, &chain, &group).await {
            Ok(outcomes) => {
                for (job, outcome) in group.drain(..).zip(outcomes) {
                    // Whoever asked may be gone; what was written stays.
                    let _ = job.answer.send(outcome);
                }
            }
            Err(error) if group.len() == 1 => {
                for job in group.drain(..) {
                    let _ = job.answer.send(Err(error.clone()));
                }
            }
            Err(error) => {
                tracing::warn!(%error, members = group.len(), "a group commit failed; running its members one by one");
                for job in group.drain(..) {
                    let alone = transact(&mut connection, &chain, std::slice::from_ref(&job)).await;
                    let outcome = alone.and_then(|outcomes| outcomes.into_iter().next().unwrap_or(Ok(())));
                    let _ = job.answer.send(outcome);
                }
            }
        }
    }
    if let Err(error) = connection.close().await {
        tracing::warn!(%error, "the database did not close cleanly; it recovers at the next start");
    }
}

/// Runs a group in one transaction. The outer error is the database's: nothing of the group was written.
async fn transact(connection: &mut SqliteConnection, chain: &Arc<str>, group: &[Job]) -> Result<Vec<Result<()>>> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await.map_err(failed)?;
    let mut outcomes = Vec::with_capacity(group.len());
    for job in group {
        let mut session = Session::new(&mut *transaction, Arc::clone(chain));
        match (job.work)(&mut session).await {
            Err(error @ (StoreError::Unavailable(_) | StoreError::Inconsistent { .. })) => return Err(error),
            // A conflict after a first write must not be committed by halves.
            Err(StoreError::Conflict) if group.len() > 1 => return Err(StoreError::Conflict),
            Err(StoreError::Conflict) => {
                transaction.rollback().await.map_err(failed)?;
                return Ok(vec![Err(StoreError::Conflict)]);
            }
            outcome => outcomes.push(outcome),
        }
    }
    transaction.commit().await.map_err(failed)?;
    Ok(outcomes)
}

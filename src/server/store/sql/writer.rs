//! The one writer. Use cases that wait at the same time share one transaction, and so one flush to disk.
//!
//! A refusal inside a group has written nothing of its own (use cases decide before they write), so the others go on.
//! If the database itself fails, or a guarded write meets a row that has changed, the group is rolled back and its
//! members are run again one by one, so that one cannot take the others along.

use std::future::Future;
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::{Db, Session};
use crate::store::{Result, StoreError, Work};

const QUEUE: usize = 1_024;
const GROUP: usize = 128;

/// A use case that waits to be written.
pub struct Member {
    work: Work,
    answer: oneshot::Sender<Result<()>>,
}

/// How each member fared, in order. The outer error is the database's: nothing of the group was written.
pub type Outcomes = Result<Vec<Result<()>>>;

/// What runs a group in one transaction.
pub trait Engine: Send + 'static {
    /// Runs the members with [`run`] between `BEGIN` and `COMMIT`, or `ROLLBACK` if it says so.
    fn transact<'a>(&'a mut self, group: &'a [Member]) -> BoxFuture<'a, Outcomes>;

    /// Closes the connection.
    fn close(self) -> BoxFuture<'static, ()>;
}

/// What to do with a transaction in which a group has run.
pub enum Ending {
    /// Keep what was written.
    Commit(Vec<Result<()>>),
    /// Drop it; it was one member's, who was late.
    RollBack,
}

/// Runs the members one after another inside a transaction that is open.
pub async fn run(db: Db<'_>, chain: &Arc<str>, group: &[Member]) -> Result<Ending> {
    let mut session = Session::new(db, Arc::clone(chain));
    let mut outcomes = Vec::with_capacity(group.len());
    for member in group {
        match (member.work)(&mut session).await {
            Err(error @ (StoreError::Unavailable(_) | StoreError::Inconsistent { .. })) => return Err(error),
            // What it wrote before must not be committed by halves.
            Err(StoreError::Conflict) if group.len() > 1 => return Err(StoreError::Conflict),
            Err(StoreError::Conflict) => return Ok(Ending::RollBack),
            outcome => outcomes.push(outcome),
        }
    }
    Ok(Ending::Commit(outcomes))
}

/// A handle to the writer's task.
pub struct Writer {
    queue: Mutex<Option<mpsc::Sender<Member>>>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Writer {
    /// Takes the engine into a task of its own.
    pub fn start(engine: impl Engine) -> Self {
        let (queue, members) = mpsc::channel(QUEUE);
        Self { queue: Mutex::new(Some(queue)), task: Mutex::new(Some(tokio::spawn(serve(engine, members)))) }
    }

    /// Queues `work`; the answer comes when its transaction is durable, or failed.
    pub fn submit(&self, work: Work) -> impl Future<Output = Result<()>> + use<> {
        let queue = self.queue.lock().expect("no panic while it is held").clone();
        async move {
            let closed = || StoreError::Unavailable("the server is shutting down".to_owned());
            let (answer, answered) = oneshot::channel();
            queue.ok_or_else(closed)?.send(Member { work, answer }).await.map_err(|_| closed())?;
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

async fn serve(mut engine: impl Engine, mut members: mpsc::Receiver<Member>) {
    let mut group = Vec::with_capacity(GROUP);
    while members.recv_many(&mut group, GROUP).await > 0 {
        match engine.transact(&group).await {
            Ok(outcomes) => {
                for (member, outcome) in group.drain(..).zip(outcomes) {
                    // Whoever asked may be gone; what was written stays.
                    let _ = member.answer.send(outcome);
                }
            }
            Err(error) if group.len() == 1 => {
                for member in group.drain(..) {
                    let _ = member.answer.send(Err(error.clone()));
                }
            }
            Err(error) => {
                tracing::warn!(%error, members = group.len(), "a group commit failed; running its members one by one");
                for member in group.drain(..) {
                    let alone = engine.transact(std::slice::from_ref(&member)).await;
                    let outcome = alone.and_then(|outcomes| outcomes.into_iter().next().unwrap_or(Ok(())));
                    let _ = member.answer.send(outcome);
                }
            }
        }
    }
    engine.close().await;
}

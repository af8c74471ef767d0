//! The one writer. Use cases that wait at the same time share one transaction, and so one flush to disk.
//!
//! A refusal inside a group has mostly written nothing of its own (use cases decide before they write), and the others
//! go on. If it has, or a statement failed, or a guarded write meets a row that has changed, the group is rolled back and
//! its members are run again one by one, so that one cannot take the others along.

use std::future::Future;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::mirror::Mirror;
use super::{Db, Session, Shared};
use crate::store::group::{Ended, Hooks};
use crate::store::{Result, StoreError, Work};

const QUEUE: usize = 1_024;
const GROUP: usize = 128;

/// A use case that waits to be written.
pub struct Member {
    work: Work,
    answer: oneshot::Sender<Result<()>>,
}

/// A group that was committed.
pub struct Committed {
    /// How each member fared, in order.
    pub outcomes: Vec<Result<()>>,
    /// What the members changed.
    pub topics: Vec<String>,
    /// Whether anything was written.
    pub wrote: bool,
}

/// Use cases that are committed together.
pub struct Group<'a> {
    members: &'a [Member],
    hooks: Option<&'a Hooks>,
    /// What the writer knows; an engine that serves several servers says whether it still holds.
    pub mirror: &'a mut Mirror,
    shared: &'a Arc<Shared>,
}

/// What runs a group in one transaction.
pub trait Engine: Send + 'static {
    /// Runs the group between `BEGIN` and `COMMIT`, or `ROLLBACK` if it says so.
    ///
    /// An error is the database's: nothing of the group was written.
    fn transact<'a>(&'a mut self, group: Group<'a>) -> BoxFuture<'a, Result<Ending>>;

    /// Closes the connection.
    fn close(self) -> BoxFuture<'static, ()>;
}

/// What to do with a transaction in which a group has run.
pub enum Ending {
    /// Keep what was written.
    Commit(Committed),
    /// Drop it; it was one member's, who fared so.
    RollBack(StoreError),
}

impl Group<'_> {
    /// Runs the members one after another inside a transaction that is open.
    pub async fn run(self, db: Db<'_>) -> Result<Ending> {
        let mut session = Session::writing(db, Arc::clone(self.shared), self.mirror);
        let alone = self.members.len() == 1;
        let mut outcomes = Vec::with_capacity(self.members.len());
        for member in self.members {
            let before = session.writes;
            let outcome = (member.work)(&mut session).await;
            // What it wrote before must not be committed by halves, nor by a transaction in which a statement failed.
            let late = outcome == Err(StoreError::Conflict);
            let undo = late || session.failed || (outcome.is_err() && session.writes > before);
            match outcome {
                Err(error @ (StoreError::Unavailable(_) | StoreError::Inconsistent { .. })) => return Err(error),
                outcome if undo && alone => return Ok(Ending::RollBack(outcome.err().unwrap_or(StoreError::Conflict))),
                _ if undo => return Err(StoreError::Conflict),
                outcome => outcomes.push(outcome),
            }
        }
        match Self::finish(&mut session, self.hooks).await {
            Err(StoreError::Conflict) if alone => Ok(Ending::RollBack(StoreError::Conflict)),
            finished => {
                let topics = finished?;
                Ok(Ending::Commit(Committed { outcomes, topics, wrote: session.writes > 0 }))
            }
        }
    }

    /// Plans, if a member asked for it, and writes what is pending; returns what is to be rung.
    async fn finish(session: &mut Session<'_>, hooks: Option<&Hooks>) -> Result<Vec<String>> {
        if let (true, Some(hooks)) = (session.wants_plan, hooks) {
            (hooks.plan)(session).await?;
        }
        session.settle().await?;
        session.keep_head().await?;
        session.ring().await
    }
}

/// A handle to the writer's task.
pub struct Writer {
    queue: Mutex<Option<mpsc::Sender<Member>>>,
    task: Mutex<Option<JoinHandle<()>>>,
    hooks: Arc<OnceLock<Hooks>>,
}

impl Writer {
    /// Takes the engine into a task of its own.
    pub fn start(engine: impl Engine, shared: Arc<Shared>) -> Self {
        let (queue, members) = mpsc::channel(QUEUE);
        let hooks = Arc::new(OnceLock::new());
        let writing = Writing { engine, shared, mirror: Mirror::default(), hooks: Arc::clone(&hooks) };
        let task = tokio::spawn(writing.serve(members));
        Self { queue: Mutex::new(Some(queue)), task: Mutex::new(Some(task)), hooks }
    }

    /// Sets what is done around each group; the first time counts.
    pub fn attach(&self, hooks: Hooks) {
        if self.hooks.set(hooks).is_err() {
            tracing::warn!("hooks were attached twice; the first ones stay");
        }
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

/// The writer's task.
struct Writing<E> {
    engine: E,
    shared: Arc<Shared>,
    mirror: Mirror,
    hooks: Arc<OnceLock<Hooks>>,
}

impl<E: Engine> Writing<E> {
    async fn serve(mut self, mut queue: mpsc::Receiver<Member>) {
        let mut members = Vec::with_capacity(GROUP);
        while queue.recv_many(&mut members, GROUP).await > 0 {
            match self.commit(&members).await {
                Err(error) if members.len() > 1 => {
                    tracing::warn!(%error, members = members.len(), "a group failed; running its members one by one");
                    for member in members.drain(..) {
                        let alone = self.commit(std::slice::from_ref(&member)).await;
                        self.answer(vec![member], alone);
                    }
                }
                outcome => self.answer(std::mem::take(&mut members), outcome),
            }
        }
        self.engine.close().await;
    }

    async fn commit(&mut self, members: &[Member]) -> Result<Committed> {
        let begun = Instant::now();
        let group = Group { members, hooks: self.hooks.get(), mirror: &mut self.mirror, shared: &self.shared };
        let ending = self.engine.transact(group).await;
        if let Some(hooks) = self.hooks.get() {
            (hooks.witness)(match &ending {
                Ok(Ending::Commit(Committed { wrote, .. })) => {
                    Ended::Committed { took: begun.elapsed(), members: members.len(), wrote: *wrote }
                }
                Ok(Ending::RollBack(_)) | Err(_) => Ended::Undone,
            });
        }
        match ending {
            Ok(Ending::Commit(committed)) => {
                self.mirror.publish(&self.shared.board);
                Ok(committed)
            }
            Ok(Ending::RollBack(error)) => {
                self.mirror.empty();
                Ok(Committed { outcomes: vec![Err(error)], topics: Vec::new(), wrote: false })
            }
            // It may have been committed all the same.
            Err(error) => {
                self.mirror.empty();
                self.shared.board.wipe();
                Err(error)
            }
        }
    }

    /// Rings for what was committed, then tells each member how it fared.
    fn answer(&self, members: Vec<Member>, outcome: Result<Committed>) {
        let outcomes = match outcome {
            Ok(Committed { outcomes, topics, .. }) => {
                if let Some(hooks) = self.hooks.get() {
                    (hooks.bell)(&topics);
                }
                outcomes
            }
            Err(error) => members.iter().map(|_| Err(error.clone())).collect(),
        };
        for (member, outcome) in members.into_iter().zip(outcomes) {
            // Whoever asked may be gone; what was written stays.
            let _ = member.answer.send(outcome);
        }
    }
}

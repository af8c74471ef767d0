//! The only writer. Use cases that wait at the same time share one transaction, and so one flush to disk. Those that
//! arrive while a group waits for the groups of other servers join it.
//!
//! A rejection inside a group has usually written nothing (use cases decide before they write), and the others
//! continue. If it has, or a statement failed, or a guarded write finds a changed row, the group is rolled back and its
//! members are run again one by one, so that one cannot fail the others.

use std::future::Future;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::{DbConnection, SqlSession, StoreContext};
use crate::store::cache::writer::WriterCache;
use crate::store::commit_group::{GroupHooks, GroupResult};
use crate::store::{Result, StoreError, TransactionWork};

const QUEUE_CAPACITY: usize = 1_024;
const MAX_GROUP_SIZE: usize = 128;

pub struct QueuedWork {
    work: TransactionWork,
    reply: oneshot::Sender<Result<()>>,
}

/// A committed group.
pub struct CommittedGroup {
    /// The result of each member, in order.
    pub outcomes: Vec<Result<()>>,
    /// The changed topics.
    pub topics: Vec<String>,
    /// Whether anything was written.
    pub has_writes: bool,
}

/// Use cases that are committed together.
pub struct WriteGroup<'a> {
    members: &'a mut Vec<QueuedWork>,
    /// More members; `None` if they run one by one.
    queue: Option<&'a mut mpsc::Receiver<QueuedWork>>,
    hooks: Option<&'a GroupHooks>,
    cache: &'a mut WriterCache,
    shared: &'a Arc<StoreContext>,
}

/// Runs a group in one transaction.
pub trait WriteEngine: Send + 'static {
    /// Runs the group between `BEGIN` and `COMMIT`, or `ROLLBACK` if it says so.
    ///
    /// An error is the database's: nothing of the group was written.
    fn run_group<'a>(&'a mut self, group: WriteGroup<'a>) -> BoxFuture<'a, Result<GroupEnding>>;

    fn close(self) -> BoxFuture<'static, ()>;
}

/// How to end a group's transaction.
pub enum GroupEnding {
    /// Commit.
    Commit(CommittedGroup),
    /// Roll back, with the result of its only member.
    RollBack(StoreError),
}

impl WriteGroup<'_> {
    /// Runs the members one after another inside an open transaction.
    pub async fn run(self, db: DbConnection<'_>) -> Result<GroupEnding> {
        let mut session = SqlSession::for_writer(db, Arc::clone(self.shared), self.cache);
        session.begin_group().await?;
        if let Some(queue) = self.queue {
            fill(self.members, queue);
        }
        let is_single = self.members.len() == 1;
        let mut outcomes = Vec::with_capacity(self.members.len());
        for member in self.members.iter() {
            let before = session.writes;
            let outcome = (member.work)(&mut session).await;
            // Its earlier writes must not be committed in part, nor by a transaction with a failed statement.
            let is_conflict = outcome == Err(StoreError::Conflict);
            let must_roll_back = is_conflict || session.has_failed || (outcome.is_err() && session.writes > before);
            match outcome {
                Err(error @ (StoreError::Unavailable(_) | StoreError::CorruptRow { .. })) => return Err(error),
                outcome if must_roll_back && is_single => {
                    return Ok(GroupEnding::RollBack(outcome.err().unwrap_or(StoreError::Conflict)));
                }
                _ if must_roll_back => return Err(StoreError::Conflict),
                outcome => outcomes.push(outcome),
            }
        }
        match Self::finish(&mut session, self.hooks).await {
            Err(StoreError::Conflict) if is_single => Ok(GroupEnding::RollBack(StoreError::Conflict)),
            result => {
                let topics = result?;
                Ok(GroupEnding::Commit(CommittedGroup { outcomes, topics, has_writes: session.writes > 0 }))
            }
        }
    }

    /// Plans, if a member requested it, and flushes the batch; returns the topics to notify.
    async fn finish(session: &mut SqlSession<'_>, hooks: Option<&GroupHooks>) -> Result<Vec<String>> {
        if let (true, Some(hooks)) = (session.planning_requested, hooks) {
            (hooks.plan)(session).await?;
        }
        session.flush().await?;
        session.write_head().await?;
        session.end_group().await
    }
}

/// Adds what is queued to a group.
fn fill(members: &mut Vec<QueuedWork>, queue: &mut mpsc::Receiver<QueuedWork>) {
    while members.len() < MAX_GROUP_SIZE
        && let Ok(queued) = queue.try_recv()
    {
        members.push(queued);
    }
}

/// A handle to the writer's task.
pub struct WriterHandle {
    queue: Mutex<Option<mpsc::Sender<QueuedWork>>>,
    task: Mutex<Option<JoinHandle<()>>>,
    hooks: Arc<OnceLock<GroupHooks>>,
}

impl WriterHandle {
    /// Starts a task with this engine.
    pub fn start(engine: impl WriteEngine, shared: Arc<StoreContext>) -> Self {
        let (queue, members) = mpsc::channel(QUEUE_CAPACITY);
        let hooks = Arc::new(OnceLock::new());
        let writer = WriterTask { engine, shared, cache: WriterCache::default(), hooks: Arc::clone(&hooks) };
        let task = tokio::spawn(writer.run(members));
        Self { queue: Mutex::new(Some(queue)), task: Mutex::new(Some(task)), hooks }
    }

    /// Sets the hooks around each group; only the first call counts.
    pub fn set_hooks(&self, hooks: GroupHooks) {
        if self.hooks.set(hooks).is_err() {
            tracing::warn!("database writer: hooks were set twice; keeping the first ones");
        }
    }

    /// Queues `work`; the future completes when its transaction is durable, or failed.
    pub fn submit(&self, work: TransactionWork) -> impl Future<Output = Result<()>> + use<> {
        let queue = self.queue.lock().expect("no panic while it is held").clone();
        async move {
            let closed = || StoreError::Unavailable("the server is shutting down".to_owned());
            let (reply, receiver) = oneshot::channel();
            queue.ok_or_else(closed)?.send(QueuedWork { work, reply }).await.map_err(|_| closed())?;
            receiver.await.map_err(|_| closed())?
        }
    }

    /// Finishes queued work and closes the connection.
    pub async fn stop(&self) {
        self.queue.lock().expect("no panic while it is held").take();
        let task = self.task.lock().expect("no panic while it is held").take();
        if let Some(task) = task
            && let Err(error) = task.await
        {
            tracing::error!(%error, "database writer: failed");
        }
    }
}

/// The writer's task.
struct WriterTask<E> {
    engine: E,
    shared: Arc<StoreContext>,
    cache: WriterCache,
    hooks: Arc<OnceLock<GroupHooks>>,
}

impl<E: WriteEngine> WriterTask<E> {
    async fn run(mut self, mut queue: mpsc::Receiver<QueuedWork>) {
        let mut members = Vec::with_capacity(MAX_GROUP_SIZE);
        while queue.recv_many(&mut members, MAX_GROUP_SIZE).await > 0 {
            match self.commit_group(&mut members, Some(&mut queue)).await {
                Err(error) if members.len() > 1 => {
                    tracing::warn!(
                        %error,
                        members = members.len(),
                        "database writer: a group commit failed; running its members one by one"
                    );
                    for member in members.drain(..) {
                        let mut single = vec![member];
                        let outcome = self.commit_group(&mut single, None).await;
                        self.reply(single, outcome);
                    }
                }
                outcome => self.reply(std::mem::take(&mut members), outcome),
            }
        }
        self.engine.close().await;
    }

    async fn commit_group(
        &mut self,
        members: &mut Vec<QueuedWork>,
        queue: Option<&mut mpsc::Receiver<QueuedWork>>,
    ) -> Result<CommittedGroup> {
        let started = Instant::now();
        let (hooks, cache) = (self.hooks.get(), &mut self.cache);
        let group = WriteGroup { members: &mut *members, queue, hooks, cache, shared: &self.shared };
        let ending = self.engine.run_group(group).await;
        if let Some(hooks) = self.hooks.get() {
            (hooks.observe)(match &ending {
                Ok(GroupEnding::Commit(CommittedGroup { has_writes, .. })) => GroupResult::Committed {
                    duration: started.elapsed(),
                    members: members.len(),
                    has_writes: *has_writes,
                },
                Ok(GroupEnding::RollBack(_)) | Err(_) => GroupResult::RolledBack,
            });
        }
        match ending {
            Ok(GroupEnding::Commit(committed)) => {
                self.cache.publish(&self.shared.snapshot);
                Ok(committed)
            }
            Ok(GroupEnding::RollBack(error)) => {
                self.cache.clear();
                Ok(CommittedGroup { outcomes: vec![Err(error)], topics: Vec::new(), has_writes: false })
            }
            // It may have been committed nevertheless.
            Err(error) => {
                self.cache.clear();
                self.shared.snapshot.invalidate();
                Err(error)
            }
        }
    }

    /// Notifies the topics of a commit, then sends each member its result.
    fn reply(&self, members: Vec<QueuedWork>, outcome: Result<CommittedGroup>) {
        let outcomes = match outcome {
            Ok(CommittedGroup { outcomes, topics, .. }) => {
                if let Some(hooks) = self.hooks.get() {
                    (hooks.notify)(&topics);
                }
                outcomes
            }
            Err(error) => members.iter().map(|_| Err(error.clone())).collect(),
        };
        for (member, outcome) in members.into_iter().zip(outcomes) {
            // The caller may have stopped waiting; what was written stays.
            let _ = member.reply.send(outcome);
        }
    }
}

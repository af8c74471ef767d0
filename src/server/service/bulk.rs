//! The same done to several workers or jobs: to each as if it were asked for alone, in a transaction and with an entry of
//! the audit trail of its own. They wait for the writer together, so they share a flush.

use std::collections::BTreeSet;
use std::sync::Arc;

use app::domain::access::Permission;
use app::domain::ids::{JobId, WorkerId};
use app::protocol::bulk::MOST;
use app::protocol::status::BulkAction;
use app::protocol::submit::RetryJob;
use app::protocol::workers::DrainWorker;
use futures_util::future::join_all;

use super::Core;
use super::access::{Needs, Person};
use super::refusal::{Invalid, Refusal};
use super::unit::Caller;
use super::workers::{Terms, drain_in};

/// What is to be done to which.
#[derive(Debug, Clone)]
pub struct Asked {
    /// What.
    pub action: BulkAction,
    /// To whom.
    pub ids: Vec<String>,
    /// How workers are to drain, if they are.
    pub drain: DrainWorker,
    /// As with a submit.
    pub key: Option<String>,
}

impl Asked {
    /// This, and nothing more to say.
    pub fn of(action: BulkAction, ids: Vec<String>) -> Self {
        Self { action, ids, drain: DrainWorker::default(), key: None }
    }
}

/// What became of one that was not refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Became {
    /// As it was to.
    Done,
    /// A job was submitted once more, as this one.
    Again(JobId),
    /// It was so already.
    Unchanged,
}

/// What became of one, by its id.
pub type Outcome = (String, Result<Became, Refusal>);

impl Core {
    /// Does the same to each that is named, and tells in their order what became of it. Whether the person may do it at all
    /// says the route; whether they may do it to this job is looked at here.
    pub async fn in_bulk(
        self: &Arc<Self>,
        caller: Caller,
        person: &Person,
        Asked { action, ids, drain, key }: Asked,
    ) -> Result<Vec<Outcome>, Refusal> {
        let terms = &Terms::try_from(drain)?;
        let key = key.as_deref();
        let mut seen = BTreeSet::new();
        let ids: Vec<&String> = ids.iter().filter(|id| seen.insert(*id)).collect();
        if ids.len() > MOST {
            return Err(Invalid::TooMuch { what: "ids", limit: MOST as u64 }.into());
        }
        let each = ids.into_iter().map(|id| {
            let caller = caller.clone();
            async move { (id.clone(), self.one_of_bulk(caller, person, (action, terms), id, key).await) }
        });
        Ok(join_all(each).await)
    }

    async fn one_of_bulk(
        self: &Arc<Self>,
        caller: Caller,
        person: &Person,
        (action, terms): (BulkAction, &Terms),
        id: &str,
        key: Option<&str>,
    ) -> Result<Became, Refusal> {
        let worker = || WorkerId::parse(id).map_err(|_| Refusal::NoId("worker"));
        let job = async |needs| {
            let job = JobId::parse(id).map_err(|_| Refusal::NoId("job"))?;
            self.permit(person, needs, Some(&job)).await?;
            Ok::<_, Refusal>(job)
        };
        let changed = match action {
            BulkAction::Drain => self.drain_undrained(caller, worker()?, terms.clone()).await?,
            BulkAction::Resume => self.resume_worker(caller, worker()?).await?,
            BulkAction::Delete => self.delete_worker(caller, worker()?).await.map(|()| true)?,
            BulkAction::Cancel => self.cancel(caller, job(Needs::CancelJob).await?).await?,
            BulkAction::Retry => {
                let job = job(Needs::SeeJobAnd(Permission::JobSubmit)).await?;
                // A key is of one submit.
                let key = key.map(|key| format!("{key}/{id}"));
                return Ok(Became::Again(self.retry(caller, job, RetryJob::default(), key).await?.id));
            }
        };
        Ok(if changed { Became::Done } else { Became::Unchanged })
    }

    /// Wishes that a worker drain, unless somebody does already: their reason and deadline stay. Tells whether nobody did.
    async fn drain_undrained(self: &Arc<Self>, caller: Caller, id: WorkerId, terms: Terms) -> Result<bool, Refusal> {
        self.change(caller, move |unit| {
            let (id, terms) = (id.clone(), terms.clone());
            Box::pin(async move {
                let before = unit.worker(&id).await?.worker;
                if before.drain.is_some() {
                    return Ok(false);
                }
                drain_in(unit, &before, terms).await?;
                Ok(true)
            })
        })
        .await
    }
}

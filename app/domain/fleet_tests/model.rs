//! The reference: a fleet as plain counters and words, told what happens in the words of the product document.

use super::commands::{By, Claims, Command, Host, Newest};
pub(super) use super::job::{How, Job, Stands};
use super::server::{HEARTBEAT_TIMEOUT, OFFER_TIMEOUT};
use crate::domain::fixtures::{NOW, gpus};
use crate::domain::gpu::Gpu;
use crate::domain::ids::Attempt;
use crate::domain::job::Report;
use crate::domain::plan::Limits;
use crate::domain::time::{Millis, Timestamp};
use crate::domain::worker::Kind;

/// The deadline of a drain that has none.
pub(super) const NEVER: Timestamp = Timestamp(i64::MAX);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Link {
    Unseen,
    Connecting,
    /// By the stream of this number.
    Listening(u8),
    Away,
}

#[derive(Debug, Clone)]
pub(super) struct Worker {
    pub host: Host,
    pub gpus: Vec<Gpu>,
    pub rack: Option<&'static str>,
    pub link: Link,
    /// The first registration says it.
    pub kind: Option<Kind>,
    /// Until its deadline, which may be [`NEVER`].
    pub drain: Option<Timestamp>,
    pub spent: bool,
    pub removed: bool,
    /// What its agent runs without holding it.
    pub astray: Option<usize>,
    /// Which of two hosts has its token.
    elsewhere: bool,
    heard: Timestamp,
}

impl Worker {
    fn new((number, host): (u16, &Host)) -> Self {
        Self {
            host: host.clone(),
            gpus: gpus(number, &host.gpus),
            rack: None,
            link: Link::Unseen,
            kind: None,
            drain: None,
            spent: false,
            removed: false,
            astray: None,
            elsewhere: false,
            heard: NOW,
        }
    }

    pub fn connected(&self) -> bool {
        matches!(self.link, Link::Connecting | Link::Listening(_))
    }

    /// A stream ended, or whichever it has. The end of one that is not the newest is nothing.
    fn stops_listening(&mut self, ended: Option<u8>, now: Timestamp) {
        if let Link::Listening(newest) = self.link
            && ended.is_none_or(|ended| ended == newest)
        {
            (self.link, self.heard) = (Link::Connecting, now);
        }
    }

    fn silent(&self, serving_since: Timestamp, now: Timestamp) -> bool {
        let spoken_for = self.host.older && matches!(self.link, Link::Listening(_));
        !spoken_for && now - self.heard.max(serving_since) > HEARTBEAT_TIMEOUT
    }
}

pub(super) struct Model {
    pub now: Timestamp,
    pub workers: Vec<Worker>,
    pub jobs: Vec<Job>,
    pub limits: Limits,
    serving_since: Timestamp,
}

impl Model {
    pub fn new(hosts: &[Host], limits: Limits) -> Self {
        let workers = (0..).zip(hosts).map(Worker::new).collect();
        Self { now: NOW, workers, jobs: Vec::new(), limits, serving_since: NOW }
    }

    pub fn newest(&self) -> Vec<Newest> {
        self.jobs.iter().map(Job::newest).collect()
    }

    pub fn held_by(&self, worker: usize) -> impl Iterator<Item = &Job> {
        self.jobs.iter().filter(move |job| job.holder() == Some(worker))
    }

    pub fn offer(&mut self, job: usize, worker: usize, gpus: Vec<String>) {
        self.jobs[job].offers.push((worker, gpus));
        self.jobs[job].stands = Stands::Offered { until: self.now + OFFER_TIMEOUT };
    }

    /// Takes a command; none if it is refused.
    pub fn take(&mut self, command: &Command) -> Option<()> {
        let now = self.now;
        match command {
            Command::Submit(ask) => self.jobs.push(Job::new(ask.clone(), ask.priority, now)),
            Command::Retry(job) => {
                let ended = self.jobs.get(*job).filter(|job| job.has_ended())?;
                let (kept_back, renewed) = (ended.kept_back, ended.renewed);
                self.jobs.push(Job { kept_back, renewed, ..Job::new(ended.ask.clone(), ended.priority, now) });
            }
            Command::Cancel(job) => self.living(*job)?.cancel(),
            Command::SetPriority(job, priority) => self.living(*job)?.priority = *priority,
            Command::Drain(worker, seconds) => {
                self.there(*worker)?.drain = Some(seconds.map_or(NEVER, |seconds| now + Millis::seconds(seconds)));
                self.put_offers_back(*worker);
            }
            Command::Resume(worker) => self.there(*worker)?.drain = None,
            Command::SetRack(worker, rack) => self.there(*worker)?.rack = Some(rack),
            Command::Delete(worker) => {
                self.there(*worker).filter(|worker| !worker.connected())?.removed = true;
                self.lose_all(*worker);
            }
            Command::Register { worker, elsewhere, claims } => self.register(*worker, *elsewhere, claims)?,
            Command::Heartbeat { worker, claims } => self.heartbeat(*worker, claims)?,
            Command::Word(worker, runs) => {
                self.hears(*worker).filter(|worker| worker.connected())?;
                self.beat(*worker, *runs);
            }
            Command::Gpus(worker, withheld) => self.gpus_said(*worker, *withheld)?,
            Command::Listen(worker, stream) => {
                self.hears(*worker).filter(|worker| worker.connected())?.link = Link::Listening(*stream);
            }
            Command::StreamEnded(worker, stream) => self.there(*worker)?.stops_listening(Some(*stream), now),
            Command::Goodbye(worker) => {
                self.hears(*worker)?;
                self.there(*worker).filter(|worker| worker.connected()).map(Worker::goes_away);
                self.put_offers_back(*worker);
            }
            Command::Report { job, by, attempt, report } => {
                let newest = self.jobs.get(*job)?.newest();
                let worker = match by {
                    By::Holder => newest?.0,
                    By::Worker(worker) => self.hears(*worker).map(|_| *worker)?,
                };
                let reported = self.report(*job, worker, attempt.of(newest), report);
                self.spoke(worker, matches!(report, Report::Starting | Report::Running).then_some(*job));
                reported?;
            }
            Command::Pass(seconds) => self.now = now + Millis::seconds(*seconds),
            Command::SweepOffers => {
                let old = |job: &&mut Job| matches!(job.stands, Stands::Offered { until } if until <= now);
                self.jobs.iter_mut().filter(old).for_each(Job::put_back);
            }
            Command::CheckHealth(worker) => self.check_health(*worker),
            Command::RestartServer => {
                self.serving_since = now;
                self.workers.iter_mut().for_each(|worker| worker.stops_listening(None, now));
            }
        }
        Some(())
    }

    fn living(&mut self, job: usize) -> Option<&mut Job> {
        self.jobs.get_mut(job).filter(|job| !job.has_ended())
    }

    fn there(&mut self, worker: usize) -> Option<&mut Worker> {
        self.workers.get_mut(worker).filter(|worker| !worker.removed)
    }

    pub fn hears(&mut self, worker: usize) -> Option<&mut Worker> {
        let now = self.now;
        self.there(worker)?.heard = now;
        for job in self.jobs.iter_mut().filter(|job| job.holder() == Some(worker) && job.renewed.is_some()) {
            job.renewed = Some(now);
        }
        self.there(worker)
    }

    fn put_offers_back(&mut self, worker: usize) {
        let offered = |job: &&mut Job| job.holder() == Some(worker) && matches!(job.stands, Stands::Offered { .. });
        self.jobs.iter_mut().filter(offered).for_each(Job::put_back);
    }

    fn lose_all(&mut self, worker: usize) {
        self.put_offers_back(worker);
        let now = self.now;
        self.jobs.iter_mut().filter(|job| job.holder() == Some(worker)).for_each(|job| job.lose_unheard(now));
    }

    fn register(&mut self, worker: usize, elsewhere: bool, claims: &Claims) -> Option<()> {
        let (serving_since, now) = (self.serving_since, self.now);
        let done = self.held_by(worker).next().is_none();
        let there = self.there(worker)?;
        let taken = there.connected() && there.elsewhere != elsewhere && !there.silent(serving_since, now);
        if (there.spent && done) || taken {
            return None;
        }
        there.kind.get_or_insert(there.host.kind);
        (there.link, there.elsewhere, there.heard, there.astray) = (Link::Connecting, elsewhere, now, None);
        there.withhold(0);
        let claims = claims.of(worker, &self.newest());
        self.keep(worker, claims.clone());
        for (n, job) in self.jobs.iter_mut().enumerate().filter(|(_, job)| job.holder() == Some(worker)) {
            let offered = matches!(job.stands, Stands::Offered { .. });
            if !offered && claims.iter().all(|(claimed, _)| *claimed != n) {
                job.lose_unheard(now);
            }
        }
        Some(())
    }

    fn heartbeat(&mut self, worker: usize, claims: &Claims) -> Option<()> {
        self.hears(worker).filter(|worker| worker.connected())?;
        let said = |(_, attempt): &(usize, Option<Attempt>)| attempt.is_some();
        let claims = claims.of(worker, &self.newest()).into_iter().filter(said).collect();
        self.keep(worker, claims);
        Some(())
    }

    /// What is claimed rightly runs, unless it is on its way to be cancelled. Who names no attempt may only have heard of it.
    fn keep(&mut self, worker: usize, claims: Vec<(usize, Option<Attempt>)>) {
        for (job, attempt) in claims {
            if self.jobs.get(job).is_some_and(|job| !job.has_ended()) {
                let heard_of = attempt.is_none() && matches!(self.jobs[job].stands, Stands::Offered { .. });
                let report = if heard_of { Report::Starting } else { Report::Running };
                let _ = self.report(job, worker, attempt, &report);
            }
        }
    }

    /// Only the newest attempt counts (I1).
    fn report(&mut self, job: usize, worker: usize, attempt: Option<Attempt>, report: &Report) -> Option<()> {
        let waits = matches!(self.jobs[job].stands, Stands::Waiting { .. });
        let comes_back = waits && matches!(report, Report::Starting | Report::Running);
        if comes_back && !self.has_place(job, worker) {
            return None;
        }
        let (now, there) = (self.now, &mut self.workers[worker]);
        let evicts = there.drain.is_some_and(|deadline| deadline <= now) && !there.removed;
        let given_back = matches!(report, Report::Cancelled | Report::Requeue { .. });
        let report = if evicts && given_back && !self.jobs[job].overdue(now) { &Report::Evicted } else { report };
        let job = &mut self.jobs[job];
        job.newest().filter(|(to, number)| *to == worker && attempt.is_none_or(|said| said == *number))?;
        let ended_before = job.has_ended();
        if !job.hear(report, now) {
            return None;
        }
        let goes_on = matches!(report, Report::Starting | Report::Running);
        job.renewed = goes_on.then_some(now);
        job.kept_back = job.kept_back.filter(|_| ended_before);
        let ended = job.has_ended() && !ended_before;
        there.spent |= ended && there.kind == Some(Kind::Ephemeral);
        Some(())
    }

    /// Whether what a lost attempt held is there and nobody else's now (I3).
    fn has_place(&self, job: usize, worker: usize) -> bool {
        let (there, last) = (&self.workers[worker], self.jobs[job].offers.last());
        let mut taken = self.held_by(worker).filter_map(|other| other.offers.last()).flat_map(|(_, gpus)| gpus);
        let slot = self.held_by(worker).count() < there.host.max_jobs as usize;
        slot && !there.removed && last.is_some_and(|(_, gpus)| taken.all(|gpu| !gpus.contains(gpu)))
    }

    fn check_health(&mut self, worker: usize) {
        let (serving_since, now) = (self.serving_since, self.now);
        let Some(there) = self.there(worker) else { return };
        let forgotten = there.link == Link::Away
            && there.kind == Some(Kind::Ephemeral)
            && now - serving_since > HEARTBEAT_TIMEOUT
            && now - there.heard >= Millis::seconds(3_600);
        let abandoned = there.link == Link::Away && there.silent(serving_since, now);
        if there.connected() && there.silent(serving_since, now) {
            there.goes_away();
            there.heard = now;
            self.lose_all(worker);
        } else if forgotten {
            there.removed = true;
            self.lose_all(worker);
        } else if abandoned {
            self.lose_all(worker);
        }
    }
}

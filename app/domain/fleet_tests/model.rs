//! The reference: a fleet as plain counters and words, told what happens in the words of the product document.

use super::commands::{Ask, By, Claims, Command, Host, Newest};
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
pub(super) enum How {
    Completed,
    Failed,
    OverTime,
    Cancelled,
}

/// Where a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stands {
    Waiting { due: Timestamp },
    Offered { until: Timestamp },
    Starting,
    Running { since: Timestamp },
    Cancelling,
    Ended(How),
}

#[derive(Debug, Clone)]
pub(super) struct Job {
    pub ask: Ask,
    pub submitted_at: Timestamp,
    pub priority: u8,
    /// Worker and GPUs of each offer; the last is the newest attempt.
    pub offers: Vec<(usize, Vec<String>)>,
    pub losses: u32,
    pub stands: Stands,
}

impl Job {
    fn new(ask: Ask, priority: u8, now: Timestamp) -> Self {
        let stands = Stands::Waiting { due: Timestamp(0) };
        Self { ask, submitted_at: now, priority, offers: Vec::new(), losses: 0, stands }
    }

    /// The worker that it keeps from others.
    pub fn holder(&self) -> Option<usize> {
        let holds = !matches!(self.stands, Stands::Waiting { .. } | Stands::Ended(_));
        self.offers.last().filter(|_| holds).map(|(worker, _)| *worker)
    }

    /// The worker of the newest attempt, and its number.
    pub fn newest(&self) -> Newest {
        let number = u32::try_from(self.offers.len()).expect("few");
        self.offers.last().map(|(worker, _)| (*worker, Attempt(number)))
    }

    fn has_ended(&self) -> bool {
        matches!(self.stands, Stands::Ended(_))
    }

    /// Its attempt is gone, and not by its fault.
    fn lose(&mut self, now: Timestamp) {
        match self.stands {
            Stands::Ended(_) => {}
            Stands::Cancelling => self.stands = Stands::Ended(How::Cancelled),
            _ => {
                // While it waits, this attempt's loss was counted, or its offer was never answered.
                self.losses += u32::from(self.holder().is_some());
                let seconds = [10, 10, 20, 40, 80, 160].get(self.losses as usize).copied().unwrap_or(300);
                let due = now + Millis::seconds(seconds);
                let exhausted = self.losses > self.ask.max_retries;
                self.stands = if exhausted { Stands::Ended(How::Failed) } else { Stands::Waiting { due } };
            }
        }
    }

    /// Whether it has trained as long as it may, and is told to stop.
    fn overdue(&self, now: Timestamp) -> bool {
        let Stands::Running { since } = self.stands else { return false };
        self.ask.max_runtime.is_some_and(|seconds| now - since >= Millis::seconds(seconds))
    }

    fn cancel(&mut self) {
        let runs = matches!(self.stands, Stands::Starting | Stands::Running { .. } | Stands::Cancelling);
        self.stands = if runs { Stands::Cancelling } else { Stands::Ended(How::Cancelled) };
    }

    fn put_back(&mut self) {
        self.stands = Stands::Waiting { due: Timestamp(0) };
    }

    /// What the holder of the newest attempt says of it; false if it is refused.
    fn hear(&mut self, report: &Report, now: Timestamp) -> bool {
        self.stands = match (self.stands, report) {
            (Stands::Ended(how), said) => return says_the_same(how, said),
            (Stands::Cancelling, Report::Starting | Report::Running) => Stands::Cancelling,
            (Stands::Cancelling, _) => Stands::Ended(How::Cancelled),
            (Stands::Waiting { .. } | Stands::Offered { .. }, Report::Starting) => Stands::Starting,
            (stands, Report::Starting) => stands,
            (Stands::Running { since }, Report::Running) => Stands::Running { since },
            (_, Report::Running) => Stands::Running { since: now },
            (_, Report::Completed) => Stands::Ended(How::Completed),
            (_, Report::Cancelled | Report::Requeue { .. }) if self.overdue(now) => Stands::Ended(How::OverTime),
            (_, Report::Failed { .. }) if !self.ask.retry_on_failure => Stands::Ended(How::Failed),
            (Stands::Waiting { due }, Report::Evicted) => Stands::Waiting { due },
            (_, Report::Evicted) => Stands::Waiting { due: Timestamp(0) },
            (_, Report::Failed { .. } | Report::Cancelled | Report::Requeue { .. }) => {
                self.lose(now);
                self.stands
            }
        };
        true
    }
}

fn says_the_same(how: How, said: &Report) -> bool {
    matches!(
        (how, said),
        (How::OverTime, Report::Failed { .. } | Report::Cancelled | Report::Requeue { .. })
            | (How::Completed, Report::Completed)
            | (How::Failed, Report::Failed { .. })
            | (How::Cancelled, Report::Cancelled)
    )
}

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
                self.jobs.push(Job::new(ended.ask.clone(), ended.priority, now));
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
        let worker = self.there(worker)?;
        worker.heard = now;
        Some(worker)
    }

    fn put_offers_back(&mut self, worker: usize) {
        let offered = |job: &&mut Job| job.holder() == Some(worker) && matches!(job.stands, Stands::Offered { .. });
        self.jobs.iter_mut().filter(offered).for_each(Job::put_back);
    }

    fn lose_all(&mut self, worker: usize) {
        self.put_offers_back(worker);
        let now = self.now;
        self.jobs.iter_mut().filter(|job| job.holder() == Some(worker)).for_each(|job| job.lose(now));
    }

    fn register(&mut self, worker: usize, elsewhere: bool, claims: &Claims) -> Option<()> {
        let (serving_since, now) = (self.serving_since, self.now);
        let there = self.there(worker)?;
        let taken = there.connected() && there.elsewhere != elsewhere && !there.silent(serving_since, now);
        if there.spent || taken {
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
                job.lose(now);
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

    /// What is claimed rightly runs, unless it is on its way to be cancelled.
    fn keep(&mut self, worker: usize, claims: Vec<(usize, Option<Attempt>)>) {
        for (job, attempt) in claims {
            if self.jobs.get(job).is_some_and(|job| !job.has_ended()) {
                let _ = self.report(job, worker, attempt, &Report::Running);
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

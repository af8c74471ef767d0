//! The real rules, called in the way in which `src/server/service` calls them; a database's part is played by two lists.

use super::commands::{Ask, By, Claims, Command, Host, Newest};
use crate::domain::astray::Word;
use crate::domain::capability::Capability;
use crate::domain::fixtures::{self, NOW, gpus, job_id, label, worker_id};
use crate::domain::health::{self, Verdict};
use crate::domain::ids::{Attempt, WorkerId};
use crate::domain::job::{Demand, Job, Loss, Report, Spec, State};
use crate::domain::labels::Labels;
use crate::domain::plan::{self, Fleet, Limits, Plan};
use crate::domain::queue::MAX_PRIORITY;
use crate::domain::reconcile::{self, Claim, unclaimed};
use crate::domain::time::{Millis, Timestamp};
use crate::domain::worker::{Edit, OfflineCause, Worker};

/// As in the server's policy.
pub(super) const HEARTBEAT_TIMEOUT: Millis = Millis::seconds(120);
/// As in the server's policy.
pub(super) const OFFER_TIMEOUT: Millis = Millis::seconds(30);

pub(super) struct Server {
    pub now: Timestamp,
    /// None where one was removed.
    pub workers: Vec<Option<Worker>>,
    pub jobs: Vec<Job>,
    ids: Vec<WorkerId>,
    hosts: Vec<Host>,
    seen: Vec<Option<Timestamp>>,
    serving_since: Timestamp,
    limits: Limits,
}

/// What came of a command: whether planning follows. None if it was refused.
type Outcome = Option<Planning>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Planning {
    Follows,
    No,
}

fn number(place: usize) -> u16 {
    u16::try_from(place).expect("few")
}

impl Server {
    pub fn new(hosts: &[Host], limits: Limits) -> Self {
        let made = |(n, host): (u16, &Host)| Some(Worker { local: host.local, ..fixtures::unseen(n) });
        Self {
            now: NOW,
            workers: (0..).zip(hosts).map(made).collect(),
            jobs: Vec::new(),
            ids: (0..).map(worker_id).take(hosts.len()).collect(),
            hosts: hosts.to_vec(),
            seen: vec![None; hosts.len()],
            serving_since: NOW,
            limits,
        }
    }

    /// The place of a worker among all.
    pub fn place(&self, id: &WorkerId) -> usize {
        self.ids.iter().position(|other| other == id).expect("one of ours")
    }

    pub fn newest(&self) -> Vec<Newest> {
        let newest = |job: &Job| job.last_lease().map(|lease| (self.place(&lease.worker), lease.attempt));
        self.jobs.iter().map(newest).collect()
    }

    pub fn fleet(&self) -> Fleet<'_> {
        Fleet::new(self.workers.iter().flatten(), &self.jobs, self.limits)
    }

    /// What waits, by rank.
    pub fn waiting(&self) -> Vec<&Job> {
        let mut waiting: Vec<&Job> = self.jobs.iter().filter(|job| matches!(job.state, State::Queued { .. })).collect();
        waiting.sort_by_key(|job| plan::rank(job));
        waiting
    }

    pub fn plan(&self) -> Plan<'_> {
        plan::plan(self.waiting(), self.fleet(), self.now)
    }

    pub fn offer(&mut self, job: usize, worker: usize, gpus: Vec<String>) {
        let until = self.now + OFFER_TIMEOUT;
        let offered = self.jobs[job].clone().offered(self.now, self.ids[worker].clone(), gpus, until);
        self.jobs[job] = offered.expect("what is planned waits");
    }

    pub fn take(&mut self, command: &Command) -> Outcome {
        match command {
            Command::Submit(ask) => Some(self.add(submitted(ask, number(self.jobs.len()), self.now))),
            Command::Retry(job) => self.retry(*job),
            Command::Cancel(job) => self.change_job(*job, |job, now| job.cancelled(now).ok()),
            Command::SetPriority(job, priority) => self.change_job(*job, |job, _| job.prioritised(*priority).ok()),
            Command::Drain(worker, seconds) => self.drain(*worker, *seconds),
            Command::Resume(worker) => self.change_worker(*worker, |worker, _| Some(worker.resumed())),
            Command::SetRack(worker, rack) => {
                let edit = Edit { labels: Some(label("rack", rack)), ..Edit::default() };
                self.change_worker(*worker, |worker, _| Some(worker.edited(edit)))
            }
            Command::Delete(worker) => self.delete(*worker),
            Command::Register { worker, elsewhere, claims } => self.register(*worker, *elsewhere, claims),
            Command::Heartbeat { worker, claims } => self.heartbeat(*worker, claims),
            Command::Word(worker, runs) => {
                self.heard(*worker)?;
                self.workers[*worker].as_ref()?.may_beat().ok()?;
                let word = runs.map_or(Word::Idle, |job| Word::Runs(job_id(number(job))));
                self.beat(*worker, &word)
            }
            Command::Gpus(worker, withheld) => self.gpus_said(*worker, *withheld),
            Command::Listen(worker, stream) => self.listen(*worker, *stream),
            Command::StreamEnded(worker, stream) => self.stream_ended(*worker, *stream),
            Command::Goodbye(worker) => self.goodbye(*worker),
            Command::Report { job, by, attempt, report } => {
                let newest = self.newest().get(*job).copied()?;
                let worker = self.reporter(*by, newest)?;
                let reported = self.report(*job, worker, attempt.of(newest), report.clone());
                let spoke = self.spoke(worker, &Word::of(&job_id(number(*job)), report));
                reported.map(|planning| if spoke == Planning::Follows { spoke } else { planning })
            }
            Command::Pass(seconds) => Some(self.pass(*seconds)),
            Command::SweepOffers => Some(self.sweep_offers()),
            Command::CheckHealth(worker) => self.check_health(*worker),
            Command::RestartServer => Some(self.restart()),
        }
    }

    fn add(&mut self, job: Job) -> Planning {
        self.jobs.push(job);
        Planning::Follows
    }

    fn change_job(&mut self, job: usize, change: impl FnOnce(Job, Timestamp) -> Option<Job>) -> Outcome {
        let job = self.jobs.get_mut(job)?;
        *job = change(job.clone(), self.now)?;
        Some(Planning::Follows)
    }

    fn change_leased(&mut self, worker: usize, change: impl Fn(Job, Timestamp) -> Job) {
        for job in self.jobs.iter_mut().filter(|job| is_leased_to(&self.ids[worker], job)) {
            *job = change(job.clone(), self.now);
        }
    }

    fn change_worker(&mut self, worker: usize, change: impl FnOnce(Worker, Timestamp) -> Option<Worker>) -> Outcome {
        let worker = self.workers[worker].as_mut()?;
        *worker = change(worker.clone(), self.now)?;
        Some(Planning::Follows)
    }

    /// A worker's token was accepted.
    pub fn heard(&mut self, worker: usize) -> Option<()> {
        self.workers[worker].as_ref()?;
        self.seen[worker] = Some(self.now);
        Some(())
    }

    fn retry(&mut self, job: usize) -> Outcome {
        let (ended, id) = (self.jobs.get(job)?, job_id(number(self.jobs.len())));
        let again = ended.retried(id, self.now, ended.submitted_by.clone(), MAX_PRIORITY).ok()?;
        Some(self.add(again))
    }

    fn drain(&mut self, worker: usize, seconds: Option<i64>) -> Outcome {
        let deadline = seconds.map(|seconds| self.now + Millis::seconds(seconds));
        let planning = self.change_worker(worker, |worker, now| Some(worker.drained(now, None, deadline)))?;
        self.change_leased(worker, Job::offer_withdrawn);
        Some(planning)
    }

    fn delete(&mut self, worker: usize) -> Outcome {
        self.workers[worker].as_ref()?.may_be_deleted().ok()?;
        Some(self.remove(worker))
    }

    fn listen(&mut self, worker: usize, stream: u8) -> Outcome {
        self.heard(worker)?;
        self.change_worker(worker, |worker, now| worker.listening(now, &stream.to_string()).ok())
    }

    fn stream_ended(&mut self, worker: usize, stream: u8) -> Outcome {
        self.change_worker(worker, |worker, now| Some(worker.stopped_listening(now, &stream.to_string())))?;
        Some(Planning::No)
    }

    fn goodbye(&mut self, worker: usize) -> Outcome {
        self.heard(worker)?;
        let planning = self.change_worker(worker, |worker, now| Some(worker.gone(now, OfflineCause::Disconnected)))?;
        self.change_leased(worker, Job::offer_withdrawn);
        Some(planning)
    }

    /// Whose token comes with a report.
    fn reporter(&mut self, by: By, newest: Newest) -> Option<usize> {
        match by {
            By::Holder => newest.map(|(worker, _)| worker),
            By::Worker(worker) => self.heard(worker).map(|()| worker),
        }
    }

    pub fn held(&self, worker: usize) -> Vec<Job> {
        self.jobs.iter().filter(|job| is_leased_to(&self.ids[worker], job)).cloned().collect()
    }

    fn lose_leases(&mut self, worker: usize) {
        self.change_leased(worker, Job::offer_withdrawn);
        self.change_leased(worker, |job, now| job.lost(now, Loss::WorkerOffline, HEARTBEAT_TIMEOUT));
    }

    fn remove(&mut self, worker: usize) -> Planning {
        self.lose_leases(worker);
        self.workers[worker] = None;
        Planning::No
    }

    fn verdict(&self, worker: usize) -> Option<Verdict> {
        let (stored, seen) = (self.workers[worker].as_ref()?, self.seen[worker]);
        health::judge(stored, seen, self.serving_since, HEARTBEAT_TIMEOUT, self.now)
    }

    fn register(&mut self, worker: usize, elsewhere: bool, claims: &Claims) -> Outcome {
        let capability = capability(&self.hosts[worker], number(worker), elsewhere);
        let (alive, kind) = (self.verdict(worker).is_none(), self.hosts[worker].kind);
        let holds = self.held(worker).len();
        self.change_worker(worker, |worker, now| {
            worker.may_register(&capability, alive, holds).ok()?;
            Some(worker.registered(now, capability, kind))
        })?;
        self.heard(worker)?;
        let claims = claims.of(worker, &self.newest());
        self.keep_claims(worker, &claims);
        for job in (0..self.jobs.len()).filter(|job| claims.iter().all(|(claimed, _)| claimed != job)) {
            if is_leased_to(&self.ids[worker], &self.jobs[job]) {
                let Some(there) = &self.workers[worker] else { continue };
                self.jobs[job] = unclaimed(self.now, there, self.jobs[job].clone(), HEARTBEAT_TIMEOUT);
            }
        }
        Some(Planning::Follows)
    }

    fn heartbeat(&mut self, worker: usize, claims: &Claims) -> Outcome {
        self.heard(worker)?;
        self.workers[worker].as_ref()?.may_beat().ok()?;
        let claims: Vec<_> =
            claims.of(worker, &self.newest()).into_iter().filter(|(_, attempt)| attempt.is_some()).collect();
        self.keep_claims(worker, &claims);
        Some(Planning::No)
    }

    fn keep_claims(&mut self, worker: usize, claims: &[(usize, Option<Attempt>)]) {
        for (job, attempt) in claims {
            let claim = Claim { job: job_id(number(*job)), attempt: *attempt };
            let (stored, held) = (self.jobs.get(*job), self.held(worker));
            let Some(keeper) = &self.workers[worker] else { continue };
            if let reconcile::Verdict::Keep(kept) = reconcile::judge(self.now, keeper, &held, &claim, stored) {
                self.jobs[*job] = *kept;
            }
        }
    }

    fn report(&mut self, job: usize, worker: usize, attempt: Option<Attempt>, report: Report) -> Outcome {
        let overdue = self.jobs[job].overdue(self.now).is_some();
        let evicts = !overdue && self.workers[worker].as_ref().is_some_and(|worker| worker.evicts(self.now));
        let report = match report {
            Report::Cancelled | Report::Requeue { .. } if evicts => Report::Evicted,
            other => other,
        };
        let (before, id) = (self.jobs[job].clone(), self.ids[worker].clone());
        let attempt = attempt.unwrap_or(before.attempt);
        let after = before.clone().reported(self.now, &id, attempt, report).ok()?;
        if reconcile::displaced(&before, &after, self.workers[worker].as_ref(), &self.held(worker)) {
            return None;
        }
        if after.has_ended() && !before.has_ended() {
            // One that was removed has nothing to spend.
            let _ = self.change_worker(worker, |worker, now| Some(worker.job_ended(now)));
        }
        let freed = before.live_lease().is_some() && after.live_lease().is_none();
        self.jobs[job] = after;
        Some(if freed { Planning::Follows } else { Planning::No })
    }

    fn check_health(&mut self, worker: usize) -> Outcome {
        match self.verdict(worker) {
            None => Some(Planning::No),
            Some(Verdict::Silent) => {
                self.change_worker(worker, |worker, now| Some(worker.gone(now, OfflineCause::Silent)))?;
                self.lose_leases(worker);
                Some(Planning::Follows)
            }
            Some(Verdict::Abandoned) => {
                self.lose_leases(worker);
                Some(Planning::Follows)
            }
            Some(Verdict::Removed) => Some(self.remove(worker)),
        }
    }

    fn pass(&mut self, seconds: i64) -> Planning {
        self.now = self.now + Millis::seconds(seconds);
        Planning::No
    }

    fn sweep_offers(&mut self) -> Planning {
        for job in &mut self.jobs {
            *job = job.clone().offer_expired(self.now);
        }
        Planning::Follows
    }

    fn restart(&mut self) -> Planning {
        self.serving_since = self.now;
        for worker in self.workers.iter_mut().flatten() {
            if let Some(stream) = worker.stream().map(str::to_owned) {
                *worker = worker.clone().stopped_listening(self.now, &stream);
            }
        }
        Planning::No
    }
}

fn is_leased_to(id: &WorkerId, job: &Job) -> bool {
    job.live_lease().is_some_and(|lease| lease.worker == *id)
}

fn submitted(ask: &Ask, number: u16, now: Timestamp) -> Job {
    let demand = Demand {
        labels: ask.rack.map_or_else(Labels::default, |rack| label("rack", rack)),
        gpu_count: ask.gpus,
        min_vram_gb: ask.vram_gb.map(f64::from),
        ..Demand::default()
    };
    let spec = Spec {
        target: ask.target,
        max_retries: ask.max_retries,
        retry_on_failure: ask.retry_on_failure,
        max_runtime: ask.max_runtime.map(Millis::seconds),
        exclusive: ask.exclusive,
        secrets: None,
        ..fixtures::spec(demand)
    };
    Job { priority: ask.priority, ..Job::submitted(job_id(number), spec, now, ask.by.to_owned()) }
}

fn capability(host: &Host, number: u16, elsewhere: bool) -> Capability {
    Capability {
        gpus: gpus(number, &host.gpus),
        protocol: (!host.older).then_some(1),
        install_id: Some(if elsewhere { "other" } else { "first" }.to_owned()),
        max_jobs: host.max_jobs,
        ..Capability::default()
    }
}

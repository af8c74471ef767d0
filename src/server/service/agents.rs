//! What agents do: register, listen, send heartbeats, say goodbye.

use std::sync::Arc;

use app::domain::astray::{Word, is_news, offer_taken};
use app::domain::audit::Action;
use app::domain::capability::Capability;
use app::domain::gpu;
use app::domain::ids::WorkerId;
use app::domain::reconcile::{Claim, Verdict, forsakes, judge, unclaimed};
use app::domain::time::Timestamp;
use app::domain::worker::{Kind, OfflineCause, Refused, Worker};
use app::protocol::worker::{
    Desired, Disconnect, Heartbeat, HeartbeatAnswer, PROTOCOL, Register, Registered, ResumeJob,
};
use serde_json::json;

use super::Core;
use super::astray::{heartbeat_says, word_of};
use super::contention::{host_at, host_of};
use super::desired::desired;
use super::fitness::{self, fitness_said};
use super::gpus::{self, all_on_record, check_telemetry, gpus_said};
use super::keys::{WorkerKey, take_up};
use super::refusal::{Invalid, Refusal};
use super::registration::{MAX_GPUS, capability};
use super::unit::{Caller, Unit};
use super::workers::withdraw_offers;
use crate::store::Work;
use crate::store::known::Known;
use crate::tokens;

/// What a worker should do, and how long it may listen for it.
pub struct Listening {
    /// What it should do.
    pub desired: Desired,
    /// Why it should end, in words: for older agents.
    pub shutdown: Option<String>,
    /// When its token ends.
    pub until: Option<Timestamp>,
}

impl Core {
    /// An agent starts, or comes back. One that is refused is no sign of life: it is not the one that is known.
    pub async fn register(
        self: &Arc<Self>,
        caller: Caller,
        key: WorkerKey,
        register: Register,
    ) -> Result<Registered, Refusal> {
        let capability = capability(&key.worker, &register)?;
        let kind = if register.persistent == Some(true) { Kind::Persistent } else { Kind::Ephemeral };
        let claims = claims(&register);
        let turn = if capability.is_older() { self.older_takes_turn(&key, &claims).await } else { Ok(()) };
        let session = (!capability.is_older()).then(|| tokens::mint("ws_", &*self.random));
        let input = Arc::new((key, capability, kind, claims, session));
        let (again, who) = (Arc::clone(&input), caller.clone());
        let registration = self.change(caller, move |unit| {
            let input = Arc::clone(&input);
            Box::pin(async move {
                let (key, capability, kind, claims, session) = &*input;
                let registered = register_in(unit, key, capability, *kind, claims, session.as_deref()).await?;
                Ok(Registered { session: session.clone(), ..registered })
            })
        });
        let registered = match turn {
            Ok(()) => registration.await,
            Err(refusal) => Err(refusal),
        };
        match &registered {
            Ok(_) => self.heard_of(&again.0.worker, again.0.peer),
            Err(Refusal::Worker(Refused::TokenInUse)) => {
                let (host, peer) = (again.1.hostname.clone(), again.0.peer.map(|peer| peer.to_string()));
                self.record_token_in_use(who, &again.0.worker, host.or(peer).as_deref()).await;
            }
            Err(_) => {}
        }
        registered
    }

    /// An older agent does not say which of two on a host it is. Only one that has a job of the worker's is known to come back.
    async fn older_takes_turn(&self, key: &WorkerKey, claims: &[Claim]) -> Result<(), Refusal> {
        let held = self.recent().await?.leased_jobs(Some(&key.worker)).await?;
        let comes_back = claims.iter().any(|claim| held.iter().any(|job| job.id == claim.job));
        let host = comes_back.then(|| host_at(key.peer));
        self.take_turn(&key.worker, host.as_deref()).await
    }

    /// A worker listens: its stream opened, or it asks what there is to do.
    ///
    /// One on another host than the one that listens takes its place, but not again and again.
    pub async fn listening(self: &Arc<Self>, caller: Caller, worker: WorkerId, stream: String) -> Result<(), Refusal> {
        if let Some(host) = host_of(&stream)
            && let Err(refusal) = self.take_turn(&worker, Some(host)).await
        {
            if matches!(refusal, Refusal::Worker(Refused::TokenInUse)) {
                self.record_token_in_use(caller, &worker, Some(host)).await;
            }
            return Err(refusal);
        }
        self.change(caller, move |unit| {
            let (worker, stream) = (worker.clone(), stream.clone());
            Box::pin(async move {
                let before = unit.worker(&worker).await?.worker;
                let after = before.clone().listening(unit.now, &stream)?;
                unit.core.may_become(&before, &after)?;
                unit.save_worker(&before, &after, Action::WorkerOnline, &json!({})).await?;
                unit.plan_after();
                Ok(())
            })
        })
        .await
    }

    /// A worker's stream ended.
    pub async fn stopped_listening(
        self: &Arc<Self>,
        caller: Caller,
        worker: WorkerId,
        stream: String,
    ) -> Result<(), Refusal> {
        self.change(caller, move |unit| {
            let (worker, stream) = (worker.clone(), stream.clone());
            Box::pin(async move {
                let before = unit.worker(&worker).await?.worker;
                let after = before.clone().stopped_listening(unit.now, &stream);
                unit.save_worker(&before, &after, Action::WorkerConnecting, &json!({})).await
            })
        })
        .await
    }

    /// What a worker should do, for a stream; none if the stream is not the worker's any more: a newer one took its
    /// place, maybe on another server, or the token that opened it opens nothing now.
    pub async fn desired_on(&self, key: &WorkerKey, stream: &str) -> Result<Option<Listening>, Refusal> {
        let mut tx = self.recent().await?;
        let Some(stored) = tx.worker(&key.worker).await? else { return Ok(None) };
        let until = match self.opens(key, &stored).await {
            Ok(until) => until,
            Err(Refusal::WorkerKey(..)) => return Ok(None),
            Err(refusal) => return Err(refusal),
        };
        if stored.worker.stream() != Some(stream) {
            return Ok(None);
        }
        let desired = desired(self, &mut *tx, &stored, &[]).await?;
        let busy = !(desired.run.is_empty() && desired.stop.is_empty() && desired.offers.is_empty());
        let shutdown = stored.worker.dismissed().filter(|_| !busy).map(str::to_owned);
        Ok(Some(Listening { desired, shutdown, until }))
    }

    /// What a worker should do; for who asks, as long as their token opens.
    pub async fn desired(&self, key: &WorkerKey) -> Result<Desired, Refusal> {
        let mut tx = self.recent().await?;
        let stored = tx.worker(&key.worker).await?.ok_or_else(|| Refusal::NoWorker(key.worker.clone()))?;
        self.opens(key, &stored).await?;
        desired(self, &mut *tx, &stored, &[]).await
    }

    /// A worker says that it lives and what it runs, and is told what it should do.
    pub async fn heartbeat(
        self: &Arc<Self>,
        caller: Caller,
        key: WorkerKey,
        beat: Heartbeat,
    ) -> Result<HeartbeatAnswer, Refusal> {
        check_heartbeat(&key.worker, &beat)?;
        let worker = key.worker;
        let (claims, word, said) = (claims_of_heartbeat(&beat), word_of(&beat), gpus::words(&beat.telemetry));
        let mut tx = self.recent().await?;
        let stored = tx.worker(&worker).await?.ok_or_else(|| Refusal::NoWorker(worker.clone()))?;
        let held = tx.leased_jobs(Some(&worker)).await?;
        self.keep_readings(&stored.worker, &beat.telemetry, &held);
        // Nobody is sent away, or told to stop, by what may be known too late: the transaction judges again.
        let known = &stored.worker;
        let unfit = fitness::said(beat.unfit.as_deref());
        let news = |word| is_news(known, &held, word) || offer_taken(known, &held, word).is_some();
        let mut doubtful =
            known.may_beat().is_err() || word.as_ref().is_some_and(news) || self.is_news_of_gpus(known, &said);
        doubtful |= self.is_news_of_fitness(known, unfit.as_deref());
        for claim in &claims {
            let job = tx.job(&claim.job).await?;
            let verdict = judge(self.now(), &stored.worker, &held, claim, job.as_ref());
            doubtful |= !matches!((verdict, job), (Verdict::Keep(after), Some(before)) if *after == before);
        }
        if doubtful {
            drop(tx);
            return self.take_back(caller, worker, claims, word, (said, unfit)).await;
        }
        let desired = desired(self, &mut *tx, &stored, &claims).await?;
        drop(tx);
        if let Some(word) = word {
            self.remind(&stored.worker, &word).await?;
        }
        Ok(HeartbeatAnswer { desired })
    }

    async fn take_back(
        self: &Arc<Self>,
        caller: Caller,
        worker: WorkerId,
        claims: Vec<Claim>,
        word: Option<Word>,
        host: (Vec<gpu::Word>, Option<String>),
    ) -> Result<HeartbeatAnswer, Refusal> {
        let input = Arc::new((worker, claims, word, host));
        self.change(caller, move |unit| {
            let input = Arc::clone(&input);
            Box::pin(async move {
                let (worker, claims, word, (gpus, unfit)) = &*input;
                let stored = unit.worker(worker).await?;
                stored.worker.may_beat()?;
                keep_claims(unit, &stored.worker, claims).await?;
                if let Some(word) = word {
                    heartbeat_says(unit, &stored.worker, word).await?;
                }
                gpus_said(unit, worker, gpus).await?;
                fitness_said(unit, worker, unfit.as_deref()).await?;
                let stored = unit.worker(worker).await?;
                Ok(HeartbeatAnswer { desired: desired(unit.core, unit.tx, &stored, claims).await? })
            })
        })
        .await
    }

    /// An agent says goodbye. What it leaves running is still its own.
    pub async fn disconnect(
        self: &Arc<Self>,
        caller: Caller,
        worker: WorkerId,
        goodbye: Disconnect,
    ) -> Result<(), Refusal> {
        if goodbye.worker_id.as_ref().is_some_and(|id| *id != worker) {
            return Err(Invalid::OtherWorker.into());
        }
        let gone = worker.clone();
        self.change(caller, move |unit| {
            let worker = worker.clone();
            Box::pin(async move {
                let before = unit.worker(&worker).await?.worker;
                let after = before.clone().gone(unit.now, OfflineCause::Disconnected);
                unit.save_worker(&before, &after, Action::WorkerOffline, &json!({"cause": "disconnected"})).await?;
                withdraw_offers(unit, &worker).await?;
                unit.plan_after();
                Ok(())
            })
        })
        .await?;
        self.readings.forget(&gone);
        Ok(())
    }

    /// Nobody listens on a server that is gone, nor on one that has just started. Streams that open say so anew.
    pub async fn forget_streams(self: &Arc<Self>, living: Vec<String>) -> Result<(), Refusal> {
        let lost = |worker: &Worker, living: &[String]| {
            let server = worker.stream().and_then(|stream| stream.split_once('/')).map(|(server, _)| server);
            server.is_some_and(|server| !living.iter().any(|living| living == server))
        };
        let any = |known: &Known| known.workers().any(|stored| lost(&stored.worker, &living));
        if !self.recent().await?.see(any).await? {
            return Ok(());
        }
        self.change(Caller::system(), move |unit| {
            let living = living.clone();
            Box::pin(async move {
                for before in unit.tx.workers().await?.into_iter().map(|stored| stored.worker) {
                    if let Some(stream) = before.stream().filter(|_| lost(&before, &living)) {
                        let after = before.clone().stopped_listening(unit.now, stream);
                        let detail = json!({"cause": "the server that held its stream is gone"});
                        unit.save_worker(&before, &after, Action::WorkerConnecting, &detail).await?;
                    }
                }
                Ok(())
            })
        })
        .await
    }

    /// Writes down when workers were last heard of.
    pub async fn flush_presence(&self) -> Result<(), Refusal> {
        let seen = Arc::new(self.presence.take_unwritten());
        if seen.is_empty() {
            return Ok(());
        }
        let work: Work = Box::new(move |tx| {
            let seen = Arc::clone(&seen);
            Box::pin(async move { tx.flush_last_seen(&seen).await })
        });
        Ok(self.store.write(work).await?)
    }
}

async fn register_in(
    unit: &mut Unit<'_>,
    key: &WorkerKey,
    capability: &Capability,
    kind: Kind,
    claims: &[Claim],
    session: Option<&str>,
) -> Result<Registered, Refusal> {
    let worker = &key.worker;
    let stored = unit.worker(worker).await?;
    // It may have been rotated between the door and here.
    key.opens(&stored, unit.now).map_err(|closed| Refusal::WorkerKey(closed, worker.clone()))?;
    let alive = super::health::verdict(unit.core, &stored, unit.now).is_none();
    let before = stored.worker.clone();
    before.may_register(capability, alive, unit.tx.leased_jobs(Some(worker)).await?.len())?;
    let displaces = capability.is_older() && before.stream().is_some();
    if displaces && forsakes(&unit.tx.leased_jobs(Some(worker)).await?, claims) {
        // It may be the same agent, started again: then the old one's stream ends soon, and it comes again in 10 s. It may as
        // well be a second one with the same token, also on the same host, which would end a training that goes well.
        return Err(Refused::TokenInUse.into());
    }
    let after = before.clone().registered(unit.now, capability.clone(), kind);
    let after = Worker { lease: Some(unit.core.policy.heartbeat_timeout), ..after };
    let gpus: Vec<&str> = capability.gpus.iter().map(|gpu| gpu.name.as_str()).collect();
    let old_token_ended = take_up(unit, key, &stored, session).await?;
    let mut detail = json!({"gpus": gpus, "hostname": capability.hostname, "agent_version": capability.agent_version});
    if old_token_ended {
        detail["old_token_ended"] = json!(true);
    }
    if capability.withheld() > 0 {
        detail["withheld"] = json!(all_on_record(&capability.gpus));
    }
    if let Some(why) = &capability.unfit {
        detail["unfit"] = json!(why);
    }
    unit.core.may_become(&before, &after)?;
    unit.save_worker(&before, &after, Action::WorkerRegistered, &detail).await?;
    keep_claims(unit, &after, claims).await?;
    for job in unit.tx.leased_jobs(Some(worker)).await? {
        if !claims.iter().any(|claim| claim.job == job.id) {
            let after = unclaimed(unit.now, &after, job.clone(), unit.core.lease_of(Some(&before)));
            unit.save_job(&job, &after).await?;
        }
    }
    unit.plan_after();
    let stored = unit.worker(worker).await?;
    let desired = desired(unit.core, unit.tx, &stored, claims).await?;
    let older = capability.is_older();
    let kept = claims.iter().find(|claim| desired.run.iter().any(|run| run.job_id == claim.job));
    Ok(Registered {
        worker_id: worker.clone(),
        name: after.name,
        heartbeat_interval_seconds: unit.core.policy.heartbeat_interval_seconds(),
        heartbeat_timeout_seconds: (unit.core.policy.heartbeat_timeout.0 / 1_000).unsigned_abs(),
        protocol: PROTOCOL,
        server_time: unit.now,
        session: None,
        resume_job: kept.filter(|_| older).map(|claim| ResumeJob { job_id: claim.job.clone() }),
        abandon_job: older
            && !claims.is_empty()
            && kept.is_none()
            && desired.stop.iter().any(|s| s.job_id == claims[0].job),
        desired,
    })
}

/// What a worker claims and may keep: a lost attempt is taken back, an unanswered offer counts as taken.
async fn keep_claims(unit: &mut Unit<'_>, worker: &Worker, claims: &[Claim]) -> Result<(), Refusal> {
    for claim in claims {
        let Some(before) = unit.tx.job(&claim.job).await? else { continue };
        let held = unit.tx.leased_jobs(Some(&worker.id)).await?;
        if let Verdict::Keep(after) = judge(unit.now, worker, &held, claim, Some(&before)) {
            unit.save_job(&before, &after).await?;
        }
    }
    Ok(())
}

fn claims(register: &Register) -> Vec<Claim> {
    let known = register.attempts.iter().map(|a| Claim { job: a.job_id.clone(), attempt: Some(a.attempt) });
    let mut claims: Vec<Claim> = known.collect();
    if let Some(job) = register.current_job_id.as_ref().filter(|job| claims.iter().all(|claim| claim.job != **job)) {
        claims.push(Claim { job: job.clone(), attempt: None });
    }
    claims
}

fn claims_of_heartbeat(beat: &Heartbeat) -> Vec<Claim> {
    // An older agent names its job only, which is no claim to an attempt that was lost; see `astray`.
    beat.attempts.iter().map(|a| Claim { job: a.job_id.clone(), attempt: Some(a.attempt) }).collect()
}

fn check_heartbeat(worker: &WorkerId, beat: &Heartbeat) -> Result<(), Refusal> {
    if beat.worker_id.as_ref().is_some_and(|id| id != worker) {
        return Err(Invalid::OtherWorker.into());
    }
    match beat.status.as_deref() {
        None | Some("idle" | "busy" | "connecting" | "draining") => {}
        Some(other) => return Err(Invalid::Status(other.chars().take(40).collect()).into()),
    }
    check_telemetry(&beat.telemetry)?;
    if beat.attempts.len() > MAX_GPUS as usize {
        return Err(Invalid::TooMuch { what: "attempts", limit: MAX_GPUS.into() }.into());
    }
    Ok(())
}

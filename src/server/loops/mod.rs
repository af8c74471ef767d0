//! Reconcilers: each takes no input, does bounded work, and is retried by being run again. A failure is logged and
//! stops nothing.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::service::Core;
use crate::service::refusal::Refusal;

/// The slow net under planning, and the end of unanswered offers.
const OFFERS: Duration = Duration::from_secs(2);
/// How stale last-seen times may be after a crash, and on other servers; the promise is 5 s.
const PRESENCE: Duration = Duration::from_secs(2);
/// A leader that ends badly is replaced after its term of 6 s and one of these.
const LEADERSHIP: Duration = Duration::from_secs(2);
/// Between two looks at a clock that was set, servers that share it differ by a tenth of this.
const CLOCK: Duration = Duration::from_secs(2);
/// A worker that falls silent is found within this of the timeout; the promise is 5 s.
const HEALTH: Duration = Duration::from_secs(2);
/// When tokens and sessions were last used. Each server writes what it saw, or another one ends a session that is in use.
const USED: Duration = Duration::from_mins(1);
/// How much of how GPUs did is lost with a server that is killed.
const HISTORY: Duration = Duration::from_mins(5);
/// Sessions that are over.
const SESSIONS: Duration = Duration::from_hours(1);

/// Free space on the disk; what fills it at a gigabyte a second is noticed soon enough.
const DISK: Duration = Duration::from_secs(1);

/// How much of what strangers were refused was left out of the record.
const REFUSED: Duration = Duration::from_mins(1);
/// What of the audit trail is signed, and what of it and of ended jobs was kept for long enough.
const AUDIT: Duration = Duration::from_hours(1);

/// Starts them all; they end with the token. Those that judge or sweep do so on the server that leads.
pub fn start(core: &Arc<Core>, tasks: &TaskTracker, shutdown: &CancellationToken) {
    let (listener, ended) = (Arc::clone(core), shutdown.clone());
    tasks.spawn(async move {
        ended
            .run_until_cancelled(async {
                loop {
                    listener.hear().await;
                }
            })
            .await
    });
    tasks.spawn(every("leadership", LEADERSHIP, shutdown.clone(), Arc::clone(core), |core| async move {
        core.take_part().await
    }));
    tasks.spawn(every("clock", CLOCK, shutdown.clone(), Arc::clone(core), |core| async move {
        core.follow_clock().await.map(drop)
    }));
    tasks.spawn(leading("offers", OFFERS, shutdown.clone(), Arc::clone(core), |core| async move {
        let expired = core.sweep_offers().await?;
        if expired > 0 {
            tracing::info!(expired, "offers that nobody answered were taken back");
        }
        Ok(())
    }));
    tasks.spawn(leading("health", HEALTH, shutdown.clone(), Arc::clone(core), |core| async move {
        let checked = core.check_health().await?;
        if checked != crate::service::health::Checked::default() {
            tracing::info!(silent = checked.silent, removed = checked.removed, "workers are gone");
        }
        Ok(())
    }));
    tasks.spawn(every("presence", PRESENCE, shutdown.clone(), Arc::clone(core), |core| async move {
        core.flush_presence().await
    }));
    tasks.spawn(every("disk", DISK, shutdown.clone(), Arc::clone(core), |core| async move { core.look_at_disk() }));
    tasks.spawn(every("used", USED, shutdown.clone(), Arc::clone(core), |core| async move { core.flush_used().await }));
    tasks.spawn(leading("sessions", SESSIONS, shutdown.clone(), Arc::clone(core), |core| async move {
        core.sweep_sessions().await?;
        core.sweep_idempotency_keys().await
    }));
    tasks.spawn(every("refused", REFUSED, shutdown.clone(), Arc::clone(core), |core| async move {
        core.settle_refused().await;
        Ok(())
    }));
    tasks.spawn(every("audit checkpoints", AUDIT, shutdown.clone(), Arc::clone(core), |core| async move {
        core.sign_audit().await
    }));
    tasks.spawn(leading("job retention", AUDIT, shutdown.clone(), Arc::clone(core), |core| async move {
        let given_up = core.expire_jobs().await?;
        if given_up > 0 {
            tracing::info!(given_up, "jobs or files of theirs were kept for long enough");
        }
        Ok(())
    }));
    // Each server has a directory of its own, or they share one: then it is soon empty.
    tasks.spawn(every("uploads", AUDIT, shutdown.clone(), Arc::clone(core), |core| async move {
        let dropped = core.sweep_uploads().await?;
        if dropped > 0 {
            tracing::info!(dropped, "uploads with which nobody went on are gone");
        }
        Ok(())
    }));
    tasks.spawn(every("readings", USED, shutdown.clone(), Arc::clone(core), |core| async move {
        core.forget_readings().await
    }));
    tasks.spawn(every("gpu history", HISTORY, shutdown.clone(), Arc::clone(core), |core| async move {
        core.keep_histories().await
    }));
    tasks.spawn(leading("audit retention", AUDIT, shutdown.clone(), Arc::clone(core), |core| async move {
        let removed = core.expire_audit().await?;
        if removed > 0 {
            tracing::info!(removed, "entries of the audit trail were kept for long enough");
        }
        Ok(())
    }));
}

async fn leading<F>(
    name: &'static str,
    period: Duration,
    shutdown: CancellationToken,
    core: Arc<Core>,
    pass: impl Fn(Arc<Core>) -> F + Send + Sync,
) where
    F: Future<Output = Result<(), Refusal>> + Send,
{
    let pass = &pass;
    let if_it_leads =
        |core: Arc<Core>| async move { if core.leadership.held_since().is_some() { pass(core).await } else { Ok(()) } };
    every(name, period, shutdown, core, if_it_leads).await;
}

async fn every<F>(
    name: &'static str,
    period: Duration,
    shutdown: CancellationToken,
    core: Arc<Core>,
    pass: impl Fn(Arc<Core>) -> F + Send,
) where
    F: Future<Output = Result<(), Refusal>> + Send,
{
    let passes = core.metrics.loops.of(name);
    let mut timer = tokio::time::interval(period);
    timer.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = timer.tick() => {}
            () = shutdown.cancelled() => return,
        }
        let begun = Instant::now();
        let ended = pass(Arc::clone(&core)).await;
        passes.ended(core.now(), begun.elapsed(), ended.is_ok());
        if let Err(refusal) = ended {
            tracing::error!(reconciler = name, ?refusal, "a pass failed; the next one tries again");
        }
    }
}

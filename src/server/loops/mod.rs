//! Reconcilers: each takes no input, does bounded work, and is retried by being run again. A failure is logged and
//! stops nothing.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::service::Core;
use crate::service::refusal::Refusal;

/// The slow net under planning, and the end of unanswered offers.
const OFFERS: Duration = Duration::from_secs(2);
/// How stale last-seen times may be after a crash.
const PRESENCE: Duration = Duration::from_secs(5);
/// Sessions that are over.
const SESSIONS: Duration = Duration::from_hours(1);

/// Starts them all; they end with the token.
pub fn start(core: &Arc<Core>, tasks: &TaskTracker, shutdown: &CancellationToken) {
    tasks.spawn(every("offers", OFFERS, shutdown.clone(), Arc::clone(core), |core| async move {
        let swept = core.sweep_offers().await?;
        if swept != crate::service::dispatch::Swept::default() {
            tracing::info!(expired = swept.expired, offered = swept.offered, "offers swept");
        }
        Ok(())
    }));
    tasks.spawn(every("presence", PRESENCE, shutdown.clone(), Arc::clone(core), |core| async move {
        core.flush_presence().await
    }));
    tasks.spawn(every("sessions", SESSIONS, shutdown.clone(), Arc::clone(core), |core| async move {
        core.sweep_sessions().await
    }));
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
    let mut timer = tokio::time::interval(period);
    timer.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = timer.tick() => {}
            () = shutdown.cancelled() => return,
        }
        if let Err(refusal) = pass(Arc::clone(&core)).await {
            tracing::error!(reconciler = name, ?refusal, "a pass failed; the next one tries again");
        }
    }
}

//! Background loops: each pass takes no input, does a bounded amount of work, and is retried by the next one. An error
//! is logged and stops nothing.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::service::Services;
use crate::service::agents::liveness::HealthPass;
use crate::service::error::ServiceError;

/// Expires unanswered offers, and plans as a fallback.
const OFFERS_INTERVAL: Duration = Duration::from_secs(2);
/// How stale last-contact times may be after a crash, and on other servers; the promise is 5 s.
const PRESENCE_INTERVAL: Duration = Duration::from_secs(2);
/// A crashed leader is replaced after its term of 6 s plus this interval.
const LEADERSHIP_INTERVAL: Duration = Duration::from_secs(2);
/// Between two readings of a clock that was set, servers that share it differ by a tenth of this.
const CLOCK_INTERVAL: Duration = Duration::from_secs(2);
/// A silent worker is found within this time after the timeout; the promise is 5 s.
const HEALTH_INTERVAL: Duration = Duration::from_secs(2);
/// Last uses of tokens and sessions. Each server writes its own, or another one expires a session that is in use.
const LAST_USED_INTERVAL: Duration = Duration::from_mins(1);
/// GPU readings of deleted workers.
const READINGS_INTERVAL: Duration = Duration::from_mins(1);
/// How much GPU history a crash loses.
const HISTORY_INTERVAL: Duration = Duration::from_mins(5);
/// The index of jobs, so that the first query after a start need not wait for it.
const JOB_INDEX_INTERVAL: Duration = Duration::from_secs(10);
/// Expired sessions.
const SESSIONS_INTERVAL: Duration = Duration::from_hours(1);

/// How soon other servers count what was charged to rate limits here.
const RATES_INTERVAL: Duration = Duration::from_secs(1);
/// Free disk space, often enough for a disk that fills at 1 GB/s.
const DISK_INTERVAL: Duration = Duration::from_secs(1);

/// The number of rejected requests that were not recorded.
const REJECTIONS_INTERVAL: Duration = Duration::from_mins(1);
/// Signatures and retention of the audit log, and retention of ended jobs.
const AUDIT_INTERVAL: Duration = Duration::from_hours(1);

/// Starts all loops; they end with the token. Those that judge workers or clean up only work on the leader.
pub fn start(services: &Arc<Services>, tasks: &TaskTracker, shutdown: &CancellationToken) {
    tasks.spawn(follow_changes(Arc::clone(services), shutdown.clone()));
    let loops = Loops { services, tasks, shutdown };
    loops.start_fleet();
    loops.start_cleanup();
}

struct Loops<'l> {
    services: &'l Arc<Services>,
    tasks: &'l TaskTracker,
    shutdown: &'l CancellationToken,
}

impl Loops<'_> {
    /// The state of the fleet and of this server.
    fn start_fleet(&self) {
        self.every(
            "leadership",
            LEADERSHIP_INTERVAL,
            |services| async move { services.system.renew_leadership().await },
        );
        self.every("clock", CLOCK_INTERVAL, |services| async move { services.system.sync_clock().await.map(drop) });
        self.every("presence", PRESENCE_INTERVAL, |services| async move { services.agents.flush_presence().await });
        self.every("rates", RATES_INTERVAL, |services| async move { services.access.share_charges().await });
        self.every("disk", DISK_INTERVAL, |services| async move { services.context.refresh_disk_space() });
        self.every("job index", JOB_INDEX_INTERVAL, |services| async move { services.jobs.update_index().await });
        self.every("used", LAST_USED_INTERVAL, |services| async move { services.access.flush_last_used().await });
        self.every("readings", READINGS_INTERVAL, |services| async move { services.gpus.prune_readings().await });
        self.every("gpu history", HISTORY_INTERVAL, |services| async move { services.gpus.save_gpu_history().await });
        self.while_leading("offers", OFFERS_INTERVAL, |services| async move {
            let expired = services.jobs.sweep_offers().await?;
            if expired > 0 {
                tracing::info!(offers = expired, "offers: withdrew unanswered offers");
            }
            let stopped = services.jobs.preempt().await?;
            if stopped > 0 {
                tracing::info!(attempts = stopped, "preemption: running jobs make room for waiting ones");
            }
            Ok(())
        });
        self.while_leading("health", HEALTH_INTERVAL, |services| async move {
            let HealthPass { offline, removed, failed } = services.agents.check_health().await?;
            if offline + removed + failed > 0 {
                tracing::info!(offline, removed, failed, "health check: processed silent workers");
            }
            Ok(())
        });
    }

    /// Periodic records, signatures and removals.
    fn start_cleanup(&self) {
        self.every("rejections", REJECTIONS_INTERVAL, |services| async move {
            services.audit.flush_suppressed().await;
            Ok(())
        });
        self.every("audit checkpoints", AUDIT_INTERVAL, |services| async move { services.audit.sign_audit().await });
        // Each server has its own directory, or they share one: then it is soon empty.
        self.every("uploads", AUDIT_INTERVAL, |services| async move {
            let dropped = services.artifacts.sweep_uploads().await?;
            if dropped > 0 {
                tracing::info!(uploads = dropped, "uploads: removed abandoned uploads");
            }
            Ok(())
        });
        self.while_leading("sessions", SESSIONS_INTERVAL, |services| async move {
            services.access.sweep_sessions().await?;
            services.jobs.sweep_idempotency_keys().await
        });
        self.while_leading("job retention", AUDIT_INTERVAL, |services| async move {
            let removed = services.jobs.prune_jobs().await?;
            if removed > 0 {
                tracing::info!(jobs = removed, "retention: removed expired jobs or their files");
            }
            Ok(())
        });
        self.while_leading("audit retention", AUDIT_INTERVAL, |services| async move {
            let removed = services.audit.prune_audit().await?;
            if removed > 0 {
                tracing::info!(entries = removed, "retention: removed expired audit entries");
            }
            Ok(())
        });
    }

    fn every<F>(&self, name: &'static str, period: Duration, pass: impl Fn(Arc<Services>) -> F + Send + 'static)
    where
        F: Future<Output = Result<(), ServiceError>> + Send + 'static,
    {
        self.tasks.spawn(run_every(name, period, self.shutdown.clone(), Arc::clone(self.services), pass));
    }

    fn while_leading<F>(
        &self,
        name: &'static str,
        period: Duration,
        pass: impl Fn(Arc<Services>) -> F + Send + Sync + 'static,
    ) where
        F: Future<Output = Result<(), ServiceError>> + Send + 'static,
    {
        self.tasks.spawn(run_while_leading(name, period, self.shutdown.clone(), Arc::clone(self.services), pass));
    }
}

async fn follow_changes(services: Arc<Services>, shutdown: CancellationToken) {
    let follow = async {
        loop {
            services.system.follow_changes().await;
        }
    };
    shutdown.run_until_cancelled(follow).await;
}

async fn run_while_leading<F>(
    name: &'static str,
    period: Duration,
    shutdown: CancellationToken,
    services: Arc<Services>,
    pass: impl Fn(Arc<Services>) -> F + Send + Sync,
) where
    F: Future<Output = Result<(), ServiceError>> + Send,
{
    let pass = &pass;
    let pass_if_leader = |services: Arc<Services>| async move {
        if services.context.leadership.held_since().is_some() { pass(services).await } else { Ok(()) }
    };
    run_every(name, period, shutdown, services, pass_if_leader).await;
}

async fn run_every<F>(
    name: &'static str,
    period: Duration,
    shutdown: CancellationToken,
    services: Arc<Services>,
    pass: impl Fn(Arc<Services>) -> F + Send,
) where
    F: Future<Output = Result<(), ServiceError>> + Send,
{
    let passes = services.context.metrics.loops.get(name);
    let mut timer = tokio::time::interval(period);
    timer.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = timer.tick() => {}
            () = shutdown.cancelled() => return,
        }
        let started = Instant::now();
        let result = pass(Arc::clone(&services)).await;
        passes.record(services.context.now(), started.elapsed(), result.is_ok());
        if let Err(error) = result {
            tracing::error!(task = name, ?error, "background loop failed; retrying at its next pass");
        }
    }
}

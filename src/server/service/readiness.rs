//! Whether this server can do its work, check by check.

use std::time::Duration;

use app::domain::time::{Millis, Timestamp};

use super::Core;
use super::refusal::Refusal;
use crate::store::Work;

/// How long the database may take to answer all of it.
const PATIENCE: Duration = Duration::from_secs(2);
/// Something that was written so lately shows that writing works; only then is something written to find out.
const LATELY: Millis = Millis::seconds(5);
/// The trail may be ahead of this server's clock by so much: servers follow a clock that was set, but not at one moment.
const AHEAD: Millis = Millis::seconds(60);
/// A clock that says less was never set: 2024-01-01.
const BEFORE_US: Timestamp = Timestamp(1_704_067_200_000);
/// Where what is written to find out stands among the server's settings.
const PROBE: &str = "readiness_probe";

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// As it should be.
    Well,
    /// Somebody should look, but the server can still be asked: without it, running work could not report.
    Worth(&'static str),
    /// Nobody should be sent here.
    Wrong(&'static str),
}

/// The checks, by their names.
pub type Checks = Vec<(&'static str, Found)>;

impl Core {
    /// Checks everything. Strangers may ask, so it names what is wrong and tells nothing more.
    pub async fn readiness(&self) -> Checks {
        let asked = tokio::time::timeout(PATIENCE, self.ask_database()).await;
        let mut checks = match asked {
            Ok(Ok(checks)) => checks,
            Ok(Err(refusal)) => {
                tracing::warn!(?refusal, "the database is not ready");
                vec![("database", Found::Wrong("It does not take or give what it should; the server's log says why."))]
            }
            Err(_) => vec![("database", Found::Wrong("It did not answer within 2 s."))],
        };
        let disk = match self.room.space() {
            _ if self.room.is_full() => Found::Worth("Less is free than --disk-min-free: no new jobs are taken."),
            Some(_) => Found::Well,
            None => Found::Worth("Its free space is not known."),
        };
        checks.push(("disk", disk));
        checks
    }

    async fn ask_database(&self) -> Result<Checks, Refusal> {
        let mut tx = self.read().await?;
        let (schema, newest) = (tx.schema_version().await?, tx.newest_audit_at().await?);
        let leader = tx.leader_is_known().await?;
        drop(tx);
        let now = self.now();
        if now - self.metrics.commits.written_at() > LATELY {
            let probe = now.0.to_string();
            let work: Work = Box::new(move |tx| {
                let probe = probe.clone();
                Box::pin(async move { tx.put_setting(PROBE, Some(&probe)).await })
            });
            self.store.write(work).await?;
        }
        let migrations = if schema == self.store.known_schema() {
            Found::Well
        } else {
            Found::Wrong("The database's schema is not the one of this version; all servers must be of one version.")
        };
        let clock = if now < BEFORE_US || newest.is_some_and(|newest| newest - now > AHEAD) {
            Found::Wrong(
                "It is behind what is on record already; set the clock of the machine, or of the database that several servers share.",
            )
        } else {
            Found::Well
        };
        let leader = if leader { Found::Well } else { Found::Worth("No server leads at the moment.") };
        Ok(vec![("database", Found::Well), ("migrations", migrations), ("clock", clock), ("leader", leader)])
    }
}

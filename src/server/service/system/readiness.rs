//! Readiness of this server, as a list of checks.

use std::time::Duration;

use app::domain::time::{Millis, Timestamp};

use crate::service::error::ServiceError;
use crate::service::system::SystemService;
use crate::store::TransactionWork;
use crate::store::system::schema::DatabaseSchema;
use crate::store::system::servers::RegisteredServer;

/// The time limit for all database checks together.
const DATABASE_TIMEOUT: Duration = Duration::from_secs(2);
/// A write within this time shows that writing works; otherwise a test write is made.
const RECENT_WRITE: Millis = Millis::from_secs(5);
/// How far the newest audit entry may be ahead of this server's clock: servers follow a clock that was set, but not at
/// the same moment.
const MAX_CLOCK_LEAD: Millis = Millis::from_secs(60);
/// An earlier time means that the clock was never set: 2024-01-01.
const MIN_PLAUSIBLE_TIME: Timestamp = Timestamp(1_704_067_200_000);
/// The setting that test writes change.
const PROBE_SETTING: &str = "readiness_probe";

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadinessResult {
    Pass,
    /// Needs attention, but requests must still reach the server: otherwise running work could not report.
    Warning(&'static str),
    /// No requests should be routed to this server.
    Failure(&'static str),
}

/// The checks by name.
pub type ReadinessChecks = Vec<(&'static str, ReadinessResult)>;

impl SystemService {
    /// Runs all checks. The result is public, so it names what is wrong without details.
    pub async fn readiness(&self) -> ReadinessChecks {
        let result = tokio::time::timeout(DATABASE_TIMEOUT, self.check_database()).await;
        let mut checks = match result {
            Ok(Ok(checks)) => checks,
            Ok(Err(error)) => {
                tracing::warn!(?error, "readiness: the database check failed");
                vec![("database", ReadinessResult::Failure("Reading or writing failed; see the server's log."))]
            }
            Err(_) => vec![("database", ReadinessResult::Failure("It did not answer within 2 s."))],
        };
        let disk = match self.context.disk_space.space() {
            _ if self.context.disk_space.is_full() => {
                ReadinessResult::Warning("Free space is below --disk-min-free: no new jobs are accepted.")
            }
            Some(_) => ReadinessResult::Pass,
            None => ReadinessResult::Warning("The free space is unknown."),
        };
        checks.push(("disk", disk));
        checks
    }

    async fn check_database(&self) -> Result<ReadinessChecks, ServiceError> {
        let mut tx = self.context.read().await?;
        let (schema, newest) = (tx.schema().await?, tx.newest_audit_at().await?);
        let servers = tx.registered_servers(self.context.policy.server_life).await?;
        let leader = tx.has_leader().await?;
        drop(tx);
        let now = self.context.now();
        if now - self.context.metrics.commits.written_at() > RECENT_WRITE {
            let probe = now.0.to_string();
            let work: TransactionWork = Box::new(move |tx| {
                let probe = probe.clone();
                Box::pin(async move { tx.put_setting(PROBE_SETTING, Some(&probe)).await })
            });
            self.context.store.write(work).await?;
        }
        let migrations = judge_versions(schema, self.context.store.newest_schema(), &servers);
        let clock = if now < MIN_PLAUSIBLE_TIME || newest.is_some_and(|newest| newest - now > MAX_CLOCK_LEAD) {
            ReadinessResult::Failure(
                "The clock is behind the audit log; set the clock of the machine, or of the shared database.",
            )
        } else {
            ReadinessResult::Pass
        };
        let leader = if leader {
            ReadinessResult::Pass
        } else {
            ReadinessResult::Warning("No server is the leader at the moment.")
        };
        Ok(vec![("database", ReadinessResult::Pass), ("migrations", migrations), ("clock", clock), ("leader", leader)])
    }
}

/// Judges whether this program works with the database and with the other servers on it.
fn judge_versions(schema: DatabaseSchema, known: i64, servers: &[RegisteredServer]) -> ReadinessResult {
    if schema.check_compatible(known).is_err() {
        ReadinessResult::Failure("A newer version has migrated the database; upgrade this server.")
    } else if schema.version < known {
        ReadinessResult::Failure("The database has an older schema; restart this server to migrate it.")
    } else if schema.version > known {
        ReadinessResult::Warning("A newer version has migrated the database; upgrade this server too.")
    } else if servers.iter().any(|server| server.version != servers[0].version) {
        ReadinessResult::Warning("Servers of several versions share the database; complete the upgrade.")
    } else {
        ReadinessResult::Pass
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mix_of_two_versions_is_ready_and_says_so() {
        let server = |version: Option<&str>| RegisteredServer {
            id: "c_1".to_owned(),
            is_leader: false,
            seen_at: None,
            version: version.map(str::to_owned),
        };
        let judge = |version, oldest_compatible, servers: &[Option<&str>]| {
            let servers: Vec<RegisteredServer> = servers.iter().map(|version| server(*version)).collect();
            judge_versions(DatabaseSchema { version, oldest_compatible }, 15, &servers)
        };
        assert_eq!(judge(15, 13, &[Some("1.0.0"), Some("1.0.0")]), ReadinessResult::Pass);
        assert_eq!(judge(15, 13, &[]), ReadinessResult::Pass);
        for mixed in [[Some("1.0.0"), Some("1.1.0")], [None, Some("1.0.0")]] {
            assert!(matches!(judge(15, 13, &mixed), ReadinessResult::Warning(_)), "{mixed:?}");
        }
        assert!(matches!(judge(16, 15, &[]), ReadinessResult::Warning(_)));
        assert!(matches!(judge(16, 16, &[]), ReadinessResult::Failure(_)));
        assert!(matches!(judge(14, 0, &[]), ReadinessResult::Failure(_)));
    }
}

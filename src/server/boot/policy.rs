//! Policy of the fleet from the command line.

use app::domain::plan::ConcurrencyLimits;
use app::domain::time::Millis;

use crate::args::ServerArgs;
use crate::service::ServerPolicy;
use crate::service::policy::rate_quotas::RateQuotas;

/// Returns the policy that the flags set.
pub fn from_args(args: &ServerArgs) -> ServerPolicy {
    if args.heartbeat_timeout < 60 {
        tracing::warn!(
            "--heartbeat-timeout under 60 s is too short for older agents, which send a heartbeat every 30 s"
        );
    }
    let (limits, days) = (&args.limits, |days: u32| Millis::from_secs(i64::from(days) * 86_400));
    ServerPolicy {
        heartbeat_timeout: Millis::from_secs(i64::from(args.heartbeat_timeout)),
        ignore_reported_labels: args.ignore_reported_labels,
        allow_code: args.ops.allow_code,
        audit_retention: args.audit_retention_days.map(days),
        retention: args.ops.retention(),
        log_limit: args.ops.log_max_size,
        limits: ConcurrencyLimits { jobs: args.max_running_jobs, jobs_per_user: args.max_running_jobs_per_user },
        usage_limits: limits.usage_limits(),
        accounts: args.accounts.policy(),
        quotas: RateQuotas::new(limits.rate_limit, limits.anonymous_rate_limit, limits.wrong_password_limit)
            .with_worker_changes(limits.worker_change_limit)
            .with_global_wrong_passwords(limits.wrong_password_limit_per_name),
        ..ServerPolicy::default()
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn policy_from(flags: &[&str]) -> ServerPolicy {
        #[derive(Parser)]
        struct ServerCommand {
            #[command(flatten)]
            server: ServerArgs,
        }
        let command_line = [&["server"], flags].concat();
        from_args(
            &ServerCommand::try_parse_from(&command_line)
                .unwrap_or_else(|error| panic!("{command_line:?}: {error}"))
                .server,
        )
    }

    #[test]
    fn documented_values_are_the_defaults() {
        let policy = policy_from(&[]);
        assert_eq!(policy.heartbeat_timeout, Millis::from_secs(120));
        assert_eq!(policy.heartbeat_interval_seconds(), 30);
    }

    #[test]
    fn tests_use_the_defaults_of_the_command_line() {
        assert_eq!(format!("{:#?}", policy_from(&[])), format!("{:#?}", ServerPolicy::default()));
    }

    #[test]
    fn each_policy_flag_is_applied() {
        let flags = [
            "heartbeat-timeout",
            "max-running-jobs",
            "max-running-jobs-per-user",
            "rate-limit",
            "anonymous-rate-limit",
            "wrong-password-limit",
            "wrong-password-limit-per-name",
            "session-idle-minutes",
            "session-hours",
            "api-token-days",
            "unused-worker-token-days",
            "max-event-streams-per-user",
            "log-search-millis",
            "max-log-searches",
            "max-log-searches-per-user",
            "max-waiting-jobs-per-user",
            "max-api-tokens-per-user",
            "worker-change-limit",
            "max-points-per-attempt",
            "max-point-size-per-attempt",
            "max-config-size-per-user",
            "max-config-size",
            "max-file-size-per-job",
            "max-file-size-per-user",
            "audit-retention-days",
            "job-retention-days",
            "log-retention-days",
            "artifact-retention-days",
            "artifact-max-total",
            "log-max-size",
        ];
        let defaults = format!("{:?}", ServerPolicy::default());
        for flag in flags {
            // A value that is valid for each flag and no default.
            let number = if flag.contains("log-searches") { "3" } else { "123" };
            let policy = policy_from(&[&format!("--{flag}"), number]);
            assert_ne!(format!("{policy:?}"), defaults, "--{flag}");
        }
        for switch in [&["--allow-code"][..], &["--ignore-reported-labels"], &["--require-second-factor", "all"]] {
            assert_ne!(format!("{:?}", policy_from(switch)), defaults, "{switch:?}");
        }
    }
}

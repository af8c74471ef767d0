//! The numbers that rule the fleet, from the command line.

use app::domain::plan::Limits;
use app::domain::time::Millis;

use crate::cli::ServerArgs;
use crate::service::Policy;
use crate::service::rates::Quotas;

/// As the operator has set them.
pub fn of(args: &ServerArgs) -> Policy {
    if args.heartbeat_timeout < 60 {
        tracing::warn!("a heartbeat timeout under 60 s is too short for older agents, which send one each 30 s");
    }
    let (limits, days) = (&args.limits, |days: u32| Millis::seconds(i64::from(days) * 86_400));
    Policy {
        heartbeat_timeout: Millis::seconds(i64::from(args.heartbeat_timeout)),
        ignore_reported_labels: args.ignore_reported_labels,
        allow_code: args.ops.allow_code,
        audit_retention: args.audit_retention_days.map(days),
        kept: args.ops.kept(),
        log_limit: args.ops.log_max_size,
        limits: Limits { jobs: args.max_running_jobs, jobs_per_user: args.max_running_jobs_per_user },
        bounds: limits.bounds(),
        accounts: args.accounts.policy(),
        quotas: Quotas::new(limits.rate_limit, limits.stranger_rate_limit, limits.wrong_password_limit)
            .with_worker_changes(limits.worker_change_limit)
            .with_wrong_passwords_in_all(limits.wrong_password_limit_per_name),
        ..Policy::default()
    }
}

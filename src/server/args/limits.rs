//! Rate limits and quotas.

use std::time::Duration;

use clap::{Args, value_parser};

use super::ops::parse_size;
use crate::flashes::FlashLimits;
use crate::service::policy::usage_limits::UsageLimits;
use crate::store::jobs::attempts::PointLimit;

#[derive(Debug, Clone, Args)]
pub struct LimitArgs {
    /// Limit requests per second of a worker, API token or session; burst 10×.
    #[arg(long, env = "SIMPLETUNER_RATE_LIMIT", default_value_t = 1_000)]
    pub rate_limit: u32,
    /// Limit requests per second of unauthenticated clients per network (an IPv4 address or an IPv6 /64); burst 10×.
    #[arg(long, env = "SIMPLETUNER_ANONYMOUS_RATE_LIMIT", default_value_t = 100)]
    pub anonymous_rate_limit: u32,
    /// Limit wrong passwords per minute from a network; a third of it per user there, or from one known browser.
    #[arg(long, env = "SIMPLETUNER_WRONG_PASSWORD_LIMIT", default_value_t = 10)]
    pub wrong_password_limit: u32,
    /// Limit wrong passwords per minute for one user from all networks; known browsers do not count.
    #[arg(long, env = "SIMPLETUNER_WRONG_PASSWORD_LIMIT_PER_NAME", default_value_t = 30)]
    pub wrong_password_limit_per_name: u32,
    /// Limit open connections [default: by the limit of open files].
    #[arg(long, env = "SIMPLETUNER_MAX_CONNECTIONS")]
    pub max_connections: Option<usize>,
    /// Limit open connections per network, except trusted proxies [default: 7/8 of --max-connections].
    #[arg(long, env = "SIMPLETUNER_MAX_CONNECTIONS_PER_NETWORK")]
    pub max_connections_per_network: Option<usize>,
    /// Limit the CPU time of one log search, in milliseconds; a longer search continues in further requests.
    #[arg(long, env = "SIMPLETUNER_LOG_SEARCH_MILLIS", default_value_t = 200, value_parser = value_parser!(u32).range(10..=10_000))]
    pub log_search_millis: u32,
    /// Limit concurrent log searches.
    #[arg(long, env = "SIMPLETUNER_MAX_LOG_SEARCHES", default_value_t = 4, value_parser = value_parser!(u32).range(2..=1_000))]
    pub max_log_searches: u32,
    /// Limit concurrent log searches per user; one is always reserved for others.
    #[arg(long, env = "SIMPLETUNER_MAX_LOG_SEARCHES_PER_USER", default_value_t = 2, value_parser = value_parser!(u32).range(1..))]
    pub max_log_searches_per_user: u32,
    /// Limit open event streams per user: pages and scripts that follow changes or logs.
    #[arg(long, env = "SIMPLETUNER_MAX_EVENT_STREAMS_PER_USER", default_value_t = 50, value_parser = value_parser!(u32).range(1..))]
    pub max_event_streams_per_user: u32,
    /// Limit queued jobs per user; requeued jobs do not count as new.
    #[arg(long, env = "SIMPLETUNER_MAX_WAITING_JOBS_PER_USER", default_value_t = 1_000, value_parser = value_parser!(u32).range(1..))]
    pub max_waiting_jobs_per_user: u32,
    /// Limit API tokens per user; expired ones do not count.
    #[arg(long, env = "SIMPLETUNER_MAX_API_TOKENS_PER_USER", default_value_t = 100, value_parser = value_parser!(u32).range(1..))]
    pub max_api_tokens_per_user: u32,
    /// Limit registrations, reconnects and health changes per minute of a worker; burst 3×; 0 for no limit.
    #[arg(long, env = "SIMPLETUNER_WORKER_CHANGE_LIMIT", default_value_t = 20)]
    pub worker_change_limit: u32,
    /// Limit metric points stored per attempt; beyond it every second one is kept, then every fourth, and so on.
    #[arg(long, env = "SIMPLETUNER_MAX_POINTS_PER_ATTEMPT", default_value_t = 100_000, value_parser = value_parser!(u64).range(100..))]
    pub max_points_per_attempt: u64,
    /// Limit the size of metric points stored per attempt.
    #[arg(long, env = "SIMPLETUNER_MAX_POINT_SIZE_PER_ATTEMPT", value_name = "SIZE", default_value = "64MiB", value_parser = parse_size)]
    pub max_point_size_per_attempt: u64,
    /// Limit the size of configuration revisions per user.
    #[arg(long, env = "SIMPLETUNER_MAX_CONFIG_SIZE_PER_USER", value_name = "SIZE", default_value = "256MiB", value_parser = parse_size)]
    pub max_config_size_per_user: u64,
    /// Limit the size of all configuration revisions.
    #[arg(long, env = "SIMPLETUNER_MAX_CONFIG_SIZE", value_name = "SIZE", default_value = "4GiB", value_parser = parse_size)]
    pub max_config_size: u64,
    /// Limit the size of files per job.
    #[arg(long, env = "SIMPLETUNER_MAX_FILE_SIZE_PER_JOB", value_name = "SIZE", default_value = "1TiB", value_parser = parse_size)]
    pub max_file_size_per_job: u64,
    /// Limit the size of files per user.
    #[arg(long, env = "SIMPLETUNER_MAX_FILE_SIZE_PER_USER", value_name = "SIZE", default_value = "4TiB", value_parser = parse_size)]
    pub max_file_size_per_user: u64,
    /// Limit the memory for rejected form input, which the next page shows again.
    #[arg(long, env = "SIMPLETUNER_MAX_FORM_MEMORY", value_name = "SIZE", default_value = "32MiB", value_parser = parse_size)]
    pub max_form_memory: u64,
    /// Limit that memory per user.
    #[arg(long, env = "SIMPLETUNER_MAX_FORM_MEMORY_PER_USER", value_name = "SIZE", default_value = "1MiB", value_parser = parse_size)]
    pub max_form_memory_per_user: u64,
}

impl LimitArgs {
    /// Returns the memory limits of flash messages.
    pub fn flash_limits(&self) -> FlashLimits {
        let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        FlashLimits { total: bytes(self.max_form_memory), per_user: bytes(self.max_form_memory_per_user) }
    }

    /// Returns the quotas of users, jobs and workers.
    pub fn usage_limits(&self) -> UsageLimits {
        let number = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        UsageLimits {
            log_search_time: Duration::from_millis(self.log_search_millis.into()),
            log_searches: number(self.max_log_searches),
            log_searches_per_user: number(self.max_log_searches_per_user),
            event_streams_per_user: number(self.max_event_streams_per_user),
            waiting_jobs_per_user: number(self.max_waiting_jobs_per_user),
            api_tokens_per_user: number(self.max_api_tokens_per_user),
            points: PointLimit { max_points: self.max_points_per_attempt, max_bytes: self.max_point_size_per_attempt },
            config_bytes_per_user: self.max_config_size_per_user,
            config_bytes: self.max_config_size,
            file_bytes_per_job: self.max_file_size_per_job,
            file_bytes_per_user: self.max_file_size_per_user,
        }
    }
}

#[cfg(test)]
mod tests {
    use app::domain::{network, passkey};
    use clap::{Arg, Command};

    use super::*;
    use crate::args::ServerArgs;
    use crate::files::{log_gaps, partial_uploads};
    use crate::service::access::notices;
    use crate::service::artifacts::checkpoints;
    use crate::service::{ServerPolicy, configs, secrets};

    const GUIDE: &str = include_str!("../../../docs/OPERATIONS.md");
    /// Limits that are documented among other settings.
    const LIMITS_OF_OTHER_GROUPS: [&str; 3] = ["max-running-jobs", "max-running-jobs-per-user", "log-max-size"];

    /// Returns the rows with this number of cells in the section about limits.
    fn rows(cells: usize) -> Vec<Vec<&'static str>> {
        let section = GUIDE.split("\n## ").find_map(|section| section.strip_prefix("Limits\n")).expect("the section");
        let rows = section.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
        rows.map(|row| row.split(" | ").collect::<Vec<_>>()).filter(|row| row.len() == cells).collect()
    }

    /// Formats a number or size as the guide does: `100,000`, `64 MiB`.
    fn format_as_documented(default: &str) -> String {
        let digits = default.find(|c: char| !c.is_ascii_digit()).unwrap_or(default.len());
        let (number, unit) = default.split_at(digits);
        let mut text = String::new();
        for (index, digit) in number.chars().enumerate() {
            if index > 0 && (number.len() - index).is_multiple_of(3) {
                text.push(',');
            }
            text.push(digit);
        }
        if unit.is_empty() { text } else { format!("{text} {unit}") }
    }

    fn documented_default(flag: &Arg) -> Option<String> {
        flag.get_default_values().first().map(|value| format_as_documented(&value.to_string_lossy()))
    }

    #[test]
    fn guide_lists_exactly_all_limits_with_defaults() {
        let server = ServerArgs::augment_args(Command::new("server"));
        let find_server_flag = |name: &str| server.get_arguments().find(|flag| flag.get_long() == Some(name));
        let limits = LimitArgs::augment_args(Command::new("limits"));
        let mut flags: Vec<&Arg> = limits.get_arguments().collect();
        flags.extend(LIMITS_OF_OTHER_GROUPS.map(|name| find_server_flag(name).expect("a flag")));
        let rows = rows(4);
        for flag in flags {
            let name = flag.get_long().expect("a flag");
            let row = format!("`--{name}`");
            let mut defaults = rows.iter().filter(|cells| cells[1] == row).map(|cells| cells[2]).peekable();
            assert!(defaults.peek().is_some(), "docs/OPERATIONS.md has no row for the limit {row}");
            for text in defaults {
                let number: String = text.chars().take_while(|c| c.is_ascii_digit() || *c == ',').collect();
                let is_default = documented_default(flag).is_none_or(|default| {
                    text.starts_with(&default) && default.starts_with(number.trim_end_matches(','))
                });
                assert!(
                    is_default,
                    "docs/OPERATIONS.md gives {text:?} for {row}; the default is {:?}",
                    documented_default(flag)
                );
            }
        }
        for cells in rows.iter().filter(|cells| cells[1].starts_with("`--")) {
            let name = cells[1].trim_matches('`').trim_start_matches("--");
            assert!(find_server_flag(name).is_some(), "docs/OPERATIONS.md lists {name}, which is not a flag");
        }
    }

    #[test]
    fn guide_lists_the_fixed_limits() {
        let rows = rows(3);
        let files = usize::try_from(ServerPolicy::default().max_artifacts).expect("a number");
        for (label, max) in [
            ("secrets of a user; shared secrets", secrets::MAX_SECRETS),
            ("passkeys of a user", passkey::MAX_PASSKEYS),
            ("notices about a user's account", notices::MAX_NOTICES as usize),
            ("files of a job", files),
            ("files of a checkpoint", checkpoints::MAX_FILES),
            ("uploads in progress of an attempt", partial_uploads::MAX_PER_ATTEMPT),
            ("gaps in an attempt's log", log_gaps::MAX_GAPS),
            ("files of a configuration", configs::MAX_FILES),
            ("allowed networks of a worker", network::MAX_NETWORKS),
        ] {
            let row = rows.iter().find(|cells| cells[0] == label).unwrap_or_else(|| panic!("no row for {label}"));
            assert_eq!(row[1], format_as_documented(&max.to_string()), "{label}");
        }
        let size = rows.iter().find(|cells| cells[0] == "size of a configuration").expect("a row");
        assert_eq!(size[1], format!("{} MiB", configs::MAX_BUNDLE >> 20));
    }

    #[test]
    fn numbers_and_sizes_are_formatted() {
        assert_eq!(
            ["7", "100", "1000", "100000", "64MiB"].map(format_as_documented),
            ["7", "100", "1,000", "100,000", "64 MiB"]
        );
    }
}

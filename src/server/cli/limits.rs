//! How much strangers and callers may take.

use std::time::Duration;

use clap::{Args, value_parser};

use super::ops::size;
use crate::flashes::FlashLimits;
use crate::service::bounds::Bounds;
use crate::store::attempts::PointLimit;

/// Flags of `simpletuner server` about that; 0 is no limit.
#[derive(Debug, Clone, Args)]
pub struct LimitArgs {
    /// Requests a second that a worker, an API token or a session may make in the long run, ten times as many at once.
    #[arg(long, env = "SIMPLETUNER_RATE_LIMIT", default_value_t = 1_000)]
    pub rate_limit: u32,
    /// The same for a network (an IPv4 address, or an IPv6 /64) without a token or a login.
    #[arg(long, env = "SIMPLETUNER_STRANGER_RATE_LIMIT", default_value_t = 100)]
    pub stranger_rate_limit: u32,
    /// Limit the wrong passwords a minute from a network; a third of it for one name there, or from one known browser.
    #[arg(long, env = "SIMPLETUNER_WRONG_PASSWORD_LIMIT", default_value_t = 10)]
    pub wrong_password_limit: u32,
    /// Limit the wrong passwords a minute for one name from all networks; known browsers do not count.
    #[arg(long, env = "SIMPLETUNER_WRONG_PASSWORD_LIMIT_PER_NAME", default_value_t = 30)]
    pub wrong_password_limit_per_name: u32,
    /// Connections at once [default: as many as the limit of open files has room for].
    #[arg(long, env = "SIMPLETUNER_MAX_CONNECTIONS")]
    pub max_connections: Option<usize>,
    /// Connections at once from one network, trusted proxies excepted [default: seven eighths of all].
    #[arg(long, env = "SIMPLETUNER_MAX_CONNECTIONS_PER_NETWORK")]
    pub max_connections_per_network: Option<usize>,
    /// Limit the CPU time of one search of a log, in milliseconds; a longer search continues in further requests.
    #[arg(long, env = "SIMPLETUNER_LOG_SEARCH_MILLIS", default_value_t = 200, value_parser = value_parser!(u32).range(10..=10_000))]
    pub log_search_millis: u32,
    /// Limit how many searches of logs run at once.
    #[arg(long, env = "SIMPLETUNER_MAX_LOG_SEARCHES", default_value_t = 4, value_parser = value_parser!(u32).range(2..=1_000))]
    pub max_log_searches: u32,
    /// Limit how many of those are one person's; there is always one left for others.
    #[arg(long, env = "SIMPLETUNER_MAX_LOG_SEARCHES_PER_USER", default_value_t = 2, value_parser = value_parser!(u32).range(1..))]
    pub max_log_searches_per_user: u32,
    /// Limit how many event streams one person has open at once: pages and scripts that follow changes or logs.
    #[arg(long, env = "SIMPLETUNER_MAX_EVENT_STREAMS_PER_USER", default_value_t = 50, value_parser = value_parser!(u32).range(1..))]
    pub max_event_streams_per_user: u32,
    /// Limit how many of a person's jobs wait at once; jobs that were given back do not count as new.
    #[arg(long, env = "SIMPLETUNER_MAX_WAITING_JOBS_PER_USER", default_value_t = 1_000, value_parser = value_parser!(u32).range(1..))]
    pub max_waiting_jobs_per_user: u32,
    /// Limit how many API tokens a person has; expired ones make room for new ones.
    #[arg(long, env = "SIMPLETUNER_MAX_API_TOKENS_PER_USER", default_value_t = 100, value_parser = value_parser!(u32).range(1..))]
    pub max_api_tokens_per_user: u32,
    /// Limit how often a minute one worker may register, listen anew, or be fit again; three times as often at once; 0 for no limit.
    #[arg(long, env = "SIMPLETUNER_WORKER_CHANGE_LIMIT", default_value_t = 20)]
    pub worker_change_limit: u32,
    /// Limit how many points of progress are kept of an attempt; beyond it every second one is, then every fourth, and so on.
    #[arg(long, env = "SIMPLETUNER_MAX_POINTS_PER_ATTEMPT", default_value_t = 100_000, value_parser = value_parser!(u64).range(100..))]
    pub max_points_per_attempt: u64,
    /// Limit how many bytes those points have.
    #[arg(long, env = "SIMPLETUNER_MAX_POINT_SIZE_PER_ATTEMPT", value_name = "SIZE", default_value = "64MiB", value_parser = size)]
    pub max_point_size_per_attempt: u64,
    /// Limit how many bytes the revisions of configurations have that one person has stored.
    #[arg(long, env = "SIMPLETUNER_MAX_CONFIG_SIZE_PER_USER", value_name = "SIZE", default_value = "256MiB", value_parser = size)]
    pub max_config_size_per_user: u64,
    /// Limit how many bytes all revisions of configurations have.
    #[arg(long, env = "SIMPLETUNER_MAX_CONFIG_SIZE", value_name = "SIZE", default_value = "4GiB", value_parser = size)]
    pub max_config_size: u64,
    /// Limit how many bytes the files of a job have.
    #[arg(long, env = "SIMPLETUNER_MAX_FILE_SIZE_PER_JOB", value_name = "SIZE", default_value = "1TiB", value_parser = size)]
    pub max_file_size_per_job: u64,
    /// Limit how many bytes the files of all jobs of a person have.
    #[arg(long, env = "SIMPLETUNER_MAX_FILE_SIZE_PER_USER", value_name = "SIZE", default_value = "4TiB", value_parser = size)]
    pub max_file_size_per_user: u64,
    /// Limit the memory for what was typed into forms that were refused, which their next page shows again.
    #[arg(long, env = "SIMPLETUNER_MAX_FORM_MEMORY", value_name = "SIZE", default_value = "32MiB", value_parser = size)]
    pub max_form_memory: u64,
    /// Limit how much of that is one person's.
    #[arg(long, env = "SIMPLETUNER_MAX_FORM_MEMORY_PER_USER", value_name = "SIZE", default_value = "1MiB", value_parser = size)]
    pub max_form_memory_per_user: u64,
}

impl LimitArgs {
    /// How much memory waiting flashes may take.
    pub fn flashes(&self) -> FlashLimits {
        let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        FlashLimits { all: bytes(self.max_form_memory), person: bytes(self.max_form_memory_per_user) }
    }

    /// What people, jobs and workers may use up.
    pub fn bounds(&self) -> Bounds {
        let number = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        Bounds {
            log_search_time: Duration::from_millis(self.log_search_millis.into()),
            log_searches: number(self.max_log_searches),
            log_searches_per_user: number(self.max_log_searches_per_user),
            event_streams_per_user: number(self.max_event_streams_per_user),
            waiting_jobs_per_user: number(self.max_waiting_jobs_per_user),
            api_tokens_per_user: number(self.max_api_tokens_per_user),
            points: PointLimit { most: self.max_points_per_attempt, bytes: self.max_point_size_per_attempt },
            config_bytes_per_user: self.max_config_size_per_user,
            config_bytes: self.max_config_size,
            file_bytes_per_job: self.max_file_size_per_job,
            file_bytes_per_user: self.max_file_size_per_user,
        }
    }
}

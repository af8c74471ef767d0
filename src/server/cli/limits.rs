//! How much strangers and callers may take.

use clap::Args;

/// Flags of `simpletuner server` about that; 0 is no limit.
#[derive(Debug, Clone, Args)]
pub struct LimitArgs {
    /// Requests a second that a worker, an API token or a session may make in the long run, ten times as many at once.
    #[arg(long, env = "SIMPLETUNER_RATE_LIMIT", default_value_t = 1_000)]
    pub rate_limit: u32,
    /// The same for a network (an IPv4 address, or an IPv6 /64) without a token or a login.
    #[arg(long, env = "SIMPLETUNER_STRANGER_RATE_LIMIT", default_value_t = 100)]
    pub stranger_rate_limit: u32,
    /// Wrong passwords a minute from a network; a third of it for one name.
    #[arg(long, env = "SIMPLETUNER_WRONG_PASSWORD_LIMIT", default_value_t = 10)]
    pub wrong_password_limit: u32,
    /// Connections at once [default: as many as the limit of open files has room for].
    #[arg(long, env = "SIMPLETUNER_MAX_CONNECTIONS")]
    pub max_connections: Option<usize>,
    /// Connections at once from one network, trusted proxies excepted [default: seven eighths of all].
    #[arg(long, env = "SIMPLETUNER_MAX_CONNECTIONS_PER_NETWORK")]
    pub max_connections_per_network: Option<usize>,
}

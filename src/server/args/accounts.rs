//! Passwords, sessions and tokens of users.

use std::path::PathBuf;

use app::domain::second_factor::SecondFactorPolicy;
use app::domain::time::Millis;
use clap::{Args, value_parser};

use crate::service::access::Blocklist;
use crate::service::policy::accounts::AccountPolicy;

#[derive(Debug, Clone, Args)]
pub struct AccountArgs {
    /// Reject passwords in this file (one per line, case ignored); common passwords are always rejected.
    #[arg(long, env = "SIMPLETUNER_PASSWORD_BLOCKLIST", value_name = "FILE")]
    pub password_blocklist: Option<PathBuf>,
    /// End a browser session after this many minutes without use.
    #[arg(long, env = "SIMPLETUNER_SESSION_IDLE_MINUTES", value_name = "MINUTES", default_value_t = 120, value_parser = value_parser!(u32).range(5..=525_600))]
    pub session_idle_minutes: u32,
    /// End a browser session this many hours after the sign-in.
    #[arg(long, env = "SIMPLETUNER_SESSION_HOURS", value_name = "HOURS", default_value_t = 24, value_parser = value_parser!(u32).range(1..=8_760))]
    pub session_hours: u32,
    /// Expire API tokens after this many days, unless their creator chooses otherwise.
    #[arg(long, env = "SIMPLETUNER_API_TOKEN_DAYS", value_name = "DAYS", default_value_t = 90, value_parser = value_parser!(u32).range(1..=3_660))]
    pub api_token_days: u32,
    /// Expire worker tokens after this many days if no agent has registered with them; 0 for never.
    #[arg(long, env = "SIMPLETUNER_UNUSED_WORKER_TOKEN_DAYS", value_name = "DAYS", default_value_t = 30, value_parser = value_parser!(u32).range(..=3_660))]
    pub unused_worker_token_days: u32,
    /// Require a second factor from no one, from admins, or from all users; who has none sets one up at sign-in.
    #[arg(long, env = "SIMPLETUNER_REQUIRE_SECOND_FACTOR", value_name = "off|admins|all", default_value = "off", value_parser = SecondFactorPolicy::parse)]
    pub require_second_factor: SecondFactorPolicy,
}

impl AccountArgs {
    /// Returns the rejected passwords.
    pub fn blocklist(&self) -> Result<Blocklist, String> {
        self.password_blocklist.as_deref().map_or_else(|| Ok(Blocklist::default()), Blocklist::load)
    }

    /// Returns the lifetimes of sessions and tokens.
    pub fn policy(&self) -> AccountPolicy {
        let days = |days: u32| Millis::from_secs(i64::from(days) * 86_400);
        AccountPolicy {
            session_idle: Millis::from_secs(i64::from(self.session_idle_minutes) * 60),
            session_max_age: Millis::from_secs(i64::from(self.session_hours) * 3_600),
            api_token_lifetime: days(self.api_token_days),
            unused_worker_token_lifetime: (self.unused_worker_token_days > 0)
                .then(|| days(self.unused_worker_token_days)),
            second_factor: self.require_second_factor,
        }
    }
}

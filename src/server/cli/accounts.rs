//! Passwords, sessions and tokens of people.

use std::path::PathBuf;

use app::domain::factor::FactorRule;
use app::domain::time::Millis;
use clap::{Args, value_parser};

use crate::service::access::{AccountPolicy, Blocklist};

/// Flags of `simpletuner server` about that.
#[derive(Debug, Clone, Args)]
pub struct AccountArgs {
    /// Refuse the passwords in this file, one a line, in upper or lower case; common passwords are refused anyway.
    #[arg(long, env = "SIMPLETUNER_PASSWORD_BLOCKLIST", value_name = "FILE")]
    pub password_blocklist: Option<PathBuf>,
    /// End a browser's session after this many minutes without use.
    #[arg(long, env = "SIMPLETUNER_SESSION_IDLE_MINUTES", value_name = "MINUTES", default_value_t = 120, value_parser = value_parser!(u32).range(5..=525_600))]
    pub session_idle_minutes: u32,
    /// End a browser's session this many hours after the login.
    #[arg(long, env = "SIMPLETUNER_SESSION_HOURS", value_name = "HOURS", default_value_t = 24, value_parser = value_parser!(u32).range(1..=8_760))]
    pub session_hours: u32,
    /// Let API tokens expire after this many days, unless their maker chooses otherwise.
    #[arg(long, env = "SIMPLETUNER_API_TOKEN_DAYS", value_name = "DAYS", default_value_t = 90, value_parser = value_parser!(u32).range(1..=3_660))]
    pub api_token_days: u32,
    /// Let worker tokens expire after this many days if no agent has registered with them; 0 for never.
    #[arg(long, env = "SIMPLETUNER_UNUSED_WORKER_TOKEN_DAYS", value_name = "DAYS", default_value_t = 30, value_parser = value_parser!(u32).range(..=3_660))]
    pub unused_worker_token_days: u32,
    /// Require a second factor of nobody, of admins, or of all; who has none sets one up at the login.
    #[arg(long, env = "SIMPLETUNER_REQUIRE_SECOND_FACTOR", value_name = "off|admins|all", default_value = "off", value_parser = FactorRule::parse)]
    pub require_second_factor: FactorRule,
}

impl AccountArgs {
    /// The passwords that nobody may use.
    pub fn blocklist(&self) -> Result<Blocklist, String> {
        self.password_blocklist.as_deref().map_or_else(|| Ok(Blocklist::default()), Blocklist::read)
    }

    /// How long sessions and tokens last.
    pub fn policy(&self) -> AccountPolicy {
        let days = |days: u32| Millis::seconds(i64::from(days) * 86_400);
        AccountPolicy {
            session_idle: Millis::seconds(i64::from(self.session_idle_minutes) * 60),
            session_longest: Millis::seconds(i64::from(self.session_hours) * 3_600),
            api_token_life: days(self.api_token_days),
            unused_worker_token_life: (self.unused_worker_token_days > 0).then(|| days(self.unused_worker_token_days)),
            second_factor: self.require_second_factor,
        }
    }
}

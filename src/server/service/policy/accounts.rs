//! Lifetimes of sessions and tokens. Each is a setting (`cli/accounts.rs`); `docs/OPERATIONS.md` explains the defaults.

use app::domain::second_factor::SecondFactorPolicy;
use app::domain::time::Millis;

#[derive(Debug, Clone, Copy)]
pub struct AccountPolicy {
    /// A session expires after this time without use.
    pub session_idle: Millis,
    /// A session expires this long after the sign-in.
    pub session_max_age: Millis,
    /// Default lifetime of an API token.
    pub api_token_lifetime: Millis,
    /// A worker token expires after this time if no agent has registered with it. `None`: never.
    pub unused_worker_token_lifetime: Option<Millis>,
    /// The roles that must use a second factor.
    pub second_factor: SecondFactorPolicy,
}

impl Default for AccountPolicy {
    fn default() -> Self {
        Self {
            session_idle: Millis::from_secs(2 * 3_600),
            session_max_age: Millis::from_secs(24 * 3_600),
            api_token_lifetime: Millis::from_secs(90 * 86_400),
            unused_worker_token_lifetime: Some(Millis::from_secs(30 * 86_400)),
            second_factor: SecondFactorPolicy::Off,
        }
    }
}

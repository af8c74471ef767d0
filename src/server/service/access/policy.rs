//! How long sessions and tokens last. Each number is a setting (`cli/accounts.rs`); why the defaults are what they are
//! stands in `docs/OPERATIONS.md`.

use app::domain::factor::FactorRule;
use app::domain::time::Millis;

/// See the module.
#[derive(Debug, Clone, Copy)]
pub struct AccountPolicy {
    /// A browser's session ends after this long without use.
    pub session_idle: Millis,
    /// A browser's session ends this long after the login.
    pub session_longest: Millis,
    /// An API token expires after this long, unless its maker chooses otherwise.
    pub api_token_life: Millis,
    /// A worker's token expires after this long if no agent has registered with it; without a number, never.
    pub unused_worker_token_life: Option<Millis>,
    /// Who must have a second factor.
    pub second_factor: FactorRule,
}

impl Default for AccountPolicy {
    fn default() -> Self {
        Self {
            session_idle: Millis::seconds(2 * 3_600),
            session_longest: Millis::seconds(24 * 3_600),
            api_token_life: Millis::seconds(90 * 86_400),
            unused_worker_token_life: Some(Millis::seconds(30 * 86_400)),
            second_factor: FactorRule::Off,
        }
    }
}

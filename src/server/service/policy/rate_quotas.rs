//! Rate limits. Each is a setting (`args/limits.rs`).

use app::domain::rate_limit::Quota;

#[derive(Debug, Clone, Copy)]
pub struct RateQuotas {
    pub caller: Option<Quota>,
    /// Changes of a worker's own state, each of which is audited.
    pub worker_change: Option<Quota>,
    /// Unauthenticated requests of a network.
    pub unauthenticated: Option<Quota>,
    /// Invalid tokens of a network.
    pub wrong_token: Option<Quota>,
    /// Wrong passwords and codes of a network.
    pub wrong_password: Option<Quota>,
    /// Wrong passwords for a name, from one network or known browser.
    pub wrong_password_per_name: Option<Quota>,
    /// Wrong passwords for a name from all networks together. Known browsers are not counted.
    pub wrong_password_global: Option<Quota>,
    /// Wrong codes of a second factor after the correct password, per user or known browser.
    pub wrong_code: Option<Quota>,
}

impl Default for RateQuotas {
    fn default() -> Self {
        Self::new(1_000, 100, 10)
    }
}

impl RateQuotas {
    /// Sets requests per second of a caller and of a network's unauthenticated clients, and wrong passwords per minute;
    /// 0: no limit.
    pub fn new(caller: u32, unauthenticated: u32, wrong_passwords: u32) -> Self {
        let limit = |times: u32| (times > 0).then_some(times);
        let per_minute = |times: u32| Quota::per_minute(times, times.saturating_mul(3));
        Self {
            caller: limit(caller).map(Quota::per_second),
            worker_change: Some(worker_change_quota(20)),
            unauthenticated: limit(unauthenticated).map(Quota::per_second),
            wrong_token: limit(unauthenticated)
                .map(|times| Quota::per_minute(times.saturating_mul(3), times.saturating_mul(3))),
            wrong_password: limit(wrong_passwords).map(per_minute),
            wrong_password_per_name: limit(wrong_passwords).map(|times| per_minute(times.div_ceil(3))),
            wrong_password_global: limit(wrong_passwords).map(|times| per_minute(times.saturating_mul(3))),
            wrong_code: limit(wrong_passwords).map(|times| Quota::per_hour(times, times.div_ceil(2))),
        }
    }

    /// Sets the changes per minute of one worker; 0: no limit.
    #[must_use]
    pub fn with_worker_changes(self, times: u32) -> Self {
        Self { worker_change: (times > 0).then(|| worker_change_quota(times)), ..self }
    }

    /// Sets the wrong passwords per minute for a name from all networks together; 0: no limit.
    #[must_use]
    pub fn with_global_wrong_passwords(self, times: u32) -> Self {
        let quota = (times > 0).then(|| Quota::per_minute(times, times.saturating_mul(3)));
        Self { wrong_password_global: quota, ..self }
    }
}

fn worker_change_quota(times: u32) -> Quota {
    Quota::per_minute(times, times.saturating_mul(3))
}

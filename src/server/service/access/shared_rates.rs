//! Rate limits of several servers: each tells the others, about once a second, what its clients have used.
//!
//! A client of several servers can exceed a limit by what it uses on the others within that second, and by a fiftieth of
//! the burst, below which nothing is sent.

use std::hash::Hash;
use std::str::FromStr;
use std::sync::Mutex;

use app::domain::network::Network;
use app::domain::rate_limit::{KeyedRateLimiter, Quota};
use app::domain::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::AccessService;
use super::rate_limits::RateLimits;
use crate::service::error::ServiceError;
use crate::service::policy::rate_quotas::RateQuotas;

/// The longest message, in bytes: what PostgreSQL accepts, with a margin for the name of the sender.
const MAX_MESSAGE_BYTES: usize = 7_000;

/// A limiter, by its name in messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Limiter {
    Callers,
    WorkerChanges,
    Unauthenticated,
    WrongTokens,
    WrongPasswords,
    WrongPasswordsPerName,
    WrongPasswordsGlobal,
    WrongCodes,
}

/// What a server has charged to a key. Negative if it has refunded more.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SharedCharge(Limiter, String, i64);

/// A limiter with its name and quota, if it has one.
type NamedLimiter<'a, K> = (Limiter, &'a Mutex<KeyedRateLimiter<K>>, Option<Quota>);

impl RateLimits {
    fn by_text(&self, quotas: &RateQuotas) -> [NamedLimiter<'_, String>; 5] {
        [
            (Limiter::Callers, &self.callers, quotas.caller),
            (Limiter::WorkerChanges, &self.worker_changes, quotas.worker_change),
            (Limiter::WrongPasswordsPerName, &self.wrong_passwords_per_name, quotas.wrong_password_per_name),
            (Limiter::WrongPasswordsGlobal, &self.wrong_passwords_global, quotas.wrong_password_global),
            (Limiter::WrongCodes, &self.wrong_codes, quotas.wrong_code),
        ]
    }

    fn by_network(&self, quotas: &RateQuotas) -> [NamedLimiter<'_, Network>; 3] {
        [
            (Limiter::Unauthenticated, &self.unauthenticated, quotas.unauthenticated),
            (Limiter::WrongTokens, &self.wrong_tokens, quotas.wrong_token),
            (Limiter::WrongPasswords, &self.wrong_passwords, quotas.wrong_password),
        ]
    }
}

/// What was charged since the last call.
fn take_charges<K: Eq + Hash + Clone + ToString>((name, limiter, quota): NamedLimiter<'_, K>) -> Vec<SharedCharge> {
    let Some(quota) = quota else { return Vec::new() };
    let taken = limiter.lock().expect("no panic while it is held").take_unshared(quota);
    taken.into_iter().map(|(key, times)| SharedCharge(name, key.to_string(), times)).collect()
}

/// Applies what another server has charged, if it is for one of these limiters.
fn apply_charge<K: Eq + Hash + Clone + FromStr>(
    limiters: &[NamedLimiter<'_, K>],
    SharedCharge(charged, key, times): &SharedCharge,
    now: Timestamp,
) {
    if let Some((_, limiter, Some(quota))) = limiters.iter().find(|(name, ..)| name == charged)
        && let Ok(key) = key.parse::<K>()
    {
        limiter.lock().expect("no panic while it is held").charge_shared(&key, *times, *quota, now);
    }
}

/// Messages of limited length with these charges.
fn messages(charges: Vec<SharedCharge>) -> Vec<String> {
    let mut messages: Vec<String> = Vec::new();
    for charge in charges {
        let Ok(text) = serde_json::to_string(&charge) else { continue };
        match messages.last_mut().filter(|last| last.len() + text.len() < MAX_MESSAGE_BYTES) {
            Some(last) => {
                last.push('\n');
                last.push_str(&text);
            }
            None => messages.push(text),
        }
    }
    messages
}

impl AccessService {
    /// Tells the other servers on this database what was charged here.
    pub async fn share_charges(&self) -> Result<(), ServiceError> {
        if !self.context.store.is_shared() {
            return Ok(());
        }
        let (rates, quotas) = (&self.authenticator.rate_limits, &self.context.policy.quotas);
        let by_text = rates.by_text(quotas).into_iter().flat_map(take_charges);
        let charges = by_text.chain(rates.by_network(quotas).into_iter().flat_map(take_charges)).collect();
        for message in messages(charges) {
            self.context.store.send_message(message).await?;
        }
        Ok(())
    }

    /// Applies a message of another server. What a newer version has added is skipped.
    pub fn apply_charges(&self, message: &str) {
        let (rates, quotas) = (&self.authenticator.rate_limits, &self.context.policy.quotas);
        let (by_text, by_network) = (rates.by_text(quotas), rates.by_network(quotas));
        for charge in message.lines().filter_map(|line| serde_json::from_str(line).ok()) {
            apply_charge(&by_text, &charge, self.context.now());
            apply_charge(&by_network, &charge, self.context.now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_a_limited_length_and_all_charges() {
        let charge = |n: i64| SharedCharge(Limiter::Callers, format!("k{n} \"\n"), n);
        let sent = messages((0..1_000).map(charge).collect());
        assert!(sent.len() > 1 && sent.iter().all(|message| message.len() <= MAX_MESSAGE_BYTES));
        let received = sent.iter().flat_map(|message| message.lines()).map(serde_json::from_str::<SharedCharge>);
        let received: Vec<SharedCharge> = received.map(|charge| charge.expect("a charge")).collect();
        assert_eq!(received, (0..1_000).map(charge).collect::<Vec<_>>());
    }
}
